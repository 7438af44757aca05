package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

// TestO5FreshTokenRejected: typescript-sdk#945: the API rejects a token that
// was issued a moment ago, and the client renews and tries without end.
func TestO5FreshTokenRejected(t *testing.T) {
	site, _ := newFosite(t)
	site.close()
	site.onReject(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":"no"}`)
	})
	client := site.client(t, site.credential(t))
	if a := post(client, site.api.URL, "x"); a.status != 401 || a.body != `{"error":"no"}` || a.err != nil {
		t.Errorf("%d %q %v", a.status, a.body, a.err)
	}
	site.wantCalls(t, 1, 2)

	t.Run("in parallel", func(t *testing.T) {
		site, _ := newFosite(t)
		site.close()
		client := site.client(t, site.credential(t))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if a := post(client, site.api.URL, "x"); a.status != 401 || a.body != "rejected" {
					t.Errorf("%d %q %v", a.status, a.body, a.err)
				}
			})
		}
		wg.Wait()
		if requests, hits := site.requests.Load(), site.hits.Load(); requests != 1 || hits > 100 {
			t.Errorf("%d token requests, %d at the API", requests, hits)
		}
	})
}

// TestO6SilentEndpoint: CLIProxyAPI#4712: a token endpoint that accepts and
// goes silent blocks every request, also after the callers have gone.
func TestO6SilentEndpoint(t *testing.T) {
	site, _ := newSmall(t)
	site.hang(t)
	c := site.credential(t)
	c.Timeout, c.Pause = 500*time.Millisecond, time.Nanosecond
	ended := make(chan struct{}, 10)
	c.Renewed = func(rubicon.Renewal) { ended <- struct{}{} }
	client := site.client(t, c)
	site.revoke()

	a, b := make(chan answer, 1), make(chan answer, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { a <- postContext(ctx, client, site.api.URL, "") }()
	site.wantAsked(t, 1)
	go func() { b <- post(client, site.api.URL, "") }()
	time.AfterFunc(100*time.Millisecond, cancel)
	if got := <-a; !errors.Is(got.err, context.Canceled) {
		t.Errorf("A: %d %v", got.status, got.err)
	}
	failed := wantAuthError(t, (<-b).err, rubicon.AuthTransient)
	if failed.Rejected == nil || failed.Rejected.StatusCode != 401 {
		t.Errorf("B: the rejection is %+v", failed.Rejected)
	} else if body, err := io.ReadAll(failed.Rejected.Body); string(body) != "rejected" || err != nil {
		t.Errorf("B: its body is %q, %v", body, err)
	}
	<-ended
	if n := site.requests.Load(); n > 2 { // 1, but for a B that comes after half a second
		t.Errorf("%d token requests", n)
	}

	site.onAnswer(nil)
	wantStatus(t, client, site.api.URL, 200)
	noRenewal(t)
}

// TestO7OneRequestLate: headlamp#7482: the token is renewed, and the first
// rejection given to the caller.
func TestO7OneRequestLate(t *testing.T) {
	body := strings.Repeat("0123456789", 1000)
	for name, tt := range map[string]struct {
		body   io.Reader
		status int
		hits   int64
	}{
		"rewindable": {strings.NewReader(body), 201, 2},
		"one-shot":   {io.MultiReader(strings.NewReader(body)), 401, 1},
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := newFosite(t)
			site.onServe(func(w http.ResponseWriter, req *http.Request) {
				text, err := io.ReadAll(req.Body)
				if string(text) != body || err != nil {
					t.Errorf("the body has %d bytes, %v", len(text), err)
				}
				w.WriteHeader(http.StatusCreated)
			})
			client := site.client(t, site.credential(t))
			site.revoke()
			req, err := http.NewRequest("POST", site.api.URL, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if a := do(client, req); a.status != tt.status || a.err != nil {
				t.Errorf("%d %v", a.status, a.err)
			}
			site.wantCalls(t, 1, tt.hits)
			if a := post(client, site.api.URL, body); a.status != 201 {
				t.Errorf("the next call: %d %v", a.status, a.err)
			}
			site.wantCalls(t, 1, tt.hits+1)
		})
	}
}

// TestO26LostBody: go-containerregistry#1004: the request that is sent again
// after a 401 loses its body, if the 401 closes the connection.
func TestO26LostBody(t *testing.T) {
	site, _ := newSmall(t)
	body := strings.Repeat("x", 1821)
	site.onServe(func(w http.ResponseWriter, req *http.Request) {
		if text, err := io.ReadAll(req.Body); string(text) != body || err != nil {
			t.Errorf("the body has %d bytes, %v", len(text), err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	var rejected atomic.Int64
	site.onReject(func(w http.ResponseWriter, _ *http.Request) {
		if rejected.Add(1)%2 == 0 {
			w.Header().Set("Connection", "close")
		}
		unauthorized(w, "Bearer")
	})
	client := site.client(t, site.credential(t))
	const n = 100
	for range n {
		site.revoke()
		req, err := http.NewRequest("PUT", site.api.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if a := do(client, req); a.status != 201 || a.err != nil {
			t.Fatalf("%d %v", a.status, a.err)
		}
	}
	site.wantCalls(t, n, 2*n)
}

// TestO28EarlyRejection: golang/go#30597: the server rejects before it has read
// the body, and the request is sent again while the first attempt still reads.
func TestO28EarlyRejection(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	want := fmt.Sprintf("%x", sha256.Sum256(body))
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // with the other
			api := newEarly(t, h2)
			c := rubicon.NewCredential(&oauth2.Token{AccessToken: "first"}, func(_ context.Context, old *oauth2.Token) (*oauth2.Token, error) {
				return &oauth2.Token{AccessToken: old.AccessToken + "+"}, nil
			})
			base := &http.Transport{Protocols: api.Config.Protocols}
			t.Cleanup(base.CloseIdleConnections)
			client := &http.Client{Transport: &rubicon.Transport{Base: base, Auth: &rubicon.Auth{Credential: c, Origins: []string{api.URL}}}}
			for i := range 100 {
				upload := &upload{body: body}
				req, err := http.NewRequest("POST", api.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength, req.GetBody = int64(len(body)), upload.open
				if i%2 == 0 { // what net/http makes of a byte slice
					req, err = http.NewRequest("POST", api.URL, bytes.NewReader(body))
				} else {
					req.Body, err = upload.open()
				}
				if err != nil {
					t.Fatal(err)
				}
				if a := do(client, req); a.status != 200 || a.body != want {
					t.Fatalf("run %d: %d %q %v", i, a.status, a.body, a.err)
				}
				if n := upload.late.Load(); n != 0 {
					t.Errorf("run %d: the first body was read %d times after the second was made", i, n)
				}
			}
		})
	}
}

// newEarly starts an API that rejects every other request, before it has read
// the body, and answers the rest with the hash of theirs.
func newEarly(t *testing.T, h2 bool) *httptest.Server {
	var requests atomic.Int64
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if requests.Add(1)%2 == 1 {
			unauthorized(w, "Bearer")
			return
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, req.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%x", hash.Sum(nil))
	}))
	api.Config.Protocols = new(http.Protocols)
	api.Config.Protocols.SetHTTP1(!h2)
	api.Config.Protocols.SetUnencryptedHTTP2(h2)
	api.Start()
	t.Cleanup(api.Close)
	return api
}

// An upload makes readers of one byte slice, and counts what is read from one
// after the next was made.
type upload struct {
	body []byte
	made atomic.Int64
	late atomic.Int64
}

func (u *upload) open() (io.ReadCloser, error) {
	return &uploadReader{u: u, n: u.made.Add(1), r: bytes.NewReader(u.body)}, nil
}

type uploadReader struct {
	u *upload
	n int64
	r *bytes.Reader
}

// Read implements [io.Reader].
func (r *uploadReader) Read(p []byte) (int, error) {
	if r.u.made.Load() != r.n {
		r.u.late.Add(1)
	}
	return r.r.Read(p)
}

// Close implements [io.Closer].
func (r *uploadReader) Close() error { return nil }
