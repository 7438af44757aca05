package sdk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// A pipeline is Azure's, as an HTTP client for another SDK.
type pipeline struct{ runtime.Pipeline }

// Do implements the HTTPClient of openai-go.
func (p pipeline) Do(req *http.Request) (*http.Response, error) {
	r, err := runtime.NewRequestFromRequest(req)
	if err != nil {
		return nil, err
	}
	return p.Pipeline.Do(r)
}

// O3: under an SDK that is told not to retry, Azure's pipeline does, and drains
// an answer that never ends.
func TestHiddenLayer(t *testing.T) {
	c := &client{family: &azureFamily, answer: chatWhole}
	c.open = func(_ *testing.T, hc *http.Client, url string) call {
		p := runtime.NewPipeline("test", "v1.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{
			Transport: hc, Retry: policy.RetryOptions{RetryDelay: pause, MaxRetryDelay: pause, MaxRetries: 3},
		})
		sdk := openai.NewClient(option.WithAPIKey("key"), option.WithBaseURL(url+"/v1/"), option.WithMaxRetries(0),
			option.WithHTTPClient(pipeline{p}))
		return func(ctx context.Context) (string, error) {
			_, err := sdk.Chat.Completions.New(ctx, chatParams)
			return "", err
		}
	}
	limited := rubicontest.Read().Answer(429, strings.Repeat("x", 1000)).Cut(10).Stall()
	b := newBench(t, c, func(b *bench) http.RoundTripper {
		tr := proving(b).(*rubicon.Transport)
		tr.Stall.Bytes = 300 * time.Millisecond
		return tr
	}, limited)
	r := b.once(patient(t), rubicon.Intent{Budget: rubicon.Budget{Attempts: 2}})
	if r.attempts > 2 || r.err == nil {
		t.Errorf("%d attempts, %v; want two at most, and an error", r.attempts, r.err)
	}
	if !errors.Is(r.told, rubicon.ErrStalled) {
		t.Errorf("told %v; want stalled", r.told)
	}
}

// warmUp puts n connections into the pool of b: as many requests are held until
// all of them have one.
func (b *bench) warmUp(n int) {
	all := make(chan struct{})
	b.aside = func(rubicontest.Request) rubicontest.Fault { return rubicontest.Read().Until(all) }
	b.base.MaxIdleConnsPerHost = n
	hc := &http.Client{Transport: b.base}
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			res, err := hc.Get(b.url())
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			if err != nil {
				b.t.Error(err)
			}
		})
	}
	if err := b.server.Await(patient(b.t), func(c rubicontest.Counts) bool { return c.Requests >= n }); err != nil {
		b.t.Error(err)
	}
	close(all)
	group.Wait()
	if err := b.server.Await(patient(b.t), func(c rubicontest.Counts) bool { return c.Played >= n }); err != nil {
		b.t.Error(err)
	}
}

// O19: net/http itself repeats what carries a key, on every idle connection,
// and then says that the connection was refused.
func TestStaleConnections(t *testing.T) {
	c := *named(t, "stripe")
	c.family = &someFamily // where no key is documented
	gone := rubicontest.Act().CloseListener().Close()

	b := newServer(t, &c, rubicontest.H1, rubicontest.Act().Close())
	b.open(plain)
	b.warmUp(3)
	if r := b.alone(patient(t)); r.effects <= 3 {
		t.Errorf("net/http: %d effects; want more than the SDK's three tries", r.effects)
	}

	for name, lost := range map[string]rubicontest.Fault{"closed": rubicontest.Act().Close(), "gone": gone} {
		t.Run(name, func(t *testing.T) {
			b := newServer(t, &c, rubicontest.H1, lost)
			b.open(proving)
			b.warmUp(3)
			wantAmbiguous(t, b.once(patient(t), rubicon.Intent{}), 1)
		})
	}
}

// Where the key is documented, what net/http would repeat is counted: the
// server sees as many requests as the operation knows attempts.
func TestStaleConnectionsKeyed(t *testing.T) {
	b := newServer(t, named(t, "stripe"), rubicontest.H1, rubicontest.Act().Close())
	b.open(proving)
	b.warmUp(3)
	r := b.once(patient(t), rubicon.Intent{})
	if known := len(r.op.Attempts()); r.effects != 1 || r.attempts != 4 || known != r.attempts {
		t.Errorf("%d effects, %d attempts, of which %d are known; want 1, 4, 4", r.effects, r.attempts, known)
	}
}

// A key that nobody documented licenses nothing.
func TestUndocumentedKey(t *testing.T) {
	c := *named(t, "stripe")
	c.family = &someFamily
	wantAmbiguous(t, newBench(t, &c, proving, rubicontest.Act().Close()).once(patient(t), rubicon.Intent{}), 1)
}
