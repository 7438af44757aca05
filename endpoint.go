package rubicon

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// An Endpoint is what a server has documented about repeating requests. The
// zero Endpoint documents nothing, and matches nothing.
//
// The first of [Transport.Endpoints] that matches a request counts, and only
// the first. Who writes one vouches for it: what it says is taken as proof.
type Endpoint struct {
	// Name is for people, such as "stripe-v1".
	Name string

	// Match reports whether the endpoint speaks for a request: for its server
	// and path, and for a method to which the key contract applies. It must not
	// change the request or keep it. Nil: for none.
	Match func(*http.Request) bool

	// Kind is what the requests do. Zero: what their method says. A generation
	// during which the provider itself calls tools may have effects, which only
	// the caller knows of: see [Intent].
	Kind Kind

	// KeyHeader is the name of the header that carries an idempotency key.
	// Empty: the server documents none.
	KeyHeader string

	// Retention is how long from the first send the server is documented to
	// remember a key. Zero: it is unknown, so a key licenses nothing.
	Retention time.Duration

	// Refusals are the answers that are documented to mean: not processed, try
	// again later.
	Refusals []Answer

	// Final are refusals that waiting does not cure: quota, spend limits,
	// billing. They go before Refusals.
	Final []Answer

	// InFlight is the answer to a key whose first request is still running.
	// Zero: none is documented.
	InFlight Answer

	// Repeat is the kind of request that the caller accepts to act twice here,
	// rather than to see it fail. Zero: none. No preset sets it.
	Repeat Kind
}

// speaks reports whether e documents an answer with the given status, so that
// its body is worth reading.
func (e *Endpoint) speaks(status int) bool {
	if e == nil || status == 0 {
		return false
	}
	has := func(a Answer) bool { return a.Status == status }
	return e.InFlight.Status == status || slices.ContainsFunc(e.Refusals, has) || slices.ContainsFunc(e.Final, has)
}

// An Answer is a kind of answer that a server documents. The zero Answer is
// none.
type Answer struct {
	Status int      // of the response
	Codes  []string // the provider's own error types or codes in its own envelope, of which the body has one. Empty: any body.
}

// is reports whether an answer with the given status and error codes is a.
func (a Answer) is(status int, codes []string) bool {
	if a.Status == 0 || a.Status != status {
		return false
	}
	return len(a.Codes) == 0 || slices.ContainsFunc(a.Codes, func(c string) bool { return slices.Contains(codes, c) })
}

// match returns the first of list that speaks for req, or nil.
func match(list []Endpoint, req *http.Request) *Endpoint {
	if req.URL == nil {
		return nil
	}
	for i := range list {
		if m := list[i].Match; m != nil && m(req) {
			return &list[i]
		}
	}
	return nil
}

// Endpoints returns what the best-known model, payment and code servers
// document, for requests with an unsafe method to the servers' own addresses.
// The slice is the caller's to change or to append to.
//
// It is the least that the documents promise. A 5xx that a provider does not
// call overload, or that does not come in the provider's own error envelope,
// is not a refusal: a gateway may answer for a server that acted. A key without
// a documented retention goes out and licenses nothing. [IdempotencyKeyDraft]
// is not among them, since it has no address.
func Endpoints() []Endpoint {
	return slices.Concat(openAI(), anthropic(), google(), bedrock(), stripe(), payPal(), gitHub())
}

// IdempotencyKeyDraft returns what draft-ietf-httpapi-idempotency-key-header
// documents, for a server that is known to follow it. It matches nothing and
// licenses nothing before the caller has set Match and Retention: the draft
// leaves it to the server to publish how long it remembers a key.
func IdempotencyKeyDraft() Endpoint {
	return Endpoint{
		Name:      "idempotency-key-draft",
		KeyHeader: "Idempotency-Key",
		InFlight:  Answer{Status: http.StatusConflict},
	}
}

// openAI returns the presets of OpenAI. Spend and quota limits share status 429
// with rate limits, and hold for every path.
func openAI() []Endpoint {
	limits := func() []Answer {
		return []Answer{{http.StatusTooManyRequests, []string{
			"insufficient_quota",
			"credit_balance_exhausted",
			"organization_spend_limit_exceeded",
			"organization_usage_limit_exceeded",
			"project_spend_limit_exceeded",
		}}}
	}
	return []Endpoint{{
		Name: "openai",
		Match: func(r *http.Request) bool {
			return isPost(r) && isOpenAI(r) && isOneOf(r.URL.Path,
				"/v1/responses", "/v1/chat/completions", "/v1/completions", "/v1/embeddings",
				"/v1/images/generations", "/v1/images/edits", "/v1/images/variations",
				"/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations")
		},
		Kind:     Generation,
		Refusals: []Answer{{http.StatusServiceUnavailable, []string{"server_is_overloaded", "service_unavailable_error"}}},
		Final:    limits(),
	}, {
		Name:  "openai-other",
		Match: func(r *http.Request) bool { return !isSafe(r.Method) && isOpenAI(r) },
		Final: limits(),
	}}
}

// isOpenAI reports whether r goes to api.openai.com or to one of its regions.
func isOpenAI(r *http.Request) bool {
	return isHost(r, "api.openai.com") || isHostBetween(r, "", ".api.openai.com")
}

// anthropic returns the preset of Anthropic. Its monthly spend limit has the
// error type of a rate limit, and only its detail tells them apart.
func anthropic() []Endpoint {
	return []Endpoint{{
		Name: "anthropic",
		Match: func(r *http.Request) bool {
			return isPost(r) && isHost(r, "api.anthropic.com") && isOneOf(r.URL.Path, "/v1/messages", "/v1/complete")
		},
		Kind:     Generation,
		Refusals: []Answer{{529, []string{"overloaded_error"}}},
		Final:    []Answer{{http.StatusTooManyRequests, []string{"enforced_spend_limit_reached"}}},
	}}
}

// google returns the presets of the Gemini API and of Vertex AI. They list no
// 503: it is documented as "overloaded or down", and google.rpc.Code warns
// against repeating what is not idempotent after UNAVAILABLE.
func google() []Endpoint {
	return []Endpoint{{
		Name: "gemini",
		Match: func(r *http.Request) bool {
			return isPost(r) && isHost(r, "generativelanguage.googleapis.com") && isGemini(r.URL.Path)
		},
		Kind:  Generation,
		Final: []Answer{{http.StatusTooManyRequests, []string{"quota_exceeded"}}},
	}, {
		Name: "vertex",
		Match: func(r *http.Request) bool {
			return isPost(r) && isVertexHost(r) && isVertex(r.URL.Path)
		},
		Kind: Generation,
	}}
}

// isGemini reports whether path generates at the Gemini API. Batches and
// predictLongRunning leave a job behind, and are effects.
func isGemini(path string) bool {
	if !strings.HasPrefix(path, "/v1") {
		return false
	}
	model, method := cutLast(path, ':')
	if strings.Contains(model, "/models/") || strings.Contains(model, "/tunedModels/") {
		return isOneOf(method, "generateContent", "streamGenerateContent", "embedContent", "batchEmbedContents", "predict")
	}
	return isOneOf(path, "/v1beta/interactions",
		"/v1beta/openai/chat/completions", "/v1beta/openai/embeddings", "/v1beta/openai/images/generations")
}

// isVertexHost reports whether r goes to the global address of Vertex AI or to
// that of a region.
func isVertexHost(r *http.Request) bool {
	return isHost(r, "aiplatform.googleapis.com") || isHostBetween(r, "", "-aiplatform.googleapis.com")
}

// isVertex reports whether path generates at Vertex AI. A prediction of an
// endpoint that a customer deployed runs the customer's own code: only that of
// a publisher's model is known to be a generation.
func isVertex(path string) bool {
	if strings.HasSuffix(path, "/endpoints/openapi/chat/completions") {
		return true
	}
	model, method := cutLast(path, ':')
	return isOneOf(method, "generateContent", "streamGenerateContent") ||
		strings.Contains(model, "/publishers/") && isOneOf(method, "rawPredict", "streamRawPredict", "predict")
}

// bedrock returns the preset of Amazon Bedrock's runtime. It lists no 503: one
// AWS document calls it overload, another a failure of the server.
func bedrock() []Endpoint {
	return []Endpoint{{
		Name: "bedrock",
		Match: func(r *http.Request) bool {
			return isPost(r) && isBedrockHost(r) && isBedrock(r.URL.Path)
		},
		Kind: Generation,
	}}
}

// isBedrockHost reports whether r goes to a region's runtime, FIPS or not.
func isBedrockHost(r *http.Request) bool {
	return isHostBetween(r, "bedrock-runtime.", ".amazonaws.com") || isHostBetween(r, "bedrock-runtime-fips.", ".amazonaws.com")
}

// isBedrock reports whether path generates. A model is named by an identifier
// or by an ARN, which has slashes.
func isBedrock(path string) bool {
	model, operation := cutLast(path, '/')
	return len(model) > len("/model/") && strings.HasPrefix(model, "/model/") &&
		isOneOf(operation, "invoke", "invoke-with-response-stream", "converse", "converse-stream")
}

// stripe returns the presets of Stripe. Keys have no effect on a DELETE of v1,
// so v1 speaks for POST only. The answer to a key in flight is documented for
// v1 alone.
func stripe() []Endpoint {
	const key = "Idempotency-Key"
	return []Endpoint{{
		Name: "stripe-v1",
		Match: func(r *http.Request) bool {
			return isPost(r) && isHost(r, "api.stripe.com") && strings.HasPrefix(r.URL.Path, "/v1/")
		},
		KeyHeader: key,
		Retention: 24 * time.Hour,
		InFlight:  Answer{http.StatusConflict, []string{"idempotency_key_in_use"}},
	}, {
		Name: "stripe-v2",
		Match: func(r *http.Request) bool {
			return isOneOf(r.Method, http.MethodPost, http.MethodDelete) && isHost(r, "api.stripe.com") && strings.HasPrefix(r.URL.Path, "/v2/")
		},
		KeyHeader: key,
		Retention: 30 * 24 * time.Hour,
	}}
}

// payPal returns the presets of PayPal, where each API says for itself whether
// it takes a key and for how long it keeps it. The reference of Payments v2 no
// longer says how long.
func payPal() []Endpoint {
	const key = "PayPal-Request-Id"
	return []Endpoint{{
		Name: "paypal-orders",
		Match: func(r *http.Request) bool {
			return isPayPal(r) && isOperation(r.URL.Path, "/v2/checkout/orders", "authorize", "capture")
		},
		KeyHeader: key,
		Retention: 6 * time.Hour,
	}, {
		Name: "paypal-payments",
		Match: func(r *http.Request) bool {
			return isPayPal(r) && (isAction(r.URL.Path, "/v2/payments/authorizations/", "capture", "reauthorize", "void") ||
				isAction(r.URL.Path, "/v2/payments/captures/", "refund"))
		},
		KeyHeader: key,
		InFlight:  Answer{http.StatusConflict, []string{"PREVIOUS_REQUEST_IN_PROGRESS"}},
	}, {
		Name:      "paypal-payouts",
		Match:     func(r *http.Request) bool { return isPayPal(r) && r.URL.Path == "/v1/payments/payouts" },
		KeyHeader: key,
		Retention: 30 * 24 * time.Hour,
	}, {
		Name: "paypal-subscriptions",
		Match: func(r *http.Request) bool {
			return isPayPal(r) && isOneOf(r.URL.Path, "/v1/billing/plans", "/v1/billing/subscriptions")
		},
		KeyHeader: key,
		Retention: 72 * time.Hour,
	}, {
		Name: "paypal-vault",
		Match: func(r *http.Request) bool {
			return isPayPal(r) && isOneOf(r.URL.Path, "/v3/vault/setup-tokens", "/v3/vault/payment-tokens")
		},
		KeyHeader: key,
		Retention: 3 * time.Hour,
	}}
}

// isPayPal reports whether r is a POST to PayPal, live or sandbox.
func isPayPal(r *http.Request) bool {
	return isPost(r) && (isHost(r, "api-m.paypal.com") || isHost(r, "api-m.sandbox.paypal.com"))
}

// isOperation reports whether path is collection, or an action on one of its
// members.
func isOperation(path, collection string, actions ...string) bool {
	return path == collection || isAction(path, collection+"/", actions...)
}

// isAction reports whether path is prefix, one segment and one of actions.
func isAction(path, prefix string, actions ...string) bool {
	if !strings.HasPrefix(path, prefix) {
		return false
	}
	id, action, ok := strings.Cut(path[len(prefix):], "/")
	return ok && id != "" && isOneOf(action, actions...)
}

// gitHub returns the preset of GitHub, which documents no idempotency key. A
// rate limit that comes as 403 is told from a lack of permission by headers
// and prose only, so it is not listed.
func gitHub() []Endpoint {
	return []Endpoint{{
		Name:  "github",
		Match: func(r *http.Request) bool { return !isSafe(r.Method) && isHost(r, "api.github.com") },
	}}
}

// isPost reports whether r is a POST.
func isPost(r *http.Request) bool { return r.Method == http.MethodPost }

// isOneOf reports whether s is one of list.
func isOneOf(s string, list ...string) bool { return slices.Contains(list, s) }

// cutLast slices s around the last sep; without one, after is empty.
func cutLast(s string, sep byte) (before, after string) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// isHost reports whether r goes to the host name, at whatever port.
func isHost(r *http.Request, name string) bool {
	host := r.URL.Host
	if len(host) < len(name) || len(host) > len(name) && host[len(name)] != ':' {
		return false
	}
	return strings.EqualFold(host[:len(name)], name) && !isFronted(r)
}

// isHostBetween reports whether r goes to a host whose name is prefix, one
// label or part of one, and suffix.
func isHostBetween(r *http.Request, prefix, suffix string) bool {
	if host := r.URL.Host; len(host) <= len(prefix) || !strings.EqualFold(host[:len(prefix)], prefix) {
		return false
	}
	label := withoutPort(r.URL.Host)[len(prefix):]
	end := len(label) - len(suffix)
	return end > 0 && strings.EqualFold(label[end:], suffix) && strings.IndexByte(label[:end], '.') < 0 && !isFronted(r)
}

// isFronted reports whether r asks one host for another: what either of them
// has documented need not hold for what answers.
func isFronted(r *http.Request) bool {
	return r.Host != "" && r.Host != r.URL.Host && !strings.EqualFold(withoutPort(r.Host), withoutPort(r.URL.Host))
}

// withoutPort returns the host of a host and port.
func withoutPort(hostport string) string {
	if i := strings.IndexByte(hostport, ':'); i >= 0 {
		return hostport[:i]
	}
	return hostport
}

const (
	maxErrorBody = 64 << 10 // bytes of an error body that is read; a longer one says nothing
	maxDetails   = 32       // elements of a list in it
)

// A problem is the part of an error body that says what the error is, in the
// envelopes of all providers at once. Members of another type than these are
// passed over.
type problem struct {
	Error struct { // OpenAI, Anthropic, Google, Stripe
		Type    string          `json:"type"`
		Code    string          `json:"code"`
		Status  string          `json:"status"`
		Details json.RawMessage `json:"details"`
	} `json:"error"`
	Name    string          `json:"name"`    // PayPal
	Code    string          `json:"code"`    // AWS
	Type    string          `json:"__type"`  // AWS
	Details json.RawMessage `json:"details"` // PayPal
}

// A detail is one more thing that a problem says of itself.
type detail struct {
	Type       string `json:"@type"`      // Google: which of its types this is
	Reason     string `json:"reason"`     // Google: ErrorInfo
	RetryDelay string `json:"retryDelay"` // Google: RetryInfo
	Violations []struct {
		QuotaID string `json:"quotaId"`
	} `json:"violations"` // Google: QuotaFailure
	Metadata struct {
		QuotaLimit string `json:"quota_limit"`
	} `json:"metadata"` // Google: ErrorInfo of a quota
	ErrorCode string `json:"error_code"` // Anthropic
	Issue     string `json:"issue"`      // PayPal
}

// errorCodes returns the provider's own names of the error in an answer: type,
// code, status or name, from the envelopes of OpenAI, Anthropic, Google,
// Stripe, PayPal and AWS. Nil: the answer is in none of them, or its body is
// too long.
func errorCodes(header http.Header, body []byte) []string {
	codes := named(nil, bareCode(header.Get("X-Amzn-Errortype")))
	for _, p := range problems(body) {
		codes = named(codes, p.Error.Type, p.Error.Code, p.Error.Status, p.Name, bareCode(p.Code), bareCode(p.Type))
		for _, d := range slices.Concat(elements[detail](p.Error.Details), elements[detail](p.Details)) {
			codes = named(codes, d.Reason, d.ErrorCode, d.Issue)
		}
	}
	return codes
}

// named appends to codes those of more that are not empty.
func named(codes []string, more ...string) []string {
	for _, c := range more {
		if c != "" {
			codes = append(codes, c)
		}
	}
	return codes
}

// bareCode returns an AWS error code without its namespace and without the
// address behind it (Smithy, AWS restJson1 protocol, operation error
// serialization).
func bareCode(s string) string {
	s, _, _ = strings.Cut(s, ":")
	if _, name, ok := strings.Cut(s, "#"); ok {
		return name
	}
	return s
}

// problems returns what an error body says. Google sends it as a list where
// the answer would have been one. The body may be hostile: it is bounded, has
// to be JSON as a whole, and is nested no deeper than encoding/json allows.
func problems(body []byte) []problem {
	if len(body) > maxErrorBody || !json.Valid(body) {
		return nil
	}
	return elements[problem](body)
}

// elements decodes the first elements of a list, or the one value that is not
// a list, from valid JSON.
func elements[T any](raw []byte) []T {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("[")) {
		dec.Token()
	}
	var list []T
	for len(list) < maxDetails && dec.More() {
		var v T
		// A member of an unexpected type leaves the others in place.
		dec.Decode(&v)
		list = append(list, v)
	}
	return list
}
