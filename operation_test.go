package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// begin begins an operation that ends with the test.
func begin(t *testing.T, in rubicon.Intent) (context.Context, *rubicon.Operation) {
	t.Helper()
	ctx, op := rubicon.Begin(t.Context(), in)
	t.Cleanup(op.End)
	return ctx, op
}

// named is an intent with a key of its own.
func named(t *testing.T) rubicon.Intent {
	return rubicon.Intent{Key: rubicon.Key{Scope: "test", Name: t.Name()}}
}

// handler starts a server that acts and lets h answer.
func handler(t *testing.T, p rubicontest.Protocol, h http.HandlerFunc) (*rubicontest.Server, *rubicon.Transport) {
	t.Helper()
	return start(t, p, rubicontest.Act().Handle(h))
}

// TestNestedLayers: three layers that each try again come to the operation's
// attempts, and no more. 3 x 3 x 5 would be 45.
func TestNestedLayers(t *testing.T) {
	layers := func(call func() error) (err error) {
		for range 3 { // the application
			for range 3 { // the SDK
				for range 5 { // the retrying client
					if err = call(); err == nil {
						return nil
					}
				}
			}
		}
		return err
	}
	for _, test := range []struct {
		fault             rubicontest.Fault
		method            string
		requests, effects int
		outcome           rubicon.Outcome
	}{
		{rubicontest.Act().Close(), http.MethodPost, 1, 1, rubicon.Ambiguous},
		{rubicontest.Act().Answer(503, ""), http.MethodPost, 1, 1, rubicon.Ambiguous},
		{rubicontest.Read().Answer(429, ""), http.MethodPost, 4, 0, rubicon.Refused},
		{rubicontest.Act().Close(), http.MethodPut, 4, 4, rubicon.Ambiguous},
		{rubicontest.Act().Close(), http.MethodGet, 4, 4, rubicon.Ambiguous},
	} {
		t.Run(test.method+" "+test.fault.String(), func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, test.fault)
			ctx, op := begin(t, rubicon.Intent{})
			layers(func() error {
				got := send(ctx, tr, test.method, s.URL, bodyFor(test.method))
				if got.err == nil && got.status != 200 {
					return errors.New("status")
				}
				return got.err
			})
			wantCounts(t, s, test.requests, test.effects)
			if op.Outcome() != test.outcome {
				t.Errorf("outcome %v, want %v", op.Outcome(), test.outcome)
			}
			if n := len(op.Attempts()); n != test.requests {
				t.Errorf("%d attempts recorded, want %d", n, test.requests)
			}
		})
	}
}

// TestOperationErr: Err tells the truth where an SDK loses it, and nothing
// after what is not in doubt.
func TestOperationErr(t *testing.T) {
	lost := errors.New("an SDK's own error")
	for _, test := range []struct {
		fault rubicontest.Fault
		want  error
	}{
		{rubicontest.Act().Answer(200, "ok"), nil},
		{rubicontest.Read().Answer(404, ""), nil},
		{rubicontest.Read().Answer(429, ""), nil},
		{rubicontest.Act().Answer(503, ""), rubicon.ErrAmbiguous},
		{rubicontest.Act().Close(), rubicon.ErrAmbiguous},
	} {
		s, tr := start(t, rubicontest.H1, test.fault)
		ctx, op := begin(t, rubicon.Intent{})
		send(ctx, tr, http.MethodPost, s.URL, "{}")
		for _, told := range []error{nil, lost} {
			got := op.Err(told)
			if test.want == nil && got != told {
				t.Errorf("%v: Err(%v) = %v", test.fault, told, got)
			}
			if test.want != nil && !(errors.Is(got, test.want) && errors.Is(got, errors.Join(told, test.want).(interface{ Unwrap() []error }).Unwrap()[0])) {
				t.Errorf("%v: Err(%v) = %v, want both", test.fault, told, got)
			}
		}
	}

	r := rubicontest.NewRefused()
	defer r.Close()
	ctx, op := begin(t, rubicon.Intent{})
	got := send(ctx, &rubicon.Transport{Backoff: quick}, http.MethodPost, r.URL, "{}")
	if op.Outcome() != rubicon.Unsent || op.Err(lost) != lost || !errors.Is(got.err, rubicon.ErrBudget) {
		t.Errorf("unsent: %v, %v, %v", op.Outcome(), op.Err(lost), got.err)
	}
}

// TestOnePerKey: a key binds one unsafe request, for every handle of it.
func TestOnePerKey(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "ok"))
	in := named(t)
	ctx, _ := begin(t, in)
	check(t, send(ctx, tr, http.MethodPost, s.URL+"/pay", `{"n":1}`), 200, nil)
	wantCounts(t, s, 1, 1)

	again, _ := begin(t, in)
	for _, ctx := range []context.Context{ctx, again} {
		check(t, send(ctx, tr, http.MethodPost, s.URL+"/pay", `{"n":2}`), 0, rubicon.ErrMismatch)
		check(t, send(ctx, tr, http.MethodPost, s.URL+"/other", `{"n":1}`), 0, rubicon.ErrMismatch)
		check(t, send(ctx, tr, http.MethodPut, s.URL+"/pay", `{"n":1}`), 0, rubicon.ErrMismatch)
		check(t, send(ctx, tr, http.MethodPost, s.URL+"/pay", `{"n":1}`), 0, rubicon.ErrSettled)
	}
	wantCounts(t, s, 1, 1)

	// Reads are no second effect.
	check(t, send(ctx, tr, http.MethodGet, s.URL+"/status", ""), 200, nil)
	check(t, send(ctx, tr, http.MethodGet, s.URL+"/status", ""), 200, nil)
	wantCounts(t, s, 3, 3)
}

// TestInProgress: two identical requests under one key at once are one.
func TestInProgress(t *testing.T) {
	release := make(chan struct{})
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Until(release).Answer(200, "ok"))
	in := named(t)
	ctx, _ := begin(t, in)
	var wg sync.WaitGroup
	wg.Go(func() { check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil) })
	s.Await(t.Context(), func(c rubicontest.Counts) bool { return c.Effects == 1 })
	other, _ := begin(t, in)
	check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrInProgress)
	check(t, send(other, tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrInProgress)
	close(release)
	wg.Wait()
	wantCounts(t, s, 1, 1)
}

// TestKeyOutlivesItsHandle: an ambiguous operation stays so for the next
// handle of its key.
func TestKeyOutlivesItsHandle(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Answer(200, "ok"))
	ctx, op := rubicon.Begin(t.Context(), named(t))
	check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrAmbiguous)
	op.End()
	ctx, op = begin(t, named(t))
	check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrAmbiguous)
	wantCounts(t, s, 1, 1)
	if op.Outcome() != rubicon.Ambiguous {
		t.Errorf("outcome %v", op.Outcome())
	}
}

// TestScope: without a key an operation is a scope. Different requests are
// different intents, each with a record of its own.
func TestScope(t *testing.T) {
	t.Run("two tools", func(t *testing.T) {
		s, tr := start(t, rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Answer(200, "ok"))
		ctx, op := begin(t, rubicon.Intent{})
		check(t, send(ctx, tr, http.MethodPost, s.URL+"/tool", `{"call":1}`), 0, rubicon.ErrAmbiguous)
		check(t, send(ctx, tr, http.MethodPost, s.URL+"/tool", `{"call":2}`), 200, nil)
		check(t, send(ctx, tr, http.MethodPost, s.URL+"/tool", `{"call":1}`), 0, rubicon.ErrAmbiguous)
		wantCounts(t, s, 2, 2)
		if op.Outcome() != rubicon.Ambiguous {
			t.Errorf("the doubt about the first tool is forgotten: %v", op.Outcome())
		}
	})
	t.Run("polling by POST", func(t *testing.T) {
		s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "pending"))
		ctx, _ := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
		for range 10 {
			check(t, send(ctx, tr, http.MethodPost, s.URL, `{"query":"{status}"}`), 200, nil)
		}
		wantCounts(t, s, 10, 10)
	})
	t.Run("after a definite failure", func(t *testing.T) {
		s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(400, ""), rubicontest.Act().Answer(200, "ok"))
		ctx, _ := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
		check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 400, nil)
		check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil)
		wantCounts(t, s, 2, 1)
	})
	t.Run("pagination", func(t *testing.T) {
		s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "page"))
		ctx, _ := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
		for page := range 20 {
			check(t, send(ctx, tr, http.MethodGet, fmt.Sprintf("%s/?page=%d", s.URL, page), ""), 200, nil)
		}
		wantCounts(t, s, 20, 20)
	})
	t.Run("parallel samples", func(t *testing.T) {
		release := make(chan struct{})
		s, tr := start(t, rubicontest.H1, rubicontest.Act().Until(release).Answer(200, "ok"))
		ctx, _ := begin(t, rubicon.Intent{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil) })
		}
		s.Await(t.Context(), func(c rubicontest.Counts) bool { return c.Effects == 3 })
		close(release)
		wg.Wait()
	})
	t.Run("first attempts are always allowed, extras are bounded", func(t *testing.T) {
		s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(429, ""))
		ctx, _ := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 3}})
		for call := range 5 {
			send(ctx, tr, http.MethodPost, s.URL, fmt.Sprintf(`{"call":%d}`, call))
		}
		if got, want := s.Requests(), 5+2; got != want {
			t.Errorf("%d requests, want %d: one for each call and two extras for all", got, want)
		}
	})
	t.Run("rejected credentials", func(t *testing.T) {
		// An SDK that refreshes its own token must keep working.
		s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(401, ""), rubicontest.Act().Answer(200, "ok"))
		ctx, _ := begin(t, rubicon.Intent{})
		check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 401, nil)
		check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil)
		wantCounts(t, s, 2, 1)
	})
}

// TestRedirects: hops are not second effects, whatever status leads to them.
func TestRedirects(t *testing.T) {
	for _, in := range []string{"unnamed", "named"} {
		for _, status := range []int{303, 307, 308} {
			t.Run(fmt.Sprintf("%s %d", in, status), func(t *testing.T) {
				both(t, func(t *testing.T, p rubicontest.Protocol) {
					s, tr := handler(t, p, func(w http.ResponseWriter, r *http.Request) {
						b, _ := io.ReadAll(r.Body)
						if r.URL.Path == "/" {
							http.SetCookie(w, &http.Cookie{Name: "hop", Value: "1"})
							http.Redirect(w, r, "/next", status)
							return
						}
						cookie, _ := r.Cookie("hop")
						fmt.Fprintf(w, "%s %s %v", r.Method, b, cookie)
					})
					intent := rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}}
					if in == "named" {
						intent.Key = rubicon.Key{Name: t.Name()}
					}
					ctx, op := begin(t, intent)
					jar, _ := cookiejar.New(nil)
					req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/", strings.NewReader("hello"))
					res, err := (&http.Client{Transport: tr, Jar: jar}).Do(req)
					if err != nil {
						t.Fatal(err)
					}
					defer res.Body.Close()
					b, _ := io.ReadAll(res.Body)
					want := "POST hello hop=1"
					if status == 303 {
						want = "GET  hop=1"
					}
					if string(b) != want || op.Outcome() != rubicon.Succeeded {
						t.Errorf("told %q, outcome %v", b, op.Outcome())
					}
				})
			})
		}
	}
}

// TestRedirectedEffect: a hop that may have acted leaves the whole request in
// doubt, and starting it over from the first hop does not repeat it.
func TestRedirectedEffect(t *testing.T) {
	for _, intent := range []rubicon.Intent{{}, named(t)} {
		target := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
		defer target.Close()
		s, tr := handler(t, rubicontest.H1, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
		})
		ctx, op := begin(t, intent)
		for range 3 {
			check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrAmbiguous)
		}
		wantCounts(t, target, 1, 1)
		if op.Outcome() != rubicon.Ambiguous {
			t.Errorf("outcome %v", op.Outcome())
		}
	}
}

// TestTurn: a turn holds separate pools for generations and for effects, and
// nested operations draw on both their own budget and the turn's.
func TestTurn(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(429, ""))
	turn, _ := begin(t, rubicon.Intent{Budget: rubicon.Budget{Attempts: 3}}) // two extras a kind
	call := func(kind rubicon.Kind, budget rubicon.Budget) int {
		before := s.Requests()
		ctx, op := rubicon.Begin(turn, rubicon.Intent{Kind: kind, Budget: budget})
		defer op.End()
		send(ctx, tr, http.MethodPost, s.URL, "{}")
		return s.Requests() - before
	}
	for _, test := range []struct {
		kind     rubicon.Kind
		budget   rubicon.Budget
		attempts int
	}{
		{rubicon.Generation, rubicon.Budget{Attempts: 2}, 2}, // its own budget is smaller
		{rubicon.Generation, rubicon.Budget{}, 2},            // the turn has one extra left
		{rubicon.Generation, rubicon.Budget{}, 1},            // and none
		{rubicon.Effect, rubicon.Budget{}, 3},                // effects have a pool of their own
		{rubicon.Effect, rubicon.Budget{}, 1},
	} {
		if got := call(test.kind, test.budget); got != test.attempts {
			t.Errorf("%v with %v: %d attempts, want %d", test.kind, test.budget, got, test.attempts)
		}
	}
}

// TestEnd: after End nothing is sent, and a body that is being read goes on.
func TestEnd(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Stream("a", "b", "c").Pace(20*time.Millisecond))
	ctx, op := rubicon.Begin(t.Context(), rubicon.Intent{})
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	op.End()
	b, err := io.ReadAll(res.Body)
	res.Body.Close()
	if string(b) != "abc" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrEnded)
	nested, _ := rubicon.Begin(ctx, rubicon.Intent{})
	check(t, send(nested, tr, http.MethodPost, s.URL, "{}"), 0, rubicon.ErrEnded)
	wantCounts(t, s, 1, 1)
}

// TestEndDuringWait: nothing is in flight after a wait that was ended.
func TestEndDuringWait(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Read().Answer(429, "slow"))
	ctx, op := rubicon.Begin(t.Context(), rubicon.Intent{})
	tr.Trace = &rubicon.Trace{Wait: func(context.Context, rubicon.WaitInfo) { op.End() }}
	got := send(ctx, tr, http.MethodPost, s.URL, "{}")
	if got.status != 429 {
		t.Errorf("told %d %v, want the answer that came", got.status, got.err)
	}
	wantCounts(t, s, 1, 0)
	for _, a := range op.Attempts() {
		if !a.Ended {
			t.Errorf("left in flight: %+v", a)
		}
	}
}

// TestBudgetIsChecked: bad budgets are errors that name the field's fault.
func TestBudgetIsChecked(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(200, "ok"))
	for _, budget := range []rubicon.Budget{{Attempts: rubicon.None}, {Sends: -2}, {Elapsed: -time.Second}} {
		ctx, _ := begin(t, rubicon.Intent{Budget: budget})
		if got := send(ctx, tr, http.MethodPost, s.URL, "{}"); got.err == nil || !strings.Contains(got.err.Error(), "Budget") {
			t.Errorf("%+v: %v", budget, got.err)
		}
		bad := &rubicon.Transport{Base: tr.Base, Budget: budget}
		if got := send(t.Context(), bad, http.MethodGet, s.URL, ""); got.err == nil || !strings.Contains(got.err.Error(), "Budget") {
			t.Errorf("transport's %+v: %v", budget, got.err)
		}
	}
	wantCounts(t, s, 0, 0)
	if got, want := (rubicon.Budget{}).String(), "4 attempts (3 sends, 3 replays, 1 refreshes, 0 resumes) within 2m0s"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got, want := (rubicon.Budget{Replays: rubicon.None}).String(), "4 attempts (3 sends, 0 replays, 1 refreshes, 0 resumes) within 2m0s"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// TestAllowances: each reason has an allowance of its own.
func TestAllowances(t *testing.T) {
	ok := rubicontest.Act().Answer(200, "ok")
	refused, lost := rubicontest.Read().Answer(429, ""), rubicontest.Act().Close()
	for _, test := range []struct {
		budget   rubicon.Budget
		script   []rubicontest.Fault
		requests int
		status   int
		err      error
	}{
		{rubicon.Budget{Sends: rubicon.None}, []rubicontest.Fault{refused, ok}, 1, 429, nil},
		{rubicon.Budget{Replays: rubicon.None}, []rubicontest.Fault{refused, ok}, 2, 200, nil},
		{rubicon.Budget{Replays: rubicon.None}, []rubicontest.Fault{lost, ok}, 1, 0, rubicon.ErrBudget},
		{rubicon.Budget{Sends: 1, Replays: 1, Attempts: 10}, []rubicontest.Fault{refused, lost, ok}, 3, 200, nil},
		{rubicon.Budget{Sends: 1, Replays: 1, Attempts: 10}, []rubicontest.Fault{refused, lost, lost}, 3, 0, rubicon.ErrBudget},
		{rubicon.Budget{Attempts: 2}, []rubicontest.Fault{refused, lost, ok}, 2, 0, rubicon.ErrBudget},
		{rubicon.Budget{Elapsed: rubicon.None}, []rubicontest.Fault{refused, ok}, 1, 429, nil},
	} {
		s, tr := start(t, rubicontest.H1, test.script...)
		tr.Budget = test.budget
		got := send(t.Context(), tr, http.MethodPut, s.URL, "{}")
		check(t, got, test.status, test.err)
		if s.Requests() != test.requests {
			t.Errorf("%v over %v: %d requests, want %d", test.budget, test.script, s.Requests(), test.requests)
		}
	}
}

// TestRepeat: the product choice, on the transport, the endpoint and the
// intent, for the kind it names and no other (case O20).
func TestRepeat(t *testing.T) {
	generation := rubicon.Endpoint{Match: func(r *http.Request) bool { return r.URL.Path == "/generate" }, Kind: rubicon.Generation}
	repeated := generation
	repeated.Repeat = rubicon.Generation
	for _, test := range []struct {
		name     string
		path     string
		set      func(*rubicon.Transport)
		intent   rubicon.Intent
		requests int
	}{
		{"not", "/generate", func(tr *rubicon.Transport) {}, rubicon.Intent{}, 1},
		{"transport", "/generate", func(tr *rubicon.Transport) { tr.Repeat = rubicon.Generation }, rubicon.Intent{}, 2},
		{"transport, effect", "/pay", func(tr *rubicon.Transport) { tr.Repeat = rubicon.Generation }, rubicon.Intent{}, 1},
		{"endpoint", "/generate", func(tr *rubicon.Transport) { tr.Endpoints = []rubicon.Endpoint{repeated} }, rubicon.Intent{}, 2},
		{"intent", "/generate", func(tr *rubicon.Transport) {}, rubicon.Intent{Repeat: rubicon.Generation}, 2},
		{"intent, effect", "/pay", func(tr *rubicon.Transport) {}, rubicon.Intent{Repeat: rubicon.Generation}, 1},
		{"intent names effects", "/pay", func(tr *rubicon.Transport) {}, rubicon.Intent{Repeat: rubicon.Effect}, 2},
		{"intent calls it a generation", "/pay", func(tr *rubicon.Transport) { tr.Repeat = rubicon.Generation }, rubicon.Intent{Kind: rubicon.Generation}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Answer(200, "ok"))
			tr.Endpoints = []rubicon.Endpoint{generation}
			test.set(tr)
			ctx, _ := begin(t, test.intent)
			got := send(ctx, tr, http.MethodPost, s.URL+test.path, "{}")
			if test.requests == 1 {
				check(t, got, 0, rubicon.ErrAmbiguous)
			} else {
				check(t, got, 200, nil)
			}
			wantCounts(t, s, test.requests, test.requests)
		})
	}
}

// TestEndpointKey: where an endpoint documents a key, the same key goes out on
// every attempt of an operation and on no other, and licenses replays. A bare
// header licenses nothing.
func TestEndpointKey(t *testing.T) {
	keyed := rubicon.Endpoint{Match: func(*http.Request) bool { return true }, KeyHeader: "Idempotency-Key", Retention: 24 * time.Hour}
	keys := func(s *rubicontest.Server) []string {
		var keys []string
		for _, r := range s.Received() {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
		}
		return keys
	}
	server := func(t *testing.T) (*rubicontest.Server, *rubicon.Transport) {
		s := rubicontest.Config{
			Protocol: rubicontest.H1, Dedupe: "Idempotency-Key",
			Script: []rubicontest.Fault{rubicontest.Act().Close(), rubicontest.Act().Answer(200, "ok")},
		}.Start()
		t.Cleanup(s.Close)
		return s, &rubicon.Transport{Base: s.Transport(), Backoff: quick, Endpoints: []rubicon.Endpoint{keyed}}
	}
	t.Run("ours", func(t *testing.T) {
		s, tr := server(t)
		ctx, _ := begin(t, rubicon.Intent{})
		check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil)
		k := keys(s)
		if len(k) != 2 || k[0] == "" || k[0] != k[1] || s.Effects() != 1 {
			t.Errorf("keys %q, %d effects", k, s.Effects())
		}
		check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil)
		if k := keys(s); k[2] == k[0] {
			t.Error("two intents share a key")
		}
	})
	t.Run("follows from the operation's", func(t *testing.T) {
		s, tr := server(t)
		ctx, _ := begin(t, named(t))
		check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil)
		other, tr2 := server(t)
		ctx, _ = begin(t, named(t))
		check(t, send(ctx, tr2, http.MethodPost, other.URL, "{}"), 200, nil)
		if a, b := keys(s), keys(other); a[0] != b[0] {
			t.Errorf("the same operation has the keys %q and %q in two processes", a[0], b[0])
		}
	})
	t.Run("the caller's", func(t *testing.T) {
		s, tr := server(t)
		req, _ := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "mine")
		check(t, sendRequest(tr, req), 200, nil)
		if k := keys(s); k[0] != "mine" || k[1] != "mine" || s.Effects() != 1 {
			t.Errorf("keys %q, %d effects", k, s.Effects())
		}
	})
	t.Run("a bare header", func(t *testing.T) {
		s, tr := server(t)
		tr.Endpoints = []rubicon.Endpoint{}
		req, _ := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "mine")
		check(t, sendRequest(tr, req), 0, rubicon.ErrAmbiguous)
		wantCounts(t, s, 1, 1)
	})
	t.Run("another key", func(t *testing.T) {
		// A layer above that makes a new key for every try is not covered by
		// the contract: the server would act again.
		s, tr := server(t)
		tr.Budget.Replays = rubicon.None
		ctx, _ := begin(t, rubicon.Intent{})
		for _, key := range []string{"one", "two"} {
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
			req.Header.Set("Idempotency-Key", key)
			sendRequest(tr, req)
		}
		if s.Effects() != 1 {
			t.Errorf("%d effects", s.Effects())
		}
	})
}

// TestThrottle: when too much fails, extra attempts stop for all operations,
// and come back with successes.
func TestThrottle(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Answer(503, ""))
	tr.Throttle = &rubicon.Throttle{Tokens: 10}
	for range 50 {
		send(t.Context(), tr, http.MethodGet, s.URL, "")
	}
	if n := s.Requests(); n < 50 || n > 55 {
		t.Errorf("an outage of 50 calls made %d requests", n)
	}
}

// TestErrBesideAnother: a request of the operation that is under way does not
// hide what is in doubt of another.
func TestErrBesideAnother(t *testing.T) {
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Stall())
	ctx, op := begin(t, rubicon.Intent{})
	if got := send(ctx, tr, http.MethodPost, s.URL+"/a", "x"); !errors.Is(got.err, rubicon.ErrAmbiguous) {
		t.Fatal(got)
	}
	later, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { send(later, tr, http.MethodPost, s.URL+"/b", "y") })
	eventually(t, "the second request", func() bool { return len(s.Received()) == 2 })
	if err := op.Err(errors.New("the SDK's own")); !errors.Is(err, rubicon.ErrAmbiguous) {
		t.Errorf("told %v", err)
	}
	cancel()
	wg.Wait()
}
