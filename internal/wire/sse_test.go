package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var endsOfLines = regexp.MustCompile("\r\n|\r|\n")

// slowSSE reads a whole body by the letter of the standard.
func slowSSE(body string) told {
	body = strings.TrimPrefix(body, "\ufeff")
	if strings.HasSuffix(body, "\r") { // its LF could still come, and would end nothing more
		body += "\n"
	}
	lines := endsOfLines.Split(body, -1)
	tail := lines[len(lines)-1]
	p := slowBlocks{out: told{extra: ""}}
	for _, line := range lines[:len(lines)-1] {
		p.line(line)
	}
	p.tail(tail)
	p.out.extra = fmt.Sprintf("last %q id %q %v retry %v", p.last, p.id, p.hasID, time.Duration(p.retry)*time.Millisecond)
	return p.out
}

type slowBlocks struct {
	out             told
	event, last, id string
	newID           *string
	data            []string
	strays          string
	hasID, begun    bool
	name            bool
	retry           int64
	use             Use
	got             string // data that a sink was told
	partial         bool
}

func (p *slowBlocks) line(line string) {
	if line == "" {
		p.dispatch()
		return
	}
	if strings.HasPrefix(line, ":") {
		return
	}
	p.begun = true
	if strings.ContainsAny(line[:1], "{}[]\" \t") {
		p.strays += line + "\n"
		return
	}
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "data":
		p.datum(value)
	case "event":
		p.event, p.name = value, true
		p.use = useOf(value)
	case "id":
		if !strings.Contains(value, "\x00") {
			p.newID = &value
		}
	case "retry":
		if regexp.MustCompile(`^[0-9]*$`).MatchString(value) {
			n, err := strconv.ParseInt("0"+value, 10, 64)
			if err != nil || n > 1<<40 {
				n = 1 << 40
			}
			p.retry = n
		}
	case "error":
		p.strays += value + "\n"
	}
}

func (p *slowBlocks) datum(value string) {
	if len(p.data) > 0 {
		value = "\n" + value
	}
	p.data = append(p.data, value)
	if p.use == Read || p.use == Last {
		p.got += value
	} else if value != "" {
		p.partial = true
	}
}

func (p *slowBlocks) dispatch() {
	if p.newID != nil {
		p.id, p.hasID = *p.newID, true
	}
	if p.strays != "" {
		p.out.log = append(p.out.log, fmt.Sprintf("stray %q", p.strays))
	}
	if len(p.data) > 0 {
		p.out.counts.add(p.use)
		p.last = p.event
		switch {
		case p.use == Last:
			p.out.latest = p.got
		case p.use == Read && p.partial:
			p.out.log = append(p.out.log, fmt.Sprintf("0 %q partial", p.event))
		case p.use == Read:
			p.out.log = append(p.out.log, fmt.Sprintf("0 %q %q", p.event, p.got))
		}
	}
	*p = slowBlocks{out: p.out, last: p.last, id: p.id, hasID: p.hasID, retry: p.retry}
}

// tail takes the last line, which is not terminated.
func (p *slowBlocks) tail(line string) {
	isData := strings.HasPrefix(line, "data:")
	switch {
	case isData:
		p.datum(strings.TrimPrefix(line[len("data:"):], " "))
	case strings.HasPrefix(line, "error:"):
		p.strays += strings.TrimPrefix(line[len("error:"):], " ")
	case line != "" && strings.ContainsAny(line[:1], "{}[]\" \t"):
		p.strays += line
	}
	p.out.pending = p.got + "|" + p.strays
	switch {
	case line != "" && !strings.HasPrefix(line, ":"):
		p.out.rest = Torn
	case line != "" && !p.begun:
		p.out.rest = Clean
	case line != "":
		p.out.rest = Torn
	case len(p.data) > 0:
		p.out.rest = Ripe
	case p.begun:
		p.out.rest = Torn
	}
}

var sseBodies = []string{
	"",
	"data: a\n\n",
	"data: a\r\n\r\ndata: b\r\rdata: c\n\n",
	"\ufeffdata: a\n\n\ufeffdata: b\n\n",
	"\xef\xbbdata: a\n\ndata: b\n\n",
	"data:a\ndata\ndata:  b\n\n",
	"data\n\ndata:\n\ndata: \n\n",
	"event: x\n\nid: 7\n\ndata: y\n\n",
	"id: 1\nid: \x00\ndata: a\n\nid\ndata: b\n\nid: 3\n",
	"id: " + strings.Repeat("i", 300) + "\ndata: a\n\n",
	"retry: 300\nretry: 3a\nretry:-1\n: comment\n\ndata: a\n\nretry: 99999999999999999999\n\n",
	"event: sx\ndata: skipped\n\nevent: px\ndata: ping\n\nevent: lx\ndata: 1\n\nevent: lx\ndata: 2\n\ndata: read\n\n",
	"event: lx\ndata: 1\n\nevent: ly\ndata: 2\n\nevent: sx\ndata: 3\n\nevent: x\ndata: 4\n\n",
	"event: sx\ndata: half\nevent: error\ndata: {}\n\n",
	"data: first\nevent: x\n\ndata: first\nevent: sx\ndata: more\n\n",
	"event: x\nevent:\ndata: a\n\nevent\ndata: b\n\n",
	"{\n  \"error\": {\n  }\n}\n\ndata: a\n{\"x\":1}\n\nerror: {\"m\":1}\n\nerrors: no\n\n",
	": c\n\n: c\r\n\r\ndata: a\n\n: half",
	"data: a\n\ndata: half",
	"data: a\n\ndata: ripe\n",
	"data: a\n\nevent: x\n",
	"data: a\n\nevent: x",
	"data: a\r\n\r\nevent: sx\r\ndata: b\r\n\r\ndata: c\r",
	" data: leading\n\ndata : a\n\nDATA: a\n\n",
	"event: sx\ndata: " + strings.Repeat("long ", 800) + "\n\ndata: " + strings.Repeat("long ", 800) + "\n\n",
	"data: a\n\n\n\n\ndata: b\n\nid: 9\nevent: sx\ndata: c\n\n",
	"event: " + strings.Repeat("s", 200) + "\ndata: a\n\n",
	"data: known\n\ndata: known\n\ndata: known\n\nevent: x\ndata: known\n\ndata: known\r\n\r\ndata:known\n\n",
	"data: known\n\nevent: lx\ndata: known\n\ndata: known\n\nevent: sx\ndata: known\n\ndata: known\ndata: known\n\n",
}

func TestSSE(t *testing.T) {
	for _, body := range sseBodies {
		checkSSE(t, []byte(body))
	}
}

func checkSSE(t *testing.T, body []byte) {
	t.Helper()
	want := slowSSE(string(body))
	want.log = dropKnown(want.log)
	if len(want.extra) > 600 || strings.Contains(want.extra, "iiiiiiii") {
		want.extra = `last "" id "" true retry 0s` // too long to be kept
	}
	chunkings(body, func(how string, pieces [][]byte) {
		t.Helper()
		r := &recorder{}
		if d := tell(&SSE{Sink: r}, r, pieces).diff(want); d != "" {
			t.Errorf("%.200q in %s:%s", body, how, d)
		}
	})
}

// TestSSEAnyhow reads bodies that are put together at random of what matters.
func TestSSEAnyhow(t *testing.T) {
	parts := []string{
		"data: a", "data: known", "data: known\n\n", "data:", "data", "data: {\"x\":1}", "event: sx", "event: px", "event: lx", "event: lyy", "event: x", "event:",
		"id: 1", "id", "id: \x00", "retry: 12", "retry: x", ":", ": c", "{", " x", "error: e", "foo: bar", "dat", "\ufeff",
		"\n", "\n", "\n", "\n", "\n\n", "\n\n", "\n\n", "\r", "\r\n", "\r\n\r\n",
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		var body []byte
		n := len(parts)
		if r.IntN(3) > 0 {
			n -= 3 // without CR: the quick way
		}
		for range r.IntN(40) {
			body = append(body, parts[r.IntN(n)]...)
		}
		checkSSE(t, body)
		if t.Failed() {
			return
		}
	}
}

func FuzzSSE(f *testing.F) {
	for _, body := range sseBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 4096 || bytes.Contains(body, bytes.Repeat([]byte{'i'}, 64)) {
			return
		}
		if regexp.MustCompile(`(?m)^(id|event).{120}`).Match(endsOfLines.ReplaceAll(body, []byte("\n"))) {
			return // bounds are tested elsewhere
		}
		checkSSE(t, body)
	})
}
