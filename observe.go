package rubicon

import (
	"context"
	"crypto/tls"
	"errors"
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
	refusal Proof // what the peer says by way of the error, or ProofNone
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
	case o.wrote == 1 && o.refusal != ProofNone:
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
// it is after the write, and perhaps after RoundTrip has returned.
type hooks struct {
	trace   httptrace.ClientTrace
	ctx     *attemptContext
	base    *http.Transport
	stop    context.CancelFunc // not nil: stop a resend over HTTP/2
	getConn int
	gotConn int
	http2   bool
	stopped bool
	wrote   atomic.Int32
}

// newHooks returns hooks that are bound to their own counters.
func newHooks() *hooks {
	h := new(hooks)
	h.trace.GetConn = func(string) { h.getConn++ }
	h.trace.GotConn = h.got
	h.trace.WroteHeaders = func() { h.wrote.Add(1) }
	return h
}

// got counts a connection, and stops a resend that net/http is about to make
// of a request that may have acted: its HTTP/2 client repeats a request
// without a body on grounds that are no proof (golang/go#47635).
func (h *hooks) got(info httptrace.GotConnInfo) {
	h.gotConn++
	if h.http2 && h.stop != nil && h.wrote.Load() > 0 {
		h.stopped = true
		h.stop()
	}
	if isHTTP2(h.base, info.Conn) {
		h.http2 = true
		h.ctx.armed.Store(true)
	}
}

// idleHooks keeps hooks that can't fire any more. A hook that fires late would
// find counters of another attempt, so only those go back whose every try is
// accounted for.
var idleHooks = sync.Pool{New: func() any { return newHooks() }}

// watch makes ctx the context of one attempt and returns its hooks. A trace of
// the caller's stays in place and is called as net/http would.
func watch(ctx *attemptContext, base *http.Transport, stop context.CancelFunc) *hooks {
	var h *hooks
	if httptrace.ContextClientTrace(ctx.Context) == nil {
		h = idleHooks.Get().(*hooks)
		ctx.trace = &h.trace
	} else {
		h = newHooks()
		ctx.Context = httptrace.WithClientTrace(ctx.Context, &h.trace)
	}
	h.ctx, h.base, h.stop = ctx, base, stop
	return h
}

// resends returns how often net/http sent the request again by itself.
func (h *hooks) resends() int { return max(h.gotConn, int(h.wrote.Load())) - 1 }

// release gives h back if no hook of it can fire any more.
func (h *hooks) release() {
	if h.ctx.trace == nil || int(h.wrote.Load()) != h.gotConn {
		return
	}
	h.ctx, h.base, h.stop = nil, nil, nil
	h.getConn, h.gotConn, h.http2, h.stopped = 0, 0, false, false
	h.wrote.Store(0)
	idleHooks.Put(h)
}

// observe says what h saw of out, of which Base said err.
func (h *hooks) observe(out *http.Request, err error) observation {
	return observation{
		trusted: h.base != nil && isTrusted(h.base),
		getConn: h.getConn, gotConn: h.gotConn, wrote: int(h.wrote.Load()),
		http2: h.http2,
		polls: int(h.ctx.polls.Load()), early: h.ctx.early.Load(),
		//lint:ignore SA1019 callers still set Cancel, http.Client.Timeout among them
		alive:   h.ctx.Err() == nil && !isClosed(out.Cancel),
		cut:     h.stopped,
		invalid: isInvalid(out),
		refusal: refusalOf(err),
	}
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

// isHTTP2 reports whether t speaks HTTP/2 over c.
func isHTTP2(t *http.Transport, c net.Conn) bool {
	if c, ok := c.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol == "h2"
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
// connection. It is asked only after an attempt of which no hook was called.
func isInvalid(req *http.Request) bool {
	switch {
	case req.URL == nil, req.Header == nil:
		return true
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return true
	case req.URL.Host == "", !isMethod(req.Method):
		return true
	}
	return !validFields(req.Header) || !validFields(req.Trailer)
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

// A streamError is the shape that net/http's HTTP/2 stream error fills by its
// As method.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error implements error.
func (streamError) Error() string { return "rubicon: stream error" }

// refusedStream is the code REFUSED_STREAM (RFC 9113 section 7).
const refusedStream = 7

// refusalOf says whether err is the peer's word that it did not process the
// request: REFUSED_STREAM, or a GOAWAY that excludes the stream (RFC 9113
// section 8.7). net/http tells it by the reset's code, or by a text alone
// where it could not send the body again. A text that is not known claims
// nothing.
func refusalOf(err error) Proof {
	var se streamError
	if errors.As(err, &se) {
		if se.Code == refusedStream && se.Cause != nil && se.Cause.Error() == "received from peer" {
			return ProofRefused
		}
		return ProofNone
	}
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
