package sdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// A tally is what became of one client's call.
type tally struct {
	client *client
	result
	took time.Duration
}

// typed reports whether the operation says that the outcome is ambiguous.
func (y *tally) typed() bool { return errors.Is(y.told, rubicon.ErrAmbiguous) }

// prompt reports whether the SDK asked no second time.
func (y *tally) prompt() bool { return y.calls == 1 }

// A board collects tallies.
type board struct {
	mu  sync.Mutex
	all []tally
}

// add adds a tally.
func (b *board) add(y tally) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, y)
}

// count returns for how many ok holds.
func (b *board) count(ok func(*tally) bool) (n int) {
	for i := range b.all {
		if ok(&b.all[i]) {
			n++
		}
	}
	return n
}

// String is a table, with a line that sums it up.
func (b *board) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(w, "\nclient\tnet/http\teffects\tattempts\tSDK's tries\ttook\tthe SDK says\n")
	for _, c := range clients() {
		for i := range b.all {
			if y := &b.all[i]; y.client.name == c.name {
				_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%v\t%s\n", c.name, c.tries(), y.effects, y.attempts, y.calls,
					y.took.Round(time.Millisecond), kindOf(y.err))
			}
		}
	}
	_ = w.Flush()
	return text.String() + b.summary()
}

// summary is the line that sums the table up.
func (b *board) summary() string {
	one := b.count(func(y *tally) bool { return y.effects == 1 })
	return fmt.Sprintf("one effect: %[1]d of %[4]d clients, typed error: %[2]d of %[4]d, prompt stop: %[3]d of %[4]d",
		one, b.count((*tally).typed), b.count((*tally).prompt), len(b.all))
}

// lastWord is what the verbose output ends with.
var lastWord string

// kindOf says what an SDK made of an error.
func kindOf(err error) string {
	var e *rubicon.Error
	switch {
	case err == nil:
		return "nothing"
	case errors.As(err, &e):
		return "typed"
	}
	return "untyped"
}

// A server that acts and loses every answer acts once, whatever the SDK does,
// and the operation says so.
func TestOneEffect(t *testing.T) {
	var direct board
	t.Run("direct", func(t *testing.T) {
		each(t, unary(), func(t *testing.T, c *client) { direct.add(oneEffect(t, c, proving)) })
	})
	t.Run("streamed", func(t *testing.T) {
		each(t, streaming(), func(t *testing.T, c *client) { oneEffect(t, c, proving) })
	})
	var nested board
	t.Run("nested", func(t *testing.T) {
		each(t, clients(), func(t *testing.T, c *client) { nested.add(oneEffect(t, c, under(proving))) })
	})
	t.Run("obeying", func(t *testing.T) {
		each(t, clients(), func(t *testing.T, c *client) { oneEffect(t, c, obeying) })
	})
	t.Logf("go-retryablehttp in between:%v", &nested)
	t.Logf("with an operation:%v", &direct)
	lastWord = direct.summary()
	if n, all := direct.count((*tally).prompt), len(direct.all); n < all-2 {
		t.Errorf("%d of %d clients stop at once; want all but two", n, all)
	}
}

// oneEffect makes c's call through s to a server that acts and loses every
// answer. A documented key licenses all attempts of the budget.
func oneEffect(t *testing.T, c *client, s stack) tally {
	b := newBench(t, c, s, rubicontest.Act().Close())
	began := time.Now()
	r := b.once(patient(t), rubicon.Intent{})
	y := tally{c, r, time.Since(began)}
	attempts := 1
	if c.family.key != "" {
		attempts = 4
	}
	if r.effects != 1 || r.attempts != attempts {
		t.Errorf("%d effects, %d attempts; want 1, %d", r.effects, r.attempts, attempts)
	}
	if r.err == nil || !y.typed() {
		t.Errorf("the SDK returned %v, told as %v; want an ambiguous outcome", r.err, r.told)
	}
	return y
}

// Lost once, and the server would answer from then on: the outcome stays
// ambiguous, unless a key or the caller licenses a repetition.
func TestLostOnce(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, rubicontest.Act().Close(), c.answer.good())
		r := b.once(patient(t), rubicon.Intent{})
		if c.family.key != "" {
			wantGood(t, r, 1, 2)
		} else {
			wantAmbiguous(t, r, 1)
		}
	})
}

// wantAmbiguous checks that r is one attempt of unknown outcome, with so many
// effects.
func wantAmbiguous(t *testing.T, r result, effects int) {
	t.Helper()
	if r.effects != effects || r.attempts != 1 || r.err == nil || !errors.Is(r.told, rubicon.ErrAmbiguous) {
		t.Errorf("%d effects, %d attempts, %v told as %v; want %d, 1, ambiguous", r.effects, r.attempts, r.err, r.told, effects)
	}
}

// wantGood checks that r is a whole answer, after so many effects and attempts.
func wantGood(t *testing.T, r result, effects, attempts int) {
	t.Helper()
	if r.effects != effects || r.attempts != attempts || r.told != nil || r.text != r.want {
		t.Errorf("%d effects, %d attempts, %q, %v told as %v; want %d, %d, %q and no error",
			r.effects, r.attempts, r.text, r.err, r.told, effects, attempts, r.want)
	}
}

func TestLostOnceRepeat(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, rubicontest.Act().Close(), c.answer.good())
		effects := 2
		if c.family.key != "" {
			effects = 1
		}
		wantGood(t, b.once(patient(t), rubicon.Intent{Repeat: rubicon.Effect}), effects, 2)
	})
}

// A 503 from a gateway says nothing about the server behind it.
func TestBadGateway(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, rubicontest.Act().Answer(503, "<html>upstream connect error</html>").Header("Content-Type", "text/html"))
		if c.family.key != "" {
			b.script = append(b.script, c.answer.good())
			wantGood(t, b.once(patient(t), rubicon.Intent{}), 1, 2)
			return
		}
		wantAmbiguous(t, b.once(patient(t), rubicon.Intent{}), 1)
	})
}

// Overload in the provider's own envelope recovers where it is documented that
// nothing was done, and is ambiguous elsewhere.
func TestOverload(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, c.family.busy.fault(), c.answer.good())
		r := b.once(patient(t), rubicon.Intent{})
		if c.family.refuses || c.family.key != "" {
			wantGood(t, r, 1, 2)
		} else {
			wantAmbiguous(t, r, 0)
		}
	})
}

// Connections are refused twice before the server is back.
func TestRefusedDial(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving)
		b.base.CloseIdleConnections()
		b.mu.Lock()
		b.refuse = 2
		b.mu.Unlock()
		wantGood(t, b.once(patient(t), rubicon.Intent{}), 1, 1)
	})
}

// The head of the answer came and its body was cut: the server acted, once.
func TestCut(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, c.answer.cut())
		wantInterrupted(t, c, b.once(patient(t), rubicon.Intent{}))
	})
}

// wantInterrupted checks that the answer to c's call was cut, that nothing was
// done twice, and that the caller is told so. Who has a key may ask again.
func wantInterrupted(t *testing.T, c *client, r result) {
	t.Helper()
	if r.effects != 1 || r.attempts != 1 && c.family.key == "" {
		t.Errorf("%d effects, %d attempts; want 1, 1", r.effects, r.attempts)
	}
	if !errors.Is(r.told, rubicon.ErrInterrupted) {
		t.Errorf("%v told as %v; want interrupted", r.err, r.told)
	}
}

// A rejected credential is the provider's own answer, and the same call may be
// made again.
func TestUnauthorized(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, c.family.denied.fault(), c.answer.good())
		ctx, op := rubicon.Begin(patient(t), rubicon.Intent{})
		defer op.End()
		_, err := b.call(ctx)
		var ours *rubicon.Error
		if err == nil || errors.As(op.Err(err), &ours) {
			t.Errorf("the first call got %v; want the provider's 401", op.Err(err))
		}
		if r := b.result(result{}); r.effects != 0 || r.attempts != 1 {
			t.Errorf("%d effects, %d attempts of the first call; want 0, 1", r.effects, r.attempts)
		}
		if c.family.sessions {
			return // a session may end by it
		}
		text, err := b.call(ctx)
		if r := b.result(result{}); r.effects != 1 || op.Err(err) != nil || text != c.answer.wanted() {
			t.Errorf("%d effects, %q, %v; want 1, %q and no error", r.effects, text, op.Err(err), c.answer.wanted())
		}
	})
}

// The server acts and says nothing more; the caller has a deadline.
func TestDeadline(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		b := newBench(t, c, proving, rubicontest.Act().Stall())
		ctx := &deadline{patient(t), make(chan struct{})}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			defer close(ctx.over)
			if err := b.server.Await(ctx.Context, func(c rubicontest.Counts) bool { return c.Effects > 0 }); err != nil {
				t.Errorf("the server does not act: %v", err)
			}
		})
		wantAmbiguous(t, b.once(ctx, rubicon.Intent{}), 1)
		waiting.Wait()
	})
}

// A deadline is a context that reaches its deadline when it is told to.
type deadline struct {
	context.Context
	over chan struct{}
}

// Done implements [context.Context].
func (d *deadline) Done() <-chan struct{} { return d.over }

// Err implements [context.Context].
func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Two goroutines make the same call in one operation: two samples, each of
// which acts once.
func TestTwoInOneOperation(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		both := make(chan struct{})
		b := newBench(t, c, proving, rubicontest.Act().Until(both).Close())
		ctx, op := rubicon.Begin(patient(t), rubicon.Intent{})
		defer op.End()
		errs := inParallel(t, b, both, ctx, ctx)
		r := b.result(result{})
		if r.effects != 2 || r.attempts != 2 && c.family.key == "" {
			t.Errorf("%d effects, %d attempts; want 2, 2", r.effects, r.attempts)
		}
		for _, err := range errs {
			if err == nil || !errors.Is(op.Err(err), rubicon.ErrAmbiguous) {
				t.Errorf("a call got %v, told as %v; want ambiguous", err, op.Err(err))
			}
		}
	})
}

// The same where the server answers: both get their own.
func TestTwoSamples(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		both := make(chan struct{})
		b := newBench(t, c, proving, c.answer.held(both))
		ctx, op := rubicon.Begin(patient(t), rubicon.Intent{})
		defer op.End()
		for _, err := range inParallel(t, b, both, ctx, ctx) {
			if op.Err(err) != nil {
				t.Errorf("a call got %v; want no error", op.Err(err))
			}
		}
		if r := b.result(result{}); r.effects != 2 || r.attempts != 2 {
			t.Errorf("%d effects, %d attempts; want 2, 2", r.effects, r.attempts)
		}
	})
}

// Two operations at the same time have nothing to do with each other.
func TestTwoOperations(t *testing.T) {
	each(t, clients(), func(t *testing.T, c *client) {
		both := make(chan struct{})
		b := newBench(t, c, proving, c.answer.held(both))
		first, op1 := rubicon.Begin(patient(t), rubicon.Intent{})
		second, op2 := rubicon.Begin(patient(t), rubicon.Intent{})
		defer op1.End()
		defer op2.End()
		errs := inParallel(t, b, both, first, second)
		if r := b.result(result{}); r.effects != 2 || op1.Err(errs[0]) != nil || op2.Err(errs[1]) != nil {
			t.Errorf("%d effects, %v, %v; want 2 and no error", r.effects, op1.Err(errs[0]), op2.Err(errs[1]))
		}
	})
}

// inParallel makes a call with each of the contexts, and closes both when the
// server has all of them. The call's errors are in the order of the contexts.
func inParallel(t *testing.T, b *bench, both chan struct{}, contexts ...context.Context) []error {
	t.Helper()
	errs := make([]error, len(contexts))
	before := b.server.Effects()
	var group sync.WaitGroup
	for i, ctx := range contexts {
		group.Go(func() { _, errs[i] = b.call(ctx) })
	}
	err := b.server.Await(patient(t), func(c rubicontest.Counts) bool { return c.Effects >= before+len(contexts) })
	if err != nil {
		t.Errorf("the server has not seen all calls: %v", err)
	}
	close(both)
	group.Wait()
	return errs
}
