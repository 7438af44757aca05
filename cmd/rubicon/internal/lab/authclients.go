package lab

import (
	"context"
	"net/http"
	"sync"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

// An authClient is one of those that meet the faults of a credential.
type authClient struct {
	name      string
	transport func(*authBench) http.RoundTripper
	want      func(*authWants) authResult
}

// authClients are in the order of the rows.
var authClients = [...]authClient{
	{"x/oauth2", caching, func(w *authWants) authResult { return w.oauth2 }},
	{"naive", refreshing, func(w *authWants) authResult { return w.naive }},
	{"rubicon", renewing, func(w *authWants) authResult { return w.rubicon }},
}

// caching is x/oauth2's Transport as its documentation puts it over net/http.
// It renews by the clock.
func caching(b *authBench) http.RoundTripper {
	source := oauth2.StaticTokenSource(b.first)
	if b.first.RefreshToken != "" {
		ctx := context.WithValue(b.ctx, oauth2.HTTPClient, b.tokenClient)
		source = b.config.TokenSource(ctx, b.first)
	}
	return &oauth2.Transport{Base: b.base, Source: source}
}

// refreshing is what many programs have written around net/http. See refresher.
func refreshing(b *authBench) http.RoundTripper {
	return &refresher{base: b.base, config: b.config, client: b.tokenClient, token: b.first}
}

// renewing is Rubicon with Auth, as it is but for shorter waits.
func renewing(b *authBench) http.RoundTripper {
	return &rubicon.Transport{
		Base:    b.base,
		Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(pause) },
		Auth:    &rubicon.Auth{Credential: b.credential(), Origins: []string{b.server.URL}},
	}
}

// credential returns what Rubicon has in hand at the start.
func (b *authBench) credential() *rubicon.Credential {
	if b.first.RefreshToken == "" {
		return rubicon.Static(b.first.AccessToken)
	}
	grant, err := rubicon.RefreshGrant(b.config)
	if err != nil {
		panic(err) // the bench is wrong
	}
	c := rubicon.NewCredential(b.first, grant)
	c.Client, c.Timeout = b.tokenClient, b.renewal
	return c
}

// A refresher answers each 401 with a token request of its own, and sends the
// request once more. It knows how to send a body again, and saves what it is
// given for those who come after.
type refresher struct {
	base   http.RoundTripper
	config *oauth2.Config
	client *http.Client

	mu    sync.Mutex
	token *oauth2.Token
}

// RoundTrip implements [http.RoundTripper].
func (r *refresher) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	token := r.token
	r.mu.Unlock()
	res, err := r.send(req, token)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	res.Body.Close()
	if token, err = r.refresh(req.Context(), token); err != nil {
		return nil, err
	}
	return r.send(req, token)
}

// send sends req with token, from the start of its body.
func (r *refresher) send(req *http.Request, token *oauth2.Token) (*http.Response, error) {
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	again.Body = body
	token.SetAuthHeader(again)
	return r.base.RoundTrip(again)
}

// refresh gets a token in place of old.
func (r *refresher) refresh(ctx context.Context, old *oauth2.Token) (*oauth2.Token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, r.client)
	token, err := r.config.TokenSource(ctx, &oauth2.Token{RefreshToken: old.RefreshToken}).Token()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = token
	return token, nil
}
