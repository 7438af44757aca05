package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

// A web is many hosts, by http and https, that redirect along a chain and note
// the credentials they get.
type web struct {
	plain, secure *httptest.Server

	mu    sync.Mutex
	chain []string // of URLs; each redirects to the next
	got   []string // what each was sent as Authorization
}

// newWeb starts a web along chain.
func newWeb(t *testing.T, chain []string) *web {
	w := &web{chain: chain}
	w.plain = httptest.NewServer(w)
	w.secure = httptest.NewTLSServer(w)
	t.Cleanup(w.plain.Close)
	t.Cleanup(w.secure.Close)
	return w
}

// ServeHTTP implements [http.Handler].
func (w *web) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, req.Header.Get("Authorization"))
	if n := len(w.got); n < len(w.chain) {
		http.Redirect(res, req, w.chain[n], http.StatusTemporaryRedirect)
	}
}

// base returns a transport for which every host is in the web: those of the
// ports 80 and 8080 by http, all others by https.
func (w *web) base(t *testing.T) *http.Transport {
	base := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			to := w.secure
			if _, port, _ := net.SplitHostPort(addr); port == "80" || port == "8080" {
				to = w.plain
			}
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.Listener.Addr().String())
		},
	}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// TestReport04Redirects: golang/oauth2#805, #500, go-github#4190,
// google-cloud-go#14547, conjure-go-runtime#937: the token is put on every hop
// of a chain of redirects, wherever it leads.
func TestReport04Redirects(t *testing.T) {
	const home, other = "https://api.example.com", "https://other.example.org"
	for name, tt := range map[string]struct {
		hops []string
		want string // of each request: T with the token, - without
	}{
		"at home":                {[]string{home}, "TT"},
		"cross host":             {[]string{other}, "T-"},
		"twice to a foreign":     {[]string{other, other}, "T--"},
		"out and back":           {[]string{other, home}, "T--"},
		"out, back, and at home": {[]string{other, home, home}, "T---"},
		"at home, and out":       {[]string{home, other}, "TT-"},
		"other port":             {[]string{home + ":8443"}, "T-"},
		"default port":           {[]string{home + ":443"}, "TT"},
		"to http":                {[]string{"http://api.example.com"}, "T-"},
		"to http, same port":     {[]string{"http://api.example.com:8080"}, "T-"},
		"to http, and back":      {[]string{"http://api.example.com", home}, "T--"},
		"sub-domain":             {[]string{"https://sub.api.example.com"}, "T-"},
		"parent domain":          {[]string{"https://example.com"}, "T-"},
		"longer name":            {[]string{"https://api.example.com.evil.org"}, "T-"},
		"trailing dot":           {[]string{"https://api.example.com."}, "T-"},
		"upper case":             {[]string{"https://API.EXAMPLE.COM"}, "TT"},
		"user information":       {[]string{"https://api.example.com@evil.org"}, "T-"},
	} {
		t.Run(name, func(t *testing.T) {
			var chain []string
			for i, hop := range append([]string{home}, tt.hops...) {
				chain = append(chain, fmt.Sprintf("%s/%d", hop, i))
			}
			web := newWeb(t, chain)
			c := rubicon.NewCredential(&oauth2.Token{AccessToken: "secret"}, nil)
			client := &http.Client{Transport: &rubicon.Transport{
				Base: web.base(t), Auth: &rubicon.Auth{Credential: c, Origins: []string{home}},
			}}
			wantStatus200(t, client, chain[0])
			if got := web.letters(); got != tt.want {
				t.Errorf("the hops got %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("control: x/oauth2", func(t *testing.T) {
		chain := []string{home, other, "http://api.example.com", "https://evil.org"}
		web := newWeb(t, chain)
		client := &http.Client{Transport: &oauth2.Transport{
			Base: web.base(t), Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "secret"}),
		}}
		wantStatus200(t, client, chain[0])
		if got := web.letters(); got != "TTTT" {
			t.Errorf("the hops got %s", got)
		}
	})
}

// wantStatus200 gets a page.
func wantStatus200(t *testing.T, client *http.Client, url string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := do(client, req); a.status != 200 {
		t.Errorf("%d %v", a.status, a.err)
	}
}

// letters returns for each request whether it had the token.
func (w *web) letters() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, got := range w.got {
		b.WriteString(map[bool]string{true: "T", false: "-"}[strings.Contains(got, "secret")])
	}
	return b.String()
}

// TestHostHeader: a request is where its URL leads, whatever it calls itself.
func TestHostHeader(t *testing.T) {
	const home = "https://api.example.com"
	for _, tt := range []struct{ url, host, want string }{
		{"https://evil.org", "api.example.com", "-"},
		{home, "evil.org", "-"},
		{home, "api.example.com:8443", "-"},
		{home, "", "T"},
		{home, "API.example.com", "T"},
	} {
		web := newWeb(t, nil)
		c := rubicon.NewCredential(&oauth2.Token{AccessToken: "secret"}, nil)
		client := &http.Client{Transport: &rubicon.Transport{
			Base: web.base(t), Auth: &rubicon.Auth{Credential: c, Origins: []string{home}},
		}}
		req, err := http.NewRequest("GET", tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		if a := do(client, req); a.status != 200 {
			t.Errorf("%d %v", a.status, a.err)
		}
		if got := web.letters(); got != tt.want {
			t.Errorf("%s as %q got %s, want %s", tt.url, tt.host, got, tt.want)
		}
	}
}

// TestOwnHeader: what the caller has put on a request stays, whatever its
// spelling, and its rejection is the caller's business.
func TestOwnHeader(t *testing.T) {
	for _, name := range []string{"Authorization", "authorization"} {
		site, _ := newSmall(t)
		site.onReject(func(w http.ResponseWriter, req *http.Request) {
			if got := req.Header.Values("Authorization"); len(got) != 1 || got[0] != "Basic own" {
				t.Errorf("sent %q", got)
			}
			unauthorized(w, `Bearer error="invalid_token"`)
		})
		req, err := http.NewRequest("GET", site.api.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header[name] = []string{"Basic own"}
		if a := do(site.client(t, site.credential(t)), req); a.status != 401 {
			t.Errorf("%d %v", a.status, a.err)
		}
		site.wantCalls(t, 0, 1)
	}
}

// TestStatic: the rejection of an API key is final, whatever a Classify says.
func TestStatic(t *testing.T) {
	site, _ := newSmall(t)
	transport := site.transport(t, rubicon.Static("key"))
	transport.Auth.Classify = func(*http.Response) rubicon.Rejection { return rubicon.RejectionRenewable }
	client := &http.Client{Transport: transport}
	for range 3 {
		wantStatus(t, client, site.api.URL, 401)
	}
	site.wantCalls(t, 0, 3)
}

// TestClassify: a server that rejects tokens with 403 has to be known; that a
// scope is too small is never a reason to renew.
func TestClassify(t *testing.T) {
	for challenge, want := range map[string]int{
		"": 200, `Bearer error="invalid_token"`: 200, `Bearer error="insufficient_scope"`: 403,
	} {
		site, _ := newSmall(t)
		site.onReject(func(w http.ResponseWriter, _ *http.Request) {
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			w.WriteHeader(http.StatusForbidden)
		})
		transport := site.transport(t, site.credential(t))
		transport.Auth.Classify = func(res *http.Response) rubicon.Rejection {
			if res.StatusCode == http.StatusForbidden {
				return rubicon.RejectionRenewable
			}
			return rubicon.RejectionNone
		}
		site.revoke()
		wantStatus(t, &http.Client{Transport: transport}, site.api.URL, want)
		if n := site.requests.Load(); (n == 1) != (want == 200) {
			t.Errorf("%s: %d token requests", challenge, n)
		}
	}
}

// TestNotOurs: what a proxy, or a scheme that is not ours, wants is no reason
// to renew; nor is a 403 that says nothing.
func TestNotOurs(t *testing.T) {
	for _, tt := range []struct {
		status    int
		challenge string
	}{
		{407, `Bearer error="invalid_token"`},
		{403, ""},
		{403, `Bearer error="invalid_token"`},
		{400, `Bearer error="invalid_token"`},
		{401, `Basic realm="x"`},
		{401, `Negotiate, NTLM`},
		{401, `Bearer error="insufficient_user_authentication", max_age="5"`},
		{401, `Bearer error="insufficient_claims", claims="e30="`},
		{401, `Bearer error="invalid_token", Bearer error="insufficient_scope"`},
		{401, `Bearer error="something new"`},
	} {
		site, _ := newSmall(t)
		site.onServe(func(w http.ResponseWriter, _ *http.Request) {
			if tt.challenge != "" {
				w.Header().Set("WWW-Authenticate", tt.challenge)
			}
			w.WriteHeader(tt.status)
		})
		wantStatus(t, site.client(t, site.credential(t)), site.api.URL, tt.status)
		if n, hits := site.requests.Load(), site.hits.Load(); n != 0 || hits != 1 {
			t.Errorf("%d %s: %d token requests, %d at the API", tt.status, tt.challenge, n, hits)
		}
	}
}

// TestTokenRedirect: a token request carries secrets, and goes nowhere else.
func TestTokenRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		site, _ := newSmall(t)
		elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			t.Errorf("status %d was followed, with %q", status, req.Header.Get("Authorization"))
		}))
		defer elsewhere.Close()
		site.onAnswer(func(w http.ResponseWriter, req *http.Request) bool {
			http.Redirect(w, req, elsewhere.URL, status)
			return true
		})
		c := site.credential(t)
		// As if its owner wished to follow.
		c.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
		site.revoke()
		wantAuthError(t, post(site.client(t, c), site.api.URL, "").err, rubicon.AuthTransient)
		site.wantCalls(t, 1, 1)
	}
}

// TestPlainHTTP: neither tokens nor secrets go over http, but to this machine.
func TestPlainHTTP(t *testing.T) {
	const elsewhere = "http://auth.example.com/token"
	config := &oauth2.Config{Endpoint: oauth2.Endpoint{TokenURL: elsewhere, AuthStyle: oauth2.AuthStyleInParams}}
	if _, err := rubicon.RefreshGrant(config); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("RefreshGrant: %v", err)
	}
	for _, origin := range []string{"http://api.example.com", "http://10.0.0.1", "http://localhost.example.com", "ftp://localhost", "api.example.com", "https://user:pass@a.b", "https://a.b/path", ""} {
		transport := &rubicon.Transport{Auth: &rubicon.Auth{Credential: rubicon.Static("key"), Origins: []string{origin}}}
		req := httptest.NewRequest("GET", "https://a.b", nil)
		if _, err := transport.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "Origins") || strings.Contains(err.Error(), "pass") {
			t.Errorf("origin %q: %v", origin, err)
		}
	}

	// A grant that was not made here is stopped before a byte is sent.
	site, _ := newSmall(t)
	grant := rubicon.SourceGrant(func(ctx context.Context) (oauth2.TokenSource, error) {
		return config.TokenSource(ctx, &oauth2.Token{RefreshToken: "secret"}), nil
	})
	c := rubicon.NewCredential(site.first, grant)
	c.Client = &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		t.Errorf("%s was asked", req.URL)
		return nil, errors.New("no")
	})}
	site.revoke()
	wantAuthError(t, post(site.client(t, c), site.api.URL, "").err, rubicon.AuthMisconfigured)
}

// A roundTripper is a function that is an [http.RoundTripper].
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestGrantEnds: a grant that panics, or ends its goroutine, leaves nobody
// waiting, and what it panics with is not shown.
func TestGrantEnds(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("hushhush") },
		"error":  func() { panic(errors.New("hushhush")) },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := newSmall(t)
			good, calls := site.grant(t), 0
			c := rubicon.NewCredential(site.first, func(ctx context.Context, old *oauth2.Token) (*oauth2.Token, error) {
				if calls++; calls == 1 {
					end()
				}
				return good(ctx, old)
			})
			c.Client, c.Pause = tokenClient(t), time.Nanosecond
			client := site.client(t, c)
			site.revoke()
			a := post(client, site.api.URL, "")
			wantAuthError(t, a.err, rubicon.AuthTransient)
			if text := fmt.Sprintf("%v %+v", a.err, a.err); strings.Contains(text, "hushhush") {
				t.Errorf("the error holds what was panicked with: %s", text)
			}
			wantStatus(t, client, site.api.URL, 200)
			site.wantCalls(t, 1, 3)
		})
	}
}

// TestResponseRequest: the answer's request is the caller's, which was not
// changed and has no token.
func TestResponseRequest(t *testing.T) {
	site, _ := newSmall(t)
	transport := site.transport(t, site.credential(t))
	site.revoke()
	req, err := http.NewRequest("POST", site.api.URL, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || res.Request != req || len(req.Header) != 0 {
		t.Errorf("%d, header %v, the caller's request %t", res.StatusCode, req.Header, res.Request == req)
	}
}

// TestTraceHooks: the caller's httptrace hooks see the caller's request, and
// nothing of the token's; nor does the token request have the caller's values.
func TestTraceHooks(t *testing.T) {
	site, _ := newSmall(t)
	type key struct{}
	good := site.grant(t)
	c := rubicon.NewCredential(site.first, func(ctx context.Context, old *oauth2.Token) (*oauth2.Token, error) {
		if ctx.Value(key{}) != nil || httptrace.ContextClientTrace(ctx) != nil {
			t.Error("the grant has the values of a request")
		}
		return good(ctx, old)
	})
	c.Client = tokenClient(t)
	var mu sync.Mutex
	var headers, hosts []string
	ctx := httptrace.WithClientTrace(context.WithValue(t.Context(), key{}, 1), &httptrace.ClientTrace{
		GetConn: func(host string) {
			mu.Lock()
			defer mu.Unlock()
			hosts = append(hosts, host)
		},
		WroteHeaderField: func(name string, value []string) {
			mu.Lock()
			defer mu.Unlock()
			if name == "Authorization" {
				headers = append(headers, value...)
			}
		},
	})
	site.revoke()
	if a := postContext(ctx, site.client(t, c), site.api.URL, ""); a.status != 200 {
		t.Errorf("%d %v", a.status, a.err)
	}
	api, err := url.Parse(site.api.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(headers, ", "); got != "Bearer access-0, Bearer access-1" {
		t.Errorf("the hooks saw %s", got)
	}
	if got := strings.Join(hosts, " "); got != api.Host+" "+api.Host {
		t.Errorf("the hooks saw connections to %s", got)
	}
}

// TestSecrets: whatever a token endpoint says, an error holds nothing of it,
// nor of what it was sent.
func TestSecrets(t *testing.T) {
	sent := func(w http.ResponseWriter, req *http.Request) string {
		body, _ := io.ReadAll(req.Body)
		return string(body) + " " + req.Header.Get("Authorization") + " hushhush access-0"
	}
	for _, status := range []int{200, 400, 401, 403, 500} {
		for name, format := range map[string]string{
			"text": "%s", "JSON": `{"error":%q}`, "description": `{"error":"invalid_grant","error_description":%q}`,
			"error and URI": `{"error":"invalid_client","error_uri":%q}`,
		} {
			site, _ := newSmall(t)
			site.onAnswer(func(w http.ResponseWriter, req *http.Request) bool {
				return fail(status, fmt.Sprintf(format, sent(w, req)))(w, req)
			})
			c := site.credential(t)
			ended := make(chan rubicon.Renewal, 1)
			c.Renewed = func(r rubicon.Renewal) { ended <- r }
			site.revoke()
			a := post(site.client(t, c), site.api.URL, "")
			var failed *rubicon.AuthError
			var retrieve *oauth2.RetrieveError
			if !errors.As(a.err, &failed) {
				t.Fatalf("%d %s: %v", status, name, a.err)
			}
			texts := fmt.Sprintf("%v %+v %#v %v %+v %v %+v", a.err, a.err, a.err, failed, failed, <-ended, c)
			if errors.As(a.err, &retrieve) {
				texts += fmt.Sprintf(" %v %+v %s", retrieve, retrieve, retrieve.Body)
				if retrieve.Response.Request != nil {
					t.Errorf("%d %s: the token request is in the error", status, name)
				}
			}
			for _, secret := range []string{"hushhush", "access-0", "refresh-0", "aHVzaGh1c2g"} {
				if strings.Contains(texts, secret) {
					t.Errorf("%d %s: %q is in %s", status, name, secret, texts)
				}
			}
		}
	}
}

// TestOneConnection: the rejection does not keep the only connection that the
// token request could use.
func TestOneConnection(t *testing.T) {
	site, _ := newSmall(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/token", site.token)
	mux.HandleFunc("/", site.resource)
	server := httptest.NewServer(mux)
	defer server.Close()
	config := site.config()
	config.Endpoint.TokenURL = server.URL + "/token"
	grant, err := rubicon.RefreshGrant(config)
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{MaxConnsPerHost: 1}
	defer base.CloseIdleConnections()
	c := rubicon.NewCredential(site.first, grant)
	c.Client, c.Timeout = &http.Client{Transport: base}, 5*time.Second
	client := &http.Client{Transport: &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: c, Origins: []string{server.URL}}}}
	site.onReject(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, strings.Repeat("rejected ", 5000))
	})
	site.revoke()
	wantStatus(t, client, server.URL, 200)
	site.wantCalls(t, 1, 2)
}
