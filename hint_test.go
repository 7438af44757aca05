package rubicon

import (
	"fmt"
	"math"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hintNow is the time at which the tests' answers arrive.
var hintNow = time.Date(2026, time.March, 1, 12, 0, 0, 500e6, time.UTC)

// absent stands for a value that says nothing.
const absent time.Duration = -1

// given returns the wait that a parser found, or absent.
func given(d time.Duration, ok bool) time.Duration {
	if !ok {
		return absent
	}
	return d
}

// TestRetryAfterO25 is the parser's half of case O25: what is not a wait by the
// letter is no wait, and no value makes a wait negative.
func TestRetryAfterO25(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	header := func(pairs ...string) http.Header {
		h := make(http.Header)
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	after := func(values ...string) http.Header {
		h := make(http.Header)
		for _, v := range values {
			h.Add("retry-after", v)
		}
		return h
	}
	tests := []struct {
		name string
		h    http.Header
		want time.Duration
	}{
		{"none", nil, absent},
		{"O25 -3", after("-3"), absent},
		{"O25 +3", after("+3"), absent},
		{"O25 1.5", after("1.5"), absent},
		{"O25 1.5 seconds", after("1.5 seconds"), absent},
		{"O25 0", after("0"), 0},
		{"O25 empty", after(""), absent},
		{"O25 NaN", after("NaN"), absent},
		{"O25 Infinity", after("Infinity"), absent},
		{"O25 1e9 as text", after("1e9"), absent},
		{"O25 1e9 as digits", after("1000000000"), 1e9 * time.Second},
		{"O25 400 digits", after(strings.Repeat("9", 400)), forever},
		{"O25 400 digits with leading zeros", after(strings.Repeat("0", 399) + "7"), 7 * time.Second},
		{"O25 past date", after("Sun, 06 Nov 1994 08:49:37 GMT"), 0},
		{"O25 date of now", after("Sun, 01 Mar 2026 12:00:00 GMT"), 0},
		{"O25 far future date", after("Fri, 31 Dec 9999 23:59:59 GMT"), forever},
		{"O25 milliseconds in the field for seconds", after("1500"), 1500 * time.Second},
		{"O25 seconds in the field for milliseconds", header("Retry-After-Ms", "2"), 2 * time.Millisecond},
		{"soon", after("soon"), absent},
		{"hex", after("0x10"), absent},
		{"underscore", after("1_000"), absent},
		{"other digits", after("٣"), absent},
		{"space within", after("1 0"), absent},
		{"space around", after("\t 10 "), 10 * time.Second},
		{"unit", after("10s"), absent},
		{"just too long", after("9223372036"), forever},
		{"just not too long", after("9223372035"), 9223372035 * time.Second},

		{"IMF-fixdate", after("Sun, 01 Mar 2026 12:00:30 GMT"), 29500 * time.Millisecond},
		{"rfc850-date", after("Sunday, 01-Mar-26 12:00:30 GMT"), 29500 * time.Millisecond},
		{"asctime-date", after("Sun Mar  1 12:00:30 2026"), 29500 * time.Millisecond},
		{"rfc850-date of 1994", after("Sunday, 06-Nov-94 08:49:37 GMT"), 0},
		{"rfc850-date 49 years ahead", after("Friday, 01-Mar-75 12:00:00 GMT"),
			time.Date(2075, time.March, 1, 12, 0, 0, 0, time.UTC).Sub(hintNow)},
		{"other zone", after("Sun, 01 Mar 2026 12:00:30 PST"), absent},
		{"other zone in rfc850-date", after("Sunday, 01-Mar-26 12:00:30 PST"), absent},
		{"numeric zone", after("Sun, 01 Mar 2026 12:00:30 +0000"), absent},
		{"fraction in a date", after("Sun, 01 Mar 2026 12:00:30.5 GMT"), absent},
		{"wrong day of the week", after("Mon, 01 Mar 2026 12:00:30 GMT"), absent},
		{"no such day", after("Sun, 30 Feb 2026 12:00:30 GMT"), absent},
		{"RFC 3339", after("2026-03-01T12:00:30Z"), absent},
		{"lower case", after("sun, 01 mar 2026 12:00:30 gmt"), absent},

		{"twice the same", after("5", "5"), 5 * time.Second},
		{"two that disagree: the longest", after("5", "60"), 60 * time.Second},
		{"two that disagree, a date: the longest", after("Sun, 01 Mar 2026 12:00:30 GMT", "2"), 29500 * time.Millisecond},
		{"one of two malformed", after("soon", "5"), 5 * time.Second},
		{"two in one line", after("5, 60"), absent},

		{"milliseconds", header("retry-after-ms", "1500"), 1500 * time.Millisecond},
		{"milliseconds before seconds", header("retry-after-ms", "1500", "Retry-After", "60"), 1500 * time.Millisecond},
		{"no milliseconds", header("retry-after-ms", "0"), 0},
		{"fraction of a millisecond", header("retry-after-ms", "0.25"), 250 * time.Microsecond},
		{"more digits than a nanosecond has", header("retry-after-ms", "1.0000019"), 1000001 * time.Nanosecond},
		{"400 digits of milliseconds", header("retry-after-ms", strings.Repeat("9", 400)), forever},
		{"malformed milliseconds leave the seconds", header("retry-after-ms", "-1", "Retry-After", "60"), 60 * time.Second},
		{"NaN milliseconds", header("retry-after-ms", "NaN"), absent},
		{"exponent in milliseconds", header("retry-after-ms", "1e3"), absent},
		{"no whole milliseconds", header("retry-after-ms", ".5"), absent},
		{"no fraction after the point", header("retry-after-ms", "5."), absent},
		{"two points", header("retry-after-ms", "1.2.3"), absent},
		{"a date for milliseconds", header("retry-after-ms", "Sun, 01 Mar 2026 12:00:30 GMT"), absent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := given(retryAfter(tt.h, hintNow)); got != tt.want {
				t.Errorf("retryAfter(%q) = %v, want %v (%v: absent)", tt.h, got, tt.want, absent)
			}
		})
	}
}

// TestRetryAfterCentury holds the pivot of two-digit years to now, wherever
// now is.
func TestRetryAfterCentury(t *testing.T) {
	for _, year := range []int{1999, 2018, 2026, 2068, 2069, 2090} {
		now := time.Date(year, time.June, 1, 0, 0, 0, 0, time.UTC)
		for _, ahead := range []int{-49, -1, 0, 1, 49} {
			want := now.AddDate(ahead, 0, 0)
			got, ok := httpDate(want.Format("Monday, 02-Jan-06 15:04:05 GMT"), now)
			if !ok || !got.Equal(want) {
				t.Errorf("in %d: the date of %d is read as that of %d (%v)", year, want.Year(), got.Year(), ok)
			}
		}
	}
}

func TestSaysNo(t *testing.T) {
	tests := []struct {
		name, value string
		want        bool
	}{
		{"X-Should-Retry", "false", true},
		{"X-Should-Retry", "true", false},
		{"X-Should-Retry", "", false},
		{"X-Should-Retry", "0", false},
		{"X-Should-Retry", "no", false},
		{"Stripe-Should-Retry", "false", true},
		{"Stripe-Should-Retry", "true", false},
		{"Should-Retry", "false", false},
	}
	for _, tt := range tests {
		h := make(http.Header)
		h.Set(tt.name, tt.value)
		if got := saysNo(h); got != tt.want {
			t.Errorf("saysNo(%s: %q) = %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
	if saysNo(nil) {
		t.Error("no header says no")
	}
}

// geminiBody is a Gemini 429 with the given delay and quota.
func geminiBody(delay, quota string) string {
	return `{
  "error": {
    "code": 429,
    "message": "You exceeded your current quota, please check your plan and billing details.",
    "status": "RESOURCE_EXHAUSTED",
    "details": [
      {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [
          {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": "` + quota + `",
            "quotaDimensions": {"location": "global", "model": "gemini-2.5-flash"},
            "quotaValue": "250"
          }
        ]
      },
      {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "Learn more", "url": "https://example.test"}]},
      {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": ` + delay + `}
    ]
  }
}`
}

const (
	perMinute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
	perDay    = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
)

// TestRetryInfoO24 is the parser's half of case O24: the delay is in the body,
// and a quota of the day is a reason to stop.
func TestRetryInfoO24(t *testing.T) {
	info := func(detail string) string { return `{"error":{"details":[` + detail + `]}}` }
	const retry = `"@type":"type.googleapis.com/google.rpc.RetryInfo"`
	says := func(d time.Duration) hint { return hint{delay: d, ok: true} }
	tests := []struct {
		name, body string
		want       hint
	}{
		{"O24 39s", geminiBody(`"39s"`, perMinute), says(39 * time.Second)},
		{"O24 45.837906927s", geminiBody(`"45.837906927s"`, perMinute), says(45837906927)},
		{"O24 0.6s", geminiBody(`"0.6s"`, perMinute), says(600 * time.Millisecond)},
		{"O24 in a list, as over the OpenAI-style API", "[" + geminiBody(`"39s"`, perMinute) + "\n]", says(39 * time.Second)},
		{"O24 quota of the day", geminiBody(`"26s"`, perDay), hint{delay: 26 * time.Second, ok: true, final: true}},
		{"O24 malformed", geminiBody(`"soon"`, perMinute), hint{}},
		{"O24 malformed, quota of the day", geminiBody(`"soon"`, perDay), hint{final: true}},
		{"O24 5 MiB", geminiBody(`"39s"`, perDay) + strings.Repeat(" ", 5<<20), hint{}},

		{"0s", info(`{` + retry + `,"retryDelay":"0s"}`), says(0)},
		{"negative", info(`{` + retry + `,"retryDelay":"-3s"}`), hint{}},
		{"sign", info(`{` + retry + `,"retryDelay":"+3s"}`), hint{}},
		{"no unit", info(`{` + retry + `,"retryDelay":"3"}`), hint{}},
		{"another unit", info(`{` + retry + `,"retryDelay":"300ms"}`), hint{}},
		{"Go's form", info(`{` + retry + `,"retryDelay":"1m3s"}`), hint{}},
		{"only the unit", info(`{` + retry + `,"retryDelay":"s"}`), hint{}},
		{"NaN", info(`{` + retry + `,"retryDelay":"NaNs"}`), hint{}},
		{"number", info(`{` + retry + `,"retryDelay":3}`), hint{}},
		{"object, not the JSON form of a duration", info(`{` + retry + `,"retryDelay":{"seconds":3}}`), hint{}},
		{"null", info(`{` + retry + `,"retryDelay":null}`), hint{}},
		{"missing", info(`{` + retry + `}`), hint{}},
		{"400 digits", info(`{` + retry + `,"retryDelay":"` + strings.Repeat("9", 400) + `s"}`), says(math.MaxInt64)},
		{"another type", info(`{"@type":"type.googleapis.com/google.rpc.Help","retryDelay":"3s"}`), hint{}},
		{"a type that ends alike", info(`{"@type":"example.test/notgoogle.rpc.RetryInfo","retryDelay":"3s"}`), hint{}},
		{"two: the longest", info(`{` + retry + `,"retryDelay":"3s"},{` + retry + `,"retryDelay":"5s"},{` + retry + `,"retryDelay":"4s"}`), says(5 * time.Second)},
		{"after what is no detail", info(`1,"x",null,[],{` + retry + `,"retryDelay":"3s"}`), says(3 * time.Second)},
		{"behind too many details", info(strings.Repeat(`{},`, maxDetails) + `{` + retry + `,"retryDelay":"3s"}`), hint{}},

		{"minute, then day", info(`{"violations":[{"quotaId":"` + perMinute + `"},{"quotaId":"` + perDay + `"}]}`), hint{final: true}},
		{"day, then minute", info(`{"violations":[{"quotaId":"` + perDay + `"},{"quotaId":"` + perMinute + `"}]},{"metadata":{"quota_limit":"` + perMinute + `"}}`), hint{final: true}},
		{"day, in the metadata of ErrorInfo", info(`{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"ReadsPerDayPerProject"}}`), hint{final: true}},
		{"day, in prose only", info(`{"violations":[{"description":"requests per day"}]}`), hint{}},

		{"empty", "", hint{}},
		{"HTML", "<html><body>503 Service Unavailable</body></html>", hint{}},
		{"cut off", geminiBody(`"39s"`, perMinute)[:700], hint{}},
		{"with something behind it", geminiBody(`"39s"`, perDay) + "<!-- -->", hint{}},
		{"not a list of details", `{"error":{"details":"39s"}}`, hint{}},
		{"no error", `{"details":[{` + retry + `,"retryDelay":"3s"}]}`, hint{}},
		{"error is a string", `{"error":"39s"}`, hint{}},
		{"nested without end", strings.Repeat("[", maxErrorBody), hint{}},
		{"nested deeply", info(`{` + retry + `,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,"retryDelay":"3s"}`), hint{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := retryInfo([]byte(tt.body)); got != tt.want {
				t.Errorf("retryInfo = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"", "0", "3", "-3", "1.5", "1e9", "NaN", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", strings.Repeat("9", 400)} {
		f.Add(v, "")
		f.Add("", v)
	}
	f.Fuzz(func(t *testing.T, seconds, millis string) {
		d, ok := retryAfter(http.Header{"Retry-After": {seconds}, "Retry-After-Ms": {millis}}, hintNow)
		if d < 0 || !ok && d != 0 {
			t.Fatalf("retryAfter = %v, %v", d, ok)
		}
		d, ok = retryAfter(http.Header{"Retry-After": {seconds}}, hintNow)
		if want, digits := waitOf(seconds); digits && (!ok || d != want) {
			t.Errorf("retryAfter(%q) = %v, %v, want %v", seconds, d, ok, want)
		}
	})
}

// waitOf is what a value of digits alone asks for, computed in another way.
func waitOf(s string) (time.Duration, bool) {
	s = strings.Trim(s, " \t")
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, _ := new(big.Int).SetString(s, 10)
	n.Mul(n, big.NewInt(int64(time.Second)))
	if !n.IsInt64() {
		return math.MaxInt64, true
	}
	return time.Duration(n.Int64()), true
}

func FuzzRetryInfo(f *testing.F) {
	f.Add([]byte(geminiBody(`"39s"`, perMinute)))
	f.Add([]byte("[" + geminiBody(`"45.837906927s"`, perDay) + "]"))
	f.Add([]byte(geminiBody(`{"seconds":3,"nanos":-1}`, perDay)))
	f.Add([]byte(`{"error":{"details":{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"-1s"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		h := retryInfo(body)
		if h.delay < 0 || !h.ok && h.delay != 0 {
			t.Errorf("retryInfo = %+v", h)
		}
		if len(body) > maxErrorBody && h != (hint{}) {
			t.Errorf("%d bytes were read", len(body))
		}
	})
}

// TestResets: a limit of which nothing is left is waited for until it is full
// again, in whatever form its provider tells the time.
func TestResets(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header []string // name, value, ...
		want   time.Duration
	}{
		{[]string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m30s"}, 90 * time.Second},
		{[]string{"X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "17.5s"}, 17500 * time.Millisecond},
		{[]string{"X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "26ms"}, 26 * time.Millisecond},
		{[]string{"X-Ratelimit-Remaining-Tokens", "12", "X-Ratelimit-Reset-Tokens", "17s"}, 0},
		{[]string{"X-Ratelimit-Reset-Tokens", "17s"}, 0},
		{[]string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "60"}, time.Minute}, // Azure
		{[]string{"Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", "2026-12-01T12:00:20Z"}, 20 * time.Second},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", fmt.Sprint(now.Unix() + 40)}, 40 * time.Second},         // GitHub
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", fmt.Sprint(now.UnixMilli() + 41000)}, 41 * time.Second}, // OpenRouter
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "2"}, 2 * time.Second},                                  // Together
		{[]string{"Ratelimit-Remaining", "0", "Ratelimit-Reset", "1"}, time.Second},
		{[]string{"Ratelimit", `"api";r=0;t=295`}, 295 * time.Second},
		{[]string{"Ratelimit", `"api";r=999;t=295`}, 0},
		{[]string{"Ratelimit", `"a";r=0;t=5, "b";r=9;t=60`}, 5 * time.Second},
		{[]string{"Ratelimit", `"a";r=5;t=60, "b";r=0`}, 0},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "-5"}, 0},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "soon"}, 0},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "NaN"}, 0},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "99999999999999999999"}, longestWait},
	} {
		h := http.Header{}
		for i := 0; i < len(c.header); i += 2 {
			h.Set(c.header[i], c.header[i+1])
		}
		if got := resets(h, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.header, got, c.want)
		}
	}
}
