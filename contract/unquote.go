package contract

import (
	"unicode/utf16"
	"unicode/utf8"
)

// An unquote reads the escapes of a string that somebody asked for.
type unquote struct {
	hex  int  // digits of \u that are to come
	code rune // of those that came
	high rune // a high surrogate whose low one may follow; 0: none
}

// escape takes a byte behind a backslash. Of a string that nobody asked for,
// the digits of \u are text like any other.
func (s *scanner) escape(p []byte) []byte {
	b, u := p[0], &s.unquote
	switch {
	case s.want == skip:
		s.state = inText
	case u.hex > 0:
		s.digit(b)
	case b == 'u':
		u.hex, u.code = 4, 0
	default:
		s.simple(b)
	}
	return p[1:]
}

// simple takes the letter of an escape of one letter.
func (s *scanner) simple(b byte) {
	s.state = inText
	switch b {
	case '"', '\\', '/':
	case 'b':
		b = '\b'
	case 'f':
		b = '\f'
	case 'n':
		b = '\n'
	case 'r':
		b = '\r'
	case 't':
		b = '\t'
	default:
		s.state = bad
	}
	s.add([]byte{b})
}

// digit takes a digit of \u.
func (s *scanner) digit(b byte) {
	u := &s.unquote
	switch {
	case '0' <= b && b <= '9':
		b -= '0'
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		b = b | 0x20 - 'a' + 10
	default:
		s.state = bad
		return
	}
	u.code = u.code<<4 | rune(b)
	if u.hex--; u.hex == 0 {
		s.state = inText
		s.unit(u.code)
	}
}

// unit takes a UTF-16 code unit. A surrogate without its other half becomes
// U+FFFD, as in encoding/json.
func (s *scanner) unit(code rune) {
	u := &s.unquote
	if u.high != 0 {
		r := utf16.DecodeRune(u.high, code)
		u.high = 0
		if r != utf8.RuneError {
			s.put(r)
			return
		}
		s.put(utf8.RuneError)
	}
	switch {
	case 0xd800 <= code && code < 0xdc00:
		u.high = code
	default:
		s.put(code) // a low surrogate alone is encoded as U+FFFD
	}
}

// put adds a character.
func (s *scanner) put(r rune) {
	var b [utf8.UTFMax]byte
	s.store(b[:utf8.EncodeRune(b[:], r)])
}

// add adds text, behind whatever an escape left open.
func (s *scanner) add(p []byte) {
	if s.unquote.high != 0 {
		s.unquote.high = 0
		s.put(utf8.RuneError)
	}
	s.store(p)
}

// store adds text to the string that is read.
func (s *scanner) store(p []byte) {
	switch s.want {
	case keepName:
		s.name.add(p)
	case keepValue:
		s.vals.add(p)
	case unwrap:
		s.tap.write(p)
	}
}
