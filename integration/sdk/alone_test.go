package sdk

import (
	"errors"
	"testing"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// uncovered are the clients whose attempts nothing marks as those of one call,
// and how often a server acts that loses every answer, if they are used without
// an operation.
var uncovered = map[string]int{
	"go-retryablehttp": 5,
}

// uncoveredNested are the same with go-retryablehttp in between.
var uncoveredNested = map[string]int{
	"sashabaranov chat":               5,
	"sashabaranov chat, streamed":     5,
	"langchaingo openai":              5,
	"langchaingo anthropic":           5,
	"langchaingo openai, streamed":    5,
	"langchaingo anthropic, streamed": 5,
	"langchaingo ollama, streamed":    5,
	"eino-ext openai":                 5,
	"eino-ext openai, streamed":       5,
	"mcp go-sdk, stateless":           5,
	"mark3labs mcp-go, stateless":     5,
	"ollama chat":                     5,
	"ollama chat, streamed":           5,
	"ollama generate, streamed":       5,
	"azcore":                          5,
	"go-github":                       5,
	"gax.Invoke":                      5,
	"go-retryablehttp":                25,
	"go-retryablehttp, CheckRetry":    5,
}

// wantAlone returns how often a server may act for c without an operation.
func wantAlone(list map[string]int, c *client) int {
	if n, ok := list[c.name]; ok {
		return n
	}
	return 1
}

// Without an operation, the marks that an SDK puts on its attempts join them.
// What has none is uncovered, and listed.
func TestAlone(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		aloneEffects(t, c, proving, wantAlone(uncovered, c))
	})
}

// The same with go-retryablehttp in between.
func TestAloneNested(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		aloneEffects(t, c, under(proving), wantAlone(uncoveredNested, c))
	})
}

// With a client in between that asks Rubicon, nothing is added.
func TestAloneObeying(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		aloneEffects(t, c, obeying, wantAlone(uncovered, c))
	})
}

// aloneEffects makes c's call through s to a server that acts and loses every
// answer.
func aloneEffects(t *testing.T, c *client, s stack, want int) {
	r := newBench(t, c, s, rubicontest.Act().Close()).alone(patient(t))
	if r.effects != want || r.err == nil {
		t.Errorf("%d effects, %d attempts, %v; want %d and an error", r.effects, r.attempts, r.err, want)
	}
}

// The error of a lost answer is ours, as far as the SDK lets it through.
func TestAloneTyped(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		r := newBench(t, c, proving, rubicontest.Act().Close()).alone(patient(t))
		loses := c.name == "langchaingo openai" || c.name == "langchaingo openai, streamed"
		if errors.Is(r.err, rubicon.ErrAmbiguous) == loses {
			t.Errorf("the SDK returned %v", r.err)
		}
	})
}

// The head of the answer came, and its body was cut.
func TestAloneCut(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		r := newBench(t, c, proving, c.answer.cut()).alone(patient(t))
		if want := wantAlone(uncoveredCut, c); r.effects != want {
			t.Errorf("%d effects, %v; want %d", r.effects, r.err, want)
		}
	})
}

// uncoveredCut are the clients that ask again for a body that was cut, without
// a mark. There are none.
var uncoveredCut = map[string]int{}

// Two identical calls without an operation are two intents, also where the
// first one's answer was lost.
func TestTwoAlone(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving)
		ctx := patient(t)
		for range 2 {
			if text, err := b.call(ctx); err != nil || text != c.answer.wanted() {
				t.Errorf("got %q, %v; want %q", text, err, c.answer.wanted())
			}
		}
		if r := b.result(result{}); r.effects != 2 || r.attempts != 2 {
			t.Errorf("%d effects, %d attempts; want 2, 2", r.effects, r.attempts)
		}
	})
}

// The second of two calls is made although the first one's answer was lost.
func TestSecondAlone(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, rubicontest.Act().Close())
		ctx := patient(t)
		_, _ = b.call(ctx)
		b.mu.Lock()
		b.script, b.line = nil, 0
		b.mu.Unlock()
		if text, err := b.call(ctx); err != nil || text != c.answer.wanted() {
			t.Errorf("the second call got %q, %v; want %q", text, err, c.answer.wanted())
		}
	})
}

// Two calls at the same time are two.
func TestParallelAlone(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		both := make(chan struct{})
		b := newBench(t, c, proving, c.answer.held(both))
		ctx := patient(t)
		for _, err := range inParallel(t, b, both, ctx, ctx) {
			if err != nil {
				t.Errorf("got %v; want no error", err)
			}
		}
		if r := b.result(result{}); r.effects != 2 {
			t.Errorf("%d effects; want 2", r.effects)
		}
	})
}

// uncoveredGateway are the clients that ask again after a bare 503, without a
// mark and without a header by which they could be told not to. gax goes on for
// as long as its context lasts.
var uncoveredGateway = map[string]int{
	"genai with RetryOptions":           5,
	"genai with RetryOptions, streamed": 5,
	"genai interactions":                5,
	"genai interactions, streamed":      5,
	"azcore":                            4,
	"gax.Invoke":                        manyTimes,
	"go-retryablehttp":                  5,
}

// manyTimes is more often than can be told.
const manyTimes = -1

// A bare 503 without an operation is as the SDK's marks say.
func TestAloneBadGateway(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		bad := rubicontest.Act().Answer(503, "<html>upstream connect error</html>").Header("Content-Type", "text/html")
		r := newBench(t, c, proving, bad).alone(patient(t))
		want := wantAlone(uncoveredGateway, c)
		if r.err == nil || r.effects != want && (want != manyTimes || r.effects < 2) {
			t.Errorf("%d effects, %d attempts, %v; want %d and an error", r.effects, r.attempts, r.err, want)
		}
	})
}
