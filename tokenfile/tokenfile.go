// Package tokenfile keeps the OAuth token of one grant in a file that several
// processes share. Its [Store] is a rubicon.Store.
package tokenfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/oauth2"
)

// A Store keeps a token in a file, for all processes on a machine, and all
// Stores of a process, that name the same file. It must be on a local file
// system. A Store is safe for concurrent use; the zero value has no file, and
// can do nothing but say so.
//
// The file is a JSON object with the members access_token, token_type,
// refresh_token and expiry (RFC 3339). Members that others have put there stay.
// What an authorization server adds to a token, such as an id_token, is not
// kept.
//
// Beside the file there is another with the suffix ".lock", which the
// processes lock. It stays, empty, and must not be removed while one of them
// runs: those that have it open would not see the lock on the next. A third,
// with the suffix ".tmp", holds a token on its way; a process that was killed
// leaves it behind, and the next renewal replaces it.
type Store struct {
	// Path names the file. Its directory must exist. If it is a symbolic link,
	// what it leads to is the file. Empty is an error.
	Path string
}

// maxSize is how long a token file may be, in bytes.
const maxSize = 1 << 20

// Update calls renew with the token of the file, nil if there is no file, while
// nobody else is in an Update of the same file, and writes the token that renew
// returns. If renew returns nil, or an error, or panics, the file stays as it
// is. Waiting for others ends with ctx; a write does not.
//
// What can be known to go wrong is an error before renew is called, since that
// may spend a refresh token: a file that is not a token's, which is never
// overwritten; a file that others than its owner can read or write (not
// checked on Windows); a directory that can't be written to. No error holds
// what the file holds. An Update inside of renew waits for itself.
func (s *Store) Update(ctx context.Context, renew func(stored *oauth2.Token) (*oauth2.Token, error)) error {
	path, err := s.resolve()
	if err != nil {
		return err
	}
	unlock, err := acquire(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	c, err := read(path)
	if err != nil {
		return err
	}
	next, err := create(path + ".tmp")
	if err != nil {
		return err
	}
	defer next.discard()
	tok, err := renew(c.token())
	if tok == nil || err != nil {
		return err
	}
	text, err := c.encode(tok)
	if err != nil {
		return err
	}
	return next.commit(text, path)
}

// resolve returns the name of the file without symbolic links, so that all who
// mean one file lock one file.
func (s *Store) resolve() (string, error) {
	if s == nil || s.Path == "" {
		return "", errors.New("tokenfile: Store.Path is empty: set it to the file that keeps the token")
	}
	path, err := filepath.EvalSymlinks(s.Path)
	if !errors.Is(err, fs.ErrNotExist) {
		return path, wrap(err)
	}
	if _, err := os.Lstat(s.Path); err == nil {
		return "", fmt.Errorf("tokenfile: %s is a link that leads to nothing", s.Path)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(s.Path))
	if err != nil {
		return "", fmt.Errorf("tokenfile: the directory of %s can't be used: make it, with mode 0700: %w", s.Path, err)
	}
	return filepath.Join(dir, filepath.Base(s.Path)), nil
}

// wrap returns err, if it is one, as this package's.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tokenfile: %w", err)
}

// acquire locks the file of the given name, which it makes if need be, and
// returns what unlocks it. The lock is the operating system's: it ends with the
// process at the latest, which a file that merely exists does not.
func acquire(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, wrap(err)
	}
	// There is no wait for a lock that a context can end.
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		held, err := false, ctx.Err()
		if err == nil {
			held, err = tryLock(f)
		}
		switch {
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("tokenfile: locking %s: %w", name, err)
		case held:
			// A child on its way from fork to exec holds the file open too:
			// to close it might not be enough.
			return func() { unlockFile(f); f.Close() }, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// errNoToken says what became of a file that holds something else. It has
// nothing of what a decoder says, which may quote the file.
func errNoToken(path string) error {
	return fmt.Errorf("tokenfile: %s holds no token: move it away, or set another Path; nothing was written", path)
}

// A content is what a token file holds; nil: there is none.
type content map[string]json.RawMessage

// members returns the members of a token file that are t's own.
func members(t *oauth2.Token) map[string]any {
	return map[string]any{
		"access_token":  &t.AccessToken,
		"token_type":    &t.TokenType,
		"refresh_token": &t.RefreshToken,
		"expiry":        &t.Expiry,
	}
}

// read returns what the file holds.
func read(path string) (content, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, wrap(err)
	case !info.Mode().IsRegular() || info.Size() > maxSize:
		return nil, errNoToken(path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("tokenfile: %s is open to others, with mode %#o: chmod 600 it, and replace the token if they are not trusted", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, wrap(err)
	}
	var c content
	if json.Unmarshal(text, &c) != nil || c.token() == nil {
		return nil, errNoToken(path)
	}
	return c, nil
}

// token returns the token of c, or nil if there is none.
func (c content) token() *oauth2.Token {
	var t oauth2.Token
	for name, member := range members(&t) {
		if raw, ok := c[name]; ok && json.Unmarshal(raw, member) != nil {
			return nil
		}
	}
	if t.AccessToken == "" && t.RefreshToken == "" {
		return nil
	}
	return &t
}

// encode returns the text of the file that keeps t beside what c has of others.
func (c content) encode(t *oauth2.Token) ([]byte, error) {
	next := maps.Clone(c)
	if next == nil {
		next = make(content)
	}
	mine := *t
	mine.Expiry = t.Expiry.UTC()
	for name, member := range members(&mine) {
		raw, err := json.Marshal(member)
		if err != nil {
			return nil, fmt.Errorf("tokenfile: the token's %s can't be written", name)
		}
		next[name] = raw
		if string(raw) == `""` || name == "expiry" && t.Expiry.IsZero() {
			delete(next, name)
		}
	}
	text, err := json.Marshal(next)
	return append(text, '\n'), wrap(err)
}

// A draft is the file that takes the place of the token file. Its name is that
// of whoever holds the lock.
type draft struct{ *os.File }

// create makes an empty draft in place of one that a process left behind when
// it was killed.
func create(name string) (draft, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return draft{}, wrap(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return draft{f}, wrap(err)
}

// discard removes d, unless it was committed.
func (d draft) discard() {
	d.Close()
	os.Remove(d.Name())
}

// commit makes d, with the given text, the file of the given name: a reader
// finds the old one whole, or the new one, also after a loss of power.
func (d draft) commit(text []byte, name string) error {
	_, err := d.Write(text)
	if err == nil {
		err = d.Sync()
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return wrap(err)
	}
	if err := os.Rename(d.Name(), name); err != nil {
		return wrap(err)
	}
	return wrap(syncDir(filepath.Dir(name)))
}

// syncDir makes what was renamed in dir last, where a directory can be synced.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
