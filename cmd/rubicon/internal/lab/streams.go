package lab

import (
	"slices"
	"time"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// Events of OpenAI's Chat Completions.
const (
	chatText  = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n"
	chatStop  = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatError = `data: {"error":{"code":502,"message":"upstream failed","type":"server_error"}}` + "\n\n"
	chatDone  = "data: [DONE]\n\n"
)

// Events of Anthropic's Messages.
const (
	claudeStart = "event: message_start\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[]}}` + "\n\n"
	claudeText  = "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}` + "\n\n"
	claudeDelta = "event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}` + "\n\n"
	claudeStop  = "event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n"
	claudeError = "event: error\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
)

// Where an answer is cut: in the middle of its text, and of its last event.
const (
	inText = len(claudeStart+claudeText) - 20
	inStop = len(claudeStart+claudeText+claudeDelta+claudeStop) - 20
)

// streams are faults of an answer that comes as events, after its head said
// 200. The caller reads it to its end and does not look inside, as a proxy
// does, or an SDK that takes the end of the body for the end of the answer.
// go-retryablehttp hands it on and does no more about it than net/http.
var streams = []Fault{
	{
		Name:   "stream-error", // O12
		About:  "the server acts, streams some text after its 200, and then an error event",
		server: h1(events(claudeStart, claudeText, claudeError)),
		intent: named,
		want:   unnoticed("failed (200)"),
	},
	{
		Name:   "stream-masked", // O14
		About:  "an error comes in the stream, and [DONE] after it as if nothing were wrong",
		server: h1(events(chatText, chatError, chatDone)),
		intent: named,
		want:   unnoticed("failed (200)"),
	},
	{
		Name:   "stream-eof", // O8
		About:  "the stream ends after some text, cleanly, without the event that ends an answer",
		server: h1(events(claudeStart, claudeText)),
		want:   unnoticed("interrupted (200)"),
	},
	{
		Name:   "stream-h2-end", // O36
		About:  "a gateway loses its server in the middle of an event and ends the stream (END_STREAM)",
		server: h2(answer.Cut(inText).End()),
		want:   unnoticed("interrupted (200)"),
	},
	{
		Name:   "stream-no-done", // O8
		About:  "a whole answer ends with its finish reason and without [DONE]: nothing is wrong",
		server: h1(events(chatText, chatStop)),
		want:   unnoticed("200"),
	},
	{
		Name:   "stream-cut", // O36
		About:  "the connection is closed in the middle of the text, without the last chunk",
		server: h1(answer.Cut(inText).Close()),
		want:   noticed("unexpected EOF", "interrupted (200)"),
	},
	{
		Name:   "stream-reset", // O36
		About:  "the connection is reset in the middle of the text",
		server: h1(answer.Cut(inText).Reset()),
		want:   noticed("connection reset", "interrupted (200)"),
	},
	{
		Name:   "stream-torn", // O9
		About:  "the connection is closed within the last event: all text is there, and another answer would cost as much again",
		server: h1(answer.Cut(inStop).Close()),
		want:   noticed("unexpected EOF", "interrupted (200, whole)"),
	},
	{
		Name:   "stream-silent", // O37
		About:  "the stream falls silent in the middle of the text and stays open; net/http can only bound the whole call",
		server: h1(answer.Cut(inText).Stall()),
		setup:  bytesWithin(250 * time.Millisecond),
		want:   noticed("timeout", "interrupted (200, stalled)"),
	},
	{
		Name:   "stream-comment", // O37
		About:  "nothing but comments comes for two seconds, and then a clean end",
		server: h1(events(comments...).Pace(20 * time.Millisecond)),
		setup:  eventWithin(250 * time.Millisecond),
		want:   unnoticed("interrupted (200, stalled)"),
	},
}

// named is for answers of failure. Without a key, the same request after one is
// a new one.
var named = rubicon.Intent{Key: rubicon.Key{Scope: "lab", Name: "answer-77"}}

// comments are sent by servers that have nothing to say yet.
var comments = slices.Repeat([]string{": keep-alive\n\n"}, 100)

// answer is a whole one.
var answer = events(claudeStart, claudeText, claudeDelta, claudeStop)

// events is a fault that acts and streams what is given, piece by piece.
func events(pieces ...string) rubicontest.Fault {
	return rubicontest.Act().Stream(pieces...).Header("Content-Type", "text/event-stream")
}

// unnoticed is what is expected where the body ends as if it were whole.
func unnoticed(rubicon string) wants {
	return wants{
		nethttp:   result{1, 1, "200"},
		retryable: result{1, 1, "200"},
		rubicon:   result{1, 1, rubicon},
	}
}

// noticed is what is expected where reading the body fails with err.
func noticed(err, rubicon string) wants {
	return wants{
		nethttp:   result{2, 2, "error: " + err},
		retryable: result{2, 2, "error: " + err},
		rubicon:   result{1, 1, rubicon},
	}
}

// bytesWithin makes Rubicon wait no longer than d for bytes of an answer. The
// other clients offer no more than a limit on the whole call, which has to be
// longer.
func bytesWithin(d time.Duration) func(*bench) {
	return func(b *bench) { b.stall.Bytes, b.whole = d, 6*d }
}

// eventWithin makes Rubicon wait no longer than d for the first event.
func eventWithin(d time.Duration) func(*bench) {
	return func(b *bench) { b.stall.FirstEvent = d }
}
