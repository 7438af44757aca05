package rubicon_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/contract"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// Pieces of the streams that the tests play.
const (
	chatText   = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n"
	chatStop   = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatLength = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	chatUsage  = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"total_tokens":3}}` + "\n\n"
	chatError  = `data: {"error":{"code":502,"message":"upstream failed","type":"server_error"}}` + "\n\n"
	chatDone   = "data: [DONE]\n\n"

	claudeStart = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}}\n\n"
	claudeText  = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"
	claudeDelta = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n"
	claudeStop  = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	claudeError = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	claudePing  = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

	mcpProgress = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n"
	mcpResult   = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n"

	geminiText = `data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}],"responseId":"r1"}` + "\r\n\r\n"
	geminiStop = `data: {"candidates":[{"finishReason":"STOP","index":0}],"responseId":"r1"}` + "\r\n\r\n"
)

// sse is a fault that streams pieces as an event stream.
func sse(pieces ...string) rubicontest.Fault {
	return rubicontest.Act().Stream(pieces...).Header("Content-Type", "text/event-stream")
}

// ndjson is a fault that streams lines.
func ndjson(pieces ...string) rubicontest.Fault {
	return rubicontest.Act().Stream(pieces...).Header("Content-Type", "application/x-ndjson")
}

// stream makes a POST in an operation of its own and reads the answer.
func stream(t *testing.T, tr *rubicon.Transport, url string) (told, *rubicon.Operation) {
	t.Helper()
	ctx, op := begin(t, rubicon.Intent{})
	return send(ctx, tr, http.MethodPost, url, `{"stream":true}`), op
}

// TestStreamEnds holds by protocol what an end is to the reader and in the
// record, over HTTP/1.1 and HTTP/2. The bytes are the server's in any case.
func TestStreamEnds(t *testing.T) {
	for _, test := range []struct {
		name    string
		fault   rubicontest.Fault
		want    error
		outcome rubicon.Outcome
	}{
		{"chat, done", sse(chatText, chatStop, chatUsage, chatDone), nil, rubicon.Succeeded},
		// O8: a finished answer without [DONE] is whole.
		{"O8 A chat, stopped", sse(chatText, chatStop, chatUsage), nil, rubicon.Succeeded},
		{"O8 C chat, cut", sse(chatText), rubicon.ErrInterrupted, rubicon.Interrupted},
		{"O8 D gemini", sse(geminiText, geminiStop), nil, rubicon.Succeeded},
		{"gemini, cut", sse(geminiText), rubicon.ErrInterrupted, rubicon.Interrupted},
		{"chat, token limit", sse(chatText, chatLength, chatDone), nil, rubicon.Incomplete},
		{"claude", sse(claudeStart, claudeText, claudeDelta, claudeStop), nil, rubicon.Succeeded},
		{"claude, cut", sse(claudeStart, claudeText), rubicon.ErrInterrupted, rubicon.Interrupted},
		{"claude, pings only", sse(claudeStart, claudePing, claudePing), rubicon.ErrInterrupted, rubicon.Interrupted},
		// O12: overload after 200.
		{"O12 A", sse(claudeStart, claudeError), rubicon.ErrStreamFailed, rubicon.Failed},
		{"O12 B", sse(claudeStart, claudeText, claudeError), rubicon.ErrStreamFailed, rubicon.Failed},
		// O13: half an event that swallows the error event.
		{"O13", sse(claudeStart, "data: {\"type\":\"content_bl\nevent: error\ndata: {\"error\":{\"message\":\"x\"}}\n\n"), errAny, rubicon.Interrupted},
		// O14: the first error wins over a later [DONE].
		{"O14 A", sse(chatText, chatError, chatDone), rubicon.ErrStreamFailed, rubicon.Failed},
		{"O14 B", sse(chatText, strings.Replace(chatStop, `"stop"`, `"error"`, 1), chatDone), rubicon.ErrStreamFailed, rubicon.Failed},
		// O11: lines.
		{"O11 A", ndjson("{\"model\":\"m\",\"response\":\"Hi\",\"done\":false}\n", "{\"model\":\"m\",\"response\":\"\",\"done_reason\":\"stop\"}\n"), nil, rubicon.Succeeded},
		{"O11 B", ndjson("{\"model\":\"m\",\"response\":\"Hi\",\"done\":false}\n", "{\"model\":\"m\",\"response\":\"\",\"done\":true}"), nil, rubicon.Succeeded},
		{"O11 C", ndjson("{\"model\":\"m\",\"response\":\"Hi\",\"done\":false}\n"), rubicon.ErrInterrupted, rubicon.Interrupted},
		{"O11 C, another name", ndjson("{\"model\":\"m\",\"response\":\"Hi\",\"done\":false}\n").Header("Content-Type", "application/x-jsonl"), rubicon.ErrInterrupted, rubicon.Interrupted},
		{"O11 D", ndjson("{\"model\":\"m\",\"response\":\""+strings.Repeat("x", 1<<20)+"\",\"done\":false}\n", "{\"model\":\"m\",\"response\":\"\",\"done\":true}\n"), nil, rubicon.Succeeded},
		{"O11 E", ndjson("{\"model\":\"m\",\"response\":\"Hi\",\"done\":false}\n", "{\"error\":\"out of memory\"}\n"), rubicon.ErrStreamFailed, rubicon.Failed},
		// O10 A: an MCP leg that dies without an answer, and without an id to
		// read on from. With an id its end is legal: the client reads on.
		{"O10 A", sse(mcpProgress), rubicon.ErrInterrupted, rubicon.Interrupted},
		{"O10 with an event id", sse("id: e1\n" + mcpProgress), nil, rubicon.Incomplete},
		{"MCP, answered", sse(mcpProgress, mcpResult), nil, rubicon.Succeeded},
		{"events that nobody knows", sse("data: tick\n\n", "data: tock\n\n"), nil, rubicon.Succeeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			both(t, func(t *testing.T, p rubicontest.Protocol) {
				s, tr := start(t, p, test.fault)
				got, op := stream(t, tr, s.URL)
				switch {
				case test.want == errAny && got.err == nil:
					t.Error("told of a clean end")
				case test.want != errAny && !errors.Is(got.err, test.want) || test.want == nil && got.err != nil:
					t.Errorf("told %v, want %v", got.err, test.want)
				}
				if op.Outcome() != test.outcome && test.want != errAny {
					t.Errorf("outcome %v, want %v", op.Outcome(), test.outcome)
				}
				if got.body == "" {
					t.Error("no bytes")
				}
				for _, bad := range []error{io.EOF, io.ErrUnexpectedEOF} {
					if got.err != nil && errors.Is(got.err, bad) {
						t.Errorf("%v is %v, which some layers take for a clean end and others repeat", got.err, bad)
					}
				}
				wantCounts(t, s, 1, 1)
			})
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any")

// TestO9CutInTheLastFrame: a cut anywhere in the last two frames is one, and
// says that all output was there exactly when the stop reason was dispatched.
func TestO9CutInTheLastFrame(t *testing.T) {
	whole := claudeStart + claudeText + claudeDelta + claudeStop
	from := len(claudeStart + claudeText)
	dispatched := len(claudeStart + claudeText + claudeDelta)
	for n := from; n <= len(whole); n++ {
		tr := &rubicon.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			return response(req, 200, http.Header{"Content-Type": {"text/event-stream"}}, whole[:n]), nil
		})}
		got, _ := stream(t, tr, "http://api.test/v1/messages")
		if n == len(whole) {
			check(t, got, 200, nil)
			continue
		}
		e, ok := errors.AsType[*rubicon.Error](got.err)
		if !ok || !errors.Is(e, rubicon.ErrInterrupted) {
			t.Fatalf("cut after %d of %d: %v", n, len(whole), got.err)
		}
		if e.End.Complete != (n >= dispatched) {
			t.Errorf("cut after %d, stop reason dispatched at %d: complete is %t", n, dispatched, e.End.Complete)
		}
	}
}

// TestO36SameCutSameVerdict: the verdict does not depend on who carries the bad
// news. With the terminal event seen, there is no bad news.
func TestO36SameCutSameVerdict(t *testing.T) {
	type carrier struct {
		name  string
		proto rubicontest.Protocol
		end   func(rubicontest.Fault) rubicontest.Fault
	}
	carriers := []carrier{
		{"h1 chunked cut", rubicontest.H1, func(f rubicontest.Fault) rubicontest.Fault { return f.Close() }},
		{"h1 reset", rubicontest.H1, func(f rubicontest.Fault) rubicontest.Fault { return f.Reset() }},
		{"h2 END_STREAM", rubicontest.H2, func(f rubicontest.Fault) rubicontest.Fault { return f.End() }},
	}
	for _, code := range []http2.ErrCode{http2.ErrCodeInternal, http2.ErrCodeCancel, http2.ErrCodeNo} {
		carriers = append(carriers, carrier{"h2 " + code.String(), rubicontest.H2,
			func(f rubicontest.Fault) rubicontest.Fault { return f.ResetStream(code) }})
	}
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			events := sse(claudeStart, claudeText, claudeDelta)
			whole := sse(claudeStart, claudeText, claudeDelta, claudeStop, "")
			size := len(claudeStart + claudeText + claudeDelta)
			s, tr := start(t, c.proto, c.end(events.Cut(size)))
			got, op := stream(t, tr, s.URL)
			check(t, got, 200, rubicon.ErrInterrupted)
			e, _ := errors.AsType[*rubicon.Error](got.err)
			if e == nil || e.End.Events != 3 || e.End.Operation != "msg_1" || !e.End.Complete || op.Outcome() != rubicon.Interrupted {
				t.Errorf("told %+v, outcome %v", e, op.Outcome())
			}

			s, tr = start(t, c.proto, c.end(whole.Cut(size+len(claudeStop))))
			got, op = stream(t, tr, s.URL)
			check(t, got, 200, nil)
			if op.Outcome() != rubicon.Succeeded {
				t.Errorf("outcome %v after the terminal event", op.Outcome())
			}
		})
	}
}

// TestOperationID: the record knows the server's name of the operation as soon
// as the reader had the bytes that tell it.
func TestOperationID(t *testing.T) {
	release := make(chan struct{})
	s, tr := start(t, rubicontest.H1, rubicontest.Act().Stream(claudeStart, claudeText).Header("Content-Type", "text/event-stream").Cut(len(claudeStart)).Stall())
	defer close(release)
	ctx, op := begin(t, named(t))
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
	journal := new(rubicon.MemoryJournal)
	tr.Journal = journal
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, len(claudeStart))); err != nil {
		t.Fatal(err)
	}
	rec, err := journal.Load(t.Context(), named(t).Key)
	if err != nil || rec.ServerID != "msg_1" {
		t.Errorf("the journal knows %q, %v", rec.ServerID, err)
	}
	_ = op
}

// TestUnaryCut: an answer in one piece that is cut is not whole either, and
// what the server did is known all the same.
func TestUnaryCut(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		cutShort := rubicontest.Act().Answer(200, `{"id":"ch_1","amount":100}`).Header("Content-Type", "application/json").Cut(10)
		if p == rubicontest.H1 {
			cutShort = cutShort.Close()
		} else {
			cutShort = cutShort.ResetStream(http2.ErrCodeInternal)
		}
		s, tr := start(t, p, cutShort)
		got, op := stream(t, tr, s.URL)
		check(t, got, 200, rubicon.ErrInterrupted)
		if op.Outcome() != rubicon.Succeeded || !errors.Is(op.Err(nil), rubicon.ErrInterrupted) || op.Err(got.err) != got.err {
			t.Errorf("outcome %v, %v", op.Outcome(), op.Err(nil))
		}
		if p == rubicontest.H1 { // a reader of ranges goes on from its own error
			got = send(t.Context(), tr, http.MethodGet, s.URL, "")
			check(t, got, 200, io.ErrUnexpectedEOF)
		}
	})
}

// gzipped returns s compressed, with a flush after each piece.
func gzipped(pieces ...string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for _, p := range pieces {
		io.WriteString(w, p)
		w.Flush()
	}
	w.Close()
	return b.Bytes()
}

// TestO33CompressedStream: a stream that comes compressed, because the caller
// asked for it, is judged beside its bytes; what can't be read is never
// certified.
func TestO33CompressedStream(t *testing.T) {
	whole := gzipped(chatText, chatStop, chatDone)
	half := gzipped(chatText)
	for _, test := range []struct {
		name, coding string
		body         []byte
		want         error
	}{
		{"A", "gzip", whole, nil},
		{"B", "gzip", half, rubicon.ErrInterrupted},
		{"C", "br", []byte("\x0b\x02\x80unreadable"), rubicon.ErrUnverified},
	} {
		t.Run(test.name, func(t *testing.T) {
			both(t, func(t *testing.T, p rubicontest.Protocol) {
				s, tr := start(t, p, rubicontest.Act().Stream(string(test.body)).
					Header("Content-Type", "text/event-stream").Header("Content-Encoding", test.coding))
				ctx, _ := begin(t, rubicon.Intent{})
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
				req.Header.Set("Accept-Encoding", "gzip, br")
				got := sendRequest(tr, req)
				check(t, got, 200, test.want)
				if got.body != string(test.body) {
					t.Errorf("bytes changed: %d, want %d", len(got.body), len(test.body))
				}
				if test.coding == "gzip" { // and without the header, decoded
					got, _ = stream(t, tr, s.URL)
					check(t, got, 200, test.want)
					if !strings.HasPrefix(got.body, "data: {") {
						t.Errorf("not decoded: %.20q", got.body)
					}
				}
			})
		})
	}
}

// TestO34MissingTrailer: what decodes is delivered, and the terminal event
// decides. A checksum that is wrong stays an error.
func TestO34MissingTrailer(t *testing.T) {
	whole := gzipped(chatText, chatStop, chatDone)
	wrong := bytes.Clone(whole)
	wrong[len(wrong)-6] ^= 1
	for _, test := range []struct {
		name string
		body []byte
		want error
	}{
		{"A", gzipped(chatText)[:len(gzipped(chatText))-12], rubicon.ErrInterrupted},
		{"B", whole[:len(whole)-8], nil},
		{"C", wrong, errAny},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, tr := start(t, rubicontest.H1, rubicontest.Act().Stream(string(test.body)).
				Header("Content-Type", "text/event-stream").Header("Content-Encoding", "gzip"))
			got, _ := stream(t, tr, s.URL)
			if test.want == errAny {
				if got.err == nil {
					t.Error("a wrong checksum passes")
				}
				return
			}
			check(t, got, 200, test.want)
			if !strings.HasPrefix(got.body, chatText) {
				t.Errorf("delivered %q", got.body)
			}
		})
	}
}

// TestStalls: each limit ends what it bounds, and leaves alone what it does
// not.
func TestStalls(t *testing.T) {
	const soon = 200 * time.Millisecond
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		for _, test := range []struct {
			name  string
			stall rubicon.Stall
			fault rubicontest.Fault
			want  error
		}{
			{"silent before the first event", rubicon.Stall{FirstEvent: soon}, sse(": wait\n\n", claudeStart).Cut(8).Stall(), rubicon.ErrStalled},
			{"comments only", rubicon.Stall{FirstEvent: soon}, sse(repeat(": keep-alive\n\n", 100)...).Pace(20 * time.Millisecond), rubicon.ErrStalled},
			{"pings only", rubicon.Stall{Progress: soon}, sse(append([]string{claudeStart}, repeat(claudePing, 100)...)...).Pace(20 * time.Millisecond), rubicon.ErrStalled},
			{"silent", rubicon.Stall{Bytes: soon}, sse(claudeStart, claudeText).Cut(len(claudeStart)).Stall(), rubicon.ErrStalled},
			{"slow but alive", rubicon.Stall{FirstEvent: soon, Bytes: soon, Progress: soon}, sse(claudeStart, claudeText, claudeText, claudeDelta, claudeStop).Pace(soon / 4), nil},
		} {
			t.Run(test.name, func(t *testing.T) {
				s, tr := start(t, p, test.fault)
				tr.Stall = test.stall
				got, _ := stream(t, tr, s.URL)
				check(t, got, 200, test.want)
				if test.want != nil {
					check(t, got, 200, rubicon.ErrInterrupted)
				}
			})
		}
	})
}

// repeat returns s n times.
func repeat(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

// TestO37DeadConnection: a connection that dies without a word is not used for
// the next request.
func TestO37DeadConnection(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		s, _ := start(t, p, sse(claudeStart, claudeText).Pace(100*time.Millisecond), rubicontest.Act().Answer(200, "ok"))
		relay := rubicontest.NewRelay(s.Addr)
		defer relay.Close()
		base := s.Transport()
		base.HTTP2 = &http.HTTP2Config{SendPingTimeout: 100 * time.Millisecond, PingTimeout: 100 * time.Millisecond}
		defer base.CloseIdleConnections()
		tr := &rubicon.Transport{Base: base, Backoff: quick, Stall: rubicon.Stall{Bytes: 300 * time.Millisecond}}
		url := strings.Replace(s.URL, s.Addr, relay.Addr, 1)

		ctx, op := begin(t, rubicon.Intent{})
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.ReadFull(res.Body, make([]byte, len(claudeStart))); err != nil {
			t.Fatal(err)
		}
		relay.Drop()
		_, err = io.Copy(io.Discard, res.Body)
		// On HTTP/2 a ping may find out first.
		if !errors.Is(err, rubicon.ErrInterrupted) || op.Outcome() != rubicon.Interrupted {
			t.Errorf("told %v, outcome %v", err, op.Outcome())
		}
		if p == rubicontest.H1 && !errors.Is(err, rubicon.ErrStalled) {
			t.Errorf("told %v", err)
		}
		check(t, send(t.Context(), tr, http.MethodGet, url, ""), 200, nil)
	})
}

// TestO38ListeningStream: a limit on the head does not bound a stream that is
// listened to, and limits on events do not apply to it.
func TestO38ListeningStream(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		s, tr := start(t, p, sse(repeat("data: x\n\n", 10)...).Pace(50*time.Millisecond))
		tr.Stall = rubicon.Stall{Head: 200 * time.Millisecond, FirstEvent: 10 * time.Millisecond, Progress: 10 * time.Millisecond}
		got := send(t.Context(), tr, http.MethodGet, s.URL, "")
		if got.err != nil || strings.Count(got.body, "data: x") != 10 {
			t.Errorf("told %q %v", got.body, got.err)
		}
		wantCounts(t, s, 1, 1)

		// B: the head comes too late, and a GET may be tried again.
		s, tr = start(t, p, rubicontest.Act().Wait(500*time.Millisecond).Answer(200, "late"))
		tr.Stall = rubicon.Stall{Head: 100 * time.Millisecond}
		tr.Budget.Attempts = 2
		check(t, send(t.Context(), tr, http.MethodGet, s.URL, ""), 0, rubicon.ErrStalled)
	})
}

// TestEndIsToldOnce: at the first of EOF, an error and Close; errors stick.
func TestEndIsToldOnce(t *testing.T) {
	s, tr := start(t, rubicontest.H1, sse(claudeStart, claudeText))
	var ends atomic.Int32
	var last rubicon.AnswerInfo
	tr.Trace = &rubicon.Trace{AnswerEnd: func(_ context.Context, a rubicon.AnswerInfo) {
		ends.Add(1)
		last = a
	}}
	ctx, _ := begin(t, rubicon.Intent{})
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_, first := io.ReadAll(res.Body)
	for range 3 {
		if _, err := res.Body.Read(make([]byte, 1)); err != first {
			t.Errorf("Read says %v after %v", err, first)
		}
	}
	res.Body.Close()
	res.Body.Close()
	if n := ends.Load(); n != 1 || last.End.State != contract.Interrupted || !errors.Is(last.Err, rubicon.ErrInterrupted) {
		t.Errorf("the end was told %d times: %+v", n, last)
	}
}

// TestLeavingEarly: Close before the end is no interruption, and Close after
// the terminal event is success: several SDKs never read the EOF.
func TestLeavingEarly(t *testing.T) {
	for _, test := range []struct {
		read    string
		outcome rubicon.Outcome
	}{
		{claudeStart + claudeText, rubicon.Incomplete},
		{claudeStart + claudeText + claudeDelta + claudeStop, rubicon.Succeeded},
	} {
		s, tr := start(t, rubicontest.H1, sse(claudeStart, claudeText, claudeDelta, claudeStop, ": bye\n\n"))
		ctx, op := begin(t, rubicon.Intent{})
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, len(test.read))); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if op.Outcome() != test.outcome || op.Err(nil) != nil {
			t.Errorf("outcome %v, %v", op.Outcome(), op.Err(nil))
		}
	}
}

// TestCutIsNoEnd: where a protocol's only end is that of the body, a body that
// was cut has none, though its last event is whole.
func TestCutIsNoEnd(t *testing.T) {
	line := `{"status":"Pulling fs layer","progressDetail":{},"id":"a3ed95caeb02"}` + "\r\n"
	docker := rubicontest.Act().Stream(line, line).Header("Content-Type", "application/json")
	for name, fault := range map[string]rubicontest.Fault{
		"reset": docker.Cut(len(line)).Reset(), "cut": docker.Cut(len(line)).Close(), "whole": docker,
	} {
		s, tr := start(t, rubicontest.H1, fault)
		got, op := stream(t, tr, s.URL+"/v1.47/images/create?fromImage=alpine")
		if name == "whole" != (got.err == nil) || name != "whole" && !errors.Is(got.err, rubicon.ErrInterrupted) {
			t.Errorf("docker, %s: %v", name, got.err)
		}
		if op.Outcome() != rubicon.Succeeded { // its head, of plain JSON, has settled it
			t.Errorf("docker, %s: %v", name, op.Outcome())
		}
	}
	events := sse("data: 1\n\n", "data: 2\n\n").Cut(9).Reset()
	s, tr := start(t, rubicontest.H1, events)
	if got, op := stream(t, tr, s.URL+"/threads/t/runs/stream"); !errors.Is(got.err, rubicon.ErrInterrupted) || op.Outcome() != rubicon.Interrupted {
		t.Errorf("LangGraph: %v, %v", got.err, op.Outcome())
	}
	s, tr = start(t, rubicontest.H1, events)
	if got := send(t.Context(), tr, http.MethodGet, s.URL, ""); got.err == nil || errors.Is(got.err, rubicon.ErrInterrupted) {
		t.Errorf("a reset while listening: %v, want net/http's own error", got.err)
	}
}

// TestSlowReader: the limits on events bind the server, and not a reader that
// takes its time, as one does that runs a tool between two events.
func TestSlowReader(t *testing.T) {
	both(t, func(t *testing.T, p rubicontest.Protocol) {
		s, tr := start(t, p, sse(chatText, chatText, chatText, chatStop, chatDone))
		tr.Stall = rubicon.Stall{FirstEvent: 2 * time.Second, Progress: 2 * time.Second}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		buf := make([]byte, 200)
		for range 2 {
			time.Sleep(2100 * time.Millisecond)
			if _, err := res.Body.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Error(err)
		}
	})
}

// TestFailureIsKnownAtOnce: readers that stop at a failure, and neither close
// the body nor read its end, have told nobody. The record knows all the same.
func TestFailureIsKnownAtOnce(t *testing.T) {
	failed := sse(
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\"}}\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
		": never sent\n\n",
	)
	s, tr := start(t, rubicontest.H1, failed.Cut(165).Stall())
	ctx, op := begin(t, rubicon.Intent{})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 165)
	if _, err := io.ReadFull(res.Body, buf); err != nil {
		t.Fatal(err)
	}
	if op.Outcome() != rubicon.Failed || op.Stream().Failure.Type != "overloaded_error" {
		t.Errorf("outcome %v, stream %+v, after %q", op.Outcome(), op.Stream(), buf)
	}
	var told *rubicon.Error
	if err := op.Err(errors.New("the SDK's own")); !errors.As(err, &told) || !errors.Is(err, rubicon.ErrStreamFailed) || told.Outcome != rubicon.Failed {
		t.Errorf("told %v", err)
	}
	res.Body.Close()
	if op.Outcome() != rubicon.Failed {
		t.Errorf("after Close: %v", op.Outcome())
	}
}

// A counted body counts its Reads.
type counted struct {
	io.Reader
	reads int
}

func (c *counted) Read(p []byte) (int, error) { c.reads++; return c.Reader.Read(p) }
func (c *counted) Close() error               { return nil }

// TestNoReadAfterTheEnd: once the end is decided, nothing below is read again.
func TestNoReadAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(io.ReadCloser) error{
		"EOF":   func(b io.ReadCloser) error { _, err := io.ReadAll(b); return err },
		"Close": func(b io.ReadCloser) error { return b.Close() },
	} {
		below := &counted{Reader: strings.NewReader(chatText + chatStop + chatDone)}
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			req.Body.Close()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: below, Request: req}, nil
		})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.test", strings.NewReader("x"))
		res, err := (&rubicon.Transport{Base: base}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(res.Body); err != nil {
			t.Fatal(err)
		}
		reads := below.reads
		if n, err := res.Body.Read(make([]byte, 10)); n != 0 || err == nil || below.reads != reads {
			t.Errorf("after %s: %d, %v, and %d further reads", name, n, err, below.reads-reads)
		}
		res.Body.Close()
	}
}
