package sdk

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// mcpNames are the clients of the Model Context Protocol.
var mcpNames = []string{"mcp go-sdk", "mark3labs mcp-go"}

// eachMCP runs test for both.
func eachMCP(t *testing.T, test func(*testing.T, *client)) {
	for _, name := range mcpNames {
		t.Run(name, func(t *testing.T) { test(t, named(t, name)) })
	}
}

// A stream that has delivered an event id may end: the rest is fetched by it.
func TestMCPResume(t *testing.T) {
	eachMCP(t, func(t *testing.T, c *client) {
		first := answer{kind: "text/event-stream", end: 1, pieces: []string{"id: 1\nretry: 5\ndata: \n\n"}}
		b := newServer(t, c, rubicontest.H1, first.good())
		listening := b.aside
		b.aside = func(r rubicontest.Request) rubicontest.Fault {
			if r.Method != http.MethodGet || r.Header.Get("Last-Event-Id") == "" {
				return listening(r)
			}
			id := lastID(b)
			rest := strings.ReplaceAll(strings.Join(toolStream.pieces, ""), rpcID, id)
			return rubicontest.Read().Stream(rest).Header("Content-Type", "text/event-stream")
		}
		b.open(proving)
		wantGood(t, b.once(patient(t), rubicon.Intent{}), 1, 1)
	})
}

// lastID returns the identifier in the latest request that has one.
func lastID(b *bench) string {
	id := ""
	for _, r := range b.server.Received() {
		if _, after, ok := strings.Cut(string(r.Body), `"id":`); ok {
			id = after[:strings.IndexAny(after, ",}")]
		}
	}
	return id
}

// A session outlives a lost answer, and the refusal of what would repeat it.
func TestMCPSessionSurvives(t *testing.T) {
	for name, s := range map[string]stack{"direct": proving, "nested": under(proving)} {
		t.Run(name, func(t *testing.T) {
			eachMCP(t, func(t *testing.T, c *client) {
				b := newBench(t, c, s, rubicontest.Act().Close(), c.answer.good())
				wantAmbiguous(t, b.once(patient(t), rubicon.Intent{}), 1)
				wantGood(t, b.once(patient(t), rubicon.Intent{}), 2, 2)
			})
		})
	}
}

// Two different calls in one operation are two requests.
func TestMCPTwoCalls(t *testing.T) {
	eachMCP(t, func(t *testing.T, c *client) {
		b := newBench(t, c, proving, rubicontest.Act().Close(), c.answer.good())
		ctx, op := rubicon.Begin(patient(t), rubicon.Intent{})
		defer op.End()
		if _, err := b.call(ctx); !errors.Is(op.Err(err), rubicon.ErrAmbiguous) {
			t.Errorf("the first got %v; want ambiguous", err)
		}
		if text, err := b.call(ctx); err != nil || text != "hello" {
			t.Errorf("the second got %q, %v; want hello", text, err)
		}
	})
}

// listenTime is how long a client may take to listen again. mark3labs's waits a
// second.
const listenTime = 20 * time.Second

// A session is made, used and listened to under one tight budget; the operation
// ends, and its context does no harm to what comes later.
func TestMCPConnectContext(t *testing.T) {
	open := map[string]func(*testing.T, context.Context, *http.Client, string) call{
		"mcp go-sdk": func(t *testing.T, ctx context.Context, hc *http.Client, url string) call {
			return goSDKIn(t, ctx, &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: hc})
		},
		"mark3labs mcp-go": func(t *testing.T, ctx context.Context, hc *http.Client, url string) call {
			//lint:ignore SA1019 servers of earlier revisions are listened to in no other way
			return mark3In(t, ctx, hc, url, transport.WithContinuousListening())
		},
	}
	eachMCP(t, func(t *testing.T, c *client) {
		ctx, op := rubicon.Begin(patient(t), rubicon.Intent{Budget: rubicon.Budget{Attempts: 1}})
		opened := open[c.name]
		own := *c
		own.open = func(t *testing.T, hc *http.Client, url string) call { return opened(t, ctx, hc, url) }
		b := newServer(t, &own, rubicontest.H1)
		gets := make(chan struct{}, 100)
		others := b.aside
		b.aside = func(r rubicontest.Request) rubicontest.Fault {
			if r.Method != http.MethodGet {
				return others(r)
			}
			gets <- struct{}{}
			return rubicontest.Read().Stream("retry: 5\nid: "+r.Header.Get("Last-Event-Id")+"1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n").
				Header("Content-Type", "text/event-stream")
		}
		b.open(proving)
		listens := func(when string) {
			t.Helper()
			for range 2 {
				select {
				case <-gets:
				case <-time.After(listenTime):
					t.Fatalf("nobody listens any more %s", when)
				}
			}
		}
		listens("while the operation goes on")
		if text, err := b.call(ctx); err != nil || text != "hello" {
			t.Errorf("a call in the operation got %q, %v; want hello", text, err)
		}
		op.End()
		listens("after its end")
		later, _ := rubicon.Begin(patient(t), rubicon.Intent{})
		if text, err := b.call(later); err != nil || text != "hello" {
			t.Errorf("a later call got %q, %v; want hello", text, err)
		}
	})
}

// The notification that go-sdk sends of a canceled call goes out with the
// values of the call's context. It must not hide what became of the call.
func TestMCPCanceledCall(t *testing.T) {
	b := newBench(t, named(t, "mcp go-sdk"), proving, rubicontest.Act().Stall())
	arrived, answered := make(chan struct{}), make(chan struct{})
	defer close(answered)
	others := b.aside
	b.aside = func(r rubicontest.Request) rubicontest.Fault {
		if r.Header.Get(asideHeader) == "" {
			return others(r)
		}
		close(arrived)
		return rubicontest.Read().Until(answered).Answer(http.StatusAccepted, "")
	}
	ctx, op := rubicon.Begin(patient(t), rubicon.Intent{})
	defer op.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error)
	go func() {
		_, err := b.call(ctx)
		failed <- err
	}()
	if err := b.server.Await(ctx, func(c rubicontest.Counts) bool { return c.Effects > 0 }); err != nil {
		t.Fatal(err)
	}
	cancel()
	err := <-failed
	<-arrived
	if !errors.Is(op.Err(err), rubicon.ErrAmbiguous) {
		t.Errorf("the SDK returned %v, told as %v; want ambiguous", err, op.Err(err))
	}
}
