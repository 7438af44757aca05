package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// The server acts and drops the connection. Nobody knows that but the server,
// so the request is not sent again, and the error says why.
func Example() {
	server := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
	defer server.Close()

	client := &http.Client{Transport: &rubicon.Transport{Base: server.Transport()}}
	_, err := client.Post(server.URL, "application/json", strings.NewReader(`{"amount":100}`))
	fmt.Println("ambiguous:", errors.Is(err, rubicon.ErrAmbiguous))
	fmt.Println("effects:", server.Effects())
	// Output:
	// ambiguous: true
	// effects: 1
}

// Layers above may try as often as they like: the attempts of one operation
// draw on one record.
func ExampleBegin() {
	server := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
	defer server.Close()
	client := &http.Client{Transport: &rubicon.Transport{Base: server.Transport()}}

	ctx, op := rubicon.Begin(context.Background(), rubicon.Intent{})
	defer op.End()
	var err error
	for range 3 { // an SDK's own retries
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(`{"amount":100}`))
		if _, err = client.Do(req); err == nil {
			break
		}
	}
	fmt.Println("outcome:", op.Outcome())
	fmt.Println("attempts:", len(op.Attempts()), "effects:", server.Effects())
	fmt.Println("ambiguous:", errors.Is(op.Err(err), rubicon.ErrAmbiguous))
	// Output:
	// outcome: ambiguous
	// attempts: 1 effects: 1
	// ambiguous: true
}

// An endpoint that documents an idempotency key licenses replays: the same key
// goes out on every attempt, and the server acts once.
func ExampleEndpoint() {
	server := rubicontest.Config{
		Dedupe: "Idempotency-Key",
		Script: []rubicontest.Fault{rubicontest.Act().Close(), rubicontest.Act().Answer(200, "paid")},
	}.Start()
	defer server.Close()

	client := &http.Client{Transport: &rubicon.Transport{
		Base: server.Transport(),
		Endpoints: []rubicon.Endpoint{{
			Name:      "payments",
			Match:     func(r *http.Request) bool { return r.URL.Host == server.Addr },
			KeyHeader: "Idempotency-Key",
			Retention: 24 * time.Hour,
		}},
	}}
	res, err := client.Post(server.URL, "application/json", strings.NewReader(`{"amount":100}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode, "requests:", server.Requests(), "effects:", server.Effects())
	// Output:
	// 200 requests: 2 effects: 1
}

// To pay for a second generation rather than to fail is a product choice.
func ExampleTransport_repeat() {
	server := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close(), rubicontest.Act().Answer(200, "Hello!"))
	defer server.Close()
	client := &http.Client{Transport: &rubicon.Transport{Base: server.Transport(), Repeat: rubicon.Generation}}

	ctx, op := rubicon.Begin(context.Background(), rubicon.Intent{Kind: rubicon.Generation})
	defer op.End()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(`{"prompt":"Hi"}`))
	res, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode, op.Outcome(), "after", len(op.Attempts()), "generations")
	// Output:
	// 200 succeeded after 2 generations
}

// Wrappers go around a Transport, never below it.
func ExampleTransport_wrappers() {
	server := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Answer(200, "ok"))
	defer server.Close()

	client := &http.Client{Transport: &oauth2.Transport{
		Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "secret"}),
		Base:   &rubicon.Transport{Base: server.Transport()},
	}}
	res, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode, server.Received()[0].Header.Get("Authorization"))
	// Output:
	// 200 Bearer secret
}

// Decide is a pure function: a journal's record can be asked again at any time.
func ExampleDecide() {
	var r rubicon.Record
	r.Budget = rubicon.Budget{Attempts: 4, Sends: 3, Replays: 3, Elapsed: time.Minute}
	now := time.Now()
	fmt.Println(rubicon.Decide(r, now).Action)

	r.Fold(rubicon.Fact{N: 1, Attempt: rubicon.Attempt{
		Evidence: rubicon.Evidence{Reach: rubicon.ReachSent},
		Begun:    now, Ended: true, Call: 1,
	}})
	d := rubicon.Decide(r, now)
	fmt.Println(d.Action, "-", d.Why)

	r.Fold(rubicon.Fact{N: 1, Attempt: rubicon.Attempt{
		Evidence: rubicon.Evidence{Verdict: rubicon.VerdictNotApplied, Proof: rubicon.ProofGoAway},
	}})
	d = rubicon.Decide(r, now)
	fmt.Println(d.Action, "-", d.Why)
	// Output:
	// send
	// report - nothing licenses a repetition
	// send - nothing was applied
}

// A token is revoked long before it expires. One renewal serves all requests
// that were rejected with it.
func ExampleAuth() {
	api, id := newService()
	defer api.Close()
	defer id.Close()

	conf := &oauth2.Config{ClientID: "app", Endpoint: oauth2.Endpoint{TokenURL: id.URL, AuthStyle: oauth2.AuthStyleInParams}}
	grant, err := rubicon.RefreshGrant(conf)
	if err != nil {
		fmt.Println(err)
		return
	}
	token := &oauth2.Token{AccessToken: "revoked", RefreshToken: "r1", Expiry: time.Now().Add(time.Hour)}
	client := &http.Client{Transport: &rubicon.Transport{Auth: &rubicon.Auth{
		Credential: rubicon.NewCredential(token, grant),
		Origins:    []string{api.URL},
	}}}
	res, err := client.Post(api.URL, "application/json", strings.NewReader(`{}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	// Output:
	// 200 OK
}

// newService returns an API that takes the token "fresh", and the server that
// issues it.
func newService() (api, id *httptest.Server) {
	api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer fresh" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	id = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"fresh","token_type":"Bearer","refresh_token":"r2"}`)
	}))
	return api, id
}

// A program that is built around go-retryablehttp keeps its client. Its loop
// stops at once where the request may have acted.
func ExampleNewRetryableClient() {
	server := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
	defer server.Close()

	client := rubicon.NewRetryableClient(&rubicon.Transport{Base: server.Transport()})
	_, err := client.Post(server.URL, "application/json", strings.NewReader(`{"amount":100}`))
	fmt.Println("ambiguous:", errors.Is(err, rubicon.ErrAmbiguous))
	fmt.Println("effects:", server.Effects())
	// Output:
	// ambiguous: true
	// effects: 1
}

// A loop of cenkalti/backoff above stops by itself where nothing may be sent
// again, and returns the error that says why.
func ExampleError_backoff() {
	server := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Close())
	defer server.Close()

	client := &http.Client{Transport: &rubicon.Transport{Base: server.Transport()}}
	calls := 0
	err := backoff.Retry(func() error {
		calls++
		res, err := client.Post(server.URL, "application/json", strings.NewReader(`{"amount":100}`))
		if err == nil {
			res.Body.Close()
		}
		return err
	}, backoff.NewExponentialBackOff())
	var e *rubicon.Error
	fmt.Println(calls, errors.As(err, &e), e.Outcome)
	// Output:
	// 1 true ambiguous
}
