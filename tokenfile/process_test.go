package tokenfile_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon/tokenfile"
)

// The test binary runs itself with this variable set, to be another process:
// "count" or "hold", and the name of the file.
const roleVariable = "TOKENFILE_TEST_ROLE"

func TestMain(m *testing.M) {
	role, path, ok := strings.Cut(os.Getenv(roleVariable), " ")
	switch {
	case !ok:
		goleak.VerifyTestMain(m)
	case role == "count":
		os.Exit(countAlone(path))
	case role == "hold":
		os.Exit(holdAlone(path))
	}
}

// rounds is how often each process updates the file.
const rounds = 20

// countAlone is the process that counts.
func countAlone(path string) int {
	for range rounds {
		s := &tokenfile.Store{Path: path}
		err := s.Update(context.Background(), func(stored *oauth2.Token) (*oauth2.Token, error) {
			n, err := strconv.Atoi(stored.RefreshToken)
			return &oauth2.Token{RefreshToken: strconv.Itoa(n + 1)}, err
		})
		if err != nil {
			println(err.Error())
			return 1
		}
	}
	return 0
}

// holdAlone is the process that holds the lock until it is killed, or its
// parent is gone.
func holdAlone(path string) int {
	s := &tokenfile.Store{Path: path}
	err := s.Update(context.Background(), func(*oauth2.Token) (*oauth2.Token, error) {
		os.Stdout.WriteString("held\n")
		_, err := os.Stdin.Read(make([]byte, 1))
		return nil, err
	})
	println(err.Error())
	return 1
}

// another returns the command that runs this program in a role.
func another(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), roleVariable+"="+role+" "+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestProcesses has processes count in one file: none may lose an update of
// another.
func TestProcesses(t *testing.T) {
	path := newPath(t)
	put(t, path, &oauth2.Token{RefreshToken: "0"})
	const n = 6
	var wg sync.WaitGroup
	for range n {
		cmd := another(t, "count", path)
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := get(t, path); got.RefreshToken != strconv.Itoa(n*rounds) {
		t.Errorf("%s updates, want %d", got.RefreshToken, n*rounds)
	}
	wantFiles(t, path, "token.json")
}

// TestKilled: the lock of a process that is killed dies with it; what it left
// behind is cleared away.
func TestKilled(t *testing.T) {
	path := newPath(t)
	put(t, path, &oauth2.Token{RefreshToken: "1"})
	cmd := another(t, "hold", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Errorf("the other process says %q, %v", line, err)
	}

	s := &tokenfile.Store{Path: path}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := s.Update(short, nil); err == nil {
		t.Error("the lock of another process does not hold")
	}
	wantFiles(t, path, "token.json", "token.json.tmp")

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it says that it was killed
	put(t, path, &oauth2.Token{RefreshToken: "2"})
	wantText(t, path, `{"refresh_token":"2"}`+"\n")
	wantFiles(t, path, "token.json")
}
