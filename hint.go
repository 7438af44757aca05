package rubicon

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestWait stands for a wait that is too long to be told: no deadline and
// no budget covers it, so it is not begun.
const longestWait = time.Duration(math.MaxInt64)

// retryAfter returns how long an answer asks to wait before the request is
// made again. Retry-After-Ms (a number of milliseconds, sent by Azure OpenAI
// and read by the OpenAI and Anthropic SDKs) goes before Retry-After (RFC 9110
// section 10.2.3: 1*DIGIT seconds, or an HTTP-date). A date in the past asks
// for no wait. Every other value is as good as absent. Where a field comes
// more than once, the longest wait counts, since each is a lower bound.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	millis := func(s string) (time.Duration, bool) { return decimal(s, time.Millisecond) }
	if d, ok := longest(h.Values("Retry-After-Ms"), millis); ok {
		return d, true
	}
	return longest(h.Values("Retry-After"), func(s string) (time.Duration, bool) { return secondsOrDate(s, now) })
}

// longest returns the longest wait that one of values asks for, no less than
// zero, and whether any of them does.
func longest(values []string, parse func(string) (time.Duration, bool)) (wait time.Duration, any bool) {
	for _, v := range values {
		if d, ok := parse(strings.Trim(v, " \t")); ok {
			wait, any = max(wait, d), true
		}
	}
	return wait, any
}

// secondsOrDate reads a value of Retry-After. The wait until a date in the past
// is negative.
func secondsOrDate(s string, now time.Time) (time.Duration, bool) {
	if isDigits(s) {
		return decimal(s, time.Second)
	}
	t, ok := httpDate(s, now)
	return t.Sub(now), ok
}

// decimal reads 1*DIGIT [ "." 1*DIGIT ] as so many units, or as the longest
// wait where they are too many.
func decimal(s string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= int64(longestWait/unit) {
		return longestWait, true
	}
	d := time.Duration(n) * unit
	for _, digit := range fraction {
		unit /= 10
		d += time.Duration(digit-'0') * unit
	}
	return d, true
}

// isDigits reports whether s is 1*DIGIT.
func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// httpDate reads one of the three forms of RFC 9110 section 5.6.7, to the
// letter: what time.Parse accepts beyond them, such as fractions of a second,
// other zones and the wrong day of the week, is not a date.
func httpDate(s string, now time.Time) (time.Time, bool) {
	const rfc850 = "Monday, 02-Jan-06 15:04:05 GMT"
	for _, layout := range [...]string{http.TimeFormat, rfc850, time.ANSIC} {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if layout == rfc850 {
			t = inCentury(t, now)
		}
		return t, t.Format(layout) == s
	}
	return time.Time{}, false
}

// inCentury returns t, of whose year two digits are known, in the latest year
// that is not more than 50 years after now (RFC 9110 section 5.6.7).
func inCentury(t, now time.Time) time.Time {
	limit := now.AddDate(50, 0, 0)
	if t.After(limit) {
		return t.AddDate(-100, 0, 0)
	}
	if later := t.AddDate(100, 0, 0); !later.After(limit) {
		return later
	}
	return t
}

// saysNo reports whether an answer asks not to repeat the request. It is
// obeyed; that a server says yes proves nothing.
func saysNo(h http.Header) bool {
	return h.Get("X-Should-Retry") == "false" || h.Get("Stripe-Should-Retry") == "false"
}

// rateLimits pairs the headers that say how much of a limit is left with those
// that say when it is full again: OpenAI's, Groq's and Azure's; Anthropic's;
// GitHub's and Together's; the early drafts of the IETF's.
var rateLimits = [...][2]string{
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
	{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
	{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
	{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	{"Ratelimit-Remaining", "Ratelimit-Reset"},
}

// resets returns how long it is until every limit of which nothing is left is
// full again, as far as the answer tells; 0 if it does not.
func resets(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	for _, names := range rateLimits {
		if field(h, names[0]) == "0" {
			wait = max(wait, untilReset(field(h, names[1]), now))
		}
	}
	for _, policies := range h.Values("Ratelimit") {
		for policy := range strings.SplitSeq(policies, ",") {
			wait = max(wait, policyReset(policy))
		}
	}
	return wait
}

// untilReset reads a reset in the forms that are in use: a Go duration
// (OpenAI), a time of RFC 3339 (Anthropic), seconds (GitHub) or milliseconds
// (OpenRouter) since 1970, or seconds from now. Every other asks for no wait.
func untilReset(s string, now time.Time) time.Duration {
	if isDigits(s) {
		return untilNumber(s, now)
	}
	if d, ok := decimal(s, time.Second); ok {
		return d
	}
	if d, err := time.ParseDuration(s); err == nil {
		return d
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.Sub(now)
	}
	return 0
}

// untilNumber reads 1*DIGIT: seconds from now, seconds since 1970, or
// milliseconds since 1970, told apart by what makes sense.
func untilNumber(s string, now time.Time) time.Duration {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return longestWait
	case n < 1e9:
		return time.Duration(n) * time.Second
	case n < 1e11:
		return time.Unix(n, 0).Sub(now)
	}
	return time.UnixMilli(n).Sub(now)
}

// policyReset reads an item of the RateLimit field in the form of
// draft-ietf-httpapi-ratelimit-headers-08: "name";r=0;t=295.
func policyReset(item string) time.Duration {
	var wait time.Duration
	empty := false
	for param := range strings.SplitSeq(item, ";") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(param), "="); name {
		case "r":
			empty = value == "0"
		case "t":
			wait, _ = decimal(value, time.Second)
		}
	}
	if !empty {
		return 0
	}
	return wait
}

// A hint is what an error body says about trying again. The zero hint says
// nothing.
type hint struct {
	delay time.Duration // how long to wait; never negative
	ok    bool          // the body says how long
	final bool          // a quota of the day is used up: waiting is of no use
}

// retryInfo reads Google's google.rpc.RetryInfo, QuotaFailure and ErrorInfo
// from the details of an error body (googleapis, google/rpc/error_details.proto;
// the JSON form of a duration is decimal seconds with the suffix "s", ProtoJSON
// format). A delay in any other form is as good as absent.
func retryInfo(body []byte) hint {
	var h hint
	for _, p := range problems(body) {
		for _, d := range elements[detail](p.Error.Details) {
			h.add(&d)
		}
	}
	return h
}

// add takes up what d says. The longest delay counts.
func (h *hint) add(d *detail) {
	if seconds, ok := strings.CutSuffix(d.RetryDelay, "s"); ok && strings.HasSuffix(d.Type, "/google.rpc.RetryInfo") {
		if delay, ok := decimal(seconds, time.Second); ok {
			h.delay, h.ok = max(h.delay, delay), true
		}
	}
	h.final = h.final || isPerDay(d.Metadata.QuotaLimit)
	for _, v := range d.Violations {
		h.final = h.final || isPerDay(v.QuotaID)
	}
}

// isPerDay reports whether the name of a quota, such as
// GenerateRequestsPerDayPerProjectPerModel-FreeTier, is that of a daily one.
func isPerDay(quota string) bool { return strings.Contains(quota, "PerDay") }
