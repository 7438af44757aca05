package auth

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/tokenfile"
)

// The test binary runs itself with this variable set, to be another process of
// those that share a grant: the URLs of token endpoint and API, the tokens it
// begins with, and the token file, "" for none.
const roleVariable = "AUTH_TEST_ROLE"

// play is the life of such a process: one request. It prints what came of it.
func play(role string) int {
	words := strings.Split(role, " ")
	grant, err := rubicon.RefreshGrant(&oauth2.Config{
		ClientID: "client", ClientSecret: "hushhush",
		Endpoint: oauth2.Endpoint{TokenURL: words[0], AuthStyle: oauth2.AuthStyleInHeader},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	c := rubicon.NewCredential(&oauth2.Token{AccessToken: words[2], RefreshToken: words[3]}, grant)
	if words[4] != "" {
		c.Store = &tokenfile.Store{Path: words[4]}
	}
	client := &http.Client{Transport: &rubicon.Transport{Auth: &rubicon.Auth{Credential: c, Origins: []string{words[1]}}}}
	a := post(client, words[1], "from another process")
	fmt.Println(a.status, a.body, a.err)
	return 0
}

// processes runs n processes that hold the same rejected token, waits until the
// API has rejected all of them, and returns how many were answered well.
func processes(t *testing.T, site *site, n int, file string) int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Add(n)
	site.onReject(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "Bearer "+site.first.AccessToken {
			all.Done()
			all.Wait()
		}
		unauthorized(w, `Bearer error="invalid_token"`)
	})
	role := strings.Join([]string{site.auth.URL, site.api.URL, site.first.AccessToken, site.first.RefreshToken, file}, " ")
	out := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), roleVariable+"="+role)
			cmd.Stderr = os.Stderr
			text, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			out[i] = string(text)
		})
	}
	wg.Wait()
	site.onReject(nil)
	ok := 0
	for _, text := range out {
		if text == "200 from another process <nil>\n" {
			ok++
		}
	}
	return ok
}

// TestReport08Processes: opencode#49439, claude-code#48786, eca#462: several
// processes with one grant spend its refresh token at the same time, and the
// server revokes it. With a file that they share, one of them renews the token
// and the others take it.
func TestReport08Processes(t *testing.T) {
	site, _ := newFosite(t)
	store := &tokenfile.Store{Path: filepath.Join(t.TempDir(), "token.json")}
	keep := func(*oauth2.Token) (*oauth2.Token, error) { return site.first, nil }
	if err := store.Update(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	site.revoke()
	const n = 8
	if ok := processes(t, site, n, store.Path); ok != n {
		t.Errorf("%d of %d processes were answered", ok, n)
	}
	site.wantCalls(t, 1, 2*n)

	// This process has slept through all of it.
	c := site.credential(t)
	c.Store = store
	wantStatus(t, site.client(t, c), site.api.URL, 200)
	site.wantCalls(t, 1, 2*n+2)
	site.wantAlive(t, c)
}

// TestControlProcesses: without a file they do what is reported.
func TestControlProcesses(t *testing.T) {
	site, _ := newFosite(t)
	site.revoke()
	const n = 8
	var all sync.WaitGroup // a token is sent before any is spent
	all.Add(n)
	site.onAnswer(func(http.ResponseWriter, *http.Request) bool {
		all.Done()
		all.Wait()
		return false
	})
	ok := processes(t, site, n, "")
	if got := site.requests.Load(); got != n {
		t.Errorf("%d token requests, want %d", got, n)
	}
	if ok > 1 {
		t.Errorf("%d of %d processes were answered", ok, n)
	}
	site.onAnswer(nil)
	if a := post(site.client(t, site.credential(t)), site.api.URL, ""); a.err == nil {
		t.Errorf("the grant is alive: %d", a.status)
	}
}
