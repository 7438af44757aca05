//go:build !linux

package rubicontest

import (
	"errors"
	"fmt"
)

// Unanswered is an address at which a connection is never established nor
// refused. It exists on Linux only.
type Unanswered struct {
	Addr string // host:port
	URL  string // http://host:port
}

// NewUnanswered returns an error that matches [errors.ErrUnsupported].
func NewUnanswered() (*Unanswered, error) {
	return nil, fmt.Errorf("rubicontest: no unanswered address: %w", errors.ErrUnsupported)
}

// Close does nothing.
func (u *Unanswered) Close() {}
