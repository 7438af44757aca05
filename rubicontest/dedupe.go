package rubicontest

import (
	"fmt"
	"net/http"
	"sync"
)

// repeats are the requests that a server knows by their keys.
type repeats struct {
	mu    sync.Mutex
	known map[string]*repeat
}

// A repeat is what is known of the first request with a key. The mutex of its
// repeats guards it.
type repeat struct {
	acted  bool
	print  string  // of the request that was acted upon
	result *answer // nil: not known yet
}

// serve does to r what is planned. It reports whether the exchange came to a
// regular end.
func (s *Server) serve(x exchange, c *conn, r *received, p plan) bool {
	if p.isRepeat {
		return s.repeat(x, c, r, p.first)
	}
	if p.first != nil {
		defer s.repeats.end(p.key, p.first)
	}
	return s.play(x, c, r, s.choose(r, p), p.first)
}

// play carries f out. first is where the result of a keyed request goes.
func (s *Server) play(x exchange, c *conn, r *received, f Fault, first *repeat) bool {
	s.mu.Lock()
	r.spool = f.handles()
	s.mu.Unlock()
	p := &play{server: s, conn: c, exchange: x, request: r, planned: f.planned(), first: first}
	return p.run(f)
}

// repeat answers r, whose key was seen before.
func (s *Server) repeat(x exchange, c *conn, r *received, first *repeat) bool {
	if x.read(-1) != nil {
		return false
	}
	a := s.repeats.answer(first, s.view(r).print())
	return s.play(x, c, r, Fault{want: wantHeader, steps: []step{{verb: doAnswer, answer: a}}}, nil)
}

// begin returns what is known of key, and whether it was used before.
func (k *repeats) begin(key string) (*repeat, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if first := k.known[key]; first != nil {
		return first, true
	}
	if k.known == nil {
		k.known = map[string]*repeat{}
	}
	k.known[key] = &repeat{}
	return k.known[key], false
}

// acted notes that the first request was acted upon, and the result if it is
// known by then.
func (k *repeats) acted(first *repeat, print string, result *answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first.acted, first.print, first.result = true, print, result
}

// settle notes a result that was not known before.
func (k *repeats) settle(first *repeat, result *answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if first.result == nil {
		first.result = result
	}
}

// end forgets key if its request was not acted upon.
func (k *repeats) end(key string, first *repeat) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !first.acted:
		delete(k.known, key)
	case first.result == nil:
		first.result = okAnswer()
	}
}

// answer returns the answer to a repeat with this print.
func (k *repeats) answer(first *repeat, print string) *answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !first.acted || first.result == nil:
		return &answer{status: http.StatusConflict, pieces: []string{"in progress\n"}, cut: -1}
	case first.print != print:
		return &answer{status: http.StatusUnprocessableEntity, pieces: []string{"other parameters\n"}, cut: -1}
	}
	whole := *first.result
	whole.cut, whole.pace = -1, 0
	return &whole
}

// print tells requests apart that ask for different things.
func (r Request) print() string {
	return fmt.Sprintf("%s %s %d %x", r.Method, r.Path, r.Length, r.Sum)
}

// planned returns the answer that f will give, or would give if it were not
// lost. It is nil if only a handler knows.
func (f Fault) planned() *answer {
	for _, s := range f.steps {
		if s.verb == doAnswer && s.answer.handler != nil {
			return nil
		}
		if s.verb == doAnswer {
			return s.answer
		}
	}
	return okAnswer()
}
