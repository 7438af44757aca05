package sdk

import (
	"testing"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// Every client understands a whole answer, so that what it says of others counts.
func TestWholeAnswer(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		r := newBench(t, c, plain).alone(patient(t))
		if r.err != nil || r.text != c.answer.wanted() || r.effects != 1 {
			t.Errorf("got %q, %v, %d effects; want %q and one", r.text, r.err, r.effects, c.answer.wanted())
		}
	})
}

// The positive control: over plain net/http, a server that acts and loses every
// answer acts as often as the SDK asks.
func TestPlainRepeats(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, plain, rubicontest.Act().Close())
		r := b.alone(patient(t))
		if n := b.server.Effects(); n != c.tries() || r.err == nil {
			t.Errorf("%d effects, %v; want %d and an error", n, r.err, c.tries())
		}
	})
}

// go-retryablehttp in between multiplies by five.
func TestPlainMultiplies(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, under(plain), rubicontest.Act().Close())
		r := b.alone(patient(t))
		if n := b.server.Effects(); n != 5*c.tries() || r.err == nil {
			t.Errorf("%d effects, %v; want %d and an error", n, r.err, 5*c.tries())
		}
	})
}
