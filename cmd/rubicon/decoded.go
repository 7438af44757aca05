package main

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
)

// decoded returns a reader of what b holds, by the coding that the content type
// names as a parameter, or else that the first bytes show.
func decoded(b *bufio.Reader, contentType string) (*bufio.Reader, error) {
	head, _ := b.Peek(2)
	coding := codingOf(contentType)
	if coding == "" && string(head) == "\x1f\x8b" {
		coding = "gzip"
	}
	var r io.Reader = b
	var err error
	switch coding {
	case "", "identity":
		return b, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(b)
	case "deflate":
		// Some servers call raw deflate data deflate, which is zlib's format by
		// RFC 9110 section 8.4.1.2.
		if r = flate.NewReader(b); isZlib(head) {
			r, err = zlib.NewReader(b)
		}
	default:
		err = fmt.Errorf("the content coding %q can't be read", coding)
	}
	if err == io.EOF || isCut(err) { // cut before its first byte
		r, err = strings.NewReader(""), nil
	}
	return bufio.NewReader(r), err
}

// codingOf returns the parameter content-encoding of a content type.
func codingOf(contentType string) string {
	for part := range strings.SplitSeq(strings.ToLower(contentType), ";") {
		if coding, ok := strings.CutPrefix(strings.TrimSpace(part), "content-encoding="); ok {
			return strings.Trim(coding, `" `)
		}
	}
	return ""
}

// isZlib reports whether head begins as zlib's format does (RFC 1950 section
// 2.2).
func isZlib(head []byte) bool {
	return len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0
}

// isCut reports whether err says that a compressed body was cut.
func isCut(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// unlessCut returns err, or nil for a cut: what was decoded before it is judged.
func unlessCut(err error) error {
	if isCut(err) {
		return nil
	}
	return err
}
