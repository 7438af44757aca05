package auth

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or one of the processes that a test starts.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}
