package rubicon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// presets are all that the package has.
func presets() []Endpoint { return append(Endpoints(), IdempotencyKeyDraft()) }

// facts returns what e documents, each under the name that the rows of
// TestEndpointSources use.
func (e *Endpoint) facts() map[string]string {
	f := make(map[string]string)
	set := func(what, value string) {
		if value != "" {
			f[what] = value
		}
	}
	if e.Kind != Auto {
		set("kind", e.Kind.String())
	}
	if e.Repeat != Auto {
		set("repeat", e.Repeat.String())
	}
	set("key", e.KeyHeader)
	if e.Retention != 0 {
		set("retention", e.Retention.String())
	}
	for _, a := range e.Refusals {
		set(fmt.Sprint("refusal ", a.Status), a.fact())
	}
	for _, a := range e.Final {
		set(fmt.Sprint("final ", a.Status), a.fact())
	}
	if e.InFlight.Status != 0 {
		set(fmt.Sprint("in flight ", e.InFlight.Status), e.InFlight.fact())
	}
	return f
}

// fact prints the codes of a.
func (a Answer) fact() string {
	if len(a.Codes) == 0 {
		return "any body"
	}
	return strings.Join(a.Codes, " ")
}

// endpointSources has a row for each fact of each preset, and for some that a
// preset leaves out on purpose: their value is empty. An address is one that
// the document names, and that the preset has to match.
var endpointSources = []struct{ preset, what, value, source string }{
	{"openai", "address", "POST https://api.openai.com/v1/responses", "developers.openai.com, API reference, Create a model response"},
	{"openai", "address", "POST https://api.openai.com/v1/chat/completions", "developers.openai.com, API reference, Create chat completion"},
	{"openai", "address", "POST https://eu.api.openai.com/v1/responses", "developers.openai.com/api/docs/guides/data-residency"},
	{"openai", "kind", "generation", "developers.openai.com, API reference: each of the paths runs a model"},
	{"openai", "key", "", "developers.openai.com, API reference: none is documented"},
	{"openai", "refusal 503", "server_is_overloaded service_unavailable_error", "developers.openai.com/docs/guides/error-codes: the model lacks the capacity to process the request"},
	{"openai", "refusal 500", "", "developers.openai.com/docs/guides/error-codes: an error while processing the request"},
	{"openai", "final 429", openAILimits, "help.openai.com/en/articles/6614457; developers.openai.com/docs/guides/error-codes"},
	{"openai-other", "address", "POST https://api.openai.com/v1/files", "developers.openai.com, API reference, Upload file"},
	{"openai-other", "address", "DELETE https://api.openai.com/v1/files/file-1", "developers.openai.com, API reference, Delete file"},
	{"openai-other", "final 429", openAILimits, "help.openai.com/en/articles/6614457; developers.openai.com/docs/guides/error-codes"},

	{"anthropic", "address", "POST https://api.anthropic.com/v1/messages", "platform.claude.com/docs/en/api/messages"},
	{"anthropic", "kind", "generation", "platform.claude.com/docs/en/api/messages"},
	{"anthropic", "key", "", "platform.claude.com/docs/en/api: none is documented"},
	{"anthropic", "refusal 529", "overloaded_error", "platform.claude.com/docs/en/api/errors: the API is temporarily overloaded"},
	{"anthropic", "refusal 500", "", "platform.claude.com/docs/en/api/errors: an unexpected error inside"},
	{"anthropic", "refusal 504", "", "platform.claude.com/docs/en/api/errors: timed out while processing"},
	{"anthropic", "final 429", "enforced_spend_limit_reached", "platform.claude.com/docs/en/api/rate-limits: retrying fails until access resumes"},

	{"gemini", "address", "POST https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent", "ai.google.dev/api/generate-content"},
	{"gemini", "address", "POST https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "ai.google.dev/api/generate-content"},
	{"gemini", "address", "POST https://generativelanguage.googleapis.com/v1beta/interactions", "ai.google.dev/gemini-api/docs/get-started"},
	{"gemini", "kind", "generation", "ai.google.dev/api"},
	{"gemini", "key", "", "ai.google.dev/api: none is documented"},
	{"gemini", "refusal 503", "", "ai.google.dev/gemini-api/docs/troubleshooting: overloaded or down; google/rpc/code.proto, UNAVAILABLE: not always safe to retry"},
	{"gemini", "final 429", "quota_exceeded", "ai.google.dev/gemini-api/docs/troubleshooting: the daily quota"},
	{"vertex", "address", "POST https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-flash:generateContent", "docs.cloud.google.com/vertex-ai/docs/generative-ai/learn/locations"},
	{"vertex", "address", "POST https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/anthropic/models/claude:streamRawPredict", "docs.cloud.google.com/vertex-ai/docs/general/locations"},
	{"vertex", "kind", "generation", "docs.cloud.google.com/vertex-ai, REST reference"},
	{"vertex", "refusal 503", "", "google/rpc/code.proto, UNAVAILABLE: not always safe to retry what is not idempotent"},

	{"bedrock", "address", "POST https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-micro-v1:0/converse-stream", "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html"},
	{"bedrock", "address", "POST https://bedrock-runtime-fips.us-east-1.amazonaws.com/model/amazon.nova-micro-v1:0/invoke", "docs.aws.amazon.com/general/latest/gr/bedrock.html"},
	{"bedrock", "kind", "generation", "docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime"},
	{"bedrock", "key", "", "docs.aws.amazon.com/bedrock/latest/APIReference: a client token for StartAsyncInvoke only"},
	{"bedrock", "refusal 503", "", "docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html says high demand; repost.aws/knowledge-center/bedrock-service-unavailable-error says a failure of the server too"},

	{"stripe-v1", "address", "POST https://api.stripe.com/v1/customers", "docs.stripe.com/api/idempotent_requests"},
	{"stripe-v1", "key", "Idempotency-Key", "docs.stripe.com/api/idempotent_requests: all POST requests, no effect on DELETE"},
	{"stripe-v1", "retention", "24h0m0s", "docs.stripe.com/api/idempotent_requests: removed once at least 24 hours old"},
	{"stripe-v1", "in flight 409", "idempotency_key_in_use", "docs.stripe.com/error-codes; docs.stripe.com/api/errors for the status"},
	{"stripe-v2", "address", "POST https://api.stripe.com/v2/core/event_destinations", "docs.stripe.com/api-v2-overview"},
	{"stripe-v2", "address", "DELETE https://api.stripe.com/v2/core/event_destinations/ed_1", "docs.stripe.com/api-v2-overview"},
	{"stripe-v2", "key", "Idempotency-Key", "docs.stripe.com/api-v2-overview, Idempotency"},
	{"stripe-v2", "retention", "720h0m0s", "docs.stripe.com/error-low-level: a 30-day window"},
	{"stripe-v2", "in flight 409", "", "docs.stripe.com/api-v2-overview: none is documented"},

	{"paypal-orders", "address", "POST https://api-m.paypal.com/v2/checkout/orders", "developer.paypal.com/api/orders/v2/orders-create"},
	{"paypal-orders", "address", "POST https://api-m.sandbox.paypal.com/v2/checkout/orders/5O1/capture", "developer.paypal.com/sdk/orders/v2/orders-capture"},
	{"paypal-orders", "key", "PayPal-Request-Id", "developer.paypal.com/api/rest/reference/idempotency"},
	{"paypal-orders", "retention", "6h0m0s", "developer.paypal.com/api/orders/v2/orders-create and orders-authorize, developer.paypal.com/sdk/orders/v2/orders-capture"},
	{"paypal-payments", "address", "POST https://api-m.paypal.com/v2/payments/authorizations/0VF/capture", "developer.paypal.com/api/payments/v2/authorizations-capture"},
	{"paypal-payments", "address", "POST https://api-m.paypal.com/v2/payments/captures/2GG/refund", "developer.paypal.com/sdk/payment/v2/captures-refund"},
	{"paypal-payments", "key", "PayPal-Request-Id", "developer.paypal.com/api/payments/v2/authorizations-capture, -reauthorize, -void; developer.paypal.com/sdk/payment/v2/captures-refund"},
	{"paypal-payments", "retention", "", "the same pages: no longer stated (older ones: 45 days)"},
	{"paypal-payments", "in flight 409", "PREVIOUS_REQUEST_IN_PROGRESS", "developer.paypal.com/api/payments/v2/errors/previous_request_in_progress"},
	{"paypal-payouts", "address", "POST https://api-m.paypal.com/v1/payments/payouts", "developer.paypal.com/api/payments.payouts-batch/v1/payouts-post"},
	{"paypal-payouts", "key", "PayPal-Request-Id", "developer.paypal.com/api/payments.payouts-batch/v1/payouts-post"},
	{"paypal-payouts", "retention", "720h0m0s", "developer.paypal.com/api/payments.payouts-batch/v1/payouts-post"},
	{"paypal-subscriptions", "address", "POST https://api-m.paypal.com/v1/billing/plans", "developer.paypal.com/api/subscriptions/v1/plans-create"},
	{"paypal-subscriptions", "address", "POST https://api-m.paypal.com/v1/billing/subscriptions", "developer.paypal.com/api/subscriptions/v1/subscriptions-create"},
	{"paypal-subscriptions", "key", "PayPal-Request-Id", "developer.paypal.com/api/subscriptions/v1/subscriptions-create"},
	{"paypal-subscriptions", "retention", "72h0m0s", "developer.paypal.com/api/subscriptions/v1/plans-create and subscriptions-create"},
	{"paypal-vault", "address", "POST https://api-m.paypal.com/v3/vault/setup-tokens", "developer.paypal.com/api/payment-tokens/v3/setup-tokens-create"},
	{"paypal-vault", "address", "POST https://api-m.paypal.com/v3/vault/payment-tokens", "developer.paypal.com/api/payment-tokens/v3/payment-tokens-create"},
	{"paypal-vault", "key", "PayPal-Request-Id", "developer.paypal.com/sdk/vault/v2/setup-tokens-create and payment-tokens-create"},
	{"paypal-vault", "retention", "3h0m0s", "developer.paypal.com/sdk/vault/v2/setup-tokens-create and payment-tokens-create"},

	{"github", "address", "POST https://api.github.com/repos/o/r/issues", "docs.github.com/rest/issues/issues"},
	{"github", "key", "", "docs.github.com/rest: none is documented"},
	{"github", "refusal 403", "", "docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api: told from a lack of permission by headers and prose only"},

	{"idempotency-key-draft", "address", "", "draft-ietf-httpapi-idempotency-key-header names no server"},
	{"idempotency-key-draft", "key", "Idempotency-Key", "draft-ietf-httpapi-idempotency-key-header, section 2"},
	{"idempotency-key-draft", "retention", "", "draft-ietf-httpapi-idempotency-key-header, Idempotency Key Validity and Expiry: the server publishes it"},
	{"idempotency-key-draft", "in flight 409", "any body", "draft-ietf-httpapi-idempotency-key-header, Error Scenarios"},
}

const openAILimits = "insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded organization_usage_limit_exceeded project_spend_limit_exceeded"

// TestEndpointSources: each fact of a preset has a row with its source, each
// row is a fact of its preset, and each preset has an address that it matches.
func TestEndpointSources(t *testing.T) {
	type key struct{ preset, what string }
	rows := make(map[key]string)
	for _, r := range endpointSources {
		if r.source == "" {
			t.Errorf("%s, %s: no source", r.preset, r.what)
		}
		k := key{r.preset, r.what}
		if _, ok := rows[k]; ok && r.what != "address" {
			t.Errorf("%s, %s: two rows", r.preset, r.what)
		}
		rows[k] = r.value
		if r.what == "address" && r.value != "" {
			if got := presetOf(t, r.value); got != r.preset {
				t.Errorf("%s: matched by %q, want %q", r.value, got, r.preset)
			}
		}
	}
	for _, e := range presets() {
		facts := e.facts()
		for what, value := range facts {
			if row, ok := rows[key{e.Name, what}]; !ok {
				t.Errorf("%s, %s: no row", e.Name, what)
			} else if row != value {
				t.Errorf("%s, %s: %q, and its row says %q", e.Name, what, value, row)
			}
		}
		for k, row := range rows {
			if k.preset == e.Name && k.what != "address" && facts[k.what] != row {
				t.Errorf("%s, %s: %q, and its row says %q", e.Name, k.what, facts[k.what], row)
			}
		}
		if _, ok := rows[key{e.Name, "address"}]; !ok {
			t.Errorf("%s: no address", e.Name)
		}
	}
	for k := range rows {
		if !slices.ContainsFunc(presets(), func(e Endpoint) bool { return e.Name == k.preset }) {
			t.Errorf("%s: a row of no preset", k.preset)
		}
	}
}

// presetOf returns the name of the preset that speaks for a request given as
// "METHOD URL", or "".
func presetOf(t *testing.T, request string) string {
	t.Helper()
	if e := match(presets(), requestTo(t, request)); e != nil {
		return e.Name
	}
	return ""
}

// requestTo makes a request of "METHOD URL".
func requestTo(t testing.TB, request string) *http.Request {
	t.Helper()
	method, url, _ := strings.Cut(request, " ")
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestEndpointMatch(t *testing.T) {
	const (
		gemini  = "https://generativelanguage.googleapis.com"
		vertex  = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1"
		bedrock = "https://bedrock-runtime.eu-west-1.amazonaws.com"
		payPal  = "https://api-m.paypal.com"
	)
	tests := []struct{ request, want string }{
		// Generations, and what else the same provider does.
		{"POST https://api.openai.com/v1/embeddings", "openai"},
		{"POST https://api.openai.com/v1/images/generations", "openai"},
		{"POST https://api.openai.com/v1/audio/speech", "openai"},
		{"POST https://api.openai.com/v1/responses?x=y", "openai"},
		{"POST https://API.OpenAI.com/v1/responses", "openai"},
		{"POST https://api.openai.com:443/v1/responses", "openai"},
		{"POST https://api.openai.com/v1/responses/resp_1/cancel", "openai-other"},
		{"POST https://api.openai.com/v1/batches", "openai-other"},
		{"POST https://api.openai.com/v1/responses/", "openai-other"},
		{"PUT https://api.openai.com/v1/responses", "openai-other"},
		{"POST https://api.openai.com/V1/responses", "openai-other"},
		{"POST https://api.anthropic.com/v1/messages?beta=true", "anthropic"},
		{"POST https://api.anthropic.com/v1/messages/count_tokens", ""},
		{"POST https://api.anthropic.com/v1/messages/batches", ""},
		{"POST https://api.anthropic.com/v1/files", ""},
		{"POST " + gemini + "/v1/models/gemini-2.5-pro:generateContent", "gemini"},
		{"POST " + gemini + "/v1beta/tunedModels/mine:generateContent", "gemini"},
		{"POST " + gemini + "/v1beta/models/gemini-embedding-001:batchEmbedContents", "gemini"},
		{"POST " + gemini + "/v1beta/openai/chat/completions", "gemini"},
		{"POST " + gemini + "/v1beta/models/gemini-2.5-pro:countTokens", ""},
		{"POST " + gemini + "/v1beta/models/gemini-2.5-pro:batchGenerateContent", ""},
		{"POST " + gemini + "/v1beta/models/veo:predictLongRunning", ""},
		{"POST " + gemini + "/v1beta/cachedContents", ""},
		{"POST " + gemini + "/v1beta/interactions/i/cancel", ""},
		{"POST " + gemini + "/upload/v1beta/models/x:generateContent", ""},
		{"POST " + vertex + "/publishers/google/models/gemini-2.5-flash:streamGenerateContent", "vertex"},
		{"POST " + vertex + "/publishers/anthropic/models/claude@1:rawPredict", "vertex"},
		{"POST " + vertex + "/endpoints/openapi/chat/completions", "vertex"},
		{"POST " + vertex + "/endpoints/123:generateContent", "vertex"},
		{"POST " + vertex + "/endpoints/123:rawPredict", ""},
		{"POST " + vertex + "/endpoints/123:predict", ""},
		{"POST " + vertex + "/publishers/google/models/veo:predictLongRunning", ""},
		{"POST " + vertex + "/customJobs", ""},
		{"POST " + bedrock + "/model/anthropic.claude-v2/invoke-with-response-stream", "bedrock"},
		{"POST " + bedrock + "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.nova/converse", "bedrock"},
		{"POST " + bedrock + "/model/x/count-tokens", ""},
		{"POST " + bedrock + "/model//invoke", ""},
		{"POST " + bedrock + "/model/invoke", ""},
		{"POST " + bedrock + "/async-invoke", ""},
		{"POST " + bedrock + "/guardrail/g/version/1/apply", ""},
		{"POST https://bedrock.eu-west-1.amazonaws.com/model/x/invoke", ""},

		// Keys, where they are documented to work.
		{"POST https://api.stripe.com/v1/refunds", "stripe-v1"},
		{"DELETE https://api.stripe.com/v1/customers/cus_1", ""},
		{"PUT https://api.stripe.com/v2/x", ""},
		{"POST https://api.stripe.com/v1", ""},
		{"POST https://api.stripe.com/v10/charges", ""},
		{"POST https://files.stripe.com/v1/files", ""},
		{"POST " + payPal + "/v2/checkout/orders/5O1/authorize", "paypal-orders"},
		{"POST " + payPal + "/v2/checkout/orders/5O1/confirm-payment-source", ""},
		{"POST " + payPal + "/v2/checkout/orders/5O1/track", ""},
		{"POST " + payPal + "/v2/checkout/orders//capture", ""},
		{"POST " + payPal + "/v2/checkout/orders/5O1/x/capture", ""},
		{"PATCH " + payPal + "/v2/checkout/orders/5O1", ""},
		{"POST " + payPal + "/v2/payments/authorizations/0VF/void", "paypal-payments"},
		{"POST " + payPal + "/v2/payments/authorizations/0VF/refund", ""},
		{"POST " + payPal + "/v1/billing/subscriptions/I-1/cancel", ""},
		{"POST " + payPal + "/v1/oauth2/token", ""},
		{"DELETE " + payPal + "/v3/vault/payment-tokens/8kk", ""},
		{"PATCH https://api.github.com/repos/o/r/issues/1", "github"},

		// Safe methods ask for nothing that could act.
		{"GET https://api.openai.com/v1/responses", ""},
		{"HEAD https://api.openai.com/v1/responses", ""},
		{"GET https://api.anthropic.com/v1/messages", ""},
		{"GET " + gemini + "/v1beta/interactions", ""},
		{"GET https://api.stripe.com/v1/customers", ""},
		{"GET " + payPal + "/v2/checkout/orders", ""},
		{"GET https://api.github.com/repos/o/r", ""},

		// Other hosts, and hosts that look alike.
		{"POST https://api.openai.com.evil.test/v1/responses", ""},
		{"POST https://evil-api.openai.com/v1/responses", ""},
		{"POST https://xapi.openai.com/v1/responses", ""},
		{"POST https://a.b.api.openai.com/v1/responses", ""},
		{"POST https://.api.openai.com/v1/responses", ""},
		{"POST https://api.openai.com@evil.test/v1/responses", ""},
		{"POST https://evil.test/api.openai.com/v1/responses", ""},
		{"POST https://api-openai.com/v1/responses", ""},
		{"POST https://openai.com/v1/responses", ""},
		{"POST https://127.0.0.1:8080/v1/responses", ""},
		{"POST https://[::1]/v1/responses", ""},
		{"POST https://api.anthropic.com.evil.test/v1/messages", ""},
		{"POST https://api.anthropic.co/v1/messages", ""},
		{"POST https://aiplatform.googleapis.com.evil.test/v1/publishers/google/models/m:generateContent", ""},
		{"POST https://evil.test.us-aiplatform.googleapis.com/v1/publishers/google/models/m:generateContent", ""},
		{"POST https://-aiplatform.googleapis.com/v1/publishers/google/models/m:generateContent", ""},
		{"POST https://bedrock-runtime.evil.test.amazonaws.com/model/x/invoke", ""},
		{"POST https://bedrock-runtime.amazonaws.com/model/x/invoke", ""},
		{"POST https://bedrock-runtime..amazonaws.com/model/x/invoke", ""},
		{"POST https://bedrock-runtime.us-east-1.amazonaws.com.evil.test/model/x/invoke", ""},
		{"POST https://notapi.stripe.com/v1/charges", ""},
		{"POST https://api.stripe.com.evil.test/v1/charges", ""},
		{"POST https://api-m.paypal.com.evil.test/v2/checkout/orders", ""},
		{"POST https://www.paypal.com/v2/checkout/orders", ""},
		{"POST https://api.github.com.evil.test/repos/o/r/issues", ""},
	}
	for _, tt := range tests {
		if got := presetOf(t, tt.request); got != tt.want {
			t.Errorf("%s: matched by %q, want %q", tt.request, got, tt.want)
		}
	}
}

// TestEndpointMatchFronted: a request that asks one host for another is nobody's.
func TestEndpointMatchFronted(t *testing.T) {
	tests := []struct {
		host string
		want bool
	}{
		{"", true},
		{"api.stripe.com", true},
		{"API.stripe.com:443", true},
		{"gateway.example.test", false},
		{"api.openai.com", false},
	}
	for _, tt := range tests {
		req := requestTo(t, "POST https://api.stripe.com/v1/charges")
		req.Host = tt.host
		if got := match(Endpoints(), req) != nil; got != tt.want {
			t.Errorf("Host %q: %v, want %v", tt.host, got, tt.want)
		}
	}
	req := requestTo(t, "POST https://gateway.example.test/v1/charges")
	req.Host = "api.stripe.com"
	if e := match(Endpoints(), req); e != nil {
		t.Errorf("a gateway that is asked for Stripe is matched by %q", e.Name)
	}
}

func TestEndpointMatchFirst(t *testing.T) {
	always := func(*http.Request) bool { return true }
	req := requestTo(t, "POST https://example.test/")
	list := []Endpoint{{Name: "nil"}, {Name: "a", Match: always}, {Name: "b", Match: always}}
	if e := match(list, req); e != &list[1] {
		t.Errorf("match = %v, want the first that matches", e)
	}
	for _, none := range [][]Endpoint{nil, {}, {{}}, {IdempotencyKeyDraft()}} {
		if e := match(none, req); e != nil {
			t.Errorf("match(%v) = %q", none, e.Name)
		}
	}
	if e := match(list, &http.Request{Method: "POST"}); e != nil {
		t.Errorf("a request without a URL is matched by %q", e.Name)
	}
}

// TestEndpointsFresh: what one caller changes, no other sees.
func TestEndpointsFresh(t *testing.T) {
	for i := range Endpoints() {
		mine := Endpoints()
		for _, a := range slices.Concat(mine[i].Refusals, mine[i].Final, []Answer{mine[i].InFlight}) {
			for j := range a.Codes {
				a.Codes[j] = "changed"
			}
		}
		for k, e := range mine {
			if k != i && strings.Contains(fmt.Sprint(e.Refusals, e.Final, e.InFlight), "changed") {
				t.Errorf("%s shares its answers with %s", mine[i].Name, e.Name)
			}
		}
		for _, e := range Endpoints() {
			if strings.Contains(fmt.Sprint(e.Refusals, e.Final, e.InFlight), "changed") {
				t.Errorf("%s is shared between two calls", e.Name)
			}
		}
	}
}

func TestEndpointNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, e := range presets() {
		if e.Name == "" || seen[e.Name] {
			t.Errorf("the name %q is empty or used twice", e.Name)
		}
		seen[e.Name] = true
		if e.Repeat != Auto {
			t.Errorf("%s decides for the caller that a request may act twice", e.Name)
		}
		if e.KeyHeader == "" && (e.Retention != 0 || e.InFlight.Status != 0) {
			t.Errorf("%s remembers no key, but says for how long", e.Name)
		}
	}
}

// TestMatchCost: match is on the way of every request.
func TestMatchCost(t *testing.T) {
	list := Endpoints()
	for _, request := range []string{
		"POST https://example.test/v1/responses",
		"POST https://api.github.com/graphql",
		"POST https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse",
		"GET https://api.openai.com/v1/models",
	} {
		req := requestTo(t, request)
		if n := testing.AllocsPerRun(100, func() { match(list, req) }); n != 0 {
			t.Errorf("%s: %v allocations", request, n)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	list := Endpoints()
	for name, request := range map[string]string{"first": "POST https://api.openai.com/v1/responses", "none": "POST https://example.test/v1/responses"} {
		b.Run(name, func(b *testing.B) {
			req := requestTo(b, request)
			b.ReportAllocs()
			for b.Loop() {
				match(list, req)
			}
		})
	}
}

func TestAnswerIs(t *testing.T) {
	coded := Answer{503, []string{"a", "b"}}
	tests := []struct {
		answer Answer
		status int
		codes  []string
		want   bool
	}{
		{Answer{}, 0, nil, false},
		{Answer{}, 503, []string{"a"}, false},
		{Answer{Codes: []string{"a"}}, 0, []string{"a"}, false},
		{Answer{Status: 503}, 503, nil, true},
		{Answer{Status: 503}, 503, []string{"x"}, true},
		{Answer{Status: 503}, 502, nil, false},
		{coded, 503, []string{"x", "b"}, true},
		{coded, 503, []string{"x"}, false},
		{coded, 503, []string{"A"}, false},
		{coded, 503, nil, false},
		{coded, 502, []string{"a"}, false},
	}
	for _, tt := range tests {
		if got := tt.answer.is(tt.status, tt.codes); got != tt.want {
			t.Errorf("%v.is(%d, %q) = %v, want %v", tt.answer, tt.status, tt.codes, got, tt.want)
		}
	}
}

func TestEndpointSpeaks(t *testing.T) {
	e := &Endpoint{
		Refusals: []Answer{{Status: 529}, {Status: 503, Codes: []string{"a"}}},
		Final:    []Answer{{Status: 429}},
		InFlight: Answer{Status: 409},
	}
	for status, want := range map[int]bool{529: true, 503: true, 429: true, 409: true, 500: false, 0: false} {
		if got := e.speaks(status); got != want {
			t.Errorf("speaks(%d) = %v, want %v", status, got, want)
		}
	}
	if (*Endpoint)(nil).speaks(503) || (&Endpoint{}).speaks(0) {
		t.Error("an endpoint that documents nothing speaks")
	}
}

// TestGatewayAnswersO31 is the endpoints' half of case O31: what a gateway
// answers in a provider's place is no refusal, and a provider's own 5xx is one
// only where the provider says so.
func TestGatewayAnswersO31(t *testing.T) {
	bodies := []string{
		"",
		"<html><head><title>503 Service Temporarily Unavailable</title></head><body>overloaded_error server_is_overloaded</body></html>",
		"upstream connect error or disconnect/reset before headers",
		`{"message":"no healthy upstream"}`,
		`{"error":"server_is_overloaded"}`,
		`"server_is_overloaded"`,
		`{"error":{"message":"overloaded_error"}}`,
		`{"error":{"type":"server_error","code":null,"message":"The server had an error while processing your request"}}`,
		`{"error":{"code":503,"status":"UNAVAILABLE","message":"The model is overloaded."}}`,
		`{"error":{"type":"service_unavailable_error","code":"server_is_overloaded"}`, // cut off
	}
	for _, e := range presets() {
		for _, status := range []int{500, 502, 503, 504, 520, 529} {
			for _, body := range bodies {
				codes := errorCodes(http.Header{"Retry-After": {"1"}, "Content-Type": {"application/json"}}, []byte(body))
				if isAny(e.Refusals, status, codes) || isAny(e.Final, status, codes) || e.InFlight.is(status, codes) {
					t.Errorf("%s takes %d %.60q for a documented answer", e.Name, status, body)
				}
			}
		}
	}
}

// TestDocumentedAnswers plays the bodies that the providers' documents show
// against their presets.
func TestDocumentedAnswers(t *testing.T) {
	const refused, final, inFlight, other = "refused", "final", "in flight", "other"
	tests := []struct {
		request string
		status  int
		body    string
		want    string
	}{
		{"POST https://api.openai.com/v1/responses", 503, `{"error":{"message":"Our servers are currently overloaded. Please try again later.","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}`, refused},
		{"POST https://api.openai.com/v1/responses", 500, `{"error":{"message":"","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}`, other},
		{"POST https://api.openai.com/v1/files", 503, `{"error":{"message":"","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}`, other},
		{"POST https://api.openai.com/v1/chat/completions", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, final},
		{"POST https://api.openai.com/v1/files", 429, `{"error":{"message":"","type":"insufficient_quota","param":null,"code":"project_spend_limit_exceeded"}}`, final},
		{"POST https://api.openai.com/v1/chat/completions", 429, `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, other},
		{"POST https://api.openai.com/v1/chat/completions", 429, `{"error":{"message":"","type":"rate_limit_error","code":"slow_down"}}`, other},
		{"POST https://api.anthropic.com/v1/messages", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, refused},
		{"POST https://api.anthropic.com/v1/messages", 529, `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"}}`, refused},
		{"POST https://api.anthropic.com/v1/messages", 500, `{"type":"error","error":{"type":"api_error","message":"Overloaded"}}`, other},
		{"POST https://api.anthropic.com/v1/messages", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your API usage limits","details":{"error_code":"enforced_spend_limit_reached"}},"request_id":"req_1"}`, final},
		{"POST https://api.anthropic.com/v1/messages", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your rate limit"}}`, other},
		{"POST https://generativelanguage.googleapis.com/v1beta/interactions", 429, `{"error":{"code":"quota_exceeded","message":""}}`, final},
		{"POST https://generativelanguage.googleapis.com/v1beta/interactions", 429, `{"error":{"code":"rate_limit_exceeded","message":""}}`, other},
		{"POST https://generativelanguage.googleapis.com/v1beta/models/m:generateContent", 503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, other},
		{"POST https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse", 503, `{"message":"Bedrock is unable to process your request."}`, other},
		{"POST https://api.stripe.com/v1/charges", 409, `{"error":{"code":"idempotency_key_in_use","message":"","type":"idempotency_error"}}`, inFlight},
		{"POST https://api.stripe.com/v1/charges", 409, `{"error":{"code":"resource_already_exists","type":"invalid_request_error"}}`, other},
		{"POST https://api.stripe.com/v1/charges", 400, `{"error":{"code":"idempotency_key_in_use","type":"idempotency_error"}}`, other},
		{"POST https://api.stripe.com/v2/x", 409, `{"error":{"code":"idempotency_key_in_use"}}`, other},
		{"POST https://api-m.paypal.com/v2/payments/captures/2GG/refund", 409, `{"name":"RESOURCE_CONFLICT","details":[{"issue":"PREVIOUS_REQUEST_IN_PROGRESS","description":"A previous request on this resource is currently in progress."}],"debug_id":"1"}`, inFlight},
		{"POST https://api-m.paypal.com/v2/payments/captures/2GG/refund", 409, `{"name":"RESOURCE_CONFLICT","details":[{"issue":"DUPLICATE_INVOICE_ID"}]}`, other},
	}
	for _, tt := range tests {
		e := match(Endpoints(), requestTo(t, tt.request))
		if e == nil {
			t.Fatalf("%s: no preset", tt.request)
		}
		codes, got := errorCodes(nil, []byte(tt.body)), other
		switch {
		case isAny(e.Final, tt.status, codes):
			got = final
		case isAny(e.Refusals, tt.status, codes):
			got = refused
		case e.InFlight.is(tt.status, codes):
			got = inFlight
		}
		if got != tt.want {
			t.Errorf("%s: %d %s is %s, want %s", tt.request, tt.status, tt.body, got, tt.want)
		}
	}
}

func TestErrorCodes(t *testing.T) {
	aws := func(v string) http.Header { return http.Header{"X-Amzn-Errortype": {v}} }
	tests := []struct {
		name   string
		header http.Header
		body   string
		want   string
	}{
		{"OpenAI", nil, `{"error":{"message":"m","type":"insufficient_quota","param":null,"code":"credit_balance_exhausted"}}`, "insufficient_quota credit_balance_exhausted"},
		{"Anthropic", nil, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, "overloaded_error"},
		{"Anthropic, detail", nil, `{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`, "rate_limit_error enforced_spend_limit_reached"},
		{"Google", nil, geminiBody(`"39s"`, perDay), "RESOURCE_EXHAUSTED"},
		{"Google, ErrorInfo", nil, `{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, "INVALID_ARGUMENT API_KEY_INVALID"},
		{"Google, list", nil, `[{"error":{"code":503,"status":"UNAVAILABLE"}}]`, "UNAVAILABLE"},
		{"Google, list with space before", nil, "\r\n\t [ {\"error\":{\"status\":\"UNAVAILABLE\"}}]", "UNAVAILABLE"},
		{"Stripe", nil, `{"error":{"code":"idempotency_key_in_use","type":"idempotency_error","request_log_url":"u"}}`, "idempotency_error idempotency_key_in_use"},
		{"PayPal", nil, `{"name":"RESOURCE_CONFLICT","details":[{"issue":"PREVIOUS_REQUEST_IN_PROGRESS"}]}`, "RESOURCE_CONFLICT PREVIOUS_REQUEST_IN_PROGRESS"},
		{"AWS, header", aws("ThrottlingException:http://internal.amazon.com/coral/com.amazon.coral.service/"), `{"message":"m"}`, "ThrottlingException"},
		{"AWS, header alone", aws("aws.protocoltests.restjson#FooError"), "", "FooError"},
		{"AWS, both", aws("aws.protocoltests.restjson#FooError:http://x/"), "<html>", "FooError"},
		{"AWS, body", nil, `{"__type":"com.amazon.coral.service#ThrottlingException","message":"m"}`, "ThrottlingException"},
		{"AWS, code", nil, `{"code":"ns#ModelNotReadyException"}`, "ModelNotReadyException"},
		{"members of other types", nil, `{"error":{"type":7,"code":["x"],"status":"A","details":3},"name":{},"details":[1,null,"x",{"issue":"B"},{"issue":4}]}`, "A B"},
		{"error is a string", nil, `{"error":"invalid_grant","name":"A"}`, "A"},
		{"error is null", nil, `{"error":null}`, ""},
		{"no object", nil, `17`, ""},
		{"empty", nil, ``, ""},
		{"HTML", nil, `<html>overloaded_error</html>`, ""},
		{"cut off", nil, `{"error":{"type":"overloaded_error"}`, ""},
		{"two values", nil, `{"error":{"type":"overloaded_error"}} {}`, ""},
		{"space around", nil, "\r\n {\"error\":{\"type\":\"overloaded_error\"}}\n", "overloaded_error"},
		{"as long as is read", nil, `{"error":{"type":"overloaded_error"}}` + strings.Repeat(" ", maxErrorBody-37), "overloaded_error"},
		{"longer", nil, `{"error":{"type":"overloaded_error"}}` + strings.Repeat(" ", maxErrorBody-36), ""},
		{"nested without end", nil, strings.Repeat(`{"error":`, 7000), ""},
		{"nested too deeply", nil, `{"name":"A","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, ""},
		{"invalid UTF-8", nil, "{\"name\":\"A\xff\"}", "A\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(errorCodes(tt.header, []byte(tt.body)), " "); got != tt.want {
				t.Errorf("errorCodes = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestErrorBodyBounded: a body costs no more than its share, however it is made.
func TestErrorBodyBounded(t *testing.T) {
	long := []byte(strings.Repeat("[", 5<<20))
	if n := testing.AllocsPerRun(10, func() { errorCodes(nil, long); retryInfo(long) }); n != 0 {
		t.Errorf("a body of %d bytes costs %v allocations", len(long), n)
	}
	wide := []byte(`{"error":{"details":[` + strings.Repeat("{},", 20000) + `{"reason":"LAST"}]}}`)
	if codes := errorCodes(nil, wide); codes != nil {
		t.Errorf("codes %q from behind %d details", codes, maxDetails)
	}
	if n := testing.AllocsPerRun(10, func() { errorCodes(nil, wide) }); n > 500 {
		t.Errorf("a list of 20000 details costs %v allocations", n)
	}
}

func FuzzErrorCodes(f *testing.F) {
	f.Add("", []byte(`{"error":{"type":"overloaded_error","code":"x","status":"UNAVAILABLE","details":[{"reason":"R"}]}}`))
	f.Add("ns#ThrottlingException:http://x/", []byte(`{"__type":"a#b","name":"N","details":[{"issue":"I"}]}`))
	f.Add("#:", []byte(`[{"error":{"details":{"error_code":"E"}}},1,null]`))
	f.Fuzz(func(t *testing.T, errorType string, body []byte) {
		codes := errorCodes(http.Header{"X-Amzn-Errortype": {errorType}}, body)
		if slices.Contains(codes, "") {
			t.Errorf("an empty code in %q", codes)
		}
		if bound := 1 + maxDetails*(6+2*3*maxDetails); len(codes) > bound {
			t.Errorf("%d codes", len(codes))
		}
		if (len(body) > maxErrorBody || !json.Valid(body)) && len(codes) > 1 {
			t.Errorf("codes %q from a body that is not to be read", codes)
		}
	})
}
