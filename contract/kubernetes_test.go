package contract_test

import (
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

const (
	watchAdded    = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","resourceVersion":"10"}}}` + "\n"
	watchBookmark = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	watchExpired  = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}` + "\n"
)

func TestKubernetes(t *testing.T) {
	expired := contract.Failure{Type: "Expired", Code: "410", Message: "too old"}
	for _, contentType := range []string{"application/json", "application/json;stream=watch"} {
		checkEnds(t, "kubernetes-watch", contract.Answer{ContentType: contentType}, []wireEnd{
			{name: "one object", body: watchAdded, state: contract.Completed, cursor: "10"},
			{name: "no line end", body: watchAdded[:len(watchAdded)-1], state: contract.Completed, cursor: "10"},
			{name: "bookmark", body: watchAdded + watchBookmark, state: contract.Completed, cursor: "12"},
			{name: "no lines at all", body: watchAdded[:len(watchAdded)-1] + watchBookmark, state: contract.Completed, cursor: "12"},
			{name: "torn", body: watchAdded + watchBookmark[:60], state: contract.Interrupted, illegal: true, cursor: "10"},
			{name: "torn before its last brace", body: watchAdded + watchBookmark[:len(watchBookmark)-2], state: contract.Interrupted, illegal: true, cursor: "10"},
			{name: "torn first object", body: `{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p"},"spec":{`, state: contract.Interrupted, illegal: true},
			{name: "expired at once", body: watchExpired, state: contract.Failed, failure: expired},
			{name: "expired later", body: watchAdded + watchExpired, state: contract.Failed, failure: expired, cursor: "10"},
			{name: "after the error", body: watchExpired + watchAdded, state: contract.Failed, failure: expired, cursor: "10"},
			{name: "error in an object", body: `{"type":"MODIFIED","object":{"kind":"Event","metadata":{"resourceVersion":"9","x":{"resourceVersion":"99"}},"reason":"BackOff","message":"{\"type\":\"ERROR\",\"object\":{}}\n","type":"ERROR","code":500}}` + "\n",
				state: contract.Completed, cursor: "9"},
		})
	}
}

// TestKubernetesNeighbors shows that an answer that is not a watch isn't taken
// for one.
func TestKubernetesNeighbors(t *testing.T) {
	s := known(t)
	for _, body := range []string{
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}`,
		`{"type":"ADDED","object":{"id":1}}`,
		`{"type":"added","object":{"kind":"Pod","metadata":{}}}`,
		`[` + watchAdded[:len(watchAdded)-1],
	} {
		if got := end(s, "application/json", []byte(body)); got.Protocol == "kubernetes-watch" && body[0] != '[' {
			t.Errorf("%s: taken for a watch", body)
		} else if got.State == contract.Completed {
			t.Errorf("%s: %v", body, got.State)
		}
	}
}
