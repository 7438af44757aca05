package tokenfile

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// What package syscall has not (fileapi.h).
var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	lockfileFailImmediately = 1
	lockfileExclusiveLock   = 2

	errLockViolation = syscall.Errno(33)
)

// tryLock locks the first byte of f, and reports whether it could: nobody else
// held it. The lock belongs to the handle, not to the process, so that it holds
// between the goroutines of one process too.
func tryLock(f *os.File) (bool, error) {
	var at syscall.Overlapped
	ok, _, err := lockFileEx.Call(f.Fd(), lockfileExclusiveLock|lockfileFailImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, errLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	}
	return false, err
}

// unlockFile unlocks f. It can't fail on a file that is locked.
func unlockFile(f *os.File) {
	var at syscall.Overlapped
	unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at)))
}
