package rubicon

import (
	"net/http"
	"strings"
)

// A Challenge is one challenge of an answer's WWW-Authenticate field (RFC 9110
// section 11.6.1).
type Challenge struct {
	Scheme string            // in lower case
	Token  string            // the token68 that some schemes have in place of parameters
	Params map[string]string // by name in lower case, unquoted; nil if there are none
}

// The bounds of what is read of a WWW-Authenticate field.
const (
	maxChallenges     = 32
	maxChallengeBytes = 8 << 10
)

// Challenges returns the challenges of all WWW-Authenticate lines of h. It
// takes what servers send, and never fails: parameters may be separated by
// spaces, an unquoted value may hold any character but comma and space, a quote
// that does not end takes the rest of its line, and of a parameter that comes
// twice the first counts. No more than 8 KiB and 32 challenges are read.
func Challenges(h http.Header) []Challenge {
	var p challengeParser
	left := maxChallengeBytes
	for _, line := range h.Values("WWW-Authenticate") {
		p.line(line[:min(len(line), left)])
		left -= min(len(line), left)
	}
	return p.list
}

// A challengeParser reads field lines, which continue one another (RFC 9110
// section 5.3).
type challengeParser struct {
	list  []Challenge
	fresh bool // the last word was a scheme
}

// line reads one field line.
func (p *challengeParser) line(s string) {
	for {
		comma := strings.TrimLeft(s, " \t")
		s = strings.TrimLeft(comma, ", \t")
		if len(s) < len(comma) {
			p.fresh = false
		}
		if s == "" {
			return
		}
		s = p.element(s)
	}
}

// element reads what begins at the start of s, which is no separator, and
// returns the rest.
func (p *challengeParser) element(s string) string {
	if p.fresh {
		p.fresh = false
		if token, rest, ok := cutToken68(s); ok {
			p.list[len(p.list)-1].Token = token
			return rest
		}
	}
	word, rest := cutAny(s, " \t,=\"")
	if word == "" {
		_, rest = cutValue(s[1:])
		return rest
	}
	if value, ok := strings.CutPrefix(strings.TrimLeft(rest, " \t"), "="); ok {
		value, rest = cutValue(strings.TrimLeft(value, " \t"))
		p.param(strings.ToLower(word), value)
		return rest
	}
	if len(p.list) == maxChallenges {
		return ""
	}
	p.list = append(p.list, Challenge{Scheme: strings.ToLower(word)})
	p.fresh = true
	return rest
}

// param adds a parameter to the last challenge. Without one it belongs to
// nothing.
func (p *challengeParser) param(name, value string) {
	if len(p.list) == 0 {
		return
	}
	c := &p.list[len(p.list)-1]
	if _, twice := c.Params[name]; twice {
		return
	}
	if c.Params == nil {
		c.Params = make(map[string]string)
	}
	c.Params[name] = value
}

// cutToken68 cuts a token68 from the start of s, if it is all there is up to
// the next comma or the end.
func cutToken68(s string) (token, rest string, ok bool) {
	n := 0
	for n < len(s) && isToken68(s[n]) {
		n++
	}
	end := n + len(s[n:]) - len(strings.TrimLeft(s[n:], "="))
	rest = strings.TrimLeft(s[end:], " \t")
	return s[:end], rest, n > 0 && (rest == "" || rest[0] == ',')
}

// isToken68 reports whether b may be in a token68, before its padding.
func isToken68(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-._~+/", b) >= 0
}

// cutValue cuts the value of a parameter from the start of s: a quoted string,
// or all up to a comma or a space.
func cutValue(s string) (value, rest string) {
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		return cutQuoted(quoted)
	}
	return cutAny(s, ", \t")
}

// cutQuoted cuts a quoted string whose opening quote was cut already.
func cutQuoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// cutAny cuts s before the first of chars.
func cutAny(s, chars string) (before, rest string) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}
