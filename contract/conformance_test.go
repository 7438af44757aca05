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
