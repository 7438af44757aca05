package rubicon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// A Grant obtains a token in place of old, which is nil if there was none. It
// makes one token request at most: the answer to a request that is lost may
// hold the only copy of the next refresh token, and asking again with the spent
// one makes an authorization server revoke them all (RFC 9700 section 4.14.2).
// It must end when ctx does, and send with the client that ctx holds under
// [oauth2.HTTPClient], which follows no redirect.
type Grant func(ctx context.Context, old *oauth2.Token) (*oauth2.Token, error)

// RefreshGrant returns the grant of RFC 6749 section 6 for c. c.Endpoint's
// AuthStyle must be set: a style that is found out by trial sends a refresh
// token twice.
func RefreshGrant(c *oauth2.Config) (Grant, error) {
	conf := *c
	if err := checkEndpoint(conf.Endpoint.TokenURL, conf.Endpoint.AuthStyle); err != nil {
		return nil, err
	}
	return func(ctx context.Context, old *oauth2.Token) (*oauth2.Token, error) {
		if old == nil || old.RefreshToken == "" {
			return nil, &AuthError{Kind: AuthReconnect, detail: "there is no refresh token"}
		}
		return conf.TokenSource(ctx, &oauth2.Token{RefreshToken: old.RefreshToken}).Token()
	}, nil
}

// ClientCredentialsGrant returns the grant of RFC 6749 section 4.4 for c. Its
// AuthStyle must be set.
func ClientCredentialsGrant(c *clientcredentials.Config) (Grant, error) {
	conf := *c
	if err := checkEndpoint(conf.TokenURL, conf.AuthStyle); err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ *oauth2.Token) (*oauth2.Token, error) { return conf.Token(ctx) }, nil
}

// SourceGrant returns a grant that asks a source which open makes anew each
// time, such as that of a jwt.Config. A source that was asked before keeps its
// token, and can't be made to renew it.
func SourceGrant(open func(context.Context) (oauth2.TokenSource, error)) Grant {
	return func(ctx context.Context, _ *oauth2.Token) (*oauth2.Token, error) {
		source, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return source.Token()
	}
}

// checkEndpoint returns an error if a token endpoint can't be used.
func checkEndpoint(tokenURL string, style oauth2.AuthStyle) error {
	if style == oauth2.AuthStyleAutoDetect {
		return fmt.Errorf("rubicon: set AuthStyle to oauth2.AuthStyleInHeader or oauth2.AuthStyleInParams: finding it out takes a second token request")
	}
	u, err := url.Parse(tokenURL)
	if err != nil {
		return errors.New("rubicon: TokenURL is no URL")
	}
	if !isPrivate(u) {
		return fmt.Errorf("rubicon: TokenURL must be https, or http to a loopback address; it is %s to %s", u.Scheme, u.Host)
	}
	return nil
}

// isPrivate reports whether secrets may be sent to u: by TLS, or to this
// machine.
func isPrivate(u *url.URL) bool {
	switch u.Scheme {
	case "https":
		return u.Host != ""
	case "http":
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	}
	return false
}

// privateOnly is the transport of a token client.
type privateOnly struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (p privateOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isPrivate(req.URL) {
		closeBody(req)
		return nil, &AuthError{Kind: AuthMisconfigured, detail: "the token endpoint must be https, or http to a loopback address"}
	}
	return p.base.RoundTrip(req)
}

// tokenClient returns the client of one token request: it follows no redirect,
// which would carry the secrets on, and ends with ctx even where its caller has
// no use for a context.
func tokenClient(ctx context.Context, c *http.Client) *http.Client {
	var client http.Client
	if c != nil {
		client = *c
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = privateOnly{client.Transport}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if deadline, ok := ctx.Deadline(); ok {
		left := max(time.Until(deadline), time.Nanosecond)
		client.Timeout = min(first(client.Timeout, left), left)
	}
	return &client
}

// AuthKind says what became of a renewal that brought no usable token.
type AuthKind uint8

const (
	AuthTransient     AuthKind = iota // the token endpoint is out of order: later it may work
	AuthAmbiguous                     // its answer leaves open whether the grant is alive; three in a row are AuthReconnect
	AuthMisconfigured                 // the client is, and not the grant, refused: its operator must act
	AuthReconnect                     // the grant is dead: its user must connect again
	AuthStillRejected                 // the renewed token is rejected as the old one was; the answer is returned, not an error
)

// String returns what k asks for, in a few words.
func (k AuthKind) String() string {
	return nameOf(k, "transient", "ambiguous", "misconfigured", "reconnect", "still rejected")
}

// ErrReconnect says that the grant behind a [Credential] is dead: only its user
// can mend it, by connecting again. It is what an [*AuthError] of
// [AuthReconnect] is for [errors.Is].
var ErrReconnect = errors.New("rubicon: the grant is dead")

// An AuthError says why a credential could not be renewed. The request that
// needed it was not applied. No text of it holds a token or a secret.
type AuthError struct {
	Kind       AuthKind
	Status     int           // of the token endpoint's answer; 0 without one
	Code       string        // its error code (RFC 6749 section 5.2), "other" if it is none of the known; "" without one
	RetryAfter time.Duration // how long the endpoint asks to be left alone, at most 10 minutes; 0 if it does not

	// Rejected is the answer whose rejection asked for the renewal, with as
	// much of its body as was short enough to keep. Nil: the token had expired,
	// and nothing was sent.
	Rejected *http.Response

	detail string
	cause  error
}

// Error implements error.
func (e *AuthError) Error() string {
	text := "rubicon: the credential could not be renewed: " + e.Kind.String()
	if e.Status != 0 {
		text += fmt.Sprintf(": the token endpoint answered %d", e.Status)
	}
	if e.Code != "" {
		text += ": " + e.Code
	}
	if e.detail != "" {
		text += ": " + e.detail
	}
	return text + e.advice()
}

// advice says what to do about e.
func (e *AuthError) advice() string {
	switch e.Kind {
	case AuthReconnect:
		return " (have the user connect again, then call Credential.Replace)"
	case AuthMisconfigured:
		return " (the client's registration or configuration is refused; the grant is kept)"
	case AuthStillRejected:
		return ""
	}
	return " (the token is kept; try again later)"
}

// Is reports whether target is [ErrReconnect] and e asks for that.
func (e *AuthError) Is(target error) bool { return target == ErrReconnect && e.Kind == AuthReconnect }

// Unwrap returns the [*oauth2.RetrieveError] behind e, without what it holds of
// the request and of the answer's body, or nil.
func (e *AuthError) Unwrap() error {
	if r, ok := e.cause.(*oauth2.RetrieveError); ok {
		return r
	}
	return nil
}

// Cause returns what the grant returned, for people. What a [Grant] of the
// caller's own puts into its errors is not redacted.
func (e *AuthError) Cause() error { return e.cause }

// Retryable reports whether asking again later may help, without anybody doing
// anything.
func (e *AuthError) Retryable() bool { return e.Kind == AuthTransient || e.Kind == AuthAmbiguous }

// Temporary implements [net.Error].
func (e *AuthError) Temporary() bool { return e.Retryable() }

// Timeout implements [net.Error], always with no.
func (e *AuthError) Timeout() bool { return false }

// RetryableError is the question of the AWS SDK for Go v2.
func (e *AuthError) RetryableError() bool { return e.Retryable() }

// As answers cenkalti/backoff, whose Retry then stops where somebody must act.
func (e *AuthError) As(target any) bool {
	p, ok := target.(**backoff.PermanentError)
	if ok = ok && !e.Retryable(); ok {
		*p = &backoff.PermanentError{Err: e}
	}
	return ok
}

// GoString is Error, so that %#v prints nothing that Error leaves out.
func (e *AuthError) GoString() string { return e.Error() }

// MarshalText is Error, for encoding/json.
func (e *AuthError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// LogValue implements [slog.LogValuer].
func (e *AuthError) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("kind", e.Kind.String()),
		slog.Int("status", e.Status),
		slog.String("code", e.Code),
		slog.Duration("retry_after", e.RetryAfter),
	)
}

// authCodes is what the error codes of token endpoints mean, whatever status
// they come with: some come with 200.
var authCodes = map[string]AuthKind{
	"invalid_grant":           AuthReconnect,     // RFC 6749 section 5.2
	"bad_refresh_token":       AuthReconnect,     // GitHub Apps, with 200
	"invalid_refresh_token":   AuthReconnect,     // Slack, with 200
	"token_revoked":           AuthReconnect,     // Slack, with 200
	"interaction_required":    AuthReconnect,     // OpenID Connect Core section 3.1.2.6
	"login_required":          AuthReconnect,     // the same
	"consent_required":        AuthReconnect,     // the same
	"invalid_client":          AuthMisconfigured, // RFC 6749 section 5.2
	"unauthorized_client":     AuthMisconfigured,
	"unsupported_grant_type":  AuthMisconfigured,
	"invalid_scope":           AuthMisconfigured,
	"temporarily_unavailable": AuthTransient, // RFC 6749 section 4.1.2.1, and sent here too
	"server_error":            AuthTransient,
	"slow_down":               AuthTransient, // RFC 8628 section 3.5
	"invalid_request":         AuthAmbiguous, // of a dead token, and of a race, at some servers
}

// authError returns what the error of a grant means: by its code, then by its
// status, then as an error. A status of 4xx alone, which any proxy may send,
// ends no grant. codes goes before what is known.
func authError(err error, codes map[string]AuthKind, now time.Time) *AuthError {
	var own *AuthError
	if errors.As(err, &own) {
		return own
	}
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return &AuthError{Kind: AuthTransient, detail: lastWords(err), cause: err}
	}
	e := &AuthError{cause: stripped(answer)}
	if res := answer.Response; res != nil {
		e.Status = res.StatusCode
		wait, _ := retryAfter(res.Header, now)
		e.RetryAfter = min(max(wait, 0), 10*time.Minute)
	}
	code := answerCode(answer)
	kind, listed := codes[code]
	if !listed {
		kind, listed = authCodes[code]
	}
	switch {
	case listed:
		e.Kind, e.Code = kind, code
		return e
	case code != "":
		e.Code = "other"
	}
	e.Kind = kindOfStatus(e.Status)
	return e
}

// kindOfStatus returns what a status of a token endpoint means by itself.
func kindOfStatus(status int) AuthKind {
	switch {
	case status == 408, status == 425, status == 429:
		return AuthTransient
	case status/100 == 4:
		return AuthAmbiguous
	}
	return AuthTransient
}

// answerCode returns the error code of a token endpoint's answer. Not every
// source parses it.
func answerCode(answer *oauth2.RetrieveError) string {
	if answer.ErrorCode != "" {
		return answer.ErrorCode
	}
	var body struct{ Error string }
	if json.Unmarshal(answer.Body, &body) != nil {
		return ""
	}
	return body.Error
}

// stripped returns what of answer may be shown: its response has the request,
// with the client's secret, and its body may hold anything.
func stripped(answer *oauth2.RetrieveError) *oauth2.RetrieveError {
	short := &oauth2.RetrieveError{Response: new(http.Response)}
	if _, known := authCodes[answerCode(answer)]; known {
		short.ErrorCode = answerCode(answer)
	}
	if res := answer.Response; res != nil {
		short.Response = &http.Response{Status: res.Status, StatusCode: res.StatusCode, Header: res.Header, Body: http.NoBody}
	}
	return short
}

// lastWords says what kind of error err is, in words that hold none of its
// own, but for those of the network.
func lastWords(err error) string {
	var network *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer from the token endpoint in time"
	case errors.As(err, &network):
		return network.Error()
	}
	return "the token request failed"
}
