package tokenfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/tokenfile"
)

var _ rubicon.Store = (*tokenfile.Store)(nil)

// newPath returns the name of a token file that is not there yet.
func newPath(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "token.json")
}

// write makes a file of the given mode.
func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// wantFiles checks which files are in the directory of path: those named, and
// the lock.
func wantFiles(t *testing.T, path string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.Name() != filepath.Base(path)+".lock" {
			got = append(got, e.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the directory holds %q, want %q", got, names)
	}
}

// wantText checks what the file holds.
func wantText(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("the file holds %q, %v; want %q", got, err, want)
	}
}

// put stores tok.
func put(t *testing.T, path string, tok *oauth2.Token) {
	t.Helper()
	s := &tokenfile.Store{Path: path}
	if err := s.Update(t.Context(), func(*oauth2.Token) (*oauth2.Token, error) { return tok, nil }); err != nil {
		t.Fatal(err)
	}
}

// get returns what is stored.
func get(t *testing.T, path string) *oauth2.Token {
	t.Helper()
	var got *oauth2.Token
	s := &tokenfile.Store{Path: path}
	err := s.Update(t.Context(), func(stored *oauth2.Token) (*oauth2.Token, error) {
		got = stored
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRoundTrip(t *testing.T) {
	path := newPath(t)
	if got := get(t, path); got != nil {
		t.Errorf("no file gives %+v", got)
	}
	wantFiles(t, path)

	expiry := time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	put(t, path, &oauth2.Token{AccessToken: "a", TokenType: "Bearer", RefreshToken: "r", Expiry: expiry})
	wantText(t, path, `{"access_token":"a","expiry":"2030-01-02T02:04:05.000000006Z","refresh_token":"r","token_type":"Bearer"}`+"\n")
	wantFiles(t, path, "token.json")
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got := get(t, path)
	if got.AccessToken != "a" || got.TokenType != "Bearer" || got.RefreshToken != "r" || !got.Expiry.Equal(expiry) {
		t.Errorf("got %+v", got)
	}

	put(t, path, &oauth2.Token{AccessToken: "b"})
	wantText(t, path, `{"access_token":"b"}`+"\n")
	if got := get(t, path); got.RefreshToken != "" || !got.Expiry.IsZero() {
		t.Errorf("got %+v", got)
	}
}

// TestOthersMembers: what others have put into the file stays there.
func TestOthersMembers(t *testing.T) {
	path := newPath(t)
	write(t, path, `{ "account": {"id": 12345678901234567890}, "Access_Token": "theirs", "refresh_token": "r" }`, 0o600)
	if got := get(t, path); got.AccessToken != "" || got.RefreshToken != "r" {
		t.Errorf("got %+v", got)
	}
	put(t, path, &oauth2.Token{AccessToken: "a"})
	wantText(t, path, `{"Access_Token":"theirs","access_token":"a","account":{"id":12345678901234567890}}`+"\n")
}

// TestNothingNew: without a token the file stays as it is, to the byte.
func TestNothingNew(t *testing.T) {
	path := newPath(t)
	const text = `{ "access_token" : "a" }`
	write(t, path, text, 0o600)
	s := &tokenfile.Store{Path: path}
	failed := errors.New("failed")
	err := s.Update(t.Context(), func(*oauth2.Token) (*oauth2.Token, error) { return &oauth2.Token{AccessToken: "b"}, failed })
	if err != failed {
		t.Errorf("error %v", err)
	}
	get(t, path)
	wantText(t, path, text)
	wantFiles(t, path, "token.json")
}

// TestUnlocks: neither a panic in renew nor the end of its goroutine leaves
// anything behind.
func TestUnlocks(t *testing.T) {
	path := newPath(t)
	s := &tokenfile.Store{Path: path}
	for name, end := range map[string]func(){"panic": func() { panic("renew") }, "Goexit": runtime.Goexit} {
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			_ = s.Update(t.Context(), func(*oauth2.Token) (*oauth2.Token, error) {
				end()
				return nil, nil
			})
			t.Errorf("%s: Update has returned", name)
		})
		wg.Wait()
		wantFiles(t, path)
		get(t, path)
	}
}

// TestForeign: a file that is no token's is an error before anything is spent,
// and stays as it is.
func TestForeign(t *testing.T) {
	const secret = "hushhush"
	for name, text := range map[string]string{
		"empty":      "",
		"text":       secret,
		"cut":        `{"access_token":"` + secret,
		"trailing":   `{"access_token":"` + secret + `"} ` + secret,
		"array":      `["` + secret + `"]`,
		"null":       `null`,
		"other":      `{"password":"` + secret + `"}`,
		"number":     `{"access_token":1234567}`,
		"not a time": `{"access_token":"` + secret + `","expiry":"` + secret + `"}`,
		"long":       `{"access_token":"` + strings.Repeat(secret, 1<<18) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			write(t, path, text, 0o600)
			wantRefused(t, path, "holds no token")
			wantText(t, path, text)
			wantFiles(t, path, "token.json")
		})
	}
	t.Run("directory", func(t *testing.T) {
		path := newPath(t)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, path, "holds no token")
	})
}

// wantRefused checks that nothing is renewed and the error says why, and no
// secret.
func wantRefused(t *testing.T, path, why string) {
	t.Helper()
	s := &tokenfile.Store{Path: path}
	err := s.Update(t.Context(), func(*oauth2.Token) (*oauth2.Token, error) {
		t.Error("renew was called")
		return &oauth2.Token{AccessToken: "new"}, nil
	})
	if err == nil || !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), "tokenfile: ") {
		t.Errorf("error %v, want %q in it", err, why)
	}
	for _, secret := range []string{"hushhush", "1234567"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds a secret: %v", err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Run("zero value", func(t *testing.T) { wantRefused(t, "", "Store.Path is empty") })
	t.Run("no directory", func(t *testing.T) {
		wantRefused(t, filepath.Join(newPath(t), "token.json"), "make it, with mode 0700")
	})
	t.Run("no place for a draft", func(t *testing.T) {
		path := newPath(t)
		if err := os.MkdirAll(filepath.Join(path+".tmp", "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, path, ".tmp")
	})
	t.Run("open to others", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("modes mean nothing here")
		}
		for _, mode := range []os.FileMode{0o644, 0o640, 0o620, 0o602, 0o777} {
			path := newPath(t)
			write(t, path, `{"access_token":"hushhush"}`, mode)
			wantRefused(t, path, "chmod 600")
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := get(t, path); got.AccessToken != "hushhush" {
				t.Errorf("after chmod: %+v", got)
			}
		}
	})
}

// TestLeftover: what a killed process has left of its draft, with whatever
// mode, is no obstacle and no token.
func TestLeftover(t *testing.T) {
	path := newPath(t)
	write(t, path+".tmp", `{"access_token":"half`, 0o666)
	if got := get(t, path); got != nil {
		t.Errorf("got %+v", got)
	}
	write(t, path+".tmp", `{"access_token":"half`, 0o666)
	put(t, path, &oauth2.Token{AccessToken: "a"})
	wantText(t, path, `{"access_token":"a"}`+"\n")
	wantFiles(t, path, "token.json")
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestLink: a link stays one, and what it leads to is the file.
func TestLink(t *testing.T) {
	path := newPath(t)
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	wantRefused(t, link, "leads to nothing")
	put(t, path, &oauth2.Token{AccessToken: "a"})
	put(t, link, &oauth2.Token{AccessToken: "b"})
	wantText(t, path, `{"access_token":"b"}`+"\n")
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link has become %v, %v", info.Mode(), err)
	}
	wantFiles(t, link, "link.json")
}

// TestWaitEnds: a wait for the lock ends with its context, and nothing else
// does.
func TestWaitEnds(t *testing.T) {
	path := newPath(t)
	s := &tokenfile.Store{Path: path}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Update(ctx, func(*oauth2.Token) (*oauth2.Token, error) {
		short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer stop()
		other := &tokenfile.Store{Path: path}
		err := other.Update(short, func(*oauth2.Token) (*oauth2.Token, error) {
			t.Error("two are in an Update")
			return nil, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait ended with %v", err)
		}
		cancel() // what was granted is kept all the same
		return &oauth2.Token{AccessToken: "granted"}, nil
	})
	if err != nil {
		t.Error(err)
	}
	if got := get(t, path); got.AccessToken != "granted" {
		t.Errorf("got %+v", got)
	}
	if err := s.Update(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// TestExclusive has goroutines, with a Store each and two names for one file,
// count in the file.
func TestExclusive(t *testing.T) {
	path := newPath(t)
	put(t, path, &oauth2.Token{AccessToken: "."})
	names := []string{path}
	if link := filepath.Join(t.TempDir(), "link.json"); os.Symlink(path, link) == nil {
		names = append(names, link)
	}
	const each, rounds = 4, 10
	var wg sync.WaitGroup
	for _, name := range names {
		for range each {
			wg.Go(func() { count(t, name, rounds) })
		}
	}
	wg.Wait()
	if got, want := len(get(t, path).AccessToken), 1+len(names)*each*rounds; got != want {
		t.Errorf("%d updates, want %d", got, want)
	}
}

// count makes the access token one byte longer n times.
func count(t testing.TB, path string, n int) {
	s := &tokenfile.Store{Path: path}
	for range n {
		err := s.Update(context.Background(), func(stored *oauth2.Token) (*oauth2.Token, error) {
			runtime.Gosched()
			return &oauth2.Token{AccessToken: stored.AccessToken + "."}, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestFormat: the file is what oauth2.Token reads and writes as JSON.
func TestFormat(t *testing.T) {
	path := newPath(t)
	want := &oauth2.Token{AccessToken: "a", TokenType: "DPoP", RefreshToken: "r", Expiry: time.Unix(1e9, 0).UTC()}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text), 0o600)
	if got := get(t, path); *got != *want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	put(t, path, want)
	var got oauth2.Token
	text, err = os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &got) != nil || got != *want {
		t.Errorf("got %s, %v", text, err)
	}
}
