package lab

import (
	"io"
	"net/http"
	"strings"
)

// A request is something that the caller asks for.
type request struct {
	method string // "": POST
	key    string // an Idempotency-Key of the caller's own; "": none
	body   string // "": a short one, or none for a GET
}

// make returns r as an HTTP request for b.
func (r request) make(b *bench) *http.Request {
	var body io.Reader
	switch {
	case r.method == http.MethodGet:
	case r.body == "":
		body = strings.NewReader("amount=5")
	default:
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(b.ctx, first(r.method, http.MethodPost), b.url, body)
	if err != nil {
		panic(err) // the table's own mistake
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	return req
}

// A reply is what a caller was told.
type reply struct {
	status int
	err    error
}

// failed reports whether the caller takes r for a failure that a second try
// may mend.
func (r reply) failed() bool { return r.err != nil || r.status >= 500 }

// do makes one call and reads its answer.
func do(b *bench, c *http.Client, r request) reply {
	res, err := c.Do(r.make(b))
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return reply{res.StatusCode, err}
}

// A caller makes requests and returns what it was told in the end.
type caller func(*bench, *http.Client, []request) reply

// naive asks once, and once more where that failed.
func naive(b *bench, c *http.Client, requests []request) reply {
	var last reply
	for _, r := range requests {
		if last = do(b, c, r); last.failed() {
			last = do(b, c, r)
		}
	}
	return last
}

// layered is an application that calls its SDK up to three times, which calls
// the client up to three times.
func layered(b *bench, c *http.Client, requests []request) reply {
	var last reply
	for range 3 * 3 {
		if last = naiveOnce(b, c, requests); !last.failed() {
			break
		}
	}
	return last
}

// naiveOnce makes the requests, each once.
func naiveOnce(b *bench, c *http.Client, requests []request) reply {
	var last reply
	for _, r := range requests {
		last = do(b, c, r)
	}
	return last
}

// first returns a unless it is zero, then b.
func first[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}
