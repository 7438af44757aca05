//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package tokenfile

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks f, and reports whether it could: nobody else held it. The lock
// belongs to what was opened, not to the process (flock(2)), so that it holds
// between the goroutines of one process too.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}

// unlockFile unlocks f. It can't fail on a file that is locked.
func unlockFile(f *os.File) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
