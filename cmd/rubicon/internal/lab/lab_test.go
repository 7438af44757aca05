package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run is Run for some of the clients.
func run(ctx context.Context, faults []Fault, clients []client, report func(Row)) error {
	var all []func() Row
	for i := range faults {
		all = append(all, plays(ctx, &faults[i], clients)...)
	}
	return inOrder(ctx, all, report)
}

// alike are the faults of which Rubicon makes no more than net/http does. In
// each of them the protocol or the server leaves nothing to know.
var alike = []string{"upload-413", "lost-deduped", "lost-read", "h2-refused", "goaway-below", "stream-no-done"}

// TestNetHTTPInPlaceOfRubicon holds net/http to what is expected of Rubicon. It
// must fail wherever the two differ: else the lab shows nothing.
func TestNetHTTPInPlaceOfRubicon(t *testing.T) {
	impostor := client{"rubicon", plain, clients[2].want}
	var passed, missed []string
	play := func(r Row) {
		if r.OK {
			passed = append(passed, r.Fault)
			return
		}
		missed = append(missed, r.Fault)
		t.Logf("%-14s missed: got %s, want %s", r.Fault, r.Got(), r.Want)
	}
	if err := run(t.Context(), faults, []client{impostor}, play); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(passed, alike) {
		t.Errorf("net/http passes for Rubicon in %q, want %q", passed, alike)
	}
	for _, f := range faults {
		if (f.want.nethttp != f.want.rubicon) != slices.Contains(missed, f.Name) {
			t.Errorf("%s: the table says that net/http %v and Rubicon %v", f.Name, f.want.nethttp, f.want.rubicon)
		}
	}
}

// TestRubiconInPlaceOfNetHTTP is the positive control's own control: a client
// that stops doing what is wrong with it is noticed.
func TestRubiconInPlaceOfNetHTTP(t *testing.T) {
	impostor := client{"net/http", proving, clients[0].want}
	var passed []string
	err := run(t.Context(), faults, []client{impostor}, func(r Row) {
		if r.OK {
			passed = append(passed, r.Fault)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(passed, alike) {
		t.Errorf("Rubicon passes for net/http in %q, want %q", passed, alike)
	}
}

// TestRepeatingRubicon has a Rubicon that may act twice: each fault in which
// the outcome is ambiguous, or the answer interrupted, must tell it from the one
// that may not.
func TestRepeatingRubicon(t *testing.T) {
	repeating := client{"rubicon", func(b *bench) http.RoundTripper {
		rt := proving(b)
		if t, ok := rt.(*rubicon.Transport); ok {
			t.Repeat = rubicon.Effect
		}
		return rt
	}, clients[2].want}
	var chosen []Fault
	for _, f := range faults {
		open := f.want.rubicon.told == "ambiguous" || strings.HasPrefix(f.want.rubicon.told, "interrupted")
		if open && !f.layers && f.Name != "lost-listener" { // nobody is left to act twice
			chosen = append(chosen, f)
		}
	}
	if len(chosen) < 12 {
		t.Fatalf("only %d faults are ambiguous or interrupted", len(chosen))
	}
	err := run(t.Context(), chosen, []client{repeating}, func(r Row) {
		if r.OK || r.Effects < 2 {
			t.Errorf("%s: %s", r.Fault, r.Got())
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTable keeps the table in the form that the others rely on.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults {
		if seen[f.Name] || len(f.Name) > 14 || strings.ContainsAny(f.Name, " _") || f.Name != strings.ToLower(f.Name) {
			t.Errorf("%q is not a name", f.Name)
		}
		seen[f.Name] = true
		for _, reserved := range []string{"auth", "resume"} {
			if strings.HasPrefix(f.Name, reserved) {
				t.Errorf("%q begins like the faults of another part", f.Name)
			}
		}
		if f.About == "" || strings.HasSuffix(f.About, ".") {
			t.Errorf("%s: %q is not a sentence without a full stop", f.Name, f.About)
		}
		for _, c := range clients {
			if want := c.want(&f.want); want.attempts == 0 || want.told == "" || len(want.told) > 26 {
				t.Errorf("%s: %s is expected to %v", f.Name, c.name, want)
			}
		}
		if f.want.rubicon.effects > 1 {
			t.Errorf("%s: Rubicon is expected to act %d times", f.Name, f.want.rubicon.effects)
		}
	}
}

// TestRunReportsInOrder has rows that end in another order than they are in.
func TestRunReportsInOrder(t *testing.T) {
	var got []string
	slowFirst := []Fault{faultNamed(t, "wait-429"), faultNamed(t, "lost-close")}
	if err := Run(t.Context(), slowFirst, func(r Row) { got = append(got, r.Fault+" "+r.Client) }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"wait-429 net/http", "wait-429 retryablehttp", "wait-429 rubicon",
		"lost-close net/http", "lost-close retryablehttp", "lost-close rubicon",
	}
	if !slices.Equal(got, want) {
		t.Errorf("reported %q", got)
	}
}

// TestRunEndsWithItsContext has a lab that is given up while a row hangs.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	hangs := Fault{
		Name:   "hangs",
		server: faultNamed(t, "lost-head").server, // without a limit
		during: func(b *bench) { cancel(stop) },
	}
	err := Run(ctx, []Fault{hangs}, func(r Row) { t.Errorf("reported %v", r) })
	if err != stop {
		t.Errorf("error %v, want the context's cause", err)
	}
}

// faultNamed returns the fault of that name.
func faultNamed(t *testing.T, name string) Fault {
	t.Helper()
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("there is no fault %q", name)
	}
	return faults[i]
}

// TestNoSocketIsLeft counts the process's sockets, where that can be done. The
// garbage collector would close those that are forgotten.
func TestNoSocketIsLeft(t *testing.T) {
	checkSockets(t, func() error {
		return run(t.Context(), faults, []client{clients[0], clients[2]}, func(Row) {})
	})
}

// checkSockets checks that play leaves no socket behind.
func checkSockets(t *testing.T, play func() error) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := sockets(t)
	if err := play(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); sockets(t) > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d sockets are open, there were %d", sockets(t), before)
		}
	}
}

// sockets returns how many sockets are open.
func sockets(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(files) == 0 {
		t.Skip("open files can't be counted here")
	}
	n := 0
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

func TestWord(t *testing.T) {
	wrapped := func(err error) error {
		return &url.Error{Op: "Post", URL: "http://h/", Err: fmt.Errorf("POST http://h/ giving up after 5 attempt(s): %w", err)}
	}
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	tests := []struct {
		err  error
		want string
	}{
		{wrapped(io.EOF), "EOF"},
		{wrapped(refused), "connection refused"},
		{wrapped(&net.OpError{Op: "write", Err: errors.New("broken pipe")}), "connection reset"},
		{wrapped(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}), "no such host"},
		{wrapped(&net.OpError{Op: "dial", Err: &net.DNSError{}}), "lookup failed"},
		{wrapped(os.ErrDeadlineExceeded), "timeout"},
		{wrapped(context.Canceled), "canceled"},
		{wrapped(&rubicon.ProxyError{Status: 407}), "proxy 407"},
		{wrapped(&oauth2.RetrieveError{ErrorCode: "invalid_grant"}), "invalid_grant"},
		{wrapped(&oauth2.RetrieveError{Response: &http.Response{StatusCode: 500}}), "token 500"},
		{errors.New("POST http://h/ giving up after 5 attempt(s)"), "gave up"},
		{errors.New("http2: server sent GOAWAY and closed the connection"), "GOAWAY"},
	}
	for _, tt := range tests {
		if got := word(tt.err); got != tt.want {
			t.Errorf("%v is called %q, want %q", tt.err, got, tt.want)
		}
	}
}
