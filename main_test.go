package rubicon_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the run when a goroutine is left after the last test: the
// package starts none that nobody owns. It excuses nothing, so a test closes
// the idle connections of each transport that it uses.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
