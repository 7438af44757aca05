package lab

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// crowd is how many callers ask at once.
const crowd = 1000

// AuthFaults returns the faults of a credential. A new one is a new row. They
// are played against x/oauth2's Transport, a naive refresher, and Rubicon with
// Auth, each over net/http, and in [Row.Auth] their rows say what became of the
// credential. The files auth... and issuer.go are about them.
func AuthFaults() []Fault {
	var faults []Fault
	for i := range auths {
		f := &auths[i]
		faults = append(faults, Fault{Name: f.name, About: f.about, auth: f})
	}
	return faults
}

// An authFault is something that goes wrong with a credential. A field that is
// left out means the ordinary case: one call is rejected because of its token,
// and the token endpoint has another one.
type authFault struct {
	name, about string // see Fault

	api      func(*authBench, rubicontest.Request) rubicontest.Fault // what the API does with a request; nil: byToken
	tokens   *rubicontest.Fault                                      // what the token endpoint does; nil: it issues tokens
	protocol rubicontest.Protocol                                    // of both
	setup    func(*authBench)                                        // what else there is before the first call; nil: nothing

	calls   int           // how often callers ask; 0: once
	atOnce  bool          // they do so together, not one after the other
	limit   time.Duration // how long each waits; 0: for ever
	renewal time.Duration // how long a renewal of Rubicon's may take; 0: as it is

	want authWants
}

// authWants is what is expected of each client. Of the first two it states what
// is wrong with them too.
type authWants struct {
	oauth2  authResult
	naive   authResult
	rubicon authResult
}

// An authResult is what became of a client that met a fault of a credential.
type authResult struct {
	tokens   int    // requests at the token endpoint
	attempts int    // requests at the API
	effects  int    // how often the API acted
	grant    string // what became of the grant: see alive
	told     string // what most callers were told, and how many if there is more than one
}

// String returns r in the form of [Row.Want].
func (r authResult) String() string {
	return fmt.Sprintf("token requests %d, attempts %d, effects %d, grant %s, outcome %s",
		r.tokens, r.attempts, r.effects, r.grant, r.told)
}

// auths has all of them.
var auths = []authFault{
	{
		name:  "auth-rejected",
		about: "the API rejects a token that by the clock is good for another hour",
		want: authWants{
			oauth2:  authResult{0, 1, 0, alive, "401"}, // it renews by the clock alone
			naive:   authResult{1, 2, 1, alive, "200"},
			rubicon: authResult{1, 2, 1, alive, "200"},
		},
	},
	{
		name:     "auth-at-once",
		about:    "a thousand requests are rejected together; a refresh token that is used twice kills the grant",
		api:      gathered(crowd),
		protocol: rubicontest.H2, // in HTTP/1.1 it would take a thousand connections
		setup:    crowded,
		calls:    crowd,
		atOnce:   true,
		want: authWants{
			oauth2:  authResult{0, crowd, 0, alive, "1000 × 401"},
			naive:   authResult{crowd, crowd + 1, 0, killed, "999 × error: invalid_grant"}, // one had a token, for a moment
			rubicon: authResult{1, 2 * crowd, crowd, alive, "1000 × 200"},
		},
	},
	{
		name:  "auth-again",
		about: "the API rejects every token, whatever the token endpoint issues",
		api:   always(rejected(http.StatusUnauthorized, "invalid_token")),
		calls: 5,
		want: authWants{
			oauth2:  authResult{0, 5, 0, alive, "5 × 401"},
			naive:   authResult{5, 10, 0, alive, "5 × 401"},
			rubicon: authResult{1, 6, 0, alive, "5 × 401"}, // what did not help is not tried again for a while
		},
	},
	{
		name:    "auth-hangs",
		about:   "the token endpoint never answers; ten callers wait to their own limit, Rubicon's renewal has a shorter one",
		tokens:  new(rubicontest.Act().Stall()),
		calls:   10,
		atOnce:  true,
		limit:   4 * time.Second,
		renewal: time.Second,
		want: authWants{
			oauth2:  authResult{0, 10, 0, alive, "10 × 401"},
			naive:   authResult{10, 10, 0, alive, "10 × error: timeout"},
			rubicon: authResult{1, 10, 0, alive, "10 × transient"},
		},
	},
	{
		name:   "auth-500",
		about:  "the token endpoint answers 500",
		tokens: new(rubicontest.Act().Answer(500, "out of order\n")),
		calls:  3,
		want: authWants{
			oauth2:  authResult{0, 3, 0, alive, "3 × 401"},
			naive:   authResult{3, 3, 0, alive, "3 × error: token 500"},
			rubicon: authResult{1, 3, 0, alive, "3 × transient (500)"},
		},
	},
	{
		name:  "auth-dead",
		about: "the user has withdrawn the grant: the token endpoint answers invalid_grant",
		setup: withdrawn,
		calls: 3,
		want: authWants{
			oauth2:  authResult{0, 3, 0, revoked, "3 × 401"},
			naive:   authResult{3, 3, 0, revoked, "3 × error: invalid_grant"},
			rubicon: authResult{1, 3, 0, revoked, "3 × reconnect"}, // the kind is [rubicon.ErrReconnect]
		},
	},
	{
		name:  "auth-scope",
		about: "the token's scope is too small (insufficient_scope), and the API says so with 401",
		api:   always(rejected(http.StatusUnauthorized, "insufficient_scope")),
		want: authWants{
			oauth2:  authResult{0, 1, 0, alive, "401"},
			naive:   authResult{1, 2, 0, alive, "401"}, // another token of the same scope
			rubicon: authResult{0, 1, 0, alive, "401"},
		},
	},
	{
		name:  "auth-scope-403",
		about: "as auth-scope, but with 403, as RFC 6750 has it",
		api:   always(rejected(http.StatusForbidden, "insufficient_scope")),
		want: authWants{
			oauth2:  authResult{0, 1, 0, alive, "403"},
			naive:   authResult{0, 1, 0, alive, "403"},
			rubicon: authResult{0, 1, 0, alive, "403"},
		},
	},
	{
		name:  "auth-key",
		about: "the provider rejects an API key, which nothing can renew",
		api:   always(rubicontest.Read().Answer(http.StatusUnauthorized, refusal)),
		setup: byKey,
		want: authWants{
			oauth2:  authResult{0, 1, 0, none, "401"},
			naive:   authResult{0, 1, 0, none, "error: no refresh token"}, // the provider's answer is lost
			rubicon: authResult{0, 1, 0, none, "401"},
		},
	},
	{
		name:  "auth-redirect",
		about: "the API redirects to another host, which answers 200 to everybody and keeps what it is sent",
		api:   elsewhere,
		want: authWants{
			oauth2:  authResult{0, 1, 0, leaked, "200"},
			naive:   authResult{0, 1, 0, leaked, "200"},
			rubicon: authResult{0, 1, 0, alive, "200"},
		},
	},
}

// authPlays has what plays f against each of the clients.
func authPlays(ctx context.Context, f *authFault, clients []authClient) []func() Row {
	var all []func() Row
	for _, c := range clients {
		all = append(all, func() Row { return playAuth(ctx, f, c) })
	}
	return all
}

// playAuth plays f against c.
func playAuth(ctx context.Context, f *authFault, c authClient) Row {
	got, auth := meetAuth(ctx, f, c)
	want := c.want(&f.want)
	return Row{
		Fault: f.name, Client: c.name,
		Attempts: got.attempts, Effects: got.effects, Outcome: got.told, Auth: auth,
		Want: want.String(), OK: got == want,
	}
}
