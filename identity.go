package rubicon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// An identity says what a request asks for. Two requests of an unnamed
// operation with the same identity are one intent.
type identity struct {
	method, scheme, host, path, query string
	length                            int64
	body                              func() (io.ReadCloser, error) // nil: none, or readable only once
	once                              bool                          // has a body that is readable only once
	call                              string                        // of the SDK, whose attempts carry its name; "" if unnamed
	hash                              uint64                        // of the body, if hashed
	hashed                            bool
}

// identify returns the identity of req, with its body not yet hashed.
func identify(req *http.Request) identity {
	id := identity{
		method: req.Method, scheme: req.URL.Scheme, host: req.URL.Host,
		path: req.URL.EscapedPath(), query: req.URL.RawQuery, call: namedCall(req.Header),
	}
	if hasBody(req) {
		id.length, id.body, id.once = req.ContentLength, req.GetBody, req.GetBody == nil
	}
	return id
}

// alike reports whether id and other may be one, their bodies aside. A body
// that is readable only once is like no other, but for one of the same call.
func (id *identity) alike(other *identity) bool {
	return id.method == other.method && id.host == other.host && id.path == other.path &&
		id.query == other.query && id.scheme == other.scheme &&
		(!id.once && !other.once || id.call != "" && id.call == other.call) &&
		(id.body == nil) == (other.body == nil) && id.length == other.length
}

// bodySeed keys the hashes of bodies, which never leave the process.
var bodySeed = maphash.MakeSeed()

// sum hashes the body, once.
func (id *identity) sum() error {
	if id.hashed || id.body == nil {
		return nil
	}
	var h maphash.Hash
	h.SetSeed(bodySeed)
	if err := readBody(&h, id.body); err != nil {
		return err
	}
	id.hash, id.hashed = h.Sum64(), true
	return nil
}

// readBody copies a fresh body to w.
func readBody(w io.Writer, get func() (io.ReadCloser, error)) error {
	body, err := get()
	if err != nil {
		return fmt.Errorf("rubicon: GetBody: %w", err)
	}
	defer body.Close()
	if _, err := io.Copy(w, body); err != nil {
		return fmt.Errorf("rubicon: reading the body that GetBody returned: %w", err)
	}
	return nil
}

// isTokenRequest reports whether req asks for a token (RFC 6749 section 3.2), as
// SDKs that have a credential of their own do in the middle of a call. It is no
// effect of the operation that the call belongs to.
func isTokenRequest(req *http.Request) bool {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/token") || req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 64<<10))
	return err == nil && bytes.Contains(text, []byte("grant_type"))
}

// hasBody reports whether req has a body to send.
func hasBody(req *http.Request) bool {
	return req.Body != nil && req.Body != http.NoBody
}

// alikeOnce is alike for bodies that are readable only once too.
func (id *identity) alikeOnce(other *identity) bool {
	a, b := *id, *other
	a.once, b.once, a.body, b.body = false, false, nil, nil
	return a.alike(&b)
}

// fingerprint returns a hash over method, URL, idempotency key and body of
// req, the body as far as it can be read twice; else its length stands for it
// and the fingerprint is marked as weak. Credentials in the URL are left out.
func fingerprint(req *http.Request, key string) (string, error) {
	buf := make([]byte, 0, 512)
	for _, part := range [...]string{
		req.Method, req.URL.Scheme, req.URL.Host, req.URL.EscapedPath(), req.URL.RawQuery, key,
	} {
		buf = append(strconv.AppendQuote(buf, part), ' ')
	}
	h := sha256.New()
	mark := "bytes:"
	switch {
	case !hasBody(req):
		h.Write(buf)
	case req.GetBody == nil:
		mark = "length:"
		h.Write(strconv.AppendInt(buf, req.ContentLength, 10))
	default:
		h.Write(buf)
		if err := readBody(h, req.GetBody); err != nil {
			return "", err
		}
	}
	sum := h.Sum(buf[:0])
	return mark + hex.EncodeToString(sum), nil
}

// host returns the host that messages name.
func host(req *http.Request) string {
	if req.URL == nil {
		return "?"
	}
	return strings.ToLower(req.URL.Host)
}
