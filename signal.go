package rubicon

import "net/http"

// discourage asks the SDK that made the request not to repeat it, in the one
// header that OpenAI's and Anthropic's SDKs read, where the answer in hand
// leaves open whether the server acted. The answer itself is the server's own.
func (c *call) discourage() {
	if c.req.Header.Get("X-Stainless-Lang") == "" || isForwarded(c.req.Header) {
		return
	}
	rec := c.r.record()
	if rec.mayGoOn() || rec.Outcome() != Ambiguous {
		return
	}
	c.res.Header.Set("X-Should-Retry", "false")
}

// isForwarded reports whether a request came through a proxy, whose client is
// not the SDK that its headers name.
func isForwarded(h http.Header) bool {
	return h.Get("Via") != "" || h.Get("X-Forwarded-For") != ""
}
