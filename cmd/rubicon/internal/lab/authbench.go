package lab

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// An authBench is a bench whose server is an API that takes tokens, with what
// else there is of them.
type authBench struct {
	*bench
	issuer    *issuer
	tokens    *rubicontest.Server // the token endpoint
	elsewhere *rubicontest.Server // another host, which answers 200 to everybody

	config      *oauth2.Config
	tokenClient *http.Client  // makes the token requests
	first       *oauth2.Token // what the client has in hand: by the clock it is good for an hour
	limit       time.Duration // how long a caller waits
	renewal     time.Duration // how long Rubicon's renewal may take; 0: as it is

	gather sync.Mutex
	here   int           // requests that gathered has seen
	all    chan struct{} // closed when they are all there
}

// meetAuth makes c meet f, and returns what became of it.
func meetAuth(ctx context.Context, f *authFault, c authClient) (authResult, *Auth) {
	b := newAuthBench(ctx, f)
	defer b.close()
	client := &http.Client{Transport: c.transport(b)}
	before, tokensBefore := b.server.Counts(), b.tokens.Counts()
	replies := b.ask(client, max(f.calls, 1), f.atOnce)
	b.settle(ctx)
	b.close()
	after, tokens := b.server.Counts(), b.tokens.Counts().Requests-tokensBefore.Requests
	auth := &Auth{TokenRequests: tokens, Grant: b.issuer.grant(), Calls: len(replies), Served: count(replies, "200")}
	return authResult{tokens, after.Requests - before.Requests, after.Effects - before.Effects, auth.Grant, most(replies)}, auth
}

// newAuthBench starts what f needs.
func newAuthBench(ctx context.Context, f *authFault) *authBench {
	b := &authBench{issuer: newIssuer(), all: make(chan struct{}), limit: cmp.Or(f.limit, patience), renewal: f.renewal}
	b.bench = newBench(ctx, &Fault{server: func() rubicontest.Config {
		return rubicontest.Config{Protocol: f.protocol, Choose: posted(func(req rubicontest.Request) rubicontest.Fault {
			if f.api == nil {
				return byToken(b, req)
			}
			return f.api(b, req)
		})}
	}})
	b.tokens = b.start(rubicontest.Config{Protocol: f.protocol, Choose: posted(func(rubicontest.Request) rubicontest.Fault {
		if f.tokens == nil {
			return rubicontest.Act().Handle(b.issuer)
		}
		return *f.tokens
	})})
	b.elsewhere = b.start(rubicontest.Config{Seen: b.issuer.seen})
	b.hold(f)
	if f.setup != nil {
		f.setup(b)
	}
	return b
}

// posted is what choose says of a POST. What comes with another method is there
// to make a connection.
func posted(choose func(rubicontest.Request) rubicontest.Fault) func(rubicontest.Request) rubicontest.Fault {
	return func(req rubicontest.Request) rubicontest.Fault {
		if req.Method != http.MethodPost {
			return rubicontest.Read()
		}
		return choose(req)
	}
}

// start starts another server.
func (b *authBench) start(config rubicontest.Config) *rubicontest.Server {
	s := config.Start()
	b.onClose(s.Close)
	return s
}

// hold puts into the client's hands what it begins with.
func (b *authBench) hold(f *authFault) {
	base := b.tokens.Transport()
	b.onClose(base.CloseIdleConnections)
	b.tokenClient = &http.Client{Transport: base}
	b.config = &oauth2.Config{
		ClientID: "lab", ClientSecret: "secret",
		Endpoint: oauth2.Endpoint{TokenURL: b.tokens.URL, AuthStyle: oauth2.AuthStyleInHeader},
	}
	b.first = &oauth2.Token{AccessToken: "access-0", RefreshToken: "refresh-0", Expiry: time.Now().Add(time.Hour)}
}

// ask has as many callers as calls make one each, who do not try again, and
// returns what they were told.
func (b *authBench) ask(client *http.Client, calls int, atOnce bool) []string {
	told := make([]string, calls)
	var group sync.WaitGroup
	for i := range told {
		group.Go(func() { told[i] = b.askOnce(client) })
		if !atOnce {
			group.Wait()
		}
	}
	group.Wait()
	return told
}

// askOnce makes one call and returns what its caller was told.
func (b *authBench) askOnce(client *http.Client) string {
	ctx, cancel := context.WithTimeout(b.ctx, b.limit) // oauth2.Transport logs a complaint about a Client's Timeout
	defer cancel()
	res, err := client.Do(request{}.build(b.bench).WithContext(ctx))
	if err != nil {
		return told(reply{err: err})
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if res.StatusCode/100 == 4 && string(body) != refusal {
		return fmt.Sprintf("%d (altered)", res.StatusCode)
	}
	return told(reply{status: res.StatusCode, err: err})
}

// count returns how many of replies are told.
func count(replies []string, told string) int {
	n := 0
	for _, r := range replies {
		if r == told {
			n++
		}
	}
	return n
}

// most returns what most of those who asked were told, and how many they are.
func most(replies []string) string {
	common := slices.MaxFunc(replies, func(a, b string) int {
		return cmp.Or(cmp.Compare(count(replies, a), count(replies, b)), cmp.Compare(b, a))
	})
	if len(replies) == 1 {
		return common
	}
	return fmt.Sprintf("%d × %s", count(replies, common), common)
}

// What follows is what an API does with a request.

// refusal is the body of a rejection.
const refusal = `{"error":"rejected"}`

// rejected is the answer to a token that is not taken. code is RFC 6750's.
func rejected(status int, code string) rubicontest.Fault {
	return rubicontest.Read().Answer(status, refusal).
		Header("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q, error=%q", "lab", code))
}

// byToken takes good tokens.
func byToken(b *authBench, req rubicontest.Request) rubicontest.Fault {
	if b.issuer.takes(req) {
		return rubicontest.Act()
	}
	return rejected(401, "invalid_token")
}

// gathered is byToken, but rejects nobody before n requests are there.
func gathered(n int) func(*authBench, rubicontest.Request) rubicontest.Fault {
	return func(b *authBench, req rubicontest.Request) rubicontest.Fault {
		b.gather.Lock()
		if b.here++; b.here == n {
			close(b.all)
		}
		b.gather.Unlock()
		if b.issuer.takes(req) {
			return rubicontest.Act()
		}
		return rubicontest.Read().Until(b.all).Answer(401, refusal).
			Header("WWW-Authenticate", `Bearer error="invalid_token"`)
	}
}

// always does the same to each request.
func always(fault rubicontest.Fault) func(*authBench, rubicontest.Request) rubicontest.Fault {
	return func(*authBench, rubicontest.Request) rubicontest.Fault { return fault }
}

// elsewhere sends whoever comes to another host.
func elsewhere(b *authBench, _ rubicontest.Request) rubicontest.Fault {
	return rubicontest.Read().Answer(307, "").Header("Location", b.elsewhere.URL+"/payments")
}

// What follows sets up what there is besides.

// crowded has the clients connected, lest a thousand requests make a thousand
// connections, and the token endpoint hold its first answer until it is asked
// again, but no longer than a second: who asks twice is to be seen.
func crowded(b *authBench) {
	b.issuer.slow = time.Second
	connect(b.ctx, b.base, b.server.URL)
	connect(b.ctx, b.tokenClient.Transport, b.tokens.URL)
}

// connect puts a connection to url into the pool of base.
func connect(ctx context.Context, base http.RoundTripper, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		panic(err) // the bench is wrong
	}
	if res, err := base.RoundTrip(req); err == nil {
		res.Body.Close()
	}
}

// withdrawn has the user end the grant beforehand.
func withdrawn(b *authBench) { b.issuer.set(revoked) }

// byKey gives the client an API key in place of a token.
func byKey(b *authBench) {
	b.issuer.set(none)
	b.first = &oauth2.Token{AccessToken: "key-1"}
}
