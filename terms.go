package rubicon

import "time"

// document looks up what is known of the request's endpoint.
func (c *call) document() {
	c.terms = Terms{
		Kind:       c.kind(),
		Safe:       isSafe(c.req.Method),
		Idempotent: isIdempotent(c.req.Method),
	}
	c.terms.Repeat = c.repeats()
	if c.t.Auth != nil {
		c.origin, _ = c.t.Auth.covers(c.req)
	}
	if header := c.keyHeader(); header != "" {
		key := c.r.keyOnce(c.req, header)
		c.key = first(c.req.Header.Get(header), key)
		c.keyed = c.key == key
		c.terms.Keyed = true
		c.terms.ReplayUntil = time.Now().Add(window(c.endpoint.Retention))
	}
}

// keyHeader returns the header of the endpoint's idempotency contract, or "".
func (c *call) keyHeader() string {
	if c.endpoint == nil || isSafe(c.req.Method) {
		return ""
	}
	return c.endpoint.KeyHeader
}

// window returns how long after the first send a replay may begin where a key
// is remembered for d: a request that is released inside the window must not
// arrive outside it.
func window(d time.Duration) time.Duration {
	return d - min(max(time.Hour, d/20), d/2)
}

// kind returns what the request does: as the caller says, else the endpoint,
// else the method.
func (c *call) kind() Kind {
	k := Auto
	if isSafe(c.req.Method) {
		return Read
	}
	if c.op != nil {
		k = c.op.intent.Kind
	}
	if k == Auto && c.endpoint != nil {
		k = c.endpoint.Kind
	}
	return first(k, Effect)
}

// repeats reports whether the caller accepts that the request acts twice.
func (c *call) repeats() bool {
	k := c.kind()
	switch {
	case c.op != nil && c.op.intent.Repeat.covers(k):
		return true
	case c.endpoint != nil && c.endpoint.Repeat.covers(k):
		return true
	}
	return c.t.Repeat.covers(k)
}
