package rubicontest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	frameLimit  = 16 << 10  // of frames that are sent: what every client takes
	headerLimit = 1 << 20   // of header lists that are read
	firstWindow = 65535     // of flow control, before either side changes it
	anyStream   = 1<<31 - 1 // the last stream of a connection that takes all
)

// An h2conn is an HTTP/2 connection.
type h2conn struct {
	server *Server
	conn   *conn

	writing sync.Mutex // guards what follows
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer // what encoder writes to

	mu       sync.Mutex // guards what follows; never held while writing
	changed  *sync.Cond // data, windows, the end of streams
	streams  map[uint32]*h2stream
	taken    int    // streams that were not refused
	last     uint32 // the highest stream that was seen
	acted    uint32 // the highest stream that was acted upon
	lastKept uint32 // the last stream of the GOAWAY that was sent
	window   int64  // for sending on all streams
	initial  int64  // window of a new stream
}

// serveH2 serves one HTTP/2 connection.
func (s *Server) serveH2(c *conn) {
	h := &h2conn{
		server: s, conn: c, streams: map[uint32]*h2stream{},
		lastKept: anyStream, window: firstWindow, initial: firstWindow,
	}
	h.changed = sync.NewCond(&h.mu)
	h.encoder = hpack.NewEncoder(&h.block)
	r := gate{bufio.NewReader(c.front), c}
	h.framer = http2.NewFramer(c.front, r)
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.framer.MaxHeaderListSize = headerLimit
	defer h.lose()
	if h.greet(r) != nil {
		return
	}
	for h.next() == nil {
	}
	c.hangUp()
}

// greet reads the client's preface and announces the settings.
func (h *h2conn) greet(r io.Reader) error {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(r, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return errors.New("rubicontest: no HTTP/2 preface")
	}
	h.conn.setIdle(true)
	var settings []http2.Setting
	if n := h.server.config.MaxStreams; n != 0 {
		settings = append(settings, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(max(0, n))})
	}
	return h.write(func(f *http2.Framer) error { return f.WriteSettings(settings...) })
}

// write calls do with the framer, which only one may write to at a time.
func (h *h2conn) write(do func(*http2.Framer) error) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	return do(h.framer)
}

// next reads a frame and does what it asks for.
func (h *h2conn) next() error {
	f, err := h.framer.ReadFrame()
	if _, ok := errors.AsType[http2.StreamError](err); ok {
		return nil // one broken stream; the client sees that nothing comes
	}
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return h.headers(f)
	case *http2.DataFrame:
		return h.data(f)
	case *http2.RSTStreamFrame:
		h.with(f.StreamID, func(s *h2stream) { s.lose() })
	case *http2.WindowUpdateFrame:
		h.enlarge(f)
	case *http2.SettingsFrame:
		return h.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return h.write(func(w *http2.Framer) error { return w.WritePing(true, f.Data) })
		}
	}
	return nil
}

// with calls do with the stream, if it is still being served, and wakes those
// that wait for a change.
func (h *h2conn) with(id uint32, do func(*h2stream)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.streams[id]; s != nil {
		do(s)
	}
	h.changed.Broadcast()
}

// lose marks the connection and all its streams as gone.
func (h *h2conn) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.streams {
		s.lose()
	}
	h.changed.Broadcast()
}

// data hands data to its stream. The connection's window is kept open, so that
// a stream that isn't read holds up no other.
func (h *h2conn) data(f *http2.DataFrame) error {
	p := bytes.Clone(f.Data())
	h.with(f.StreamID, func(s *h2stream) {
		s.data = append(s.data, p...)
		s.ended = s.ended || f.StreamEnded()
	})
	if f.Length == 0 {
		return nil
	}
	return h.write(func(w *http2.Framer) error { return w.WriteWindowUpdate(0, f.Length) })
}

// enlarge lets more be sent.
func (h *h2conn) enlarge(f *http2.WindowUpdateFrame) {
	h.with(f.StreamID, func(s *h2stream) { s.window += int64(f.Increment) })
	if f.StreamID == 0 {
		h.mu.Lock()
		h.window += int64(f.Increment)
		h.mu.Unlock()
		h.changed.Broadcast()
	}
}

// settings takes over the client's settings.
func (h *h2conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
		h.resize(int64(v))
	}
	return h.write(func(w *http2.Framer) error {
		if v, ok := f.Value(http2.SettingHeaderTableSize); ok {
			h.encoder.SetMaxDynamicTableSizeLimit(v)
		}
		return w.WriteSettingsAck()
	})
}

// resize changes the window of streams, old and new.
func (h *h2conn) resize(initial int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.streams {
		s.window += initial - h.initial
	}
	h.initial = initial
	h.changed.Broadcast()
}

// headers begins a stream, or ends its body where it is a trailer.
func (h *h2conn) headers(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if id <= h.lastSeen() {
		h.with(id, func(s *h2stream) { s.ended = true })
		return nil
	}
	s := &h2stream{h2: h, id: id, received: &received{Request: requestOf(f)}, dead: make(chan struct{})}
	s.received.Conn, s.received.secure = h.conn.id, true
	s.continued = s.received.Header.Get("Expect") == ""
	s.ended = f.StreamEnded()
	a := h.admit(s)
	p := h.server.arrive(s.received, a == admitted)
	if f.StreamEnded() {
		h.server.complete(s.received)
	}
	switch a {
	case admitted:
		h.server.group.Go(func() { s.serve(p) })
	case refused:
		return h.refuse(id)
	}
	return nil
}

// lastSeen returns the highest stream that was seen.
func (h *h2conn) lastSeen() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// requestOf returns the request that f begins.
func requestOf(f *http2.MetaHeadersFrame) Request {
	r := Request{
		Stream: f.StreamID, Method: f.PseudoValue("method"), Host: f.PseudoValue("authority"),
		Path: f.PseudoValue("path"), Header: http.Header{},
	}
	for _, field := range f.RegularFields() {
		r.Header.Add(field.Name, field.Value)
	}
	return r
}

// admission is what becomes of a new stream.
type admission uint8

const (
	admitted admission = iota
	refused            // with REFUSED_STREAM
	ignored            // it came after a GOAWAY that excludes it
)

// admit enters s among the streams if it may be served.
func (h *h2conn) admit(s *h2stream) admission {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = s.id
	limit, life := h.server.config.MaxStreams, h.server.config.StreamsPerConn
	switch {
	case limit != 0 && len(h.streams) >= limit, life > 0 && h.taken >= life:
		return refused
	case s.id > h.lastKept:
		return ignored
	}
	h.taken++
	s.window = h.initial
	h.streams[s.id] = s
	h.conn.setIdle(false)
	return admitted
}

// refuse resets a stream with REFUSED_STREAM. If the connection has taken all
// the requests that it takes, the client is told to go first, so that it does
// not come back on this connection.
func (h *h2conn) refuse(id uint32) error {
	h.mu.Lock()
	last := before(id)
	tell := h.server.config.StreamsPerConn > 0 && h.lastKept > last
	if tell {
		h.lastKept = last
	}
	h.mu.Unlock()
	return h.write(func(w *http2.Framer) error {
		if tell {
			if err := w.WriteGoAway(last, http2.ErrCodeNo, nil); err != nil {
				return err
			}
		}
		return w.WriteRSTStream(id, http2.ErrCodeRefusedStream)
	})
}

// before returns the client's stream before id, or 0.
func before(id uint32) uint32 { return id - min(id, 2) }

// drop takes s from the streams.
func (h *h2conn) drop(s *h2stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s.id)
	h.conn.setIdle(len(h.streams) == 0)
}

// mayAct notes that the stream is acted upon, unless the client was told that
// it won't be.
func (h *h2conn) mayAct(id uint32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id > h.lastKept {
		return false
	}
	h.acted = max(h.acted, id)
	return true
}
