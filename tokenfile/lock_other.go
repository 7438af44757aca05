//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package tokenfile

import (
	"errors"
	"os"
	"runtime"
)

// tryLock fails. A file that stands for a lock would outlive a process that is
// killed, and a lock of fcntl(2) does not hold within one.
func tryLock(*os.File) (bool, error) {
	return false, errors.New(runtime.GOOS + " has no file lock that ends with what has opened the file: keep the token in another rubicon.Store")
}

// unlockFile does nothing: nothing is ever locked.
func unlockFile(*os.File) {}
