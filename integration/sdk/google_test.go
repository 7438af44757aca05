package sdk

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
)

// googleFamily is one of Google's APIs.
var googleFamily = family{
	host:    "storage.googleapis.com",
	busy:    problem{503, `{"error":{"code":503,"message":"Try again later.","status":"UNAVAILABLE"}}`},
	denied:  problem{401, `{"error":{"code":401,"message":"Invalid credentials.","status":"UNAUTHENTICATED"}}`},
	limited: problem{429, `{"error":{"code":429,"message":"Too many requests.","status":"RESOURCE_EXHAUSTED"}}`},
}

func googleClients() []client {
	return []client{
		{
			name: "gax.Invoke", family: &googleFamily, open: gaxInvoke,
			answer: answer{kind: "application/json", pieces: []string{`{"name":"hello"}`}, text: `{"name":"hello"}`},
		},
		{
			name: "google-api storage", family: &googleFamily, open: storageInsert,
			answer: answer{kind: "application/json", pieces: []string{`{"kind":"storage#object","name":"hello","bucket":"b"}`}},
		},
	}
}

// gaxInvoke is how Google's generated clients call over HTTP, with shorter
// waits. gax repeats for as long as the context lasts.
func gaxInvoke(_ *testing.T, hc *http.Client, url string) call {
	return func(ctx context.Context) (text string, err error) {
		ctx, cancel := context.WithTimeout(ctx, loopTime)
		defer cancel()
		err = gax.Invoke(ctx, func(ctx context.Context, _ gax.CallSettings) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/things", strings.NewReader(`{"name":"hello"}`))
			if err != nil {
				return err
			}
			res, err := hc.Do(req)
			if err != nil {
				return err
			}
			defer googleapi.CloseBody(res)
			if err := googleapi.CheckResponse(res); err != nil {
				return err
			}
			body, err := io.ReadAll(res.Body)
			text = string(body)
			return err
		}, gax.WithRetry(func() gax.Retryer {
			return gax.OnHTTPCodes(gax.Backoff{Initial: loopPause, Max: loopPause}, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
		}))
		return text, err
	}
}

// loopTime is how long those loops may go on that have no other end, and
// loopPause how long they wait in between.
const (
	loopTime  = 2 * time.Second
	loopPause = 50 * time.Millisecond
)

func storageInsert(t *testing.T, hc *http.Client, url string) call {
	s, err := storage.NewService(context.Background(), option.WithHTTPClient(hc), option.WithEndpoint(url+"/storage/v1/"))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, loopTime)
		defer cancel()
		res, err := s.Objects.Insert("b", &storage.Object{Name: "hello"}).
			Media(strings.NewReader("content"), googleapi.ContentType("text/plain")).
			WithRetry(&gax.Backoff{Initial: loopPause, Max: loopPause}, nil).
			Context(ctx).Do()
		if err != nil {
			return "", err
		}
		return res.Name, nil
	}
}
