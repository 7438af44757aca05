package lab

import (
	"cmp"
	"io"
	"net/http"
	"strings"
)

// A request is something that the caller asks for.
type request struct {
	method string // "": POST
	key    string // an Idempotency-Key of the caller's own; "": none
	body   string // "": a short one, but none for a GET
}

// build returns r as an HTTP request to the server on b.
func (r request) build(b *bench) *http.Request {
	var body io.Reader
	if r.method != http.MethodGet {
		body = strings.NewReader(cmp.Or(r.body, "amount=5"))
	}
	req, err := http.NewRequestWithContext(b.ctx, cmp.Or(r.method, http.MethodPost), b.url, body)
	if err != nil {
		panic(err) // the table is wrong
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	return req
}

// A reply is what a caller is told.
type reply struct {
	status int
	err    error
	before error // what it was told of the try before
}

// failed reports whether a caller who knows no better tries again.
func (r reply) failed() bool { return r.err != nil || r.status >= 500 }

// ask makes one call and reads its answer.
func ask(b *bench, c *http.Client, r request) reply {
	res, err := c.Do(r.build(b))
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return reply{status: res.StatusCode, err: err}
}

// naive makes each request, and once more if it failed. It returns what it was
// told last.
func naive(b *bench, c *http.Client, requests []request) reply {
	var last reply
	for _, r := range requests {
		if last = ask(b, c, r); last.failed() {
			before := last.err
			last = ask(b, c, r)
			last.before = before
		}
	}
	return last
}

// layered is an application that tries three times over an SDK that tries three
// times. Below them is the client; if that is Rubicon, go-retryablehttp is
// between them, with its five attempts.
func layered(b *bench, c *http.Client, requests []request) reply {
	var last reply
	for range 3 {
		for range 3 {
			if last = ask(b, c, requests[0]); !last.failed() {
				return last
			}
		}
	}
	return last
}
