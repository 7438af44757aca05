package rubicon

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// An Auth puts a credential on requests, and renews it when a server rejects
// it: once for all requests that were rejected with it, and at most once for
// each of them. A rejected request (401: it was not applied, RFC 9110 section
// 15.5.2) is then sent once more, if its body can be. A second rejection is
// returned as it came, and no renewal is forced for that origin for a while.
//
// A request is left alone that goes to an origin which is not listed, or was
// redirected through one, that has a Host other than its URL's, or that has the
// header already.
type Auth struct {
	// Credential is what is put on requests. Nil is an error.
	Credential *Credential

	// Origins lists where it may go: scheme, host and port, such as
	// "https://api.example.com". The scheme is https; http is taken for
	// "localhost" and loopback addresses only. Empty is an error: no list means
	// nowhere.
	Origins []string

	// Header is the header that holds the bare token, for API keys that are not
	// sent as Authorization, such as "X-Api-Key". "": Authorization, with the
	// token's type as its scheme (RFC 6750 section 2.1).
	Header string

	// Classify says what an answer says of the credential, before what RFC 6750
	// says: some servers reject a token with 403. It must not read the body,
	// and can make neither insufficient_scope nor a [Static] key renewable. Nil:
	// only what RFC 6750 says.
	Classify func(*http.Response) Rejection
}

// A Rejection is what an answer says of the credential of its request.
type Rejection uint8

const (
	RejectionNone      Rejection = iota // nothing, or that it was taken
	RejectionRenewable                  // it was rejected, nothing was applied, and another token may do
	RejectionFinal                      // it was rejected, and another token would be too
)

// String returns the name of r in lower case.
func (r Rejection) String() string { return nameOf(r, "none", "renewable", "final") }

// authorizationHeader is where a token goes unless Auth.Header says otherwise.
const authorizationHeader = "Authorization"

// check returns an error if a can't be used.
func (a *Auth) check() error {
	switch {
	case a == nil:
		return nil
	case a.Credential == nil:
		return errors.New("rubicon: Auth.Credential is nil")
	case len(a.Origins) == 0:
		return errors.New(`rubicon: Auth.Origins is empty: list where the credential may go, such as "https://api.example.com"`)
	}
	for _, origin := range a.Origins {
		u, err := url.Parse(origin)
		switch {
		case err != nil, u.Host == "", strings.TrimSuffix(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "", u.User != nil:
			return errors.New("rubicon: an element of Auth.Origins is not scheme, host and port")
		case !isPrivate(u):
			return fmt.Errorf("rubicon: Auth.Origins: %s://%s must be https, or http to a loopback address", u.Scheme, u.Host)
		}
	}
	return nil
}

// header returns the name of the header that the credential goes into.
func (a *Auth) header() string {
	if a.Header == "" {
		return authorizationHeader
	}
	return textproto.CanonicalMIMEHeaderKey(a.Header)
}

// scheme returns the scheme of the header, in lower case; "" if it has none.
func (a *Auth) scheme(tok *token) string {
	if a.header() != authorizationHeader {
		return ""
	}
	return tok.scheme
}

// covers returns the origin that req goes to, if the credential may go there
// with it. A redirect chain that was elsewhere once is not trusted any more
// (net/http's own rule lets other ports, schemes and sub-domains through).
func (a *Auth) covers(req *http.Request) (origin string, ok bool) {
	if req.Context().Value(renewalKey{}) != nil || has(req.Header, a.header()) {
		return "", false
	}
	if req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
		return "", false
	}
	for res := req.Response; res != nil; res = res.Request.Response {
		if res.Request == nil || res.Request.URL == nil {
			return "", false
		}
		if _, listed := a.lists(res.Request.URL); !listed {
			return "", false
		}
	}
	return a.lists(req.URL)
}

// has reports whether h has a field of the given name, even an empty one, and
// under whatever spelling.
func has(h http.Header, name string) bool {
	if _, ok := h[name]; ok {
		return true
	}
	for key := range h {
		if len(key) == len(name) && strings.EqualFold(key, name) {
			return true
		}
	}
	return false
}

// lists returns the element of Origins that u belongs to.
func (a *Auth) lists(u *url.URL) (string, bool) {
	for _, origin := range a.Origins {
		if isOrigin(origin, u) {
			return origin, true
		}
	}
	return "", false
}

// isOrigin reports whether u belongs to origin (RFC 6454 section 4).
func isOrigin(origin string, u *url.URL) bool {
	scheme, authority, _ := strings.Cut(strings.TrimSuffix(origin, "/"), "://")
	if scheme == u.Scheme && authority == u.Host {
		return true
	}
	return strings.EqualFold(scheme, u.Scheme) &&
		strings.EqualFold(bareHost(scheme, authority), bareHost(scheme, u.Host))
}

// bareHost returns host without the default port of scheme.
func bareHost(scheme, host string) string {
	host = strings.TrimSuffix(host, ":")
	if strings.EqualFold(scheme, "https") {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// classify returns what res says of the credential of scheme.
func (a *Auth) classify(res *http.Response, scheme string) Rejection {
	class, scope := classifyRejection(res, scheme)
	if a.Classify == nil || scope {
		return class
	}
	return a.Classify(res)
}

// classifyRejection returns what RFC 6750 section 3.1 and its kin say about
// res, and whether it is that the token's scope is too small. Where challenges
// of one scheme disagree, the one that renewing does not help counts.
func classifyRejection(res *http.Response, scheme string) (class Rejection, scope bool) {
	unauthorized := res.StatusCode == http.StatusUnauthorized
	if !unauthorized && res.StatusCode != http.StatusForbidden {
		return RejectionNone, false
	}
	all := Challenges(res.Header)
	if unauthorized {
		class = RejectionFinal // challenges of other schemes only
		if len(all) == 0 {
			class = RejectionRenewable
		}
	}
	var renews, refused bool // what the challenges of the scheme say
	for i := range all {
		if scheme != "" && all[i].Scheme != scheme {
			continue
		}
		switch all[i].Params["error"] {
		case "insufficient_scope":
			return RejectionFinal, true
		case "", "invalid_token":
			renews = true
		default:
			refused = true
		}
	}
	if unauthorized && renews && !refused {
		class = RejectionRenewable
	}
	return class, false
}

// A signed is the credential that goes with a request, and where to.
type signed struct {
	auth   *Auth
	origin string // "": none goes
	token  *token // nil: it has to be renewed first
}

// sign returns what goes with req, without a renewal.
func (a *Auth) sign(req *http.Request) signed {
	if a == nil {
		return signed{}
	}
	origin, ok := a.covers(req)
	if !ok {
		return signed{}
	}
	return signed{a, origin, a.Credential.current()}
}

// ready reports whether the request can be sent as it is.
func (s signed) ready() bool { return s.origin == "" || s.token != nil }

// request returns what is sent in place of req.
func (s signed) request(req *http.Request) *http.Request {
	if s.token == nil {
		return req
	}
	out := new(http.Request)
	*out = *req
	out.Header = cloneHeader(req.Header)
	s.auth.setCredential(out.Header, s.token)
	return out
}

// cloneHeader returns a header that can be added to, with what is in h.
func cloneHeader(h http.Header) http.Header {
	if h == nil {
		return make(http.Header, 1)
	}
	return maps.Clone(h)
}

// accepted reports whether res says that the credential was taken, and notes
// it. It is no when in doubt.
func (s signed) accepted(res *http.Response) bool {
	if s.token == nil {
		return true
	}
	if res.StatusCode/100 != 2 {
		return false
	}
	s.auth.Credential.accepted(s.token, s.origin)
	return true
}

// authorize puts the current token on the call's next attempt. One that has
// expired is renewed first; an error says why that could not be.
func (c *call) authorize() error {
	if c.origin == "" {
		return nil
	}
	tok, err := c.t.Auth.Credential.use(c.req.Context())
	if err == nil {
		c.token = tok
	}
	return err
}

// setCredential puts tok into h.
func (a *Auth) setCredential(h http.Header, tok *token) {
	name := a.header()
	if name == authorizationHeader {
		h[name] = tok.header
	} else {
		h[name] = tok.bare
	}
}

// judgeCredential adds to a what the answer says of the credential it was
// asked with.
func (c *call) judgeCredential(res *http.Response, a *Attempt) {
	c.terms.Renew = false
	if c.token == nil {
		return
	}
	auth := c.t.Auth
	switch auth.classify(res, auth.scheme(c.token)) {
	case RejectionNone:
		if res.StatusCode < 500 && !a.Rejected && res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusProxyAuthRequired {
			auth.Credential.accepted(c.token, c.origin)
		}
	case RejectionRenewable:
		a.Verdict, a.Proof, a.Rejected = VerdictNotApplied, ProofDocumented, true
		c.terms.Renew = auth.Credential.renewable()
		if c.renewed {
			auth.Credential.useless(c.token, c.origin)
		}
	case RejectionFinal:
	}
}

// renew gets another token in place of the one that attempt was rejected with,
// and tells the record.
func (c *call) renew() error {
	tok, err := c.t.Auth.Credential.renew(c.req.Context(), c.token, c.origin)
	c.t.Trace.renewed(c, err)
	if err != nil {
		return err
	}
	c.token, c.renewed = tok, true
	// As in learn, an error of the journal is not the caller's.
	_ = c.r.observe(c.lasting, c.ticket, Fact{Renewed: c.ticket.N})
	return nil
}

// unrenewed ends the call whose credential could not be renewed for err: with
// the answer that rejected it where the renewal was of no use, else with an
// error that holds it.
func (c *call) unrenewed(d Decision, err error) (*http.Response, error) {
	var failed *AuthError
	if !errors.As(err, &failed) || c.req.Context().Err() != nil {
		return c.finish(d)
	}
	if c.res != nil && (failed.Kind == AuthStillRejected || d.Action != Refresh) {
		return c.answer(), nil
	}
	mine := *failed
	if c.res != nil {
		mine.Rejected = c.keep()
	}
	rec := c.r.record()
	if !rec.inDoubt() {
		return nil, &mine
	}
	if c.res != nil {
		c.res.Body.Close()
	}
	e := c.r.lost(c.req, &rec, d)
	e.auth = &mine
	return nil, e.until(c.req.Context()).returned()
}

// keep returns the answer in hand for an error that nobody closes: its body, if
// it is not in memory, is left out.
func (c *call) keep() *http.Response {
	res := *c.res
	if h, ok := res.Body.(*held); ok {
		h.Close()
		res.Body = http.NoBody
	}
	return &res
}
