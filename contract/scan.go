package contract

import "github.com/rubicon-go/rubicon/internal/wire"

// A scanner reads one JSON text (RFC 8259), in pieces of any size, and keeps
// the values that its trie's paths lead to, as far as they fit. It follows the
// grammar: what looks like a member inside of a string is none, and a text that
// was cut and patched together is no JSON. It is lenient only where no path can
// be forged: in the digits of numbers, and in control characters and escapes of
// strings that nobody asked for. Its size is fixed: of what lies deeper than
// maxDepth, only the end is found.
type scanner struct {
	trie  *trie
	state state
	depth int                   // of open containers
	array [maxDepth / 64]uint64 // which of them are arrays
	on    int                   // the outermost so many of them have nodes
	open  [maxNest]level
	cur   int16 // the node of the value that comes next or is read; -1: none

	want    want // what is to be done with the string that is read
	key     bool // that string is a key
	unquote unquote
	name    short  // the key
	literal string // what is missing of a name such as null
	named   Kind   // what the name stands for
	vals    values
	raw     short // the beginning of the text
	size    int   // of the text so far

	tap    *tap // takes the string that a path marks; nil: it is as any other
	noting bool // that the text is in one piece, and spans are to be noted
	spans  spans
}

// A level is an open container that has a node.
type level struct {
	node  int16
	value int16 // index of the container among the values; -1: nobody asked
	elem  int32 // index of the element, in an array
}

// maxDepth is up to how deep the grammar is checked.
const maxDepth = 512

// A state is a place in the grammar.
type state uint8

const (
	toValue    state = iota // a value comes
	toFirst                 // a value or ] comes
	toKey                   // a key comes
	toFirstKey              // a key or } comes
	toColon
	toNext // a comma or the end of the container comes
	inText
	inEscape
	inNumber
	inLiteral
	inDepths // deeper than maxDepth
	done     // behind the text
	bad
)

// A want is what becomes of a string.
type want uint8

const (
	skip want = iota
	keepName
	keepValue
	unwrap // it is handed to the tap
)

// reset prepares for another text.
func (s *scanner) reset(t *trie) {
	s.trie, s.state, s.depth, s.on, s.cur = t, toValue, 0, 0, 0
	s.size, s.noting, s.tap = 0, false, nil
	s.raw.reset()
	s.vals.reset()
	s.spans.n, s.spans.open = 0, false
}

// whole reports whether the text is one JSON value.
func (s *scanner) whole() bool {
	return s.state == done || s.state == inNumber && s.depth == 0
}

// feed reads on.
func (s *scanner) feed(p []byte) {
	s.raw.add(p)
	s.size += len(p)
	for len(p) > 0 && s.state != bad {
		switch s.state {
		case inText:
			p = s.text(p)
		case inEscape:
			p = s.escape(p)
		case inNumber:
			p = s.number(p)
		case inLiteral:
			p = s.word(p)
		case inDepths:
			p = s.deep(p)
		default:
			if !isSpace(p[0]) {
				s.token(p)
			}
			p = p[1:]
		}
	}
}

// isSpace reports whether b is white space (RFC 8259 section 2).
func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// token takes the byte at the start of p, which isn't white space.
func (s *scanner) token(p []byte) {
	b := p[0]
	switch s.state {
	case toValue:
		s.begin(p)
	case toFirst:
		if b == ']' {
			s.pop()
		} else {
			s.member()
			s.begin(p)
		}
	case toFirstKey, toKey:
		s.keyOrEnd(b)
	case toColon:
		s.expect(b == ':', toValue)
	case toNext:
		s.next(b)
	default:
		s.state = bad
	}
}

// expect goes on if the text is right.
func (s *scanner) expect(right bool, next state) {
	if s.state = next; !right {
		s.state = bad
	}
}

// keyOrEnd takes the quote of a key, or the end of an empty object.
func (s *scanner) keyOrEnd(b byte) {
	switch {
	case b == '"':
		s.member()
		s.key, s.want, s.state = true, skip, inText
		if s.tracked() {
			s.want = keepName
			s.name.reset()
			s.unquote = unquote{}
		}
	case b == '}' && s.state == toFirstKey:
		s.pop()
	default:
		s.state = bad
	}
}

// next takes what comes behind a value in a container.
func (s *scanner) next(b byte) {
	array := s.isArray(s.depth - 1)
	switch {
	case b == ',' && array:
		s.state, s.cur = toValue, -1
		if s.tracked() {
			s.open[s.on-1].elem++
			s.cur = s.element()
		}
	case b == ',':
		s.state = toKey
	case b == ']' && array || b == '}' && !array:
		s.pop()
	default:
		s.state = bad
	}
}

// begin begins a value.
func (s *scanner) begin(p []byte) {
	switch b := p[0]; b {
	case '{':
		s.push(Object)
	case '[':
		s.push(Array)
	case '"':
		s.key, s.want, s.state = false, skip, inText
		s.unquote = unquote{}
		if s.keep(String) {
			s.want = keepValue
			if s.tap != nil && s.trie.nodes[s.cur].tap {
				s.want = unwrap
			}
		}
		s.note(s.size-len(p)+1, false)
	case 't':
		s.literal, s.named, s.state = "rue", True, inLiteral
	case 'f':
		s.literal, s.named, s.state = "alse", False, inLiteral
	case 'n':
		s.literal, s.named, s.state = "ull", Null, inLiteral
	default:
		s.expect(b == '-' || '0' <= b && b <= '9', inNumber)
		s.want = skip
		if s.state == inNumber && s.keep(Number) {
			s.want = keepValue
			s.vals.add(p[:1])
		}
		s.note(s.size-len(p), true)
	}
}

// note notes where a value begins that may change without saying anything: one
// that no path leads to, or the cursor.
func (s *scanner) note(at int, number bool) {
	switch {
	case !s.noting:
	case s.want == skip:
		s.spans.begin(at, number, false)
	case s.want == keepValue && s.trie.nodes[s.cur].leaf == s.trie.cursor:
		s.spans.begin(at, number, true)
	}
}

// keep notes a value of the given kind if a path leads to it. It reports
// whether the path asks for its text too.
func (s *scanner) keep(k Kind) bool {
	if s.cur < 0 {
		return false
	}
	n := &s.trie.nodes[s.cur]
	if n.leaf < 0 {
		return false
	}
	at := s.vals.begin(n.leaf, k, s.index())
	if n.mute && k == String {
		s.vals.fill(at)
	}
	return !n.mute
}

// index returns the index of the value in the innermost array that has a node.
func (s *scanner) index() int32 {
	for i := s.on - 1; i >= 0; i-- {
		if s.isArray(i) {
			return s.open[i].elem
		}
	}
	return 0
}

// push opens a container.
func (s *scanner) push(k Kind) {
	before := s.vals.n
	s.keep(k)
	if s.tracked() && s.cur >= 0 && s.on < maxNest {
		s.open[s.on] = level{node: s.cur, value: -1}
		if s.vals.n > before {
			s.open[s.on].value = int16(before)
		}
		s.on++
	}
	if s.depth++; s.depth > maxDepth {
		s.state = inDepths
		return
	}
	word, bit := (s.depth-1)/64, uint64(1)<<((s.depth-1)%64)
	s.array[word] &^= bit
	s.state = toFirstKey
	if k == Array {
		s.array[word] |= bit
		s.state = toFirst
		s.cur = s.element()
	}
}

// pop closes a container.
func (s *scanner) pop() {
	s.depth--
	s.on = min(s.on, s.depth)
	s.after()
}

// after is behind a value.
func (s *scanner) after() {
	switch {
	case s.depth == 0:
		s.state = done
	case s.depth > maxDepth:
		s.state = inDepths
	default:
		s.state = toNext
	}
}

// tracked reports whether the innermost container has a node.
func (s *scanner) tracked() bool { return s.on == s.depth }

// member notes that the innermost container isn't empty.
func (s *scanner) member() {
	if s.tracked() && s.on > 0 {
		s.vals.fill(s.open[s.on-1].value)
	}
}

// element returns the node of the elements of the innermost container.
func (s *scanner) element() int16 {
	if !s.tracked() {
		return -1
	}
	if n := s.trie.nodes[s.open[s.on-1].node].elem; n > 0 {
		return n
	}
	return -1
}

// isArray reports whether the container at the given depth is an array.
func (s *scanner) isArray(depth int) bool {
	return depth < maxDepth && s.array[depth/64]>>(depth%64)&1 != 0
}

// number takes a part of a number.
func (s *scanner) number(p []byte) []byte {
	n := 0
	for n < len(p) && isNumber(p[n]) {
		n++
	}
	if s.want == keepValue {
		s.vals.add(p[:n])
	}
	if n < len(p) {
		s.spans.end(s.size - len(p) + n)
		s.after()
	}
	return p[n:]
}

// isNumber reports whether b may be in a number.
func isNumber(b byte) bool {
	return '0' <= b && b <= '9' || b == '.' || b == '-' || b == '+' || b == 'e' || b == 'E'
}

// word takes a byte of a name.
func (s *scanner) word(p []byte) []byte {
	if p[0] != s.literal[0] {
		s.state = bad
		return nil
	}
	if s.literal = s.literal[1:]; s.literal == "" {
		s.keep(s.named)
		s.after()
	}
	return p[1:]
}

// deep takes a byte of what lies too deep to be checked.
func (s *scanner) deep(p []byte) []byte {
	switch p[0] {
	case '"':
		s.key, s.want, s.state = false, skip, inText
	case '{', '[':
		s.depth++
	case '}', ']':
		if s.depth--; s.depth == maxDepth {
			s.after()
		}
	}
	return p[1:]
}

// text takes a part of a string.
func (s *scanner) text(p []byte) []byte {
	n := wire.TextEnd(p)
	if s.want != skip && n > 0 {
		s.add(p[:n])
	}
	if n == len(p) {
		return nil
	}
	switch p[n] {
	case '"':
		s.endText(s.size - len(p) + n)
	case '\\':
		s.state = inEscape
	default:
		s.state = bad
	}
	return p[n+1:]
}

// endText ends a string whose closing quote is at the given place.
func (s *scanner) endText(at int) {
	if s.want != skip {
		s.add(nil)
	}
	if !s.key {
		s.spans.end(at)
		s.after()
		return
	}
	s.state, s.cur = toColon, -1
	if s.want == keepName && !s.name.over {
		s.cur = s.trie.child(s.open[s.on-1].node, s.name.bytes())
	}
}
