package contract_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// TestRequestHeader shows over HTTP that a contract is told of the request's
// header: by it the rest of an MCP answer differs from a stream that is listened
// to.
func TestRequestHeader(t *testing.T) {
	for _, c := range []struct {
		name, lastID, body string
		want               error
	}{
		{"listening", "", mcpProgress, nil},
		{"resumed, no further", "s_3", mcpProgress, rubicon.ErrInterrupted},
		{"resumed, to be read on", "s_3", "id: s_4\n" + mcpProgress, nil},
		{"resumed, answered", "s_3", mcpResult, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := rubicontest.NewServer(rubicontest.H1, rubicontest.Act().Answer(200, c.body).Header("Content-Type", "text/event-stream"))
			defer srv.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			req, err := http.NewRequest(http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.lastID != "" {
				req.Header.Set("Last-Event-ID", c.lastID)
			}
			res, err := (&rubicon.Transport{Base: base}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if string(got) != c.body || !errors.Is(err, c.want) {
				t.Errorf("read %q and %v, want %v", strings.TrimSpace(string(got)), err, c.want)
			}
		})
	}
}
