package sdk

import (
	"errors"
	"testing"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/contract"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// The positive control: most SDKs take a stream that ends without its end for a
// whole one.
func TestPlainQuietEnd(t *testing.T) {
	complains := map[string]bool{
		"genai interactions, streamed":    true,
		"mcp go-sdk, streamed":            true,
		"mark3labs mcp-go, streamed":      true,
		"langchaingo anthropic, streamed": true,
	}
	each(t, streaming(), func(t *testing.T, c *client) {
		r := newBench(t, c, plain, c.answer.quiet()).alone(patient(t))
		if (r.err != nil) != complains[c.name] {
			t.Errorf("the SDK says %v", r.err)
		}
	})
}

// A stream that ends cleanly without its end is interrupted, on both protocols,
// with an operation or without.
func TestQuietEnd(t *testing.T) {
	for _, p := range []rubicontest.Protocol{rubicontest.H1, rubicontest.H2} {
		t.Run(p.String(), func(t *testing.T) {
			each(t, streaming(), func(t *testing.T, c *client) {
				b := newServer(t, c, p, c.answer.quiet())
				b.open(proving)
				wantInterrupted(t, c, b.once(patient(t), rubicon.Intent{}))
			})
		})
	}
}

// Without an operation the SDK's own error is all there is.
func TestQuietEndAlone(t *testing.T) {
	silent := map[string]bool{ // bytes are all that these SDKs look at
		"ollama chat, streamed":        true,
		"ollama generate, streamed":    true,
		"langchaingo ollama, streamed": true,
	}
	each(t, streaming(), func(t *testing.T, c *client) {
		r := newBench(t, c, proving, c.answer.quiet()).alone(patient(t))
		if r.effects != 1 || r.attempts != 1 {
			t.Errorf("%d effects, %d attempts; want 1, 1", r.effects, r.attempts)
		}
		if (r.err == nil) != silent[c.name] {
			t.Errorf("the SDK says %v", r.err)
		}
		typed := errors.Is(r.err, rubicon.ErrInterrupted)
		if !silent[c.name] && !c.family.sessions && !typed {
			t.Errorf("the SDK says %v; want interrupted", r.err)
		}
	})
}

// A whole stream is whole, whether the SDK reads it to the end or not.
func TestWholeStream(t *testing.T) {
	each(t, streaming(), func(t *testing.T, c *client) {
		r := newBench(t, c, proving, c.answer.good()).once(patient(t), rubicon.Intent{})
		wantGood(t, r, 1, 1)
		if o := r.op.Outcome(); o != rubicon.Succeeded {
			t.Errorf("the outcome is %v; want succeeded", o)
		}
	})
}

// O12: a failure within the stream is the provider's own, no interruption, and
// nothing is sent again.
func TestFailureInStream(t *testing.T) {
	each(t, streaming(), func(t *testing.T, c *client) {
		r := newBench(t, c, proving, c.answer.failing()).once(patient(t), rubicon.Intent{})
		if r.effects != 1 || r.attempts != 1 {
			t.Errorf("%d effects, %d attempts; want 1, 1", r.effects, r.attempts)
		}
		if r.told == nil || errors.Is(r.told, rubicon.ErrInterrupted) {
			t.Errorf("the SDK says %v, told as %v; want a failure", r.err, r.told)
		}
		if o := r.op.Outcome(); o != rubicon.Failed {
			t.Errorf("the outcome is %v; want failed", o)
		}
		end := r.op.Stream()
		if got := end.Failure; end.State != contract.Failed || got.Type != c.answer.cause && got.Code != c.answer.cause {
			t.Errorf("the stream ended %v with %+v; want failed with %q", end.State, got, c.answer.cause)
		}
	})
}

// The operation tells such a failure by type, whatever the SDK made of it.
func TestFailureInStreamTyped(t *testing.T) {
	each(t, streaming(), func(t *testing.T, c *client) {
		r := newBench(t, c, proving, c.answer.failing()).once(patient(t), rubicon.Intent{})
		if !errors.Is(r.told, rubicon.ErrStreamFailed) {
			t.Errorf("the SDK says %v, told as %v; want a failed stream", r.err, r.told)
		}
	})
}

// What the error of an interrupted stream says of it is what the operation
// knows: the head came, and output after it.
func TestQuietEndEvidence(t *testing.T) {
	each(t, streaming(), func(t *testing.T, c *client) {
		r := newBench(t, c, proving, c.answer.quiet()).once(patient(t), rubicon.Intent{})
		var e *rubicon.Error
		if !errors.As(r.told, &e) {
			t.Fatalf("told %v; want an Error", r.told)
		}
		if e.Evidence.Reach < rubicon.ReachAccepted {
			t.Errorf("the error says %+v; want that the head came", e.Evidence)
		}
	})
}
