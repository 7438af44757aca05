package sdk

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/rubicontest"
)

// A call makes one call with an SDK and returns the text of its answer, as far
// as the SDK tells it.
type call func(context.Context) (string, error)

// A client is one way in which an SDK makes a call that does something.
type client struct {
	name   string
	family *family
	answer answer

	// open makes an SDK's client over hc, for the server at url, and returns its
	// call. Contexts of calls are not its own.
	open func(t *testing.T, hc *http.Client, url string) call

	// plain is how often the server acts if it loses every answer, over plain
	// net/http: the SDK's own tries. Zero: once.
	plain int
}

// tries returns how often the SDK itself asks a server that answers nothing.
func (c *client) tries() int { return max(c.plain, 1) }

// A family is what the servers of one provider say.
type family struct {
	host string // at which presets know them

	busy     problem // overload, in the provider's own envelope
	refuses  bool    // a preset documents busy as a refusal
	denied   problem // the credential is rejected
	limited  problem // a rate limit
	key      string  // the header of the documented idempotency key; "": none
	sessions bool    // calls are made in a session: see aside in mcp_test.go
}

// A problem is an answer that reports an error.
type problem struct {
	status int
	body   string
}

// fault is the answer as a fault: without an effect.
func (p problem) fault() rubicontest.Fault {
	return rubicontest.Read().Answer(p.status, p.body).Header("Content-Type", "application/json")
}

// An answer is what a client takes for a whole one.
type answer struct {
	kind    string   // content type
	pieces  []string // of the body
	end     int      // the pieces before the first that tells the end of a stream; 0: it is no stream
	failure string   // the piece that reports a failure within the stream
	cause   string   // the type of that failure, as the provider names it
	text    string   // what the SDK makes of the whole; "": hello
}

// streams reports whether the answer is a stream.
func (a *answer) streams() bool { return a.end > 0 }

// wanted is the text of the whole answer.
func (a *answer) wanted() string {
	if a.text == "" {
		return "hello"
	}
	return a.text
}

// good acts and gives the whole answer.
func (a *answer) good() rubicontest.Fault { return a.give(rubicontest.Act(), a.pieces) }

// held is good, but the answer is held back until c is closed.
func (a *answer) held(c <-chan struct{}) rubicontest.Fault {
	return a.give(rubicontest.Act().Until(c), a.pieces)
}

// quiet acts and ends the stream as if it were whole, without its end.
func (a *answer) quiet() rubicontest.Fault { return a.give(rubicontest.Act(), a.pieces[:a.end]) }

// failing acts, and reports a failure within the stream, which then ends.
func (a *answer) failing() rubicontest.Fault {
	return a.give(rubicontest.Act(), append(slices.Clone(a.pieces[:a.end]), a.failure))
}

// cut acts, and closes the connection in the middle of the answer.
func (a *answer) cut() rubicontest.Fault {
	n := len(strings.Join(a.pieces, "")) / 2
	if a.streams() {
		n = len(strings.Join(a.pieces[:a.end], "")) - 3
	}
	return a.give(rubicontest.Act(), a.pieces).Cut(n).Close()
}

// give answers with pieces after what f does.
func (a *answer) give(f rubicontest.Fault, pieces []string) rubicontest.Fault {
	whole := strings.Join(pieces, "")
	switch {
	case strings.Contains(whole, rpcID):
		return f.Handle(replying(a.kind, whole)).Chunked()
	case a.streams():
		f = f.Stream(pieces...)
	default:
		f = f.Answer(http.StatusOK, whole)
	}
	return f.Header("Content-Type", a.kind)
}

// rpcID stands in an answer for the identifier of the JSON-RPC request.
const rpcID = "$ID"

// replying answers a JSON-RPC request with body.
func replying(kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(strings.ReplaceAll(body, rpcID, string(messageIn(r.Body).ID))))
	})
}

// An rpc is a JSON-RPC message.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// messageIn returns the message in body; zero: there is none.
func messageIn(body io.Reader) rpc {
	var m rpc
	if err := json.NewDecoder(body).Decode(&m); err != nil {
		return rpc{}
	}
	return m
}

// clients returns all clients: those with a unary call, then those that stream.
func clients() []client {
	all := slices.Concat(
		openaiClients(), anthropicClients(), sashabaranovClients(), genaiClients(),
		mcpClients(), stripeClients(), langchainClients(), einoClients(), ollamaClients(),
		bedrockClients(), azureClients(), githubClients(), googleClients(), retryableClients(),
	)
	slices.SortStableFunc(all, func(a, b client) int { return min(a.answer.end, 1) - min(b.answer.end, 1) })
	return all
}

// unary returns the clients whose answer comes at once.
func unary() []client {
	return slices.DeleteFunc(clients(), func(c client) bool { return c.answer.streams() })
}

// streaming returns the clients whose answer is a stream.
func streaming() []client {
	return slices.DeleteFunc(clients(), func(c client) bool { return !c.answer.streams() })
}

// named returns the client with the given name.
func named(t *testing.T, name string) *client {
	t.Helper()
	all := clients()
	i := slices.IndexFunc(all, func(c client) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no client %q", name)
	}
	return &all[i]
}

// There is a client for each way that people are known to use.
func TestClients(t *testing.T) {
	if n := len(unary()); n < 21 {
		t.Errorf("%d unary clients; want 21 or more", n)
	}
	if n := len(streaming()); n < 16 {
		t.Errorf("%d streaming clients; want 16 or more", n)
	}
}
