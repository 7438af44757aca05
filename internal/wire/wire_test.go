package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A framer is what all framers have in common.
type framer interface {
	Write(p []byte)
	Settle()
	Rest() Rest
	Counts() Counts
}

// A recorder is a sink that writes down what it is told. How frames lay in the
// body, in one piece or in several, it does not tell apart.
type recorder struct {
	log    []string
	name   string
	kind   Kind
	data   []byte
	stray  []byte
	latest string   // data of the last frame of which Last was said
	known  []string // blocks that need not be told again
}

// useOf is what the recorder wants of a frame: its name says it.
func useOf(name string) Use {
	switch {
	case strings.HasPrefix(name, "l"):
		return Last
	case strings.HasPrefix(name, "s"):
		return Skip
	case strings.HasPrefix(name, "p"):
		return Ping
	}
	return Read
}

func (r *recorder) Name(kind Kind, name []byte) Use {
	r.kind, r.name = kind, string(name)
	return useOf(r.name)
}

func (r *recorder) Data(p []byte)           { r.data = append(r.data, p...) }
func (r *recorder) Stray(f Field, p []byte) { r.stray = append(r.stray, p...) }
func (r *recorder) Latest(data []byte)      { r.latest = string(data) }

// Match knows blocks that say so, and that it was told before.
func (r *recorder) Match(p []byte) (n int, frames int64) {
	for _, block := range r.known {
		for strings.HasPrefix(string(p[n:]), block) {
			n += len(block)
			frames++
		}
	}
	return n, frames
}

func (r *recorder) Whole(block []byte, from, to int) {
	r.name, r.kind = "", Event
	data := string(block[from:to])
	if strings.HasPrefix(data, "known") {
		r.known = append(r.known, string(block))
	}
	if strings.Contains(data, "\n") || strings.Trim(string(block[to:]), "\r\n") != "" {
		panic("block " + string(block))
	}
	r.data = append(r.data, data...)
	r.Done(Ending{Frame: true})
}

func (r *recorder) Done(e Ending) {
	if len(r.stray) > 0 {
		r.log = append(r.log, fmt.Sprintf("stray %q", r.stray))
	}
	switch {
	case e.Dropped:
		r.log = append(r.log, "dropped")
	case e.Frame && e.Use == Last:
		r.latest = string(r.data)
	case e.Frame && e.Use == Read && e.Partial:
		r.log = append(r.log, fmt.Sprintf("%d %q partial", r.kind, r.name))
	case e.Frame && e.Use == Read:
		r.log = append(r.log, fmt.Sprintf("%d %q %q", r.kind, r.name, r.data))
	}
	r.data, r.stray, r.name, r.kind = nil, nil, "", Event
}

// told is what a framer told of a body: everything that a sink can depend on.
type told struct {
	log     []string
	latest  string
	counts  Counts
	rest    Rest
	pending string // what was told of a frame that is not ended
	extra   string // what only one kind of framer knows
}

// diff says how two differ; empty: they don't.
func (t told) diff(u told) string {
	if a, b := fmt.Sprintf("%#v", t), fmt.Sprintf("%#v", u); a != b {
		return fmt.Sprintf("\n got %s\nwant %s", a, b)
	}
	return ""
}

// tell feeds a body in the given pieces and asks in the end.
func tell(f framer, r *recorder, pieces [][]byte) told {
	buf := make([]byte, 0, 64)
	for _, p := range pieces {
		buf = append(buf[:0], p...)
		f.Write(buf)
		for i := range buf {
			buf[i] = '#' // whoever kept a part of it will be found out
		}
	}
	f.Settle()
	t := told{log: dropKnown(r.log), latest: r.latest, counts: f.Counts(), rest: f.Rest(), pending: string(r.data) + "|" + string(r.stray)}
	switch f := f.(type) {
	case *SSE:
		id, ok := f.ID()
		t.extra = fmt.Sprintf("last %q id %q %v retry %v", f.Last(), id, ok, f.Retry())
	case *EventStream:
		t.extra = fmt.Sprintf("last %q", f.Last())
	case *JSON:
		t.extra = fmt.Sprintf("open %v", f.Open())
	}
	return t
}

// dropKnown drops all but the first of frames that need not be told again.
func dropKnown(log []string) []string {
	var out []string
	for _, line := range log {
		if !strings.Contains(line, `"known`) || !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// cut cuts body into pieces of the given size. 0: it is whole.
func cut(body []byte, size int) [][]byte {
	if size == 0 {
		return [][]byte{body}
	}
	return slices.Collect(slices.Chunk(body, size))
}

// cutAnyhow cuts body into pieces of random sizes.
func cutAnyhow(body []byte, r *rand.Rand) [][]byte {
	var all [][]byte
	for len(body) > 0 {
		n := min(len(body), 1+r.IntN(1<<r.IntN(8)))
		all = append(all, body[:n])
		body = body[n:]
	}
	return all
}

// chunkings calls check with body cut in many ways.
func chunkings(body []byte, check func(how string, pieces [][]byte)) {
	for _, size := range []int{0, 1, 2, 3, 7, 64, 4096} {
		check(fmt.Sprint("pieces of ", size), cut(body, size))
	}
	r := rand.New(rand.NewPCG(1, uint64(len(body))))
	for range 8 {
		check("random pieces", cutAnyhow(body, r))
	}
}

func TestTextEnd(t *testing.T) {
	for at := range 40 {
		for _, b := range []byte{'"', '\\', '\n'} {
			p := bytes.Repeat([]byte{'x', 0xe6, 0x80, 0x21, 0x23, 0x5b, 0x5d, 0x0b}, 5)
			if n := TextEnd(p[:at]); n != at {
				t.Errorf("without a special byte: %d of %d", n, at)
			}
			p[at] = b
			if n := TextEnd(p); n != at {
				t.Errorf("%q at %d is found at %d", b, at, n)
			}
		}
	}
}
