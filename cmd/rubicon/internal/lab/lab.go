// Package lab plays faults on loopback against three HTTP clients and compares
// what became of each with what is expected of it.
//
// The faults are a table, in faults.go and, for answers that come as streams, in
// streams.go. A row says what the server does, what the caller asks for, and
// what is expected of each client; a field that is left out means the ordinary
// case. What the rows have in common is in the other files: clients.go has the
// clients, caller.go those who use them, bench.go what a client and a fault
// stand on, and told.go the words for what a caller is told.
//
// Faults of a credential are a table of their own, in auth.go, for other
// clients: authclients.go has those, authbench.go what they and a fault stand
// on, issuer.go the authorization server, and authsum.go what the rows come to.
package lab

import (
	"context"
	"fmt"
	"runtime"

	"github.com/rubicon-go/rubicon"
	"github.com/rubicon-go/rubicon/rubicontest"
)

// A Fault is something that goes wrong between a client and a server, or
// around them.
type Fault struct {
	Name  string // one word of at most 14 letters; auth and resume begin other parts' names
	About string // what goes wrong, in one sentence without a full stop

	server func() rubicontest.Config // the server, made anew for each client
	idle   int                       // connections in the client's pool at the start
	setup  func(*bench)              // what else there is before the first request; nil: nothing
	count  func(*bench) int          // what an attempt is; nil: a request whose header the server has read

	requests []request      // what the caller asks for, one after the other; nil: one POST
	intent   rubicon.Intent // of the operation that carries them
	layers   bool           // the caller is made of layers that each try again; see layered
	during   func(*bench)   // what happens meanwhile; nil: nothing

	want wants

	auth *authFault // in place of all that is above but the names; nil: it is no fault of a credential
}

// wants is what is expected of each client. Of the first two it states what is
// wrong with them too, so that a fault that does no harm any more is noticed.
type wants struct {
	nethttp   result
	retryable result
	rubicon   result
}

// A result is what became of a client that met a fault.
type result struct {
	attempts int    // how often what the caller asks for was put on the wire
	effects  int    // how often the server acted on it
	told     string // see told
}

// String returns r in the form of [Row.Want].
func (r result) String() string {
	return fmt.Sprintf("attempts %d, effects %d, outcome %s", r.attempts, r.effects, r.told)
}

// A Row is what became of one client that met one fault.
type Row struct {
	Fault    string `json:"fault"`
	Client   string `json:"client"`
	Attempts int    `json:"attempts"`
	Effects  int    `json:"effects"`
	Outcome  string `json:"outcome"` // what the caller was told in the end
	Want     string `json:"want"`    // what was expected of all above
	OK       bool   `json:"ok"`      // whether that is what happened

	Auth *Auth `json:"auth,omitempty"` // of faults of a credential; nil: it is none
}

// Auth is what became of a credential.
type Auth struct {
	TokenRequests int    `json:"token_requests"`
	Grant         string `json:"grant"`  // afterwards: alive, killed, leaked, revoked or none
	Calls         int    `json:"calls"`  // how often callers asked
	Served        int    `json:"served"` // how many of those were answered 200
}

// Got returns what happened in the form of Want.
func (r Row) Got() string {
	if r.Auth != nil {
		return authResult{r.Auth.TokenRequests, r.Attempts, r.Effects, r.Auth.Grant, r.Outcome}.String()
	}
	return result{r.Attempts, r.Effects, r.Outcome}.String()
}

// Run plays every fault against every client of its kind, several at a time,
// and reports the rows in the order of the faults. If ctx ends first, it returns
// its cause.
func Run(ctx context.Context, faults []Fault, report func(Row)) error {
	var all []func() Row
	for i := range faults {
		if f := &faults[i]; f.auth != nil {
			all = append(all, authPlays(ctx, f.auth, authClients[:])...)
		} else {
			all = append(all, plays(ctx, f, clients[:])...)
		}
	}
	return inOrder(ctx, all, report)
}

// plays has what plays f against each of the clients.
func plays(ctx context.Context, f *Fault, clients []client) []func() Row {
	var all []func() Row
	for _, c := range clients {
		all = append(all, func() Row { return play(ctx, f, c) })
	}
	return all
}

// inOrder makes the plays, several at a time, and reports their rows in order.
func inOrder(ctx context.Context, plays []func() Row, report func(Row)) error {
	var rows []chan Row
	free := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	for _, play := range plays {
		row := make(chan Row, 1)
		rows = append(rows, row)
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			if ctx.Err() != nil {
				row <- Row{}
				return
			}
			row <- play()
		}()
	}
	for _, row := range rows {
		if r := <-row; ctx.Err() == nil {
			report(r)
		}
	}
	return context.Cause(ctx)
}

// play plays f against c.
func play(ctx context.Context, f *Fault, c client) Row {
	got, want := meet(ctx, f, c), c.want(&f.want)
	return Row{
		Fault: f.Name, Client: c.name,
		Attempts: got.attempts, Effects: got.effects, Outcome: got.told,
		Want: want.String(), OK: got == want,
	}
}
