package sdk

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	anthropic2 "github.com/anthropics/anthropic-sdk-go/v2"
	option2 "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// tokenPath is where Anthropic exchanges an identity for a token.
const tokenPath = "/v1/oauth/token"

// federated is Anthropic's SDK with a credential that it renews by itself.
func federated(t *testing.T, s stack, script ...rubicontest.Fault) (*bench, *atomic.Int64) {
	c := &client{family: &anthropicFamily, answer: messagesWhole, plain: 3}
	c.open = func(_ *testing.T, hc *http.Client, url string) call {
		sdk := anthropic2.NewClient(option2.WithBaseURL(url), option2.WithHTTPClient(hc),
			option2.WithFederationTokenProvider(
				func(context.Context) (string, error) { return "identity", nil },
				option2.FederationOptions{FederationRuleID: "fdrl_1", OrganizationID: "org"},
			))
		return func(ctx context.Context) (string, error) {
			res, err := sdk.Messages.New(ctx, messageParams2)
			if err != nil {
				return "", err
			}
			return res.Content[0].Text, nil
		}
	}
	b := newServer(t, c, rubicontest.H1TLS, script...)
	exchanges := new(atomic.Int64)
	b.aside = func(rubicontest.Request) rubicontest.Fault {
		exchanges.Add(1)
		return rubicontest.Read().Answer(200, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`).
			Header("Content-Type", "application/json")
	}
	b.open(s)
	return b, exchanges
}

// An SDK that renews its credential goes on working, once.
func TestFederation(t *testing.T) {
	b, exchanges := federated(t, proving, anthropicFamily.denied.fault(), messagesWhole.good())
	wantGood(t, b.once(patient(t), rubicon.Intent{}), 1, 2)
	if n := exchanges.Load(); n != 2 {
		t.Errorf("%d exchanges; want 2", n)
	}
}

// A named operation binds what it was begun for, not the exchange of a token
// that the SDK makes first.
func TestFederationKeyed(t *testing.T) {
	b, exchanges := federated(t, proving, anthropicFamily.denied.fault(), messagesWhole.good())
	wantGood(t, b.once(patient(t), rubicon.Intent{Key: rubicon.Key{Scope: "turns", Name: "7"}}), 1, 2)
	if n := exchanges.Load(); n != 2 {
		t.Errorf("%d exchanges; want 2", n)
	}
}

// Renewals do not multiply with retries.
func TestFederationLost(t *testing.T) {
	rejected, lost := anthropicFamily.denied.fault(), rubicontest.Act().Close()
	script := []rubicontest.Fault{rejected, lost, rejected, lost, rejected, lost}

	b, _ := federated(t, plain, script...)
	if r := b.alone(patient(t)); r.effects != 3 || r.attempts != 6 {
		t.Errorf("net/http: %d effects, %d attempts; want 3, 6", r.effects, r.attempts)
	}
	b, _ = federated(t, proving, script...)
	r := b.once(patient(t), rubicon.Intent{})
	if r.effects != 1 || r.attempts != 2 || !errors.Is(r.told, rubicon.ErrAmbiguous) {
		t.Errorf("%d effects, %d attempts, %v; want 1, 2, ambiguous", r.effects, r.attempts, r.told)
	}
}

// An authorizer renews by doing nothing, and counts.
type authorizer struct{ n atomic.Int64 }

// TokenSource implements auth.OAuthHandler.
func (*authorizer) TokenSource(context.Context) (oauth2.TokenSource, error) {
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"}), nil
}

// Authorize implements auth.OAuthHandler.
func (a *authorizer) Authorize(_ context.Context, _ *http.Request, res *http.Response) error {
	a.n.Add(1)
	return res.Body.Close()
}

// MCP's SDK authorizes once, and the tool is called once.
func TestMCPAuthorize(t *testing.T) {
	for _, tt := range []struct {
		script   []rubicontest.Fault
		attempts int
		good     bool
	}{
		{[]rubicontest.Fault{mcpFamily.denied.fault(), toolWhole.good()}, 2, true},
		{[]rubicontest.Fault{mcpFamily.denied.fault()}, 2, false},
	} {
		a := new(authorizer)
		c := *named(t, "mcp go-sdk")
		c.open = func(t *testing.T, hc *http.Client, url string) call {
			return goSDKIn(t, context.Background(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: hc, OAuthHandler: a})
		}
		b := newBench(t, &c, proving, tt.script...)
		r := b.once(patient(t), rubicon.Intent{})
		if r.attempts != tt.attempts || a.n.Load() != 1 || (r.told == nil) != tt.good || (r.effects == 1) != tt.good {
			t.Errorf("%d effects, %d attempts, %d renewals, %v; want %d attempts, 1 renewal, success %t",
				r.effects, r.attempts, a.n.Load(), r.told, tt.attempts, tt.good)
		}
	}
}
