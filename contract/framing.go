package contract

import (
	"strings"
	"time"

	"github.com/rubicon-go/rubicon/internal/wire"
)

// A Framing is a way to cut a body into frames, or several of them.
type Framing uint8

const (
	SSE         Framing = 1 << iota // text/event-stream (HTML standard, section 9.2)
	Lines                           // newline-delimited JSON: application/x-ndjson, application/jsonl
	Values                          // JSON values one after another in application/json
	Elements                        // the elements of one JSON array sent piece by piece in application/json
	Sequence                        // application/json-seq (RFC 7464)
	EventStream                     // application/vnd.amazon.eventstream
)

// FramingOf returns the framing that a content type names, whatever its case and
// parameters; 0 if it names none. Plain JSON is Values|Elements: most of it is
// one value that is no stream.
func FramingOf(contentType string) Framing {
	_, f := mediaType(contentType)
	return f
}

// mediaType maps content types to framings. Whether application/json is values
// or the elements of an array, its first byte says.
func mediaType(contentType string) (string, Framing) {
	t, _, _ := strings.Cut(contentType, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	switch t {
	case "text/event-stream":
		return t, SSE
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl",
		"application/jsonlines", "application/x-jsonlines", "application/json-lines", "application/stream+json":
		return t, Lines
	case "application/json":
		return t, Values | Elements
	case "application/json-seq":
		return t, Sequence
	case "application/vnd.amazon.eventstream":
		return t, EventStream
	}
	return t, 0
}

// framing returns how the body of an answer is cut. 0: no contract of the set
// knows its content type.
func (s *Set) framing(contentType string) Framing {
	t, f := mediaType(contentType)
	if f != 0 {
		return f
	}
	for i := range s.rules {
		for _, own := range s.rules[i].MediaTypes {
			if strings.EqualFold(own, t) {
				return s.rules[i].Framing & -s.rules[i].Framing
			}
		}
	}
	return 0
}

// A framer cuts one body.
type framer interface {
	Write(p []byte)
	Settle()
	Rest() wire.Rest
	Counts() wire.Counts
}

// newWatcher returns a watcher with a framer, in one allocation for each kind.
func newWatcher(f Framing) *Watcher {
	switch f {
	case SSE:
		w := &struct {
			Watcher
			framer wire.SSE
		}{}
		w.framer.Sink, w.engine.framer = &w.engine, &w.framer
		return &w.Watcher
	case Lines:
		w := &struct {
			Watcher
			framer wire.Lines
		}{}
		w.framer.Sink, w.engine.framer = &w.engine, &w.framer
		return &w.Watcher
	case Sequence:
		w := &struct {
			Watcher
			framer wire.Sequence
		}{}
		w.framer.Sink, w.engine.framer = &w.engine, &w.framer
		return &w.Watcher
	case EventStream:
		w := &struct {
			Watcher
			framer wire.EventStream
		}{}
		w.framer.Sink, w.engine.framer = &w.engine, &w.framer
		return &w.Watcher
	}
	w := &struct {
		Watcher
		framer wire.JSON
	}{}
	w.framer.Sink, w.engine.framer = &w.engine, &w.framer
	return &w.Watcher
}

// What only some framers know.
type (
	namer  interface{ Last() []byte }
	opener interface{ Open() bool }
	source interface {
		ID() ([]byte, bool)
		Retry() time.Duration
	}
)
