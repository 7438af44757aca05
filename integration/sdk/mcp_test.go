package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	mark3labs "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcp3 "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// mcpFamily is a server of the Model Context Protocol.
var mcpFamily = family{
	host:     "mcp.internal",
	busy:     problem{503, `try again later`},
	denied:   problem{401, `who?`},
	limited:  problem{429, `too many`},
	sessions: true,
}

// mcpStateless is one of revision 2026-07-28, which has no sessions.
var mcpStateless = func() family {
	f := mcpFamily
	f.host = "stateless.mcp.internal"
	return f
}()

// What an MCP server answers to a tool call.
var (
	toolWhole = answer{
		kind:   "application/json",
		pieces: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"hello"}]}}`},
	}
	toolStream = answer{
		kind: "text/event-stream",
		pieces: []string{
			sse("message", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working on $ID"}}`),
			sse("message", `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"hello"}]}}`),
		},
		end:     1,
		failure: sse("message", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"boom"}}`),
		cause:   "-32603",
	}
)

// aside answers what a client asks besides its call: it makes a session, and
// offers nothing else.
func aside(c *client, r rubicontest.Request) rubicontest.Fault {
	switch {
	case !c.family.sessions:
		return rubicontest.Read().Answer(http.StatusNotFound, "")
	case r.Method == http.MethodPost:
		return rubicontest.Read().Handle(http.HandlerFunc(handshake))
	case r.Method == http.MethodDelete:
		return rubicontest.Read().Answer(http.StatusNoContent, "")
	}
	return rubicontest.Read().Answer(http.StatusMethodNotAllowed, "")
}

// handshake says which revision the server speaks, and makes a session of
// 2025-11-25.
func handshake(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch m := messageIn(r.Body); {
	case m.Method == "server/discover" && r.Host == mcpStateless.host:
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`, m.ID)
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "session-1")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
	case strings.HasPrefix(m.Method, "notifications/"):
		w.WriteHeader(http.StatusAccepted)
	default:
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	}
}

func mcpClients() []client {
	return []client{
		{name: "mcp go-sdk", family: &mcpFamily, answer: toolWhole, open: goSDK},
		{name: "mark3labs mcp-go", family: &mcpFamily, answer: toolWhole, open: mark3},
		{name: "mcp go-sdk, stateless", family: &mcpStateless, answer: toolWhole, open: goSDK},
		{name: "mark3labs mcp-go, stateless", family: &mcpStateless, answer: toolWhole, open: mark3},
		{name: "mcp go-sdk, streamed", family: &mcpFamily, answer: toolStream, open: goSDK},
		{name: "mark3labs mcp-go, streamed", family: &mcpFamily, answer: toolStream, open: mark3},
	}
}

func goSDK(t *testing.T, hc *http.Client, url string) call {
	return goSDKIn(t, context.Background(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: hc})
}

// goSDKIn connects through tr, with ctx.
func goSDKIn(t *testing.T, ctx context.Context, tr *mcp.StreamableClientTransport) call {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(ctx, tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return func(ctx context.Context) (string, error) {
		res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"amount": 5}})
		if err != nil {
			return "", err
		}
		text, ok := res.Content[0].(*mcp.TextContent)
		if !ok {
			return "", errors.New("the answer is no text")
		}
		return text.Text, nil
	}
}

func mark3(t *testing.T, hc *http.Client, url string) call {
	return mark3In(t, context.Background(), hc, url)
}

// mark3In connects with ctx.
func mark3In(t *testing.T, ctx context.Context, hc *http.Client, url string, options ...transport.StreamableHTTPCOption) call {
	t.Helper()
	c, err := mark3labs.NewStreamableHttpClient(url+"/mcp", append(options, transport.WithHTTPBasicClient(hc), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp3.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (string, error) {
		var req mcp3.CallToolRequest
		req.Params.Name, req.Params.Arguments = "pay", map[string]any{"amount": 5}
		res, err := c.CallTool(ctx, req)
		if err != nil {
			return "", err
		}
		return mcp3.GetTextFromContent(res.Content[0]), nil
	}
}
