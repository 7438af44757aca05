package rubicon

import (
	"context"
	"net/http"
)

// The seams below are for the tests of package rubicon_test.

// Seen is what was seen of one call of a base that returned an error.
type Seen struct {
	Trusted, HTTP2, Early, Alive, Cut, Invalid bool
	GetConn, GotConn, Wrote, Polls             int
	Refusal                                    Proof
}

// Evidence says what s proves.
func (s Seen) Evidence() Evidence {
	return observation{
		trusted: s.Trusted, http2: s.HTTP2, early: s.Early, alive: s.Alive, cut: s.Cut, invalid: s.Invalid,
		getConn: s.GetConn, gotConn: s.GotConn, wrote: s.Wrote, polls: s.Polls, refusal: s.Refusal,
	}.evidence()
}

// Watch makes one attempt of req over rt, and says what was seen of it if it
// failed. The connections are those of t, before which rt may stand: what a
// Transport would not trust is seen as if it did. Nothing stops a resend.
func Watch(rt http.RoundTripper, t *http.Transport, req *http.Request) (*http.Response, Seen, error) {
	c := &call{t: &Transport{Base: t}, base: t, req: req, body: req.Body}
	c.joinAlone()
	ctx := &attemptContext{Context: req.Context(), base: t}
	h := watch(ctx, trustOf(t))
	out := c.outgoing(ctx)
	res, err := rt.RoundTrip(out)
	if err == nil {
		return res, Seen{}, nil
	}
	o := h.observe(out, err, c.guard.failure())
	h.release()
	return nil, Seen{
		Trusted: o.trusted, HTTP2: o.http2, Early: o.early, Alive: o.alive, Cut: o.cut, Invalid: o.invalid,
		GetConn: o.getConn, GotConn: o.gotConn, Wrote: o.wrote, Polls: o.polls, Refusal: o.refusal,
	}, err
}

// Returns reports whether hooks go back to the pool that were told of so many
// connections and header blocks.
func Returns(gotConn, wrote int) bool {
	h := watch(&attemptContext{Context: context.Background()}, &trust{pools: true})
	h.gotConn.Store(int32(gotConn))
	h.wrote.Store(int32(wrote))
	h.release()
	return h.ctx.Load() == nil
}

// PollClass names the class of a function that calls Done.
func PollClass(function string) string {
	return nameOf(classify(function), "last poll or unknown", "try", "harmless")
}

// GateKnown says whether rule P is admitted under this Go release.
const GateKnown = gateKnown

// StandIn makes the hooks that a stub in t.Base calls count as those of base.
func StandIn(t *Transport, base *http.Transport) { t.standsFor = base }
