package rubicon

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
)

// A side decodes a compressed stream for a watcher, beside the reader, who
// gets the bytes as they came. Its goroutine ends when it is closed.
type side struct {
	w    *io.PipeWriter
	done chan struct{}
}

// newSide returns a side that decodes coding, one of gzip, x-gzip and deflate
// (RFC 9110 section 8.4.1), into w.
func newSide(w io.Writer, coding string) *side {
	r, pw := io.Pipe()
	s := &side{w: pw, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if d, err := decoder(r, coding); err == nil {
			// What decodes before a cut counts; the rest proves nothing.
			io.Copy(w, d)
		}
		io.Copy(io.Discard, r)
	}()
	return s
}

// decoder returns a reader of what r holds in the given coding. Some servers
// call raw deflate data deflate, which is zlib's format by the RFC.
func decoder(r io.Reader, coding string) (io.Reader, error) {
	if coding != "deflate" {
		return gzip.NewReader(r)
	}
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err == nil && (uint(head[0])<<8|uint(head[1]))%31 == 0 && head[0]&0x0f == 8 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// Write takes a piece of the compressed stream.
func (s *side) Write(p []byte) (int, error) { return s.w.Write(p) }

// Close says that no more comes, and returns when the watcher has seen all.
func (s *side) Close() error {
	s.w.Close()
	<-s.done
	return nil
}
