package rubicontest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// jobs is a contract as a user would write it.
func jobs() contract.Contract {
	return contract.Contract{
		Protocol: "jobs",
		Framing:  contract.Lines,
		Paths:    []string{"job", "state", "log", "note", "problem"},
		Cursor:   "offset",
		Read:     readJob,
	}
}

func readJob(f *contract.Frame, p *contract.Progress) bool {
	p.ID(f.Get("job"))
	switch string(f.Get("state")) {
	case "done":
		p.Finish(contract.Completed)
	case "failed":
		p.Fail(nil, nil, f.Get("problem"))
	case "running":
	default:
		return false
	}
	return true
}

const (
	jobRuns   = `{"job":"j","offset":1,"state":"running","log":"say \"hi\""}` + "\n" + `{"job":"j","offset":2,"state":"running","log":"x","note":"first"}` + "\n"
	jobDone   = `{"job":"j","offset":3,"state":"done"}` + "\n"
	jobFailed = `{"job":"j","offset":3,"state":"failed","problem":"no space"}` + "\n"
)

var jobAnswer = contract.Answer{ContentType: "application/x-ndjson"}

// jobRecordings has each way to end, and a cut one.
func jobRecordings() []rubicontest.Recording {
	return []rubicontest.Recording{
		{Name: "done", Answer: jobAnswer, Body: []byte(jobRuns + jobDone), State: contract.Completed, Operation: "j", Cursor: "3", Events: 3},
		{Name: "failed", Answer: jobAnswer, Body: []byte(jobRuns + jobFailed), State: contract.Failed, Operation: "j", Cursor: "3", Events: 3},
		{Name: "cut", Answer: jobAnswer, Body: []byte(jobRuns + jobDone[:20]), State: contract.Interrupted, Operation: "j", Cursor: "2", Events: 2},
		{Name: "more follows", Answer: jobAnswer, Body: []byte(jobRuns + jobDone + jobRuns), Proof: `"done"`, State: contract.Completed, Operation: "j", Cursor: "2", Events: 5},
		{Name: "done twice", Answer: jobAnswer, Body: []byte(jobRuns + strings.Replace(jobDone, "}", `,"note":"once"}`, 1) + jobRuns + jobDone), Proof: `"once"`,
			State: contract.Completed, Operation: "j", Cursor: "3", Events: 6},
		{Name: "not a job", Answer: jobAnswer, Body: []byte(`{"x":1}` + "\n"), State: contract.Unjudged, Events: 1},
	}
}

func ExampleCheckContract() {
	err := rubicontest.CheckContract(jobs(),
		rubicontest.Recording{
			Name:      "done",
			Answer:    contract.Answer{ContentType: "application/x-ndjson"},
			Body:      []byte(`{"job":"j","offset":1,"state":"running","log":"x"}` + "\n" + `{"job":"j","offset":2,"state":"done"}` + "\n"),
			State:     contract.Completed,
			Operation: "j",
			Cursor:    "2",
		},
		rubicontest.Recording{
			Name:      "cut",
			Answer:    contract.Answer{ContentType: "application/x-ndjson"},
			Body:      []byte(`{"job":"j","offset":1,"state":"running","log":"x"}` + "\n" + `{"job":`),
			State:     contract.Interrupted,
			Operation: "j",
			Cursor:    "1",
		},
	)
	fmt.Println(err)
	// Output: <nil>
}

func TestCheckContract(t *testing.T) {
	if err := rubicontest.CheckContract(jobs(), jobRecordings()...); err != nil {
		t.Error(err)
	}
}

// TestCheckContractFindsFaults shows that each kind of fault is one.
func TestCheckContractFindsFaults(t *testing.T) {
	reads := func(read func(*contract.Frame, *contract.Progress) bool) func(*contract.Contract) {
		return func(c *contract.Contract) { c.Read = read }
	}
	frames, state := 0, ""
	for _, tt := range []struct {
		name  string
		spoil func(*contract.Contract)
		want  string
	}{
		{"never ends", reads(func(f *contract.Frame, p *contract.Progress) bool {
			p.ID(f.Get("job"))
			return f.Has("state")
		}), `done: interrupted, operation "j", cursor "3"; want completed`},
		{"no operation", reads(func(f *contract.Frame, p *contract.Progress) bool {
			p.Finish(contract.Completed)
			return f.Has("state")
		}), `operation ""`},
		{"no cursor", func(c *contract.Contract) { c.Cursor = "" }, `cursor ""`},
		{"ends at once", reads(func(f *contract.Frame, p *contract.Progress) bool {
			known := readJob(f, p)
			if known {
				p.Finish(contract.Completed)
			}
			return known
		}), "done: after 59 bytes it is completed, before what proves the end"},
		{"fails at once", reads(func(f *contract.Frame, p *contract.Progress) bool {
			known := readJob(f, p)
			if known && !f.Is("state", "done") && f.Is("note", "first") {
				p.Fail(nil, nil, nil)
			}
			return known
		}), "failed: after"},
		{"reads the output", reads(func(f *contract.Frame, p *contract.Progress) bool {
			known := readJob(f, p)
			if bytes.Contains(f.Get("log"), []byte(`"done"`)) {
				p.Finish(contract.Completed)
			}
			return known
		}), "it is completed; want interrupted"},
		{"fails by the output", reads(func(f *contract.Frame, p *contract.Progress) bool {
			known := readJob(f, p)
			if bytes.Contains(f.Get("log"), []byte(`"failed"`)) {
				p.Fail(nil, nil, nil)
			}
			return known
		}), "it is failed; want interrupted"},
		{"counts frames", reads(func(f *contract.Frame, p *contract.Progress) bool {
			if frames++; f.Is("state", "done") {
				p.Stop(contract.Completed, fmt.Append(nil, frames))
			}
			return readJob(f, p)
		}), "done: in pieces of"},
		{"remembers the frame before", reads(func(f *contract.Frame, p *contract.Progress) bool {
			before := state
			if state = string(f.Get("state")); state == "done" && before != "running" {
				return true
			}
			return readJob(f, p)
		}), "done: a body that is followed twice"},
		{"forgets the end", reads(func(f *contract.Frame, p *contract.Progress) bool {
			known := readJob(f, p)
			if f.Is("state", "running") {
				p.Restart(f.Get("job"))
			}
			return known
		}), "although the end was proven"},
		{"takes everything", reads(func(f *contract.Frame, p *contract.Progress) bool {
			readJob(f, p)
			return true
		}), "a whole answer of Ollama is taken for one that is interrupted"},
		{"ends in a record", func(c *contract.Contract) {
			c.EOF = contract.EOFEnds
			c.Read = func(f *contract.Frame, p *contract.Progress) bool {
				known := readJob(f, p)
				p.Finish(contract.Completed)
				return known
			}
		}, "in a record, it is completed"},
		{"another framing", func(c *contract.Contract) { c.Framing = contract.SSE }, "done: unjudged"},
		{"no Read", reads(nil), "needs a protocol, a framing and Read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := jobs()
			tt.spoil(&c)
			err := rubicontest.CheckContract(c, jobRecordings()...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestCheckContractRecordings has recordings that say what is not so.
func TestCheckContractRecordings(t *testing.T) {
	for want, spoil := range map[string]func(*rubicontest.Recording){
		"3 events; want 4":         func(r *rubicontest.Recording) { r.Events = 4 },
		"content type is not one":  func(r *rubicontest.Recording) { r.Answer.ContentType = "text/plain" },
		"want incomplete":          func(r *rubicontest.Recording) { r.State = contract.Incomplete },
		`the proof "over" is not`:  func(r *rubicontest.Recording) { r.Proof = "over" },
		"recording 1: interrupted": func(r *rubicontest.Recording) { r.Name, r.Body = "", []byte(jobRuns) },
	} {
		r := jobRecordings()[0]
		spoil(&r)
		if err := rubicontest.CheckContract(jobs(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err := rubicontest.CheckContract(jobs()); err == nil {
		t.Error("no recording is no fault")
	}
}

// TestCheckContractKnown has contracts of other framings and other ends.
func TestCheckContractKnown(t *testing.T) {
	const (
		sse      = "text/event-stream"
		start    = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n"
		text     = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
		stop     = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"
		over     = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
		broken   = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
		chunk    = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}` + "\n\n"
		finished = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		pod      = `{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p","resourceVersion":"7"}}}` + "\n"
		expired  = `{"type":"ERROR","object":{"kind":"Status","metadata":{},"reason":"Expired","code":410}}` + "\n"
	)
	recording := func(contentType, body string, s contract.State, operation, cursor string) rubicontest.Recording {
		return rubicontest.Recording{
			Answer: contract.Answer{ContentType: contentType}, Body: []byte(body),
			State: s, Operation: operation, Cursor: cursor,
		}
	}
	afterwards := recording(sse, chunk+finished+"data: [DONE]\n\n", contract.Completed, "c", "")
	afterwards.Proof = `"finish_reason":"stop"`
	recordings := map[string][]rubicontest.Recording{
		"anthropic-messages": {
			recording(sse, start+text+stop+over, contract.Completed, "m", ""),
			recording(sse, start+text+broken, contract.Failed, "m", ""),
			recording(sse, start+text+stop, contract.Interrupted, "m", ""),
		},
		"openai-chat": {afterwards, recording(sse, chunk+chunk, contract.Interrupted, "c", "")},
		"kubernetes-watch": {
			recording("application/json", pod+pod, contract.Completed, "", "7"),
			recording("application/json", pod+expired, contract.Failed, "", "7"),
			recording("application/json", pod+pod[:30], contract.Interrupted, "", "7"),
		},
	}
	for _, c := range contract.Known() {
		if err := rubicontest.CheckContract(c, recordings[c.Protocol]...); recordings[c.Protocol] != nil && err != nil {
			t.Errorf("%s: %v", c.Protocol, err)
		}
	}
}
