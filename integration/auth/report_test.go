package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/tokenfile"
)

// wantAuthError checks that err is an *AuthError of the given kind.
func wantAuthError(t *testing.T, err error, kind rubicon.AuthKind) *rubicon.AuthError {
	t.Helper()
	var failed *rubicon.AuthError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want an AuthError that is %v", err, kind)
	}
	if failed.Kind != kind || failed.Retryable() != (kind == rubicon.AuthTransient || kind == rubicon.AuthAmbiguous) ||
		errors.Is(err, rubicon.ErrReconnect) != (kind == rubicon.AuthReconnect) {
		t.Errorf("error %v, want %v", err, kind)
	}
	return failed
}

// TestReport01KilledEarly: golang/oauth2#367, #396, go-githubauth#64: tokens
// are killed early, and the library is sure that they are valid.
func TestReport01KilledEarly(t *testing.T) {
	t.Run("fosite", func(t *testing.T) {
		site, _ := newFosite(t)
		site.revoke()
		wantStatus(t, site.client(t, site.credential(t)), site.api.URL, 200)
		site.wantCalls(t, 1, 2)
	})
	t.Run("mockoidc", func(t *testing.T) {
		site, _, config := newMock(t)
		if left := time.Until(site.first.Expiry); left < 24*time.Hour {
			t.Errorf("the token says that it lives for %v: where are the nanoseconds?", left)
		}
		grant, err := rubicon.RefreshGrant(config)
		if err != nil {
			t.Fatal(err)
		}
		c := rubicon.NewCredential(site.first, grant)
		c.Client = tokenClient(t)
		site.revoke()
		wantStatus(t, site.client(t, c), site.api.URL, 200)
		site.wantCalls(t, 1, 2)
	})
	t.Run("control: x/oauth2", func(t *testing.T) {
		site, _ := newFosite(t)
		client := naked(t, site)
		site.revoke()
		for range 3 {
			wantStatus(t, client, site.api.URL, 401)
		}
		site.wantCalls(t, 0, 3)
	})
}

// naked returns a client of x/oauth2 alone.
func naked(t *testing.T, site *site) *http.Client {
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, tokenClient(t))
	return site.config().Client(ctx, site.first)
}

// TestReport02ConstructionContext: golang/oauth2#388, #262, go-sdk#988,
// toolhive#3539: the context that was at hand when a source was made, or that
// of the first request, is the one of all renewals.
func TestReport02ConstructionContext(t *testing.T) {
	site, _ := newFosite(t)
	client := site.client(t, site.credential(t))
	for range 3 {
		site.revoke()
		ctx, cancel := context.WithCancel(t.Context())
		if a := postContext(ctx, client, site.api.URL, ""); a.status != 200 {
			t.Errorf("%d %v", a.status, a.err)
		}
		cancel()
	}
	site.wantCalls(t, 3, 6)

	t.Run("control: x/oauth2", func(t *testing.T) {
		site, _ := newFosite(t)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), oauth2.HTTPClient, tokenClient(t)))
		source := site.config().TokenSource(ctx, &oauth2.Token{RefreshToken: site.first.RefreshToken})
		cancel()
		if _, err := source.Token(); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		site.wantCalls(t, 0, 0)
	})
}

// hang makes the token endpoint hang until the client is gone, or the test
// over.
func (s *site) hang(t *testing.T) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	s.onAnswer(func(_ http.ResponseWriter, req *http.Request) bool { return hang(req, over) })
}

// hang waits until the client is gone, or over is closed.
func hang(req *http.Request, over <-chan struct{}) bool {
	io.Copy(io.Discard, req.Body) // else the server does not notice
	select {
	case <-req.Context().Done():
	case <-over:
	}
	return true
}

// TestReport03JWTContext: golang/oauth2#799: the source of a jwt.Config takes
// no notice of contexts.
func TestReport03JWTContext(t *testing.T) {
	site, _ := newSmall(t)
	site.hang(t)
	site.revoke()
	config := &jwt.Config{Email: "a@b", PrivateKey: privateKey(t), TokenURL: site.auth.URL}
	grant := rubicon.SourceGrant(func(ctx context.Context) (oauth2.TokenSource, error) { return config.TokenSource(ctx), nil })
	c := rubicon.NewCredential(site.first, grant)
	c.Client, c.Timeout = tokenClient(t), 500*time.Millisecond
	ended := make(chan rubicon.Renewal, 1)
	c.Renewed = func(r rubicon.Renewal) { ended <- r }

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	caller := make(chan answer, 1)
	go func() { caller <- postContext(ctx, site.client(t, c), site.api.URL, "") }()
	site.wantAsked(t, 1)
	cancel()
	if a := <-caller; !errors.Is(a.err, context.Canceled) {
		t.Errorf("%d %v", a.status, a.err)
	}
	if r := <-ended; r.Took < 200*time.Millisecond {
		t.Errorf("the renewal ended with its caller, after %v", r.Took)
	} else {
		wantAuthError(t, r.Err, rubicon.AuthTransient)
	}
	site.wantCalls(t, 1, 1)

	t.Run("control: x/oauth2", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), oauth2.HTTPClient, tokenClient(t)))
		cancel()
		before := site.requests.Load()
		site.onAnswer(fail(500, ""))
		if _, err := config.TokenSource(ctx).Token(); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if site.requests.Load() != before+1 {
			t.Error("nothing was asked under a canceled context")
		}
	})
}

// TestReport05AutoDetect: golang/oauth2#718, portainer#11725: finding out the
// style sends twice, and hides the first error.
func TestReport05AutoDetect(t *testing.T) {
	site, _ := newSmall(t)
	config := site.config()
	config.Endpoint.AuthStyle = oauth2.AuthStyleAutoDetect
	if _, err := rubicon.RefreshGrant(config); err == nil || !strings.Contains(err.Error(), "AuthStyle") {
		t.Errorf("RefreshGrant: %v", err)
	}
	if _, err := rubicon.ClientCredentialsGrant(&clientcredentials.Config{TokenURL: site.auth.URL}); err == nil || !strings.Contains(err.Error(), "AuthStyle") {
		t.Errorf("ClientCredentialsGrant: %v", err)
	}
	site.onAnswer(fail(500, `{"error":"server_error"}`))
	site.revoke()
	a := post(site.client(t, site.credential(t)), site.api.URL, "")
	if failed := wantAuthError(t, a.err, rubicon.AuthTransient); failed.Status != 500 || failed.Code != "server_error" {
		t.Errorf("%v", failed)
	}
	site.wantCalls(t, 1, 1)

	t.Run("control: x/oauth2", func(t *testing.T) {
		before := site.requests.Load()
		ctx := context.WithValue(t.Context(), oauth2.HTTPClient, tokenClient(t))
		if _, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: "x"}).Token(); err == nil {
			t.Error("no error")
		}
		if n := site.requests.Load() - before; n != 2 {
			t.Errorf("%d token requests", n)
		}
	})
}

// TestReport06TwoSources: golang/oauth2#672, Cometline#35: two sources hold one
// refresh token.
func TestReport06TwoSources(t *testing.T) {
	site, _ := newFosite(t)
	c := site.credential(t)
	clients := []*http.Client{site.client(t, c), site.client(t, c)}
	const n = 100
	site.rejectTogether(n)
	site.revoke()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { wantStatus(t, clients[i%2], site.api.URL, 200) })
	}
	wg.Wait()
	site.wantCalls(t, 1, 2*n)

	t.Run("control: x/oauth2", func(t *testing.T) {
		site, _ := newFosite(t)
		ctx := context.WithValue(t.Context(), oauth2.HTTPClient, tokenClient(t))
		var tokens [2]*oauth2.Token
		var errs [2]error
		for i := range tokens {
			tokens[i], errs[i] = site.config().TokenSource(ctx, &oauth2.Token{RefreshToken: site.first.RefreshToken}).Token()
		}
		if errs[0] != nil || errs[1] == nil || site.good(ctx, tokens[0].AccessToken) {
			t.Errorf("errors %v; the first one's token is alive", errs)
		}
	})
}

// rejectTogether makes the API answer n rejected requests at the same time.
func (s *site) rejectTogether(n int) {
	s.rejectApart(n, 0)
}

// rejectApart makes the API wait for n rejected requests and answer the i-th
// after i times apart.
func (s *site) rejectApart(n int, apart time.Duration) {
	var all sync.WaitGroup
	all.Add(n)
	var arrived atomic.Int64
	s.onReject(func(w http.ResponseWriter, _ *http.Request) {
		i := arrived.Add(1)
		all.Done()
		all.Wait()
		time.Sleep(time.Duration(i) * apart)
		unauthorized(w, `Bearer error="invalid_token"`)
	})
}

// TestReport07ConcurrentRejections: copilot-cli#3456, typescript-sdk#1813,
// opencode#34074, confluence#217: requests that are rejected at the same time
// spend the rotating refresh token each.
func TestReport07ConcurrentRejections(t *testing.T) {
	for name, apart := range map[string]time.Duration{"at once": 0, "spread over two seconds": 2 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			site, _ := newFosite(t)
			c := site.credential(t)
			const n = 1000
			site.rejectApart(n, apart)
			site.revoke()
			if ok := storm(site.client(t, c), site.api.URL, n); ok != n {
				t.Errorf("%d of %d requests were answered", ok, n)
			}
			site.wantCalls(t, 1, 2*n)
			site.onReject(nil)
			site.wantAlive(t, c)
		})
	}
}

// A lapsing store is one whose lock has lapsed by the time it is needed.
type lapsing struct {
	mu    sync.Mutex
	tok   *oauth2.Token
	saved int
}

// Update implements [rubicon.Store].
func (s *lapsing) Update(_ context.Context, renew func(*oauth2.Token) (*oauth2.Token, error)) error {
	tok, err := renew(s.load())
	if tok != nil && err == nil {
		s.save(tok)
	}
	return err
}

func (s *lapsing) load() *oauth2.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tok
}

func (s *lapsing) save(tok *oauth2.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tok = tok
	s.saved++
}

// TestReport09Loser: gemini-cli#29048, opencode#49439: whoever loses a race for
// the refresh token deletes the winner's tokens.
func TestReport09Loser(t *testing.T) {
	site, small := newSmall(t)
	c := site.credential(t)
	store := &lapsing{tok: site.first}
	c.Store = store
	site.onAnswer(func(w http.ResponseWriter, req *http.Request) bool {
		site.onAnswer(nil)
		small.mu.Lock()
		small.n, small.revoked = 1, false
		won := small.issued()
		small.mu.Unlock()
		store.save(won)
		return fail(http.StatusBadRequest, `{"error":"invalid_grant"}`)(w, req)
	})
	ended := make(chan rubicon.Renewal, 1)
	c.Renewed = func(r rubicon.Renewal) { ended <- r }
	site.revoke()
	wantStatus(t, site.client(t, c), site.api.URL, 200)
	site.wantCalls(t, 1, 2)
	if told := <-ended; !told.Adopted || told.Err != nil {
		t.Errorf("told %+v", told)
	}
	if store.saved != 1 || store.tok.AccessToken != "access-1" {
		t.Errorf("the store was written %d times and holds %s", store.saved, store.tok.AccessToken)
	}
	site.wantAlive(t, c)
}

// TestReport10Outage: owncloud#8892, decocms/studio#3201,
// wordpress-atmosphere#21, super-productivity#10028, Schuly#476: a token
// endpoint that is out of order logs the user out.
func TestReport10Outage(t *testing.T) {
	drop := func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		kind   rubicon.AuthKind
	}{
		"500":         {fail(500, "oops"), rubicon.AuthTransient},
		"503":         {fail(503, `{"error":"temporarily_unavailable"}`), rubicon.AuthTransient},
		"429":         {fail(429, ""), rubicon.AuthTransient},
		"HTML":        {fail(200, "<html>maintenance</html>"), rubicon.AuthTransient},
		"empty":       {fail(200, ""), rubicon.AuthTransient},
		"no token":    {fail(200, "{}"), rubicon.AuthTransient},
		"cut":         {fail(200, `{"access_token":"a`), rubicon.AuthTransient},
		"login page":  {fail(302, ""), rubicon.AuthTransient},
		"a proxy's":   {fail(403, "<html>blocked</html>"), rubicon.AuthAmbiguous},
		"dropped":     {drop, rubicon.AuthTransient},
		"never comes": {nil, rubicon.AuthTransient},
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := newSmall(t)
			c := site.credential(t)
			c.Pause = time.Hour
			site.onAnswer(tt.answer)
			if tt.answer == nil {
				site.hang(t)
				c.Timeout = 50 * time.Millisecond
			}
			client := site.client(t, c)
			site.revoke()
			for range 3 { // the failure is remembered
				a := post(client, site.api.URL, "")
				failed := wantAuthError(t, a.err, tt.kind)
				if failed.Rejected == nil || failed.Rejected.StatusCode != 401 {
					t.Errorf("the rejection is %+v", failed.Rejected)
				}
			}
			if n := site.requests.Load(); n > 1 || n == 0 && tt.answer != nil {
				t.Errorf("%d token requests", n)
			}
		})
	}
	t.Run("over", func(t *testing.T) {
		site, _ := newSmall(t)
		c := site.credential(t)
		c.Pause = time.Nanosecond
		client := site.client(t, c)
		site.onAnswer(fail(500, ""))
		site.revoke()
		wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthTransient)
		site.onAnswer(nil)
		wantStatus(t, client, site.api.URL, 200)
		site.wantCalls(t, 2, 3)
	})
	t.Run("refused", func(t *testing.T) {
		site, _ := newSmall(t)
		c := site.credential(t)
		client := site.client(t, c)
		site.revoke()
		site.auth.Close()
		wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthTransient)
		if tok, err := c.Token(); err != nil || tok.RefreshToken != site.first.RefreshToken {
			t.Errorf("the token was not kept: %v", err)
		}
	})
}

// TestReport11Scope: typescript-sdk#2255, claude-code#28258, #92518,
// confluence#217: a token whose scope is too small is renewed.
func TestReport11Scope(t *testing.T) {
	for _, status := range []int{401, 403} {
		site, _ := newSmall(t)
		site.onServe(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="api", error="insufficient_scope", scope="read write"`)
			w.WriteHeader(status)
			io.WriteString(w, "more scope")
		})
		res, err := site.client(t, site.credential(t)).Post(site.api.URL, "", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != status || string(body) != "more scope" || err != nil {
			t.Errorf("%d %q %v", res.StatusCode, body, err)
		}
		challenges := rubicon.Challenges(res.Header)
		if len(challenges) != 1 || challenges[0].Params["scope"] != "read write" {
			t.Errorf("challenges %v", challenges)
		}
		site.wantCalls(t, 0, 1)
	}
}

// TestReport12Loop: hey-sdk#138, openmeet#414, typescript-sdk#945,
// SalesforceMobileSDK-iOS#2070: 401, renewal, 401, without end.
func TestReport12Loop(t *testing.T) {
	site, _ := newFosite(t)
	site.close()
	client := site.client(t, site.credential(t))
	for range 50 {
		if a := post(client, site.api.URL, "x"); a.status != 401 || a.body != "rejected" {
			t.Errorf("%d %q %v", a.status, a.body, a.err)
		}
	}
	site.wantCalls(t, 1, 51)

	t.Run("control: naive", func(t *testing.T) {
		site, _ := newFosite(t)
		site.close()
		client := &http.Client{Transport: newNaive(t, site)}
		for range 50 {
			wantStatus(t, client, site.api.URL, 401)
		}
		site.wantCalls(t, 50, 100)
	})
}

// TestReport12Path: as before, where the origin has another path that takes
// every token.
func TestReport12Path(t *testing.T) {
	site, _ := newFosite(t)
	site.onServe(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/never" {
			unauthorized(w, "Bearer")
		}
	})
	client := site.client(t, site.credential(t))
	for range 50 {
		if a := post(client, site.api.URL, ""); a.status != 200 {
			t.Errorf("%d %v", a.status, a.err)
		}
		wantStatus(t, client, site.api.URL+"/never", 401)
	}
	if n := site.requests.Load(); n > 2 {
		t.Errorf("%d token requests for 50 rejections", n)
	}
}

// TestReport13OldToken: openai/codex#2699: the request is sent again with the
// old token.
func TestReport13OldToken(t *testing.T) {
	site, _ := newSmall(t)
	var mu sync.Mutex
	var sent []string
	note := func(req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, strings.Join(req.Header.Values("Authorization"), " and "))
	}
	site.onServe(func(_ http.ResponseWriter, req *http.Request) { note(req) })
	site.onReject(func(w http.ResponseWriter, req *http.Request) {
		note(req)
		w.WriteHeader(http.StatusUnauthorized)
	})
	site.revoke()
	if a := post(site.client(t, site.credential(t)), site.api.URL, "x"); a.status != 200 {
		t.Errorf("%d %v", a.status, a.err)
	}
	if got := strings.Join(sent, ", "); got != "Bearer access-0, Bearer access-1" {
		t.Errorf("sent %s", got)
	}
}

// TestReport14LateRejection: azure-sdk-for-cpp#6151: ten clients, whose late
// rejections invalidate the new token each.
func TestReport14LateRejection(t *testing.T) {
	site, _ := newFosite(t)
	const late = 10
	release := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(late)
	site.onReject(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Late") != "" {
			arrived.Done()
			<-release
		}
		unauthorized(w, `Bearer error="invalid_token"`)
	})
	c := site.credential(t)
	client := site.client(t, c)
	site.revoke()
	var wg sync.WaitGroup
	for range late {
		wg.Go(func() {
			req, err := http.NewRequest("POST", site.api.URL, strings.NewReader("late"))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Late", "1")
			if a := do(client, req); a.status != 200 || a.body != "late" {
				t.Errorf("%d %q %v", a.status, a.body, a.err)
			}
		})
	}
	arrived.Wait()
	wantStatus(t, client, site.api.URL, 200)
	site.wantCalls(t, 1, late+2)
	close(release)
	wg.Wait()
	site.wantCalls(t, 1, 2*late+2)
	site.onReject(nil)
	site.wantAlive(t, c)
}

// TestReport15Body: helix#238, amp-labs/connectors#3239, abs-cli#89: the
// request is sent again with an empty body.
func TestReport15Body(t *testing.T) {
	body := strings.Repeat("0123456789", 500)
	t.Run("twice", func(t *testing.T) {
		site, _ := newSmall(t)
		site.revoke()
		var first string
		site.onReject(func(w http.ResponseWriter, req *http.Request) {
			text, _ := io.ReadAll(req.Body)
			first = string(text)
			w.WriteHeader(http.StatusUnauthorized)
		})
		if a := post(site.client(t, site.credential(t)), site.api.URL, body); a.status != 200 || a.body != body || first != body {
			t.Errorf("%d, %d and %d bytes, %v", a.status, len(first), len(a.body), a.err)
		}
		site.wantCalls(t, 1, 2)
	})
	for name, length := range map[string]int64{"once": -1, "once, of known length": int64(len(body))} {
		t.Run(name, func(t *testing.T) {
			site, _ := newSmall(t)
			site.revoke()
			client := site.client(t, site.credential(t))
			req, err := http.NewRequest("POST", site.api.URL, io.LimitReader(strings.NewReader(body), 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			if a := do(client, req); a.status != 401 || a.body != "rejected" || a.err != nil {
				t.Errorf("%d %q %v", a.status, a.body, a.err)
			}
			site.wantCalls(t, 1, 1)
			wantStatus(t, client, site.api.URL, 200)
			site.wantCalls(t, 1, 2)
		})
	}
}

// TestReport16FirstRejection: headlamp#7482, aws-iam-authenticator#133: the
// credential is renewed, and the caller gets the 401 all the same.
func TestReport16FirstRejection(t *testing.T) {
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		site, _ := newSmall(t)
		site.revoke()
		req, err := http.NewRequest(method, site.api.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := do(site.client(t, site.credential(t)), req); a.status != 200 {
			t.Errorf("%s: %d %v", method, a.status, a.err)
		}
		site.wantCalls(t, 1, 2)
	}
}

// TestReport17FirstCaller: moby/buildkit#1728: the error of a first caller that
// gave up is given to all others.
func TestReport17FirstCaller(t *testing.T) {
	site, _ := newFosite(t)
	asked, release := make(chan struct{}), make(chan struct{})
	site.onAnswer(func(http.ResponseWriter, *http.Request) bool {
		close(asked)
		<-release
		return false
	})
	client := site.client(t, site.credential(t))
	site.revoke()
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan answer)
	go func() { first <- postContext(ctx, client, site.api.URL, "") }()
	<-asked
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { wantStatus(t, client, site.api.URL, 200) })
	}
	cancel()
	if a := <-first; !errors.Is(a.err, context.Canceled) {
		t.Errorf("%d %v", a.status, a.err)
	}
	close(release)
	wg.Wait()
	if n := site.requests.Load(); n != 1 {
		t.Errorf("%d token requests", n)
	}
}

// TestReport18Recursion: gophercloud#645, #1459, medplum#10559: the token
// request goes through the client that waits for it.
func TestReport18Recursion(t *testing.T) {
	site, _ := newSmall(t)
	config := site.config()
	config.Endpoint.AuthStyle = oauth2.AuthStyleInParams // no header that keeps the token away
	grant, err := rubicon.RefreshGrant(config)
	if err != nil {
		t.Fatal(err)
	}
	c := rubicon.NewCredential(site.first, grant)
	transport := site.transport(t, c)
	transport.Auth.Origins = append(transport.Auth.Origins, site.auth.URL)
	client := &http.Client{Transport: transport}
	c.Client = client
	site.onAnswer(func(_ http.ResponseWriter, req *http.Request) bool {
		if h := req.Header.Get("Authorization"); h != "" {
			t.Errorf("the token request has %q", h)
		}
		return false
	})
	site.revoke()
	wantStatus(t, client, site.api.URL, 200)
	site.wantCalls(t, 1, 2)

	site.onAnswer(func(w http.ResponseWriter, _ *http.Request) bool { // which is no reason to renew
		unauthorized(w, "Bearer")
		return true
	})
	site.revoke()
	wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthAmbiguous)
	site.wantCalls(t, 2, 3)
}

// lose makes the token endpoint do its work, and drop the answer.
func (s *site) lose() {
	s.onAnswer(func(_ http.ResponseWriter, req *http.Request) bool {
		s.ServeHTTP(httptest.NewRecorder(), req)
		panic(http.ErrAbortHandler)
	})
}

// TestReport19LostAnswer: engram#389: the answer is lost after the rotation,
// and another request with the spent token makes the server revoke all.
func TestReport19LostAnswer(t *testing.T) {
	site, _ := newFosite(t)
	site.lose()
	c := site.credential(t)
	client := site.client(t, c)
	site.revoke()
	for range 3 {
		wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthTransient)
	}
	site.wantCalls(t, 1, 3)

	t.Run("control: x/oauth2", func(t *testing.T) {
		site, fosite := newFosite(t)
		site.lose()
		config := site.config()
		config.Endpoint.AuthStyle = oauth2.AuthStyleAutoDetect
		ctx := context.WithValue(t.Context(), oauth2.HTTPClient, tokenClient(t))
		if _, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: site.first.RefreshToken}).Token(); err == nil {
			t.Error("no error")
		}
		if n, left := site.requests.Load(), fosite.alive(); n != 2 || left != 0 {
			t.Errorf("%d token requests in one call, %d access tokens left", n, left)
		}
	})
}

// TestReport20Saved: ms-365-mcp#336, goplus/builder#3453: the rotated token is
// not saved, or too late: whoever is killed has lost it.
func TestReport20Saved(t *testing.T) {
	site, _ := newFosite(t)
	c := site.credential(t)
	path := filepath.Join(t.TempDir(), "token.json")
	c.Store = &tokenfile.Store{Path: path}
	site.onServe(func(w http.ResponseWriter, req *http.Request) {
		access, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), `"access_token":"`+access+`"`) || !strings.Contains(string(text), `"refresh_token":"`) {
			t.Errorf("the first use of a token comes before it is saved: %v", err)
		}
	})
	client := site.client(t, c)
	for range 3 {
		site.revoke()
		if a := post(client, site.api.URL, ""); a.status != 200 {
			t.Errorf("%d %v", a.status, a.err)
		}
	}
	site.wantCalls(t, 3, 6)

	// The next process finds it.
	next := &rubicon.Credential{Grant: site.grant(t), Client: tokenClient(t), Store: &tokenfile.Store{Path: path}}
	if a := post(site.client(t, next), site.api.URL, ""); a.status != 200 {
		t.Errorf("%d %v", a.status, a.err)
	}
	site.wantCalls(t, 3, 7)
}

// TestReport21ErrorWith200: sentry/junior#620: the error of a renewal comes
// with status 200.
func TestReport21ErrorWith200(t *testing.T) {
	site, _ := newSmall(t)
	site.onAnswer(fail(200, `{"error":"bad_refresh_token","error_description":"The refresh token passed is incorrect or expired."}`))
	client := site.client(t, site.credential(t))
	site.revoke()
	for range 3 {
		failed := wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthReconnect)
		if failed.Status != 200 || failed.Code != "bad_refresh_token" {
			t.Errorf("%v", failed)
		}
	}
	site.wantCalls(t, 1, 3)
}

// TestReport22InvalidRequest: auxilia#327: a dead refresh token is answered
// with invalid_request, and asked about 548 times a week.
func TestReport22InvalidRequest(t *testing.T) {
	site, m, config := newMock(t)
	grant, err := rubicon.RefreshGrant(config)
	if err != nil {
		t.Fatal(err)
	}
	c := rubicon.NewCredential(site.first, grant)
	c.Client, c.Pause = tokenClient(t), time.Nanosecond
	client := site.client(t, c)
	m.end()
	for range 2 {
		failed := wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthAmbiguous)
		if failed.Status != 401 || failed.Code != "invalid_request" {
			t.Errorf("%v", failed)
		}
	}
	for range 10 {
		wantAuthError(t, post(client, site.api.URL, "").err, rubicon.AuthReconnect)
	}
	site.wantCalls(t, 3, 12)
}

// TestReport23OwnCode: picqer/exact#644: a spent token is answered with
// unauthorized_client.
func TestReport23OwnCode(t *testing.T) {
	for _, kind := range []rubicon.AuthKind{rubicon.AuthMisconfigured, rubicon.AuthReconnect} {
		site, _ := newSmall(t)
		site.onAnswer(fail(401, `{"error":"unauthorized_client","error_description":"Old refresh token used."}`))
		c := site.credential(t)
		if kind == rubicon.AuthReconnect {
			c.Codes = map[string]rubicon.AuthKind{"unauthorized_client": kind}
		}
		site.revoke()
		wantAuthError(t, post(site.client(t, c), site.api.URL, "").err, kind)
		site.wantCalls(t, 1, 1)
	}
}

// TestReport24Nonce: SalesforceMobileSDK-Android#3011, atproto#3859: the demand
// for a DPoP nonce is taken for an expired token.
func TestReport24Nonce(t *testing.T) {
	for _, status := range []int{400, 401} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if h := req.Header.Get("Authorization"); h != "DPoP bound" {
				t.Errorf("sent %q", h)
			}
			w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce", algs="ES256"`)
			w.Header().Set("DPoP-Nonce", "n")
			w.WriteHeader(status)
		}))
		defer api.Close()
		grant := func(context.Context, *oauth2.Token) (*oauth2.Token, error) {
			t.Error("the token was renewed")
			return nil, errors.New("no")
		}
		c := rubicon.NewCredential(&oauth2.Token{AccessToken: "bound", TokenType: "DPoP"}, grant)
		base := &http.Transport{}
		defer base.CloseIdleConnections()
		client := &http.Client{Transport: &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: c, Origins: []string{api.URL}}}}
		wantStatus(t, client, api.URL, status)
	}
}

// TestReport25Siblings: claude-code#54443, #58066: a renewal that the clock
// asks for ends the token that requests under way were sent with.
func TestReport25Siblings(t *testing.T) {
	site, _ := newFosite(t)
	const n = 20
	var arrived atomic.Int64
	release := make(chan struct{})
	site.api.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "Bearer "+site.first.AccessToken {
			arrived.Add(1)
			<-release // the token is judged when it has ended
		}
		site.resource(w, req)
	})
	short := *site.first
	short.Expiry = time.Now().Add(2 * time.Second)
	c := rubicon.NewCredential(&short, site.grant(t))
	c.Client = tokenClient(t)
	client := site.client(t, c)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			body := fmt.Sprint("sibling ", i)
			if a := post(client, site.api.URL, body); a.status != 200 || a.body != body {
				t.Errorf("%d %q %v", a.status, a.body, a.err)
			}
		})
	}
	for arrived.Load() < n && time.Now().Before(short.Expiry) {
		time.Sleep(time.Millisecond)
	}
	if arrived.Load() < n {
		close(release)
		wg.Wait()
		t.Skip("too slow: the token has expired before all were sent")
	}
	time.Sleep(time.Until(short.Expiry))
	wantStatus(t, client, site.api.URL, 200)
	site.wantCalls(t, 1, 1)
	close(release)
	wg.Wait()
	site.wantCalls(t, 1, 2*n+1)
}
