package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// decoded returns a reader of what b holds, by the coding that the content
// type names, or that the first bytes show.
func decoded(b *bufio.Reader, contentType string) (io.Reader, error) {
	_, coding, ok := strings.Cut(strings.ToLower(contentType), "content-encoding=")
	head, _ := b.Peek(2)
	switch coding = strings.Trim(coding, `" `); {
	case coding == "gzip", !ok && string(head) == "\x1f\x8b":
		return gzip.NewReader(b)
	case ok && coding != "identity":
		return nil, fmt.Errorf("content coding %q can't be read", coding)
	}
	return b, nil
}

// isCut reports whether err says that a compressed body was cut: what decoded
// before the cut is judged.
func isCut(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
