package rubicon_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon"
)

// challengesOf returns the challenges of the given field lines.
func challengesOf(lines ...string) []rubicon.Challenge {
	return rubicon.Challenges(http.Header{"Www-Authenticate": lines})
}

// headersInUse are WWW-Authenticate fields as servers send them, with the error
// of their first Bearer challenge.
var headersInUse = []struct {
	name  string
	lines []string
	error string
}{
	{"RFC 6750", []string{`Bearer realm="e", error="invalid_token"`}, "invalid_token"},
	{"realm only", []string{`Bearer realm="e"`}, ""},
	{"scheme only", []string{`Bearer`}, ""},
	{"scheme in lower case", []string{`bearer error="invalid_token"`}, "invalid_token"},
	{"unquoted", []string{`Bearer error=insufficient_scope, scope=admin`}, "insufficient_scope"},
	{"after Basic", []string{`Basic realm="s", Bearer error="insufficient_scope", scope="a b"`}, "insufficient_scope"},
	{"before Basic", []string{`Bearer error="invalid_token", Basic realm="x"`}, "invalid_token"},
	{"two lines", []string{`Basic realm="s"`, `Bearer error="invalid_token"`}, "invalid_token"},
	{"three in one line", []string{`Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"", Bearer error="invalid_token"`}, "invalid_token"},
	{"an error in a description", []string{`Bearer error_description="a, error=\"insufficient_scope\", b", error="invalid_token"`}, "invalid_token"},
	{"after a token", []string{`Negotiate YIIabc==, Bearer error="invalid_token"`}, "invalid_token"},
	{"after bare schemes", []string{`Negotiate, NTLM, Bearer error="insufficient_scope"`}, "insufficient_scope"},
	{"an empty realm", []string{`Bearer realm="", error="invalid_token"`}, "invalid_token"},
	{"an escaped backslash", []string{`Bearer realm="C:\\", error="insufficient_scope"`}, "insufficient_scope"},
	{"spaces around the sign", []string{`Bearer realm = "x" , error = "insufficient_scope"`}, "insufficient_scope"},
	{"separated by a space", []string{`Bearer realm="x" error="insufficient_scope"`}, "insufficient_scope"},
	{"after DPoP", []string{`DPoP error="use_dpop_nonce", algs="ES256", Bearer error="invalid_token"`}, "invalid_token"},
	{"after a scheme with digits", []string{`AWS4-HMAC-SHA256 realm="x", Bearer error="insufficient_scope"`}, "insufficient_scope"},
	{"a quote that does not end", []string{`Bearer error="invalid_token", error_description="broken, scope=x`}, "invalid_token"},
	{"empty elements", []string{`, , Bearer error="insufficient_scope"`}, "insufficient_scope"},
	{"an unquoted URL", []string{`Bearer realm=https://a/b?c=d, error="insufficient_scope"`}, "insufficient_scope"},
	{"an error of another scheme", []string{`Custom error="invalid_token", Bearer error="insufficient_scope"`}, "insufficient_scope"},
	{"Azure's claims", []string{`Bearer realm="", authorization_uri="https://login.example/common/oauth2/authorize", client_id="00000003", error="insufficient_claims", claims="eyJhY2Nlc3NfdG9rZW4iOnt9fQ=="`}, "insufficient_claims"},
	{"a name in upper case", []string{`Bearer Error="insufficient_scope"`}, "insufficient_scope"},
	{"twice", []string{`Bearer error="invalid_token", error="insufficient_scope"`}, "invalid_token"},
	{"Azure Storage's", []string{`Bearer authorization_uri=https://login.example/t/oauth2/authorize resource_id=https://storage.example error=invalid_token`}, "invalid_token"},
	{"continued on the next line", []string{`Bearer realm="x"`, `error="invalid_token"`}, "invalid_token"},
}

// TestChallengesInUse: the error of the Bearer challenge is found in whatever
// company, and no other is taken for it.
func TestChallengesInUse(t *testing.T) {
	for _, c := range headersInUse {
		all := challengesOf(c.lines...)
		i := slices.IndexFunc(all, func(c rubicon.Challenge) bool { return c.Scheme == "bearer" })
		if i < 0 || all[i].Params["error"] != c.error {
			t.Errorf("%s: %q", c.name, all)
		}
	}
}

// TestChallengeParts: what a challenge is made of.
func TestChallengeParts(t *testing.T) {
	for _, c := range []struct {
		line string
		want []rubicon.Challenge
	}{
		{``, nil},
		{` , ,`, nil},
		{`a="b"`, nil}, // belongs to nothing
		{`Negotiate YII+/abc==`, []rubicon.Challenge{{Scheme: "negotiate", Token: "YII+/abc=="}}},
		{`Negotiate abc, NTLM`, []rubicon.Challenge{{Scheme: "negotiate", Token: "abc"}, {Scheme: "ntlm"}}},
		{`Basic realm="a \"b\" \\ c"`, []rubicon.Challenge{{Scheme: "basic", Params: map[string]string{"realm": `a "b" \ c`}}}},
		{`X a=1 b="2 , 3",c=`, []rubicon.Challenge{{Scheme: "x", Params: map[string]string{"a": "1", "b": "2 , 3", "c": ""}}}},
		{`X a="open, b=c`, []rubicon.Challenge{{Scheme: "x", Params: map[string]string{"a": "open, b=c"}}}},
		{`X a="end\`, []rubicon.Challenge{{Scheme: "x", Params: map[string]string{"a": `end\`}}}},
		{`X a=1, A=2`, []rubicon.Challenge{{Scheme: "x", Params: map[string]string{"a": "1"}}}},
	} {
		got := challengesOf(c.line)
		same := slices.EqualFunc(got, c.want, func(a, b rubicon.Challenge) bool {
			return a.Scheme == b.Scheme && a.Token == b.Token && maps.Equal(a.Params, b.Params)
		})
		if !same {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

// TestChallengesAreBounded: no more is read than is said, however the lines
// are cut.
func TestChallengesAreBounded(t *testing.T) {
	if n := len(challengesOf(strings.Repeat("a, ", 1000))); n != 32 {
		t.Errorf("%d challenges", n)
	}
	if n := len(challengesOf(slices.Repeat([]string{"a"}, 1000)...)); n != 32 {
		t.Errorf("%d challenges of as many lines", n)
	}
	filler := `A x="` + strings.Repeat("y", 8<<10) + `"`
	for _, lines := range [][]string{{filler + `, Bearer error="invalid_token"`}, {filler, `Bearer error="invalid_token"`}} {
		all := challengesOf(lines...)
		if len(all) != 1 || len(all[0].Params["x"]) >= 8<<10 {
			t.Errorf("%d challenges, %d bytes", len(all), len(all[0].Params["x"]))
		}
	}
}

// FuzzChallenges: nothing panics, nothing comes out that did not go in, and
// not more of it.
func FuzzChallenges(f *testing.F) {
	for _, c := range headersInUse {
		f.Add(strings.Join(c.lines, "\n"))
	}
	f.Add(`Negotiate a==, b c="\"`)
	f.Fuzz(func(t *testing.T, field string) {
		lines := strings.Split(field, "\n")
		all := challengesOf(lines...)
		if len(all) > 32 {
			t.Errorf("%d challenges", len(all))
		}
		size := 0
		for _, c := range all {
			size += len(c.Scheme) + len(c.Token)
			in(t, lines, strings.ToLower, c.Scheme)
			in(t, lines, nil, c.Token)
			for name, value := range c.Params {
				size += len(name) + len(value)
				in(t, lines, strings.ToLower, name)
				in(t, lines, unescape, unescape(value))
			}
			if c.Scheme == "" || strings.ContainsAny(c.Scheme, " \t,=\"") || c.Scheme != strings.ToLower(c.Scheme) {
				t.Errorf("scheme %q", c.Scheme)
			}
		}
		if size > 3*min(len(field), 8<<10) { // a letter may be longer in lower case
			t.Errorf("%d bytes of %d", size, len(field))
		}
	})
}

// unescape removes the escapes of quoted strings from s.
func unescape(s string) string { return strings.ReplaceAll(s, `\`, "") }

// in fails unless text is in one of lines, each taken as form makes it.
func in(t *testing.T, lines []string, form func(string) string, text string) {
	t.Helper()
	if !slices.ContainsFunc(lines, func(line string) bool {
		if form != nil {
			line = form(line)
		}
		return strings.Contains(line, text)
	}) {
		t.Errorf("%q came from nowhere", text)
	}
}
