package rubicon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// An observation is what was seen of one call of Base that returned an error.
type observation struct {
	trusted bool  // Base is known to tell the truth by its hooks
	getConn int   // connections asked for
	gotConn int   // connections obtained
	wrote   int   // header blocks written, as far as that was told
	http2   bool  // a connection was HTTP/2
	polls   int   // see attemptContext
	early   bool  // see attemptContext
	alive   bool  // the attempt's context had not ended when Base returned
	cut     bool  // we stopped a resend
	invalid bool  // net/http refuses such a request
	refusal Proof // what the peer says by way of the error, if nobody else can have said it
}

// evidence says what o proves. Everything that is not proven is "may have been
// sent". The proofs hold over all tries of the one call, never the last alone.
func (o observation) evidence() Evidence {
	notSent := func(p Proof) Evidence { return Evidence{ReachNone, VerdictNotApplied, p} }
	switch {
	case !o.trusted, o.cut:
	case o.getConn > 0 && o.gotConn == 0 && o.wrote == 0:
		return notSent(ProofNoConnection)
	case o.gotConn > 0 && o.wrote == 0 && !o.http2:
		return notSent(ProofNoHeader)
	case o.gotConn > 0 && o.wrote == 0 && o.alive && o.polls == o.gotConn:
		return notSent(ProofNoHeader)
	case o.gotConn > 0 && o.wrote == 0 && !o.early && o.polls == o.gotConn:
		return notSent(ProofNoPoll)
	case o.wrote == 1 && o.refusal != ProofNone && o.http2 && o.alive && o.getConn <= o.gotConn:
		return Evidence{ReachSent, VerdictNotApplied, o.refusal}
	case o.getConn == 0 && o.gotConn == 0 && o.wrote == 0 && o.invalid:
		return notSent(ProofInvalid)
	}
	return Evidence{Reach: ReachSent}
}

// hooks are the httptrace hooks of one attempt and what they saw. GetConn and
// GotConn run on the goroutine that calls RoundTrip, before the first byte of
// each try; WroteHeaders runs on the writer's. On HTTP/1 that is before the
// header's last byte can leave, and RoundTrip waits for the writer; on HTTP/2
// it is after the write, and perhaps after RoundTrip has returned. A dialer
// that makes requests of its own with the context it is given calls them from
// elsewhere too, which can only add to what was seen.
type hooks struct {
	trace   httptrace.ClientTrace
	ctx     atomic.Pointer[attemptContext] // nil between attempts
	pooled  bool
	getConn atomic.Int32
	gotConn atomic.Int32
	wrote   atomic.Int32
	http2   atomic.Bool
	stopped atomic.Bool
}

// newHooks returns hooks that are bound to their own counters.
func newHooks() *hooks {
	h := new(hooks)
	h.trace.GetConn = func(string) { h.getConn.Add(1) }
	h.trace.GotConn = h.got
	h.trace.WroteHeaders = func() { h.wrote.Add(1) }
	return h
}

// got counts a connection, and stops a resend that net/http is about to make
// of a request that may have acted: its HTTP/2 client repeats a request
// without a body on grounds that are no proof (golang/go#47635).
func (h *hooks) got(info httptrace.GotConnInfo) {
	h.gotConn.Add(1)
	ctx := h.ctx.Load()
	if ctx == nil {
		return
	}
	if h.http2.Load() && ctx.stop != nil && h.wrote.Load() > 0 && ctx.tried() {
		h.stopped.Store(true)
		ctx.stop()
	}
	if isHTTP2(ctx.base, info.Conn) {
		h.http2.Store(true)
		ctx.armed.Store(true)
	}
}

// idleHooks keeps hooks that can't fire any more. A hook that fires late would
// find counters of another attempt, so only those go back whose every try is
// accounted for, and only where no dialer of the caller's may call them.
var idleHooks = sync.Pool{New: func() any { return newHooks() }}

// watch makes ctx the context of one attempt and returns its hooks. A trace of
// the caller's stays in place and is called as net/http would.
func watch(ctx *attemptContext, trust *trust) *hooks {
	var h *hooks
	switch {
	case httptrace.ContextClientTrace(ctx.Context) != nil:
		h = newHooks()
		ctx.Context = httptrace.WithClientTrace(ctx.Context, &h.trace)
	case trust.pools:
		h = idleHooks.Get().(*hooks)
		h.pooled = true
		ctx.trace = &h.trace
	default:
		h = newHooks()
		ctx.trace = &h.trace
	}
	h.ctx.Store(ctx)
	return h
}

// resends returns how often net/http sent the request again by itself. One
// that was stopped was never written.
func (h *hooks) resends() int {
	n := int(max(h.gotConn.Load(), h.wrote.Load(), 1)) - 1
	if h.stopped.Load() {
		n = max(0, n-1)
	}
	return n
}

// release gives h back if no hook of it can fire any more.
func (h *hooks) release() {
	if !h.pooled || h.wrote.Load() != h.gotConn.Load() || h.gotConn.Load() == 0 {
		return
	}
	h.ctx.Store(nil)
	h.getConn.Store(0)
	h.gotConn.Store(0)
	h.wrote.Store(0)
	h.http2.Store(false)
	h.stopped.Store(false)
	idleHooks.Put(h)
}

// observe says what h saw of out, of which Base said err. failed says that the
// body of out failed, so that err may be anybody's.
func (h *hooks) observe(out *http.Request, err error, failed failure) observation {
	ctx := h.ctx.Load()
	o := observation{
		trusted: ctx.base != nil && isTrusted(ctx.base),
		getConn: int(h.getConn.Load()), gotConn: int(h.gotConn.Load()), wrote: int(h.wrote.Load()),
		http2: h.http2.Load(),
		polls: int(ctx.polls.Load()), early: ctx.early.Load(),
		//lint:ignore SA1019 callers still set Cancel, http.Client.Timeout among them
		alive:   ctx.Err() == nil && !isClosed(out.Cancel),
		cut:     h.stopped.Load(),
		invalid: isInvalid(out, err),
	}
	if failed == bodyIntact {
		o.refusal = refusalOf(err)
	}
	return o
}

// A failure says whether a request's body failed as it was read.
type failure uint8

const (
	bodyIntact failure = iota
	bodyFailed
)

// A trust is what is known of a Base once and for all.
type trust struct {
	pools bool // no dialer of the caller's can call hooks late
}

// trustOf looks at a base before its first use; nil is not net/http's.
func trustOf(t *http.Transport) *trust {
	if t == nil {
		return new(trust)
	}
	//lint:ignore SA1019 callers still set Dial and DialTLS
	plain := t.Dial == nil && t.DialTLS == nil && t.DialTLSContext == nil
	return &trust{pools: plain && (t.DialContext == nil || isNetDialer(t.DialContext))}
}

// isNetDialer reports whether dial is the method of a [net.Dialer].
func isNetDialer(dial func(context.Context, string, string) (net.Conn, error)) bool {
	return runtime.FuncForPC(reflect.ValueOf(dial).Pointer()).Name() == "net.(*Dialer).DialContext-fm"
}

// isClosed reports whether c is closed; nil is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// isHTTP2 reports whether t may speak HTTP/2 over c: whatever was negotiated
// that is not HTTP/1. From Go 1.27 on, a connection need not be a *tls.Conn.
func isHTTP2(t *http.Transport, c net.Conn) bool {
	if c, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok {
		proto := c.ConnectionState().NegotiatedProtocol
		return proto != "" && proto != "http/1.1"
	}
	return t != nil && t.Protocols != nil && t.Protocols.UnencryptedHTTP2() && !t.Protocols.HTTP1()
}

// isTrusted reports whether t's hooks tell all, as far as that can be checked:
// that its HTTP/2 is net/http's own. It may be called only after a RoundTrip
// of t has returned, which is what fills the map. That nothing was registered
// by RegisterProtocol can't be checked, and is documented.
func isTrusted(t *http.Transport) bool {
	for _, upgrade := range t.TLSNextProto {
		name := runtime.FuncForPC(reflect.ValueOf(upgrade).Pointer()).Name()
		if !strings.HasPrefix(name, "net/http.") && !strings.HasPrefix(name, "net/http/internal/http2.") {
			return false
		}
	}
	return true
}

// isInvalid reports whether net/http refuses to send req before it asks for a
// connection, and err says so. It is asked only after an attempt of which no
// hook was called. What net/http looks at after the table of RegisterProtocol
// it must have said in its own words: another round tripper may have sent it.
func isInvalid(req *http.Request, err error) bool {
	switch {
	case req.URL == nil, req.Header == nil:
		return true
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return err.Error() == fmt.Sprintf("unsupported protocol scheme %q", req.URL.Scheme)
	case !validFields(req.Header), !validFields(req.Trailer):
		return true
	case !isMethod(req.Method):
		return err.Error() == fmt.Sprintf("net/http: invalid method %q", req.Method)
	case req.URL.Host == "":
		return err.Error() == "http: no Host in request URL"
	}
	return false
}

// isMethod reports whether m is a method (RFC 9110 section 9.1: a token).
func isMethod(m string) bool {
	return m == "" || strings.IndexFunc(m, func(r rune) bool { return !httpguts.IsTokenRune(r) }) < 0
}

// validFields reports whether net/http would send h.
func validFields(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return true
}

// refusalOf says whether err is the peer's word that it did not process a
// request with a body: REFUSED_STREAM, or a GOAWAY that excludes the stream
// (RFC 9113 section 8.7). net/http tells it by a text, where it could not send
// the body again. Of a request without a body it tells nothing: it sends that
// again. A text that is not known claims nothing.
func refusalOf(err error) Proof {
	text := err.Error()
	if strings.HasPrefix(text, "http2: Transport received GOAWAY from server ErrCode:") {
		return ProofGoAway
	}
	inner, ok := strings.CutPrefix(text, "http2: Transport: cannot retry err [")
	if !ok {
		return ProofNone
	}
	inner, ok = strings.CutSuffix(inner, "] after Request.Body was written; define Request.GetBody to avoid this error")
	switch {
	case !ok:
		return ProofNone
	case inner == "http2: Transport received Server's graceful shutdown GOAWAY":
		return ProofGoAway
	case strings.HasPrefix(inner, "stream error: stream ID ") && strings.HasSuffix(inner, "; REFUSED_STREAM; received from peer"):
		return ProofRefused
	}
	return ProofNone
}

// isFinal reports whether err says that another attempt would end the same
// way. It is never a proof of anything: it only stops attempts.
func isFinal(err error) bool {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var proxy *ProxyError
	switch {
	case errors.As(err, &dns):
		return dns.IsNotFound
	case errors.As(err, &cert), errors.As(err, &record):
		return true
	case errors.As(err, &proxy):
		return proxy.Final()
	}
	switch err.Error() { // net/http's own words for a refused CONNECT
	case http.StatusText(http.StatusProxyAuthRequired), http.StatusText(http.StatusForbidden):
		return true
	}
	return false
}
