package contract

import "encoding/base64"

// A tap decodes a string in base64 (RFC 4648 section 4) into another scanner:
// Bedrock wraps the frames of its models so.
type tap struct {
	scan scanner
	left [4]byte // of a quantum that is not whole
	n    int
	bad  bool
	buf  [768]byte
}

// reset prepares for another string.
func (t *tap) reset(to *trie) {
	t.scan.reset(to)
	t.n, t.bad = 0, false
}

// whole reports whether the string was one JSON value in base64.
func (t *tap) whole() bool { return !t.bad && t.n == 0 && t.scan.whole() }

// write takes the next piece of the string.
func (t *tap) write(p []byte) {
	for len(p) > 0 && !t.bad {
		if t.n > 0 || len(p) < len(t.left) {
			n := copy(t.left[t.n:], p)
			p = p[n:]
			if t.n += n; t.n == len(t.left) {
				t.n = 0
				t.decode(t.left[:])
			}
			continue
		}
		n := min(len(p)&^3, len(t.buf)/3*4)
		t.decode(p[:n])
		p = p[n:]
	}
}

// decode decodes whole quanta.
func (t *tap) decode(p []byte) {
	n, err := base64.StdEncoding.Decode(t.buf[:], p)
	t.bad = err != nil
	t.scan.feed(t.buf[:n])
}
