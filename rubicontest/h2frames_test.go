package rubicontest_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// A frameClient speaks HTTP/2 frame by frame.
type frameClient struct {
	t *testing.T
	*http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
}

// dialFrames connects to s, with this much room in each stream for answers.
func dialFrames(t *testing.T, s *rubicontest.Server, window uint32) *frameClient {
	t.Helper()
	c, err := tls.Dial("tcp", s.Addr, &tls.Config{RootCAs: s.RootCAs(), NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	f := &frameClient{t: t, Framer: http2.NewFramer(c, c)}
	f.enc = hpack.NewEncoder(&f.block)
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	f.must(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	return f
}

// must ends the test if err isn't nil.
func (f *frameClient) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// post begins a POST on a stream, with more to come.
func (f *frameClient) post(stream uint32) {
	f.t.Helper()
	f.block.Reset()
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "a"}, {":path", "/"}} {
		f.must(f.enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	f.must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.block.Bytes(), EndHeaders: true}))
}

// until reads frames until all of these were read, and returns in words what
// came. Settings are left out.
func (f *frameClient) until(these ...string) []string {
	f.t.Helper()
	var all []string
	missing := func(s string) bool { return !slices.Contains(all, s) }
	for slices.ContainsFunc(these, missing) {
		fr, err := f.ReadFrame()
		if err != nil {
			f.t.Fatalf("got %q, then %v; want %q", all, err, these)
		}
		switch fr := fr.(type) {
		case *http2.HeadersFrame:
			all = append(all, fmt.Sprintf("HEADERS %d", fr.StreamID))
		case *http2.DataFrame:
			all = append(all, fmt.Sprintf("DATA %d %q %t", fr.StreamID, fr.Data(), fr.StreamEnded()))
		case *http2.RSTStreamFrame:
			all = append(all, fmt.Sprintf("RST_STREAM %d %v", fr.StreamID, fr.ErrCode))
		case *http2.GoAwayFrame:
			all = append(all, fmt.Sprintf("GOAWAY %d %v", fr.LastStreamID, fr.ErrCode))
		case *http2.WindowUpdateFrame:
			all = append(all, fmt.Sprintf("WINDOW_UPDATE %d %d", fr.StreamID, fr.Increment))
		}
	}
	return all
}

// wantFrames fails the test unless the frames are these.
func wantFrames(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// An answer before the body was read ends with a reset that is no error
// (RFC 9113 section 8.1); one whose request was drained does not.
func TestFramesOfEarlyAnswer(t *testing.T) {
	s := rubicontest.NewServer(rubicontest.H2,
		rubicontest.ReadHeader().Answer(413, "no"), rubicontest.ReadHeader().Answer(413, "no").Drain())
	defer s.Close()
	f := dialFrames(t, s, 100)
	f.post(1)
	wantFrames(t, f.until("RST_STREAM 1 NO_ERROR"), "HEADERS 1", `DATA 1 "no" false`, `DATA 1 "" true`, "RST_STREAM 1 NO_ERROR")
	f.post(3)
	wantFrames(t, f.until(`DATA 3 "" true`), "HEADERS 3", `DATA 3 "no" false`, `DATA 3 "" true`)
	f.must(f.WriteData(3, true, []byte("body")))
	wantFrames(t, f.until("WINDOW_UPDATE 0 4"), "WINDOW_UPDATE 0 4")
	await(t, s, func(c rubicontest.Counts) bool { return c.Complete == 1 })
}

// The client may send only what is read, and is sent only what it has room for.
func TestFramesOfFlowControl(t *testing.T) {
	s := start(t, rubicontest.Config{Protocol: rubicontest.H2, Script: []rubicontest.Fault{
		rubicontest.ReadBody(3).Act().Answer(200, "abcdef").Cut(5).ResetStream(http2.ErrCodeCancel),
	}})
	f := dialFrames(t, s, 2)
	f.post(1)
	f.must(f.WriteData(1, false, []byte("12345")))
	got := f.until(`DATA 1 "ab" false`, "WINDOW_UPDATE 0 5")
	slices.Sort(got) // the two windows are given by different goroutines
	wantFrames(t, got, `DATA 1 "ab" false`, "HEADERS 1", "WINDOW_UPDATE 0 5", "WINDOW_UPDATE 1 3")
	f.must(f.WriteWindowUpdate(1, 2))
	wantFrames(t, f.until(`DATA 1 "cd" false`), `DATA 1 "cd" false`)
	f.must(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}))
	wantFrames(t, f.until("RST_STREAM 1 CANCEL"), `DATA 1 "e" false`, "RST_STREAM 1 CANCEL")
	if r := s.Received()[0]; string(r.Body) != "123" || r.Complete {
		t.Errorf("read %q, complete %t; want 123 and not", r.Body, r.Complete)
	}
}

// GOAWAY names the streams that it is meant to name, and later ones are seen
// but not served.
func TestFramesOfGoAway(t *testing.T) {
	held := make(chan struct{})
	s := start(t, rubicontest.Config{Protocol: rubicontest.H2, Script: []rubicontest.Fault{
		rubicontest.ReadHeader().Until(held).ResetStream(http2.ErrCodeCancel),
		rubicontest.ReadHeader().GoAwayAbove(http2.ErrCodeNo).GoAwayBelow(http2.ErrCodeInternal), {},
	}})
	f := dialFrames(t, s, 100)
	f.post(1)
	await(t, s, func(c rubicontest.Counts) bool { return c.Requests == 1 })
	f.post(3)
	wantFrames(t, f.until("GOAWAY 1 INTERNAL_ERROR"), "GOAWAY 3 NO_ERROR", "GOAWAY 1 INTERNAL_ERROR")
	f.post(5)
	await(t, s, func(c rubicontest.Counts) bool { return c.Requests == 3 })
	close(held)
	wantFrames(t, f.until("RST_STREAM 1 CANCEL"), "RST_STREAM 1 CANCEL")
	s.Close()
	wantCounts(t, s, 3, 0)
}

// Streams above the limits are refused whether the client knows of them or not.
func TestFramesOfRefusal(t *testing.T) {
	s := start(t, rubicontest.Config{Protocol: rubicontest.H2, MaxStreams: 1, Script: []rubicontest.Fault{rubicontest.ReadHeader().Stall()}})
	f := dialFrames(t, s, 100)
	f.post(1)
	f.post(3)
	f.must(f.WriteRSTStream(1, http2.ErrCodeCancel))
	wantFrames(t, f.until("RST_STREAM 3 REFUSED_STREAM"), "RST_STREAM 3 REFUSED_STREAM")
	await(t, s, func(c rubicontest.Counts) bool { return c.Played == 1 })

	s = start(t, rubicontest.Config{Protocol: rubicontest.H2, StreamsPerConn: 1, Script: []rubicontest.Fault{rubicontest.ReadHeader().Stall()}})
	f = dialFrames(t, s, 100)
	for _, stream := range []uint32{1, 3, 5} {
		f.post(stream)
	}
	wantFrames(t, f.until("RST_STREAM 5 REFUSED_STREAM"),
		"GOAWAY 1 NO_ERROR", "RST_STREAM 3 REFUSED_STREAM", "RST_STREAM 5 REFUSED_STREAM")
	wantCounts(t, s, 3, 0)
}
