package sdk

import (
	"context"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// azureFamily is a service behind Azure's pipeline, of which nothing is
// documented.
var azureFamily = family{
	host:    "example.cognitiveservices.azure.com",
	busy:    problem{503, `{"error":{"code":"ServerBusy","message":"Try again later."}}`},
	denied:  problem{401, `{"error":{"code":"Unauthorized","message":"Access denied."}}`},
	limited: problem{429, `{"error":{"code":"TooManyRequests","message":"Too many requests."}}`},
}

func azureClients() []client {
	return []client{{
		name: "azcore", family: &azureFamily, open: azurePipeline, plain: 4,
		answer: answer{kind: "application/json", pieces: []string{`{"text":"hello"}`}},
	}}
}

// azurePipeline is what Azure's SDKs are made of, with shorter waits.
func azurePipeline(_ *testing.T, hc *http.Client, url string) call {
	p := runtime.NewPipeline("test", "v1.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{
		Transport: hc, Retry: policy.RetryOptions{RetryDelay: pause, MaxRetryDelay: pause},
	})
	return func(ctx context.Context) (string, error) {
		req, err := runtime.NewRequest(ctx, http.MethodPost, url+"/jobs")
		if err != nil {
			return "", err
		}
		if err := runtime.MarshalAsJSON(req, map[string]string{"text": "hi"}); err != nil {
			return "", err
		}
		res, err := p.Do(req)
		if err != nil {
			return "", err
		}
		if !runtime.HasStatusCode(res, http.StatusOK) {
			return "", runtime.NewResponseError(res)
		}
		var made struct{ Text string }
		err = runtime.UnmarshalAsJSON(res, &made)
		return made.Text, err
	}
}
