package rubicon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// A Store keeps the token of one grant for all processes that share it.
type Store interface {
	// Update calls renew with the stored token, nil if there is none, while no
	// other process is in an Update of the same grant, and keeps the token that
	// renew returns before it returns itself. If renew returns nil, or an
	// error, the stored token stays as it is. Waiting for others ends with ctx.
	//
	// To hold the lock around the reading alone, or the writing, is not enough:
	// two processes would spend one refresh token, and a server that rotates
	// them revokes the grant.
	Update(ctx context.Context, renew func(stored *oauth2.Token) (*oauth2.Token, error)) error
}

// A Credential is the token of one grant and what renews it. All transports
// that use the grant must share one. A token is renewed when it expires, and
// when an [Auth] finds it rejected: once, for all that hold it, whoever asked
// first and whether they still wait or not. A failed renewal is remembered as
// well, and what failed for good is not tried again.
//
// The zero value has no token and can't get one. The fields must not be changed
// once it is in use. It prints as nothing but its generation.
type Credential struct {
	// Grant renews the token. Nil: it is never renewed, as an API key.
	Grant Grant

	// Client sends the token requests. Nil: one over http.DefaultTransport. It
	// is copied, follows no redirect and sends to https or loopback only.
	Client *http.Client

	// Timeout bounds a renewal, the wait for Store included. Zero: 10 seconds.
	Timeout time.Duration

	// Pause is how long a failed renewal is remembered, and how long no renewal
	// is forced for an origin that rejected the renewed token as well; the
	// latter doubles up to four times itself. Zero: 30 seconds.
	Pause time.Duration

	// Store keeps the token. Nil: it lives in memory only.
	Store Store

	// Codes says what error codes of this token endpoint mean, before what RFC
	// 6749 says. Nil: nothing else.
	Codes map[string]AuthKind

	// Renewed is called after every renewal, when those who waited for it go on
	// already. Nil: nobody is told.
	Renewed func(Renewal)

	mu       sync.Mutex
	tok      *token // nil: there was none yet
	gen      uint64
	rejected bool   // an origin rejected tok
	forcedBy string // the origin whose rejection brought tok, until it accepts it
	running  *renewal
	failed   setback
	paused   map[string]pause
	doubts   int           // renewals of the same refresh token that ended AuthAmbiguous
	stale    *oauth2.Token // what the store holds in place of a token that could not be saved
	dead     *oauth2.Token // what the grant was refused with for good
	deadErr  *AuthError    // how
}

// A Renewal tells how a renewal ended. It holds no secret.
type Renewal struct {
	Generation uint64        // of the current token; it grows with each new one
	Adopted    bool          // the token came from Store, where another process had put it
	Took       time.Duration // how long it took
	Err        error         // nil, or an [*AuthError]
	Unsaved    error         // what Store returned instead of keeping the token; it is in use all the same
}

// NewCredential returns a credential that begins with a copy of the given token,
// or, if it is nil, without one. With a nil grant it is never renewed.
func NewCredential(t *oauth2.Token, grant Grant) *Credential {
	c := &Credential{Grant: grant}
	c.set(t)
	return c
}

// Static returns the credential of an API key, which is never renewed.
func Static(key string) *Credential { return NewCredential(&oauth2.Token{AccessToken: key}, nil) }

// Token implements [oauth2.TokenSource]: it returns the current token, renewed
// if it has expired. It must not be put behind [oauth2.ReuseTokenSource], or
// [oauth2.NewClient], which would keep what is rejected.
func (c *Credential) Token() (*oauth2.Token, error) {
	tok, err := c.use(context.Background())
	if err != nil {
		return nil, err
	}
	t := *tok.oauth
	return &t, nil
}

// Replace makes a copy of t the token, and keeps it in Store, after the user has
// connected again. A nil t is an error.
func (c *Credential) Replace(ctx context.Context, t *oauth2.Token) error {
	if t == nil {
		return errors.New("rubicon: there is no token to replace the credential's with")
	}
	if c.Store != nil {
		keep := func(*oauth2.Token) (*oauth2.Token, error) { return t, nil }
		if err := c.Store.Update(ctx, keep); err != nil {
			return fmt.Errorf("rubicon: the token could not be stored: %w", err)
		}
	}
	c.set(t)
	return nil
}

// set makes t the token, and forgets all that was known about the last one.
func (c *Credential) set(t *oauth2.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	c.tok = nil
	if t != nil {
		own := *t
		c.tok = newToken(&own, c.gen)
	}
	c.rejected, c.forcedBy, c.failed, c.paused = false, "", setback{}, nil
	c.doubts, c.stale, c.dead = 0, nil, nil
}

// A token is one token and its generation, by which it is told from others.
type token struct {
	oauth  *oauth2.Token
	gen    uint64
	scheme string        // in lower case
	header []string      // the value of Authorization
	bare   []string      // the value of a header that has no scheme
	early  time.Duration // how long before its expiry it is renewed
	forced string        // the origin whose rejection it was granted for; "": none
}

// newToken returns t as generation gen. A short life is not spent on being
// early.
func newToken(t *oauth2.Token, gen uint64) *token {
	tok := &token{oauth: t, gen: gen}
	tok.scheme = strings.ToLower(t.Type())
	tok.header, tok.bare = []string{t.Type() + " " + t.AccessToken}, []string{t.AccessToken}
	if !t.Expiry.IsZero() {
		tok.early = max(0, min(10*time.Second, time.Until(t.Expiry)/10))
	}
	return tok
}

// generation returns the number of t; 0 is that of none.
func (t *token) generation() uint64 {
	if t == nil {
		return 0
	}
	return t.gen
}

// valid reports whether t can be used as far as the clock says, which is not
// far.
func (t *token) valid(now time.Time) bool {
	if t == nil || t.oauth.AccessToken == "" {
		return false
	}
	return t.oauth.Expiry.IsZero() || now.Before(t.oauth.Expiry.Add(-t.early))
}

// hide returns err, without t if its text holds it.
func (t *token) hide(err error) error {
	if t == nil || err == nil || len(t.oauth.AccessToken) < 4 || !strings.Contains(err.Error(), t.oauth.AccessToken) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), t.oauth.AccessToken, "..."))
}

// A renewal is one call of the grant under way.
type renewal struct {
	ctx    context.Context // ends with the renewal's time
	held   *token          // what is renewed; nil if there was none
	origin string          // that rejected it; "": it has expired
	done   chan struct{}   // closed when the fields below are set
	tok    *token
	err    error
}

// A setback is the remembered end of a renewal that failed.
type setback struct {
	err   *AuthError // nil: there is none
	until time.Time  // zero: for good
}

// A pause is how long no renewal is forced for an origin.
type pause struct {
	until   time.Time
	useless int // renewals that did not help, one after another
}

// errNoGrant is the end of a credential that has no token and no way to one.
var errNoGrant = &AuthError{Kind: AuthMisconfigured, detail: "there is no token and no Grant"}

// use returns the token to send: one that has expired is renewed first.
func (c *Credential) use(ctx context.Context) (*token, error) {
	if tok := c.current(); tok != nil {
		return tok, nil
	}
	c.mu.Lock()
	held := c.tok
	c.mu.Unlock()
	tok, err := c.renew(ctx, held, "")
	if err == errStillRejected && held != nil { // it is all that can be had, whatever the clock says
		return held, nil
	}
	return tok, err
}

// current returns the token to send, or nil if it has to be renewed first.
func (c *Credential) current() *token {
	c.mu.Lock()
	tok := c.tok
	c.mu.Unlock()
	if tok.valid(time.Now()) || tok != nil && !c.renewable() {
		return tok
	}
	return nil
}

// renewable reports whether another token can be had.
func (c *Credential) renewable() bool { return c.Grant != nil || c.Store != nil }

// renew returns a token in place of held, which has expired, or which origin
// rejected. It waits for the one renewal that there is; the end of ctx ends the
// wait and nothing else.
func (c *Credential) renew(ctx context.Context, held *token, origin string) (*token, error) {
	tok, err := c.newer(ctx, held, origin)
	if err == nil && held != nil && tok.gen == held.gen { // Replace put held there while an earlier token was renewed
		return c.newer(ctx, held, origin)
	}
	return tok, err
}

// newer returns the token that the renewal under way, or one that it starts,
// leaves behind.
func (c *Credential) newer(ctx context.Context, held *token, origin string) (*token, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	// A renewal under way is waited for first: its token is newer than the one
	// that is current, which may be on its way out.
	r := c.running
	if r == nil {
		if tok, err, known := c.knownLocked(held, origin, time.Now()); known {
			c.mu.Unlock()
			return tok, err
		}
		r = c.startLocked(origin)
	}
	c.mu.Unlock()
	return r.wait(ctx)
}

// knownLocked answers without a renewal, if it can.
func (c *Credential) knownLocked(held *token, origin string, now time.Time) (tok *token, err error, known bool) {
	if held.generation() != c.gen && !c.rejected && c.tok.valid(now) {
		return c.tok, nil, true // a late rejection of an earlier token
	}
	if f := &c.failed; f.err != nil && (f.until.IsZero() || now.Before(f.until)) {
		return nil, f.err, true
	}
	if origin == "" {
		return nil, nil, false
	}
	if c.forcedBy == origin && held.generation() == c.gen {
		c.uselessLocked(origin, now)
	}
	if now.Before(c.paused[origin].until) {
		return nil, errStillRejected, true
	}
	c.rejected = true
	return nil, nil, false
}

// errStillRejected says that a renewal did not help, and is not tried again
// for a while.
var errStillRejected = &AuthError{Kind: AuthStillRejected}

// uselessLocked notes that the renewed token was rejected by the origin for
// which it was renewed.
func (c *Credential) uselessLocked(origin string, now time.Time) {
	c.forcedBy = ""
	if c.paused == nil {
		c.paused = make(map[string]pause)
	}
	p := c.paused[origin]
	p.until = now.Add(first(c.Pause, 30*time.Second) << min(p.useless, 2))
	p.useless++
	c.paused[origin] = p
}

// useless says that origin rejected tok, with which a rejected request was
// sent again, whatever another path of the origin said in between.
func (c *Credential) useless(tok *token, origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); tok.gen == c.gen && tok.forced == origin && !now.Before(c.paused[origin].until) {
		c.uselessLocked(origin, now)
	}
}

// accepted says that origin did not reject tok. A pause runs its time all the
// same: another path of the origin may reject what this one takes.
func (c *Credential) accepted(tok *token, origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tok.gen != c.gen {
		return
	}
	if c.forcedBy == origin {
		c.forcedBy = ""
	}
	if p, ok := c.paused[origin]; ok && time.Now().After(p.until) {
		delete(c.paused, origin)
	}
}

// startLocked starts the one renewal of the current token. It ends by its own
// time: the answer may hold the only copy of the next refresh token, so nobody
// who waits for it can cancel it, and no value of theirs is in its context.
func (c *Credential) startLocked(origin string) *renewal {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), renewalKey{}, true), c.timeout())
	r := &renewal{ctx: ctx, held: c.tok, origin: origin, done: make(chan struct{})}
	c.running = r
	go func() {
		defer cancel()
		c.run(r)
	}()
	return r
}

// renewalKey marks the contexts of token requests.
type renewalKey struct{}

// timeout returns how long a renewal may take.
func (c *Credential) timeout() time.Duration { return first(c.Timeout, 10*time.Second) }

// wait waits for the end of r, or of ctx. A grant that goes on beyond its time
// is not waited for.
func (r *renewal) wait(ctx context.Context) (*token, error) {
	select {
	case <-r.done:
		return r.tok, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ctx.Done():
	}
	select {
	case <-r.done:
		return r.tok, r.err
	default:
		return nil, &AuthError{Kind: AuthTransient, detail: "the renewal has not ended in time"}
	}
}

// An obtained is what a renewal brought.
type obtained struct {
	token   *oauth2.Token
	from    *oauth2.Token // what was given to the grant
	stored  *oauth2.Token // what the store held before
	adopted bool
	err     error
	unsaved error
}

// run makes the renewal and publishes how it ended, also when the grant
// panics or ends its goroutine.
func (c *Credential) run(r *renewal) {
	start := time.Now()
	ended := "ended its goroutine"
	var got obtained
	defer func() {
		if p := recover(); p != nil {
			ended = fmt.Sprintf("panicked with a %T", p)
		}
		switch {
		case ended == "":
		case got.token != nil && got.err == nil: // the store broke, and the token is there
			got.unsaved = errors.New("rubicon: the store " + ended)
		default:
			got.err = &AuthError{Kind: AuthTransient, detail: "the grant " + ended}
		}
		told := c.publish(r, got)
		if c.Renewed != nil {
			told.Took = time.Since(start)
			c.Renewed(told)
		}
	}()
	c.obtain(r, &got)
	ended = ""
}

// obtain gets a token: another process's from the store, or by the grant.
func (c *Credential) obtain(r *renewal, got *obtained) {
	var held *oauth2.Token
	if r.held != nil {
		held = r.held.oauth
	}
	if c.Store == nil {
		*got = c.grant(r.ctx, held)
		return
	}
	// What was granted is kept even if it came at the last moment.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), c.timeout()+saveTime)
	defer cancel()
	asked := false
	err := c.Store.Update(ctx, func(stored *oauth2.Token) (*oauth2.Token, error) {
		asked = true
		*got = c.obtainStored(r.ctx, held, stored)
		got.stored = stored
		if got.adopted || got.err != nil {
			return nil, got.err
		}
		return got.token, nil
	})
	switch {
	case !asked:
		got.err = &AuthError{Kind: AuthTransient, detail: "the token's store can't be used", cause: err}
	case got.err == nil && err != nil:
		got.unsaved = err
	case errors.Is(got.err, ErrReconnect):
		*got = c.reread(ctx, *got)
	}
}

// saveTime is how long a store may take to keep what was granted.
const saveTime = 5 * time.Second

// obtainStored gets a token in place of held where the store has stored.
func (c *Credential) obtainStored(ctx context.Context, held, stored *oauth2.Token) obtained {
	c.mu.Lock()
	stale, dead, refused := c.stale, c.dead, c.deadErr
	c.mu.Unlock()
	switch {
	case stored == nil, stale != nil && stored.AccessToken == stale.AccessToken:
	case (held == nil || stored.AccessToken != held.AccessToken) && newToken(stored, 0).valid(time.Now()):
		return obtained{token: stored, adopted: true}
	default:
		held = stored
	}
	if dead != nil && sameRefresh(dead, held) {
		return obtained{from: held, err: refused}
	}
	return c.grant(ctx, held)
}

// reread looks whether the grant is dead, or only what we sent: another process
// may have renewed it where the store's lock has lapsed.
func (c *Credential) reread(ctx context.Context, got obtained) obtained {
	var now *oauth2.Token
	err := c.Store.Update(ctx, func(stored *oauth2.Token) (*oauth2.Token, error) {
		now = stored
		return nil, nil
	})
	if err != nil || now == nil || now.AccessToken == "" || sameRefresh(now, got.from) || sameRefresh(now, got.stored) {
		return got
	}
	return obtained{token: now, adopted: true}
}

// sameRefresh reports whether t has the refresh token of other.
func sameRefresh(t, other *oauth2.Token) bool {
	return other != nil && t.RefreshToken == other.RefreshToken
}

// grant makes one token request.
func (c *Credential) grant(ctx context.Context, held *oauth2.Token) obtained {
	if c.Grant == nil {
		return obtained{from: held, err: errNoGrant}
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, tokenClient(ctx, c.Client))
	if ctx.Err() != nil {
		return obtained{from: held, err: &AuthError{Kind: AuthTransient, detail: "no time was left for the token request"}}
	}
	tok, err := c.Grant(ctx, held)
	switch {
	case err != nil:
		return obtained{from: held, err: authError(err, c.Codes, time.Now())}
	case tok == nil || tok.AccessToken == "":
		return obtained{from: held, err: &AuthError{Kind: AuthTransient, detail: "the token endpoint's answer has no token"}}
	}
	return obtained{token: tok, from: held}
}

// publish makes known how r ended.
func (c *Credential) publish(r *renewal, got obtained) Renewal {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.tok != r.held: // it was replaced in between
		r.tok = c.tok
	case got.err != nil:
		r.err = c.failLocked(got)
	default:
		r.tok, r.err = c.renewLocked(r, got)
	}
	c.running = nil
	close(r.done)
	return Renewal{Generation: c.gen, Adopted: got.adopted, Err: r.err, Unsaved: got.unsaved}
}

// renewLocked makes what was obtained the token. One that is the same as
// before did not help whoever was rejected with it.
func (c *Credential) renewLocked(r *renewal, got obtained) (*token, error) {
	unchanged := r.held != nil && got.token.AccessToken == r.held.oauth.AccessToken
	if !unchanged {
		c.gen++
	}
	c.tok = newToken(got.token, c.gen)
	c.rejected, c.forcedBy, c.failed, c.doubts, c.dead = false, r.origin, setback{}, 0, nil
	c.stale = nil
	if got.unsaved != nil {
		c.stale = got.stored
	}
	if got.adopted { // nobody has tried yet whether a renewal helps
		c.forcedBy = ""
	}
	c.tok.forced = c.forcedBy
	if unchanged && r.origin != "" {
		c.uselessLocked(r.origin, time.Now())
		return nil, errStillRejected
	}
	return c.tok, nil
}

// failLocked remembers that a renewal failed.
func (c *Credential) failLocked(got obtained) error {
	e := authError(got.err, c.Codes, time.Now())
	if e.Kind != AuthAmbiguous {
		c.doubts = 0
	} else if c.doubts++; c.doubts >= 3 {
		dead := *e
		dead.Kind = AuthReconnect
		e = &dead
	}
	pause := max(first(c.Pause, 30*time.Second), e.RetryAfter)
	c.failed = setback{e, time.Now().Add(pause)}
	if e.Retryable() {
		return e
	}
	c.dead, c.deadErr = got.from, e
	if c.Store == nil { // which somebody else may write to
		c.failed.until = time.Time{}
	}
	return e
}

// String names the generation of the token, and nothing of it.
func (c *Credential) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("credential of generation %d", c.gen)
}

// Format implements [fmt.Formatter]: every verb prints what String returns.
func (c *Credential) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// MarshalText is String, for encoding/json.
func (c *Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// LogValue implements [slog.LogValuer].
func (c *Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }
