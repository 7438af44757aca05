package rubicon_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// TestTrace holds the order of the hooks of one operation, and what they tell.
func TestTrace(t *testing.T) {
	s, tr := start(t, rubicontest.H1,
		rubicontest.Read().Answer(429, ""), rubicontest.Act().Close(),
		rubicontest.Act().Stream("data: 1\n\n").Header("Content-Type", "text/event-stream"))
	var got []string
	tell := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	tr.Trace = &rubicon.Trace{
		AttemptStart: func(_ context.Context, a rubicon.AttemptInfo) { tell("start %d %v", a.N, a.Attempt.Reason) },
		AttemptEnd: func(_ context.Context, a rubicon.AttemptInfo) {
			tell("end %d %v %v %t", a.N, a.Attempt.Reach, a.Attempt.Verdict, a.Err != nil)
		},
		Decided: func(_ context.Context, d rubicon.DecisionInfo) {
			tell("%v, then %v", d.Decision.Action, d.Decision.Next)
		},
		Wait:      func(_ context.Context, w rubicon.WaitInfo) { tell("wait for %v", w.Next) },
		AnswerEnd: func(_ context.Context, a rubicon.AnswerInfo) { tell("answer %v %v", a.Outcome, a.Err) },
	}
	ctx, op := begin(t, rubicon.Intent{Repeat: rubicon.Effect})
	check(t, send(ctx, tr, http.MethodPost, s.URL, "{}"), 200, nil)
	want := []string{
		"start 1 first", "end 1 accepted not applied false",
		"wait, then send", "wait for send", "send, then report",
		"start 2 send", "end 2 sent unknown true",
		"wait, then replay", "wait for replay", "replay, then report",
		"start 3 replay", "end 3 accepted unknown false",
		"answer succeeded EOF",
	}
	if !slices.Equal(got, want) {
		t.Errorf("hooks:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if op.Outcome() != rubicon.Succeeded {
		t.Errorf("outcome %v", op.Outcome())
	}
}

// TestPrintsNoContext: what the public types print is theirs alone.
func TestPrintsNoContext(t *testing.T) {
	type secret struct{}
	ctx := context.WithValue(t.Context(), secret{}, "hunter2")
	ctx, op := rubicon.Begin(ctx, rubicon.Intent{Key: rubicon.Key{Scope: "billing", Name: "invoice-77"}})
	defer op.End()
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Close())
	got := send(ctx, tr, http.MethodPost, s.URL+"/?q=hunter2", "hunter2")
	err, _ := errors.AsType[*rubicon.Error](got.err)
	rec := rubicon.Record{Attempts: op.Attempts()}
	for _, v := range []any{ctx, op, &rec, op.Attempts(), rubicon.Decide(rec, time.Now()), err, errors.Unwrap(got.err), rubicon.Budget{}} {
		for _, text := range printed(v) {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%T prints a secret: %s", v, text)
			}
		}
	}
	for _, v := range []any{op, err} {
		if text := fmt.Sprint(v); !strings.Contains(text, "invoice-77") && !strings.Contains(text, "ambiguous") {
			t.Errorf("%T prints %q", v, text)
		}
	}
}
