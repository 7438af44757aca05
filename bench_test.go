package rubicon_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"

	"github.com/rubicon-go/rubicon"
)

// A stub is a base that builds a small answer. It calls the hooks that a
// *http.Transport would, so that the whole path of the evidence runs over it.
type stub struct{ traced bool }

// RoundTrip implements [http.RoundTripper].
func (s stub) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.traced {
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
			trace.GetConn("")
			trace.GotConn(httptrace.GotConnInfo{})
			trace.WroteHeaders()
		}
	}
	if req.Body != nil {
		io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)),
		Request: req,
	}, nil
}

var answer = []byte(`{"ok":true}`)

// benchRoundTrip measures rt with requests of its own. op begins an operation
// around each request.
func benchRoundTrip(b *testing.B, rt http.RoundTripper, method string, in *rubicon.Intent) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	payload := bytes.Repeat([]byte("x"), 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		var body io.Reader
		if method == http.MethodPost {
			body = bytes.NewReader(payload)
		}
		reqCtx := ctx
		var op *rubicon.Operation
		if in != nil {
			reqCtx, op = rubicon.Begin(ctx, *in)
		}
		req, err := http.NewRequestWithContext(reqCtx, method, "http://api.test/v1/things", body)
		if err != nil {
			b.Fatal(err)
		}
		res, err := rt.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
		if op != nil {
			op.End()
			if op.Outcome() != rubicon.Succeeded {
				b.Fatal(op.Outcome())
			}
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		b.Run(method+"/stub", func(b *testing.B) { benchRoundTrip(b, stub{}, method, nil) })
		b.Run(method+"/rubicon", func(b *testing.B) {
			benchRoundTrip(b, &rubicon.Transport{Base: stub{traced: true}}, method, nil)
		})
		b.Run(method+"/operation", func(b *testing.B) {
			benchRoundTrip(b, &rubicon.Transport{Base: stub{traced: true}}, method, &rubicon.Intent{})
		})
	}
}
