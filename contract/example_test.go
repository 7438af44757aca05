package contract_test

import (
	"fmt"
	"io"

	"github.com/rubicon-go/rubicon/contract"
)

// acmeJobs is the contract of a service of one's own. It sends a line of JSON
// for each step of a job; the last one says that the job is done, or why it
// failed. Each has an offset from which the service sends again.
func acmeJobs() contract.Contract {
	return contract.Contract{
		Protocol: "acme-jobs",
		Framing:  contract.Lines,
		Paths:    []string{"job", "state", "problem"},
		Cursor:   "offset",
		Read: func(f *contract.Frame, p *contract.Progress) bool {
			p.ID(f.Get("job"))
			switch string(f.Get("state")) {
			case "done":
				p.Finish(contract.Completed)
			case "failed":
				p.Fail(nil, nil, f.Get("problem"))
			}
			return f.Has("job") && f.Has("state")
		},
	}
}

// A Transport takes such a contract in its Contracts, in front of those that it
// knows or behind them; rubicontest.CheckContract compares it with recordings.
func ExampleContract() {
	set, err := contract.NewSet(append(contract.Known(), acmeJobs())...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rest := range []string{
		`{"job":"j1","offset":2,"state":"done"}` + "\n",
		`{"job":"j1","offset":2,"state":"failed","problem":"no space"}` + "\n",
		``,
	} {
		w := set.Watch(contract.Answer{ContentType: "application/x-ndjson"})
		_, _ = io.WriteString(w, `{"job":"j1","offset":1,"state":"running"}`+"\n"+rest)
		end := w.End()
		fmt.Printf("%v: job %s, offset %s, problem %q\n", end.State, end.Operation, end.Cursor, end.Failure.Message)
	}
	// Output:
	// completed: job j1, offset 2, problem ""
	// failed: job j1, offset 2, problem "no space"
	// interrupted: job j1, offset 1, problem ""
}
