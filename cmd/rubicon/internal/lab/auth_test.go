package lab

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rubicon-go/rubicon"
)

// playAuths plays the faults of a credential against c, and returns their rows.
func playAuths(t *testing.T, c authClient) []Row {
	t.Helper()
	var all []func() Row
	for i := range auths {
		all = append(all, authPlays(t.Context(), &auths[i], []authClient{c})...)
	}
	var rows []Row
	if err := inOrder(t.Context(), all, func(r Row) { rows = append(rows, r) }); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestAuth plays the faults of a credential: every row must be as expected.
func TestAuth(t *testing.T) {
	faults := AuthFaults()
	rows := 0
	err := Run(t.Context(), faults, func(r Row) {
		if want := faults[rows/3].Name; r.Fault != want || r.Client != authClients[rows%3].name {
			t.Errorf("row %d is %s, %s", rows, r.Fault, r.Client)
		}
		rows++
		if !r.OK || r.Auth == nil || r.Got() != r.Want {
			t.Errorf("%s, %s:\n  got  %s\n  want %s", r.Fault, r.Client, r.Got(), r.Want)
		}
	})
	if err != nil || rows != 3*len(faults) || rows == 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestOthersInPlaceOfRubicon holds the other clients to what is expected of
// Rubicon with Auth: they must miss it but where the fault is harmless to them.
func TestOthersInPlaceOfRubicon(t *testing.T) {
	alike := map[string][]string{
		"x/oauth2": {"auth-scope", "auth-scope-403", "auth-key"}, // it renews nothing
		"naive":    {"auth-rejected", "auth-scope-403"},
	}
	for _, c := range authClients[:2] {
		var passed []string
		for _, r := range playAuths(t, authClient{c.name, c.transport, authClients[2].want}) {
			if r.OK {
				passed = append(passed, r.Fault)
			}
		}
		if !slices.Equal(passed, alike[c.name]) {
			t.Errorf("%s passes for Rubicon in %q, want %q", c.name, passed, alike[c.name])
		}
	}
}

// TestRubiconInPlaceOfOthers is the control of those two: a client that stops
// doing what is wrong with it is noticed.
func TestRubiconInPlaceOfOthers(t *testing.T) {
	for i, alike := range [][]string{
		{"auth-scope", "auth-scope-403", "auth-key"},
		{"auth-rejected", "auth-scope-403"},
	} {
		var passed []string
		for _, r := range playAuths(t, authClient{authClients[i].name, renewing, authClients[i].want}) {
			if r.OK {
				passed = append(passed, r.Fault)
			}
		}
		if !slices.Equal(passed, alike) {
			t.Errorf("Rubicon passes for %s in %q, want %q", authClients[i].name, passed, alike)
		}
	}
}

// A mutant is Rubicon with Auth, spoiled.
type mutant func(*authBench, *rubicon.Transport) http.RoundTripper

// adjust spoils a transport by setting it wrong.
func adjust(set func(*rubicon.Transport)) mutant {
	return func(_ *authBench, t *rubicon.Transport) http.RoundTripper {
		set(t)
		return t
	}
}

// mutants has at least one for each fault: what it loses is what the fault's
// row is there to show.
var mutants = []struct {
	name, fault string
	spoil       mutant
}{
	{"no renewal", "auth-rejected", adjust(func(t *rubicon.Transport) { t.Budget.Refreshes = rubicon.None })},
	{"a credential for each request", "auth-at-once", unshared},
	{"no memory of a useless renewal", "auth-again", adjust(forgetful)},
	{"a renewal without its own time", "auth-hangs", adjust(func(t *rubicon.Transport) { t.Auth.Credential.Timeout = time.Minute })},
	{"a renewal for each request", "auth-hangs", unshared},
	{"no memory of a failing endpoint", "auth-500", adjust(forgetful)},
	{"a dead grant taken for a failing endpoint", "auth-dead", adjust(func(t *rubicon.Transport) {
		t.Auth.Credential.Codes = map[string]rubicon.AuthKind{"invalid_grant": rubicon.AuthTransient}
	})},
	{"no memory of a dead grant", "auth-dead", unshared},
	{"challenges that are not read", "auth-scope", adjust(func(t *rubicon.Transport) { t.Base = unchallenged{t.Base} })},
	{"403 taken for a rejection", "auth-scope-403", adjust(func(t *rubicon.Transport) {
		t.Base = unchallenged{t.Base}
		t.Auth.Classify = func(*http.Response) rubicon.Rejection { return rubicon.RejectionRenewable }
	})},
	{"a key that is renewed", "auth-key", renewedKey},
	{"a list of origins that has the other host", "auth-redirect", func(b *authBench, t *rubicon.Transport) http.RoundTripper {
		t.Auth.Origins = append(t.Auth.Origins, b.elsewhere.URL)
		return t
	}},
}

// forgetful remembers no failure of a renewal.
func forgetful(t *rubicon.Transport) { t.Auth.Credential.Pause = time.Nanosecond }

// unshared makes a credential for each request.
func unshared(b *authBench, _ *rubicon.Transport) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) { return renewing(b).RoundTrip(req) })
}

// renewedKey has a key renewed as if there were a grant.
func renewedKey(b *authBench, t *rubicon.Transport) http.RoundTripper {
	grant, err := rubicon.RefreshGrant(b.config)
	if err != nil {
		panic(err)
	}
	key := *b.first
	key.RefreshToken = "refresh-0"
	t.Auth.Credential = rubicon.NewCredential(&key, grant)
	t.Auth.Credential.Client = b.tokenClient
	return t
}

// A roundTripper is a function that makes requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// unchallenged is a base that loses the challenges of answers.
type unchallenged struct{ http.RoundTripper }

func (u unchallenged) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := u.RoundTripper.RoundTrip(req)
	if err == nil {
		res.Header.Del("WWW-Authenticate")
	}
	return res, err
}

// TestMutants has each fault tell a spoiled Rubicon from the one that is not.
func TestMutants(t *testing.T) {
	var all []func() Row
	told := map[string]bool{}
	for _, m := range mutants {
		i := slices.IndexFunc(auths, func(f authFault) bool { return f.name == m.fault })
		if i < 0 {
			t.Fatalf("there is no fault %q", m.fault)
		}
		spoiled := func(b *authBench) http.RoundTripper { return m.spoil(b, renewing(b).(*rubicon.Transport)) }
		all = append(all, authPlays(t.Context(), &auths[i], []authClient{{m.name, spoiled, authClients[2].want}})...)
		told[m.fault] = true
	}
	err := inOrder(t.Context(), all, func(r Row) {
		t.Logf("%s, %s: %s", r.Fault, r.Client, r.Got())
		if r.OK {
			t.Errorf("%s does not notice %s", r.Fault, r.Client)
		}
	})
	if err != nil {
		t.Error(err)
	}
	for _, f := range auths {
		if !told[f.name] {
			t.Errorf("%s has no mutant", f.name)
		}
	}
}

// TestAuthTable keeps the table in the form that the others rely on.
func TestAuthTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range AuthFaults() {
		if seen[f.Name] || len(f.Name) > 14 || !strings.HasPrefix(f.Name, "auth-") || strings.ContainsAny(f.Name, " _") {
			t.Errorf("%q is not a name", f.Name)
		}
		seen[f.Name] = true
		if f.About == "" || strings.HasSuffix(f.About, ".") {
			t.Errorf("%s: %q is not a sentence without a full stop", f.Name, f.About)
		}
		for _, c := range authClients {
			want := c.want(&f.auth.want)
			if want.attempts == 0 || want.grant == "" || want.told == "" || utf8.RuneCountInString(want.told) > 26 {
				t.Errorf("%s: %s is expected to %v", f.Name, c.name, want)
			}
		}
		if want := f.auth.want.rubicon; want.tokens > 1 || want.grant == killed || want.grant == leaked {
			t.Errorf("%s: Rubicon is expected to %v", f.Name, want)
		}
	}
}

func TestMost(t *testing.T) {
	for want, replies := range map[string][]string{
		"200":     {"200"},
		"2 × 200": {"200", "200"},
		"2 × 401": {"200", "401", "401"},
		"1 × 200": {"401", "200"}, // in a fixed order
	} {
		if got := most(replies); got != want {
			t.Errorf("%q come to %q, want %q", replies, got, want)
		}
	}
}

// TestAuthSum: the sum is one of the rows, a client at a time.
func TestAuthSum(t *testing.T) {
	var s AuthSum
	for _, r := range []Row{
		{Client: "a", Auth: &Auth{TokenRequests: 2, Grant: killed, Calls: 3, Served: 1}},
		{Client: "b", Auth: &Auth{TokenRequests: 1, Grant: alive, Calls: 3, Served: 3}},
		{Client: "net/http", Effects: 2},
		{Client: "a", Auth: &Auth{TokenRequests: 1, Grant: leaked, Calls: 1, Served: 1}},
		{Client: "b", Auth: &Auth{TokenRequests: 1, Grant: revoked, Calls: 1}},
	} {
		s.Add(r)
	}
	want := []string{
		"auth: a         served    2 of 4 calls, asked for    3 tokens, lost 2 grants",
		"auth: b         served    3 of 4 calls, asked for    2 tokens, lost 0 grants",
	}
	if got := s.Lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAuthLeavesNoSocket is TestNoSocketIsLeft for faults of a credential.
func TestAuthLeavesNoSocket(t *testing.T) {
	checkSockets(t, func() error { return Run(t.Context(), AuthFaults(), func(Row) {}) })
}
