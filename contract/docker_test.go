package contract_test

import (
	"strings"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
)

const (
	dockerPull     = `{"status":"Pulling from library/alpine","id":"3.20"}` + "\r\n"
	dockerLayer    = `{"status":"Downloading","progressDetail":{"current":1,"total":2},"progress":"[=>  ]","id":"a6aa3b66376f"}` + "\r\n"
	dockerFailed   = `{"errorDetail":{"code":1,"message":"no space"},"error":"no space"}` + "\r\n"
	dockerBuild    = `{"stream":"Step 1/2 : FROM alpine"}` + "\r\n" + `{"stream":"\n"}` + "\r\n"
	dockerBuildkit = `{"id":"moby.buildkit.trace","aux":"Cm8KRw=="}` + "\n"
	dockerEvent    = `{"status":"start","id":"c","from":"alpine","Type":"container","Action":"start","Actor":{"ID":"c","Attributes":{"image":"alpine"}},"scope":"local","time":1700000000,"timeNano":1700000000123456789}` + "\n"
)

func TestDocker(t *testing.T) {
	noSpace := contract.Failure{Code: "1", Message: "no space"}
	checkEnds(t, "docker", contract.Answer{ContentType: "application/json"}, []wireEnd{
		{name: "pull", body: dockerPull + dockerLayer, state: contract.Completed},
		{name: "pull by digest", body: `{"status":"docker.io/library/alpine@sha256:0a: Pulling from library/alpine"}` + "\r\n", state: contract.Completed},
		{name: "push", body: `{"status":"The push refers to repository [docker.io/a/b]"}` + "\r\n" + dockerLayer + `{"aux":{"Tag":"1","Digest":"sha256:0a","Size":1}}` + "\r\n", state: contract.Completed},
		{name: "build", body: dockerBuild + `{"aux":{"ID":"sha256:0a"}}` + "\r\n" + `{"stream":"Successfully built 0a\n"}` + "\r\n", state: contract.Completed},
		{name: "build by BuildKit", body: dockerBuildkit + dockerBuildkit, state: contract.Completed},
		{name: "no line end", body: dockerPull + strings.TrimSpace(dockerLayer), state: contract.Completed},
		{name: "torn", body: dockerPull + dockerLayer[:40], state: contract.Interrupted, illegal: true},
		{name: "failed", body: dockerPull + dockerFailed, state: contract.Failed, failure: noSpace},
		{name: "failed at once", body: dockerFailed, state: contract.Failed, failure: noSpace},
		{name: "failed build", body: dockerBuild + dockerFailed, state: contract.Failed, failure: noSpace},
		{name: "failed without its line end", body: dockerPull + strings.TrimSpace(dockerFailed), state: contract.Failed, failure: noSpace},
		{name: "error alone", body: dockerPull + `{"error":"no space"}`, state: contract.Failed, failure: contract.Failure{Message: "no space"}},
		{name: "torn error", body: dockerPull + dockerFailed[:30], state: contract.Interrupted, illegal: true},
		{name: "null error", body: dockerPull + `{"status":"Pull complete","error":null,"errorDetail":null,"id":"a"}`, state: contract.Completed},
		{name: "error in a text", body: dockerBuild + `{"stream":"{\"errorDetail\":{\"message\":\"x\"},\"error\":\"x\"}\r\n"}`, state: contract.Completed},
		{name: "error further in", body: dockerBuild + `{"aux":{"error":"x","errorDetail":{"message":"x"}}}`, state: contract.Completed},
		{name: "event", body: dockerEvent, state: contract.Completed, cursor: "1700000000123456789"},
		{name: "event of an error", body: strings.ReplaceAll(dockerEvent, `"image":"alpine"`, `"error":"x","timeNano":"1"`), state: contract.Completed, cursor: "1700000000123456789"},
	})
}

func TestDockerEvents(t *testing.T) {
	const cursor = "1700000000123456789"
	for _, contentType := range []string{"application/jsonl", "application/x-ndjson", "application/ndjson"} {
		checkEnds(t, "docker", contract.Answer{ContentType: contentType}, []wireEnd{
			{name: "two", body: dockerEvent + dockerEvent, state: contract.Completed, cursor: cursor},
			{name: "no line end", body: strings.TrimSpace(dockerEvent), state: contract.Completed, cursor: cursor},
			{name: "torn", body: dockerEvent + dockerEvent[:90], state: contract.Interrupted, illegal: true, cursor: cursor},
			{name: "failed", body: dockerEvent + dockerFailed, state: contract.Failed, cursor: cursor, failure: contract.Failure{Code: "1", Message: "no space"}},
		})
	}
	checkEnds(t, "docker", contract.Answer{ContentType: "application/json-seq"}, []wireEnd{
		{name: "two", body: "\x1e" + dockerEvent + "\x1e" + dockerEvent, state: contract.Completed, cursor: cursor},
		{name: "torn", body: "\x1e" + dockerEvent + "\x1e" + dockerEvent[:90], state: contract.Interrupted, illegal: true, cursor: cursor},
		{name: "torn at once", body: "\x1e" + dockerEvent + "\x1e", state: contract.Interrupted, illegal: true, cursor: cursor},
	})
}

// TestDockerNeighbors has lines with a status that are somebody else's: a cut
// one must not end well because Docker's would.
func TestDockerNeighbors(t *testing.T) {
	s := known(t)
	for body, want := range map[string]string{
		`{"status":"pulling manifest"}` + "\n" + `{"status":"pulling 8934d96d3f08","digest":"sha256:0a","total":2,"completed":1}` + "\n": "ollama",
		`{"id":"job-1","status":"running"}` + "\n":            "",
		`{"stream":"Step by step"}` + "\n":                    "",
		`{"error":"no"}` + "\n":                               "",
		`{"Type":"container","Action":"start","id":1}` + "\n": "",
	} {
		got := end(s, "application/x-ndjson", []byte(body))
		if got.Protocol != want || got.State == contract.Completed {
			t.Errorf("%s: %v of %q, want of %q", body, got.State, got.Protocol, want)
		}
	}
}
