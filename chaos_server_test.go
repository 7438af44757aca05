package rubicon_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// This file is the far side of TestChaos: a server that reads its sockets
// itself, knows which header blocks it parsed and which requests it acted
// upon, and ends most of what it begins in some bad way.

// chaosHeader carries a request's number.
const chaosHeader = "X-Chaos"

// chaosLong is what nothing in the chaos takes.
const chaosLong = 30 * time.Second

// A chaosSalt keeps the draws for one purpose apart from those for another.
type chaosSalt uint64

const (
	saltRequest chaosSalt = iota + 1 // what a request is like
	saltFate                         // what befalls it on the server
	saltConn                         // what befalls a connection on the server
	saltDial                         // what befalls a dial
	saltJitter                       // where the client sleeps
)

// chaosRand returns the draws for the nth thing of a purpose.
func chaosRand(seed uint64, salt chaosSalt, n uint64) *mrand.Rand {
	return mrand.New(mrand.NewPCG(mix(seed, uint64(salt)), mix(n, uint64(salt))))
}

// mix spreads two numbers over 64 bits, so that neighbors draw differently.
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b*0xbf58476d1ce4e5b9 + 0x94d049bb133111eb
	x ^= x >> 31
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// chance reports true in percent of 100 draws.
func chance(r *mrand.Rand, percent float64) bool { return r.Float64()*100 < percent }

// oneOf returns one of list.
func oneOf[T any](r *mrand.Rand, list []T) T { return list[r.IntN(len(list))] }

// upTo returns a duration below d.
func upTo(r *mrand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// Deeds are the ways in which the server ends a request.
type chaosDeed uint8

const (
	chaosAnswer    chaosDeed = iota // a whole answer
	chaosEarly                      // a whole answer, before the body is read
	chaosCut                        // a part of an answer
	chaosClose                      // close the connection
	chaosReset                      // reset it
	chaosGarbage                    // break the protocol
	chaosStreamRST                  // RST_STREAM with any code but REFUSED_STREAM
	chaosProtocol                   // RST_STREAM with PROTOCOL_ERROR
	chaosRefuse                     // RST_STREAM with REFUSED_STREAM
	chaosAway                       // GOAWAY that excludes the request
	chaosAwayAbove                  // GOAWAY that does not, then close
)

// Acts says whether the server acts upon a request.
type chaosActs uint8

const (
	actsEither chaosActs = iota // by a draw
	actsNever                   // the peer will say so
	actsAlways
)

// A chaosFate is one of the things that befall a request, and how often.
type chaosFate struct {
	name   string
	weight int
	acts   chaosActs
	deed   chaosDeed
	status int
}

// chaosFates are a distribution of fates.
type chaosFates []chaosFate

// draw returns one of them.
func (fs chaosFates) draw(r *mrand.Rand) chaosFate {
	sum := 0
	for _, f := range fs {
		sum += f.weight
	}
	n := r.IntN(sum)
	for _, f := range fs {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	panic("not reached")
}

// String lists the weights.
func (fs chaosFates) String() string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, " %s=%d", f.name, f.weight)
	}
	return strings.TrimSpace(b.String())
}

// chaosFatesH1 and chaosFatesH2 are the fates of a request. A server acts
// only where its answer leaves that open: what it says is true.
var (
	chaosFatesH1 = chaosFates{
		{"200", 640, actsAlways, chaosAnswer, 200},
		{"503", 40, actsEither, chaosAnswer, 503},
		{"429", 25, actsNever, chaosAnswer, 429},
		{"401", 15, actsNever, chaosAnswer, 401},
		{"421", 10, actsNever, chaosAnswer, 421},
		{"early-413", 15, actsNever, chaosEarly, 413},
		{"cut", 35, actsAlways, chaosCut, 200},
		{"close", 120, actsEither, chaosClose, 0},
		{"reset", 80, actsEither, chaosReset, 0},
		{"garbage", 20, actsEither, chaosGarbage, 0},
	}
	chaosFatesH2 = chaosFates{
		{"200", 730, actsAlways, chaosAnswer, 200},
		{"503", 40, actsEither, chaosAnswer, 503},
		{"429", 25, actsNever, chaosAnswer, 429},
		{"401", 15, actsNever, chaosAnswer, 401},
		{"421", 10, actsNever, chaosAnswer, 421},
		{"early-413", 15, actsNever, chaosEarly, 413},
		{"cut", 35, actsAlways, chaosCut, 200},
		{"rst", 50, actsEither, chaosStreamRST, 0},
		{"protocol-error", 25, actsEither, chaosProtocol, 0}, // which Go 1.26 repeats
		{"refused", 25, actsNever, chaosRefuse, 0},
		{"goaway-below", 12, actsNever, chaosAway, 0},
		{"goaway-above", 10, actsEither, chaosAwayAbove, 0},
		{"close", 10, actsEither, chaosClose, 0},
		{"reset", 10, actsEither, chaosReset, 0},
		{"garbage", 3, actsEither, chaosGarbage, 0},
	}
)

// A chaosTruth is what really happened to each request, by its number.
type chaosTruth struct {
	seen  []atomic.Int32 // complete header blocks parsed
	acted []atomic.Int32
}

// newChaosTruth returns the truth about n requests of which none was made.
func newChaosTruth(n int) *chaosTruth {
	return &chaosTruth{make([]atomic.Int32, n), make([]atomic.Int32, n)}
}

// parsed notes that the header block of a request was read, and returns the
// request's number and how often that has happened.
func (t *chaosTruth) parsed(number string) (id, times int, ok bool) {
	id, err := strconv.Atoi(number)
	if err != nil || id < 0 || id >= len(t.seen) {
		return 0, 0, false
	}
	return id, int(t.seen[id].Add(1)), true
}

// A chaosServer serves one line of the chaos.
type chaosServer struct {
	mode  *chaosMode
	seed  uint64
	truth *chaosTruth
	ln    net.Listener
	tls   *tls.Config // nil: plaintext

	wg   sync.WaitGroup
	mu   sync.Mutex
	open map[net.Conn]bool
}

// startChaosServer starts a server on loopback.
func startChaosServer(t *testing.T, mode *chaosMode, seed uint64, truth *chaosTruth, cert *chaosCert) *chaosServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &chaosServer{mode: mode, seed: seed, truth: truth, ln: ln, open: map[net.Conn]bool{}}
	if mode.tls {
		s.tls = cert.server(mode)
	}
	s.wg.Go(s.accept)
	return s
}

// accept serves connections until the listener is closed.
func (s *chaosServer) accept() {
	for n := uint64(0); ; n++ {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.track(c, true)
		s.wg.Go(func() {
			defer s.track(c, false)
			defer c.Close()
			s.serve(c.(*net.TCPConn), chaosRand(s.seed, saltConn, n))
		})
	}
}

// track keeps the connections that are being served.
func (s *chaosServer) track(c net.Conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.open[c] = true
	} else {
		delete(s.open, c)
	}
}

// conns returns how many connections are being served.
func (s *chaosServer) conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// close ends the server and what it still serves.
func (s *chaosServer) close() {
	s.ln.Close()
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// serve serves a connection, unless that dies at once.
func (s *chaosServer) serve(raw *net.TCPConn, r *mrand.Rand) {
	dies := chance(r, chaosDyingConns)
	if dies && (s.tls == nil || chance(r, 50)) {
		die(raw, r)
		return
	}
	c := chaosConn{Conn: raw, raw: raw}
	if s.tls != nil {
		conn := tls.Server(raw, s.tls)
		raw.SetDeadline(time.Now().Add(chaosLong))
		if conn.Handshake() != nil {
			return
		}
		raw.SetDeadline(time.Time{})
		c.Conn = conn
	}
	switch {
	case dies:
		die(raw, r)
	case s.mode.http2:
		serveChaosH2(s, c, r)
	default:
		(&chaosH1{s: s, c: c, br: bufio.NewReader(c), r: r}).serve()
	}
}

// die ends a connection of which nothing was read: by a close or a reset, now
// or in a moment, when a request may wait in it.
func die(raw *net.TCPConn, r *mrand.Rand) {
	if chance(r, 50) {
		time.Sleep(upTo(r, 2*time.Millisecond))
	}
	if chance(r, 50) {
		raw.SetLinger(0)
	}
	raw.Close()
}

// A chaosConn is a connection, perhaps with TLS.
type chaosConn struct {
	net.Conn
	raw *net.TCPConn
}

// Write implements [net.Conn]. It waits for nobody for ever.
func (c chaosConn) Write(p []byte) (int, error) {
	c.raw.SetWriteDeadline(time.Now().Add(chaosLong))
	return c.Conn.Write(p)
}

// reset ends the connection with an RST.
func (c chaosConn) reset() {
	c.raw.SetLinger(0)
	c.raw.Close()
}

// A chaosCase is a request on the server.
type chaosCase struct {
	chaosFate
	id    int
	head  bool // only a head may be answered
	acts  bool
	early bool          // what happens, happens before the body is read
	delay time.Duration // before the answer
	r     *mrand.Rand
}

// receive notes that a header block was parsed, and draws the request's fate.
func (s *chaosServer) receive(number string) (*chaosCase, bool) {
	id, times, ok := s.truth.parsed(number)
	if !ok {
		return nil, false
	}
	r := chaosRand(s.seed, saltFate, uint64(id)<<8|uint64(times))
	q := &chaosCase{chaosFate: s.mode.fates.draw(r), id: id, r: r}
	q.acts = q.chaosFate.acts == actsAlways || q.chaosFate.acts == actsEither && chance(r, 50)
	q.early = q.deed == chaosEarly || q.deed == chaosAway || chance(r, 30)
	if chance(r, 40) {
		q.delay = upTo(r, 3*time.Millisecond)
	}
	return q, true
}

// act does what the request asks for.
func (s *chaosServer) act(q *chaosCase) {
	if q.acts {
		s.truth.acted[q.id].Add(1)
	}
}

// chaosText returns a body of an answer.
func chaosText(r *mrand.Rand) string { return strings.Repeat("a", r.IntN(2000)) }

// A chaosH1 serves HTTP/1.1 on one connection.
type chaosH1 struct {
	s  *chaosServer
	c  chaosConn
	br *bufio.Reader
	r  *mrand.Rand
}

// serve serves requests until one ends the connection.
func (h *chaosH1) serve() {
	for h.next() && h.idle() {
	}
}

// next serves a request and reports whether another may follow.
func (h *chaosH1) next() bool {
	if chance(h.r, 5) {
		time.Sleep(upTo(h.r, 2*time.Millisecond))
	}
	req, err := http.ReadRequest(h.br)
	if err != nil {
		return false
	}
	q, ok := h.s.receive(req.Header.Get(chaosHeader))
	if !ok {
		return false
	}
	if q.early {
		h.s.act(q)
	}
	if !q.early || q.deed == chaosAnswer || q.deed == chaosCut {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return false
		}
	}
	if !q.early {
		h.s.act(q)
	}
	q.head = req.Method == http.MethodHead
	return h.end(q)
}

// idle waits for the next request, and reports whether the connection is not
// closed before that: because it was idle, or although a request came.
func (h *chaosH1) idle() bool {
	switch {
	case chance(h.r, 3):
		h.c.SetReadDeadline(time.Now().Add(upTo(h.r, 2*time.Millisecond)))
		if _, err := h.br.Peek(1); err != nil {
			return false
		}
		h.c.SetReadDeadline(time.Time{})
	case chance(h.r, 2):
		time.Sleep(upTo(h.r, 2*time.Millisecond))
		return false
	}
	return true
}

// end ends q as it is fated, and reports whether the connection goes on.
func (h *chaosH1) end(q *chaosCase) bool {
	time.Sleep(q.delay)
	text := chaosText(q.r)
	switch q.deed {
	case chaosAnswer:
		return h.answer(q, text, text)
	case chaosCut:
		h.answer(q, text, text+"...")
	case chaosEarly:
		h.answer(q, text, text)
	case chaosGarbage:
		io.WriteString(h.c, "HTP/1.1 200 what\r\n\r\n")
	case chaosReset:
		h.c.reset()
	}
	return false
}

// answer sends an answer that has the body text and claims to have the body
// whole. It reports whether the connection goes on.
func (h *chaosH1) answer(q *chaosCase, text, whole string) bool {
	last := q.deed != chaosAnswer || chance(q.r, 5)
	head := fmt.Sprintf("HTTP/1.1 %d Chaos\r\nContent-Length: %d\r\n", q.status, len(whole))
	if last && chance(q.r, 50) {
		head += "Connection: close\r\n"
	}
	if q.head {
		text = ""
	}
	_, err := io.WriteString(h.c, head+"\r\n"+text)
	return err == nil && !last
}

// A chaosH2 serves HTTP/2 on one connection.
type chaosH2 struct {
	s *chaosServer
	c chaosConn
	r *mrand.Rand

	streams map[uint32]*chaosCase // whose bodies are being read
	top     uint32                // the latest
	last    uint32                // what follows it is not served

	later sync.WaitGroup
	mu    sync.Mutex // guards what follows
	fr    *http2.Framer
	enc   *hpack.Encoder
	block bytes.Buffer
}

// serveChaosH2 serves c until it ends.
func serveChaosH2(s *chaosServer, c chaosConn, r *mrand.Rand) {
	h := &chaosH2{s: s, c: c, r: r, streams: map[uint32]*chaosCase{}, last: 1<<31 - 1}
	h.enc = hpack.NewEncoder(&h.block)
	br := bufio.NewReader(c)
	h.fr = http2.NewFramer(c, br)
	h.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	defer h.later.Wait()
	defer c.raw.Close()
	if h.greet(br) != nil {
		return
	}
	for h.next() == nil {
	}
}

// greet reads the preface and announces the settings.
func (h *chaosH2) greet(r io.Reader) error {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(r, preface); err != nil {
		return err
	}
	mode := h.s.mode
	return h.write(func() error {
		h.fr.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: mode.streams},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: mode.window},
		)
		return h.fr.WriteWindowUpdate(0, 1<<30)
	})
}

// write calls do, which may use the framer to write.
func (h *chaosH2) write(do func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return do()
}

// next reads a frame and does what it asks for. An error ends the connection.
func (h *chaosH2) next() error {
	f, err := h.fr.ReadFrame()
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return h.headers(f)
	case *http2.DataFrame:
		return h.data(f)
	case *http2.RSTStreamFrame:
		delete(h.streams, f.StreamID)
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return h.write(h.fr.WriteSettingsAck)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return h.write(func() error { return h.fr.WritePing(true, f.Data) })
		}
	}
	return nil
}

// headers begins a request.
func (h *chaosH2) headers(f *http2.MetaHeadersFrame) error {
	var number string
	for _, field := range f.RegularFields() {
		if strings.EqualFold(field.Name, chaosHeader) {
			number = field.Value
		}
	}
	q, ok := h.s.receive(number)
	switch {
	case !ok:
		return errors.New("a request of somebody else")
	case f.StreamID > h.last:
		return nil
	}
	h.top = f.StreamID
	q.head = f.PseudoValue("method") == http.MethodHead
	h.pause()
	if q.early {
		h.s.act(q)
		q.acts = false
	}
	if f.StreamEnded() || q.early && q.deed != chaosAnswer && q.deed != chaosCut {
		return h.finish(f.StreamID, q)
	}
	h.streams[f.StreamID] = q
	return nil
}

// pause stops reading for a moment, sometimes.
func (h *chaosH2) pause() {
	switch {
	case h.s.mode.stall && chance(h.r, 3):
		time.Sleep(2*time.Millisecond + upTo(h.r, 15*time.Millisecond))
	case chance(h.r, 4):
		time.Sleep(upTo(h.r, 2*time.Millisecond))
	}
}

// data reads a part of a body, and opens the windows for the next.
func (h *chaosH2) data(f *http2.DataFrame) error {
	q := h.streams[f.StreamID]
	if f.Length > 0 {
		if err := h.write(func() error {
			if q != nil && !f.StreamEnded() {
				h.fr.WriteWindowUpdate(f.StreamID, f.Length)
			}
			return h.fr.WriteWindowUpdate(0, f.Length)
		}); err != nil {
			return err
		}
	}
	if q == nil || !f.StreamEnded() {
		return nil
	}
	delete(h.streams, f.StreamID)
	return h.finish(f.StreamID, q)
}

// finish acts upon a request that was read as far as it will be, and ends it
// as it is fated. An error ends the connection.
func (h *chaosH2) finish(id uint32, q *chaosCase) error {
	h.s.act(q)
	switch q.deed {
	case chaosClose:
		h.linger(q)
		return errors.New("fated to close")
	case chaosReset:
		h.linger(q)
		h.c.reset()
		return errors.New("fated to be reset")
	case chaosGarbage:
		return h.write(func() error { return h.fr.WriteRawFrame(http2.FrameData, 0, 0, []byte("what")) })
	case chaosAway, chaosAwayAbove:
		return h.goAway(id, q)
	}
	h.after(q.delay, func() { h.write(func() error { return h.end(id, q) }) })
	return nil
}

// linger lets requests arrive that will not be read, sometimes.
func (h *chaosH2) linger(q *chaosCase) {
	if chance(q.r, 60) {
		time.Sleep(upTo(q.r, 3*time.Millisecond))
	}
}

// after calls f in a moment.
func (h *chaosH2) after(d time.Duration, f func()) {
	if d == 0 {
		f()
		return
	}
	h.later.Add(1)
	time.AfterFunc(d, func() {
		defer h.later.Done()
		f()
	})
}

// goAway says which requests will not be served: q and what follows, or only
// what follows. Then it closes the connection, at once or in a moment.
func (h *chaosH2) goAway(id uint32, q *chaosCase) error {
	last, code := h.top, http2.ErrCodeNo
	if q.deed == chaosAway {
		last = max(id, 2) - 2
	} else if chance(q.r, 30) {
		last = 1<<31 - 1
	}
	if chance(q.r, 40) {
		code = http2.ErrCode(q.r.IntN(14))
	}
	h.last = min(h.last, last)
	err := h.write(func() error { return h.fr.WriteGoAway(h.last, code, nil) })
	if err != nil || chance(q.r, 25) {
		return errors.New("fated to go away")
	}
	h.after(1+upTo(q.r, 5*time.Millisecond), func() { h.c.raw.Close() })
	return nil
}

// end ends one stream. It is called by write.
func (h *chaosH2) end(id uint32, q *chaosCase) error {
	switch q.deed {
	case chaosProtocol:
		return h.fr.WriteRSTStream(id, http2.ErrCodeProtocol)
	case chaosRefuse:
		return h.fr.WriteRSTStream(id, http2.ErrCodeRefusedStream)
	case chaosStreamRST:
		code := http2.ErrCode(q.r.IntN(13))
		if code >= http2.ErrCodeRefusedStream {
			code++
		}
		return h.fr.WriteRSTStream(id, code)
	}
	text := chaosText(q.r)
	if q.head {
		text = ""
	}
	h.block.Reset()
	h.enc.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(q.status)})
	h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h.block.Bytes(), EndHeaders: true})
	err := h.fr.WriteData(id, q.deed != chaosCut, []byte(text))
	switch q.deed {
	case chaosCut:
		return h.fr.WriteRSTStream(id, http2.ErrCodeInternal)
	case chaosEarly:
		return h.fr.WriteRSTStream(id, http2.ErrCodeNo)
	}
	return err
}

// A chaosCert is a certificate for loopback.
type chaosCert struct {
	pair tls.Certificate
	pool *x509.CertPool
}

// newChaosCert makes a certificate.
func newChaosCert(t *testing.T) *chaosCert {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "chaos"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &chaosCert{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool}
}

// server returns the configuration of a server.
func (c *chaosCert) server(mode *chaosMode) *tls.Config {
	proto := "http/1.1"
	if mode.http2 {
		proto = "h2"
	}
	return &tls.Config{Certificates: []tls.Certificate{c.pair}, NextProtos: []string{proto}}
}
