package contract_test

import (
	"slices"
	"testing"

	"github.com/rubicon-go/rubicon/contract"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// checked are the protocols whose recordings end with what proves their end.
var checked = []string{"mcp", "a2a", "kubernetes-watch", "docker", "langgraph", "anthropic-messages"}

// TestConformance checks known contracts as users check their own: what is said
// to them must hold for us.
func TestConformance(t *testing.T) {
	given := map[string][]rubicontest.Recording{}
	s := known(t)
	for _, r := range recordings(t) {
		e := end(s, r.contentType, r.body)
		if len(r.body) > 64<<10 || !slices.Contains(checked, e.Protocol) {
			continue
		}
		given[e.Protocol] = append(given[e.Protocol], rubicontest.Recording{
			Name: r.file, Answer: contract.Answer{ContentType: r.contentType}, Body: r.body,
			State: states[r.end], Operation: r.operation, Cursor: r.cursor, Events: r.events,
		})
	}
	for _, protocol := range checked {
		c := contract.Known()[slices.IndexFunc(contract.Known(), func(c contract.Contract) bool { return c.Protocol == protocol })]
		if err := rubicontest.CheckContract(c, given[protocol]...); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// states are the ends by name.
var states = map[string]contract.State{
	"completed": contract.Completed, "incomplete": contract.Incomplete,
	"failed": contract.Failed, "interrupted": contract.Interrupted,
}

// TestExampleContract holds the contract that the documentation shows to what
// every contract must hold.
func TestExampleContract(t *testing.T) {
	const running = `{"job":"j1","offset":1,"state":"running","log":"x"}` + "\n"
	recording := func(name, rest, cursor string, state contract.State) rubicontest.Recording {
		return rubicontest.Recording{
			Name: name, Answer: contract.Answer{ContentType: "application/x-ndjson"}, Body: []byte(running + rest),
			State: state, Operation: "j1", Cursor: cursor,
		}
	}
	err := rubicontest.CheckContract(acmeJobs(),
		recording("done", `{"job":"j1","offset":2,"state":"done"}`+"\n", "2", contract.Completed),
		recording("failed", `{"job":"j1","offset":2,"state":"failed","problem":"no space"}`+"\n", "2", contract.Failed),
		recording("cut", `{"job":"j1","off`, "1", contract.Interrupted),
	)
	if err != nil {
		t.Error(err)
	}
}
