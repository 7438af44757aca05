package rubicon

import (
	"container/list"
	"context"
	"encoding/json"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A mark is what a request without an operation says about the one call of an
// SDK that it is an attempt of. Attempts with the same mark share one record
// and one budget; a mark never licenses anything.
type mark struct {
	id    string // of the call; "" if the request names none
	count int    // of earlier attempts, as the request declares it; not above 0: this is the first, or it does not say
	hash  bool   // the call is known by what the request asks for
	keyed bool   // id is an idempotency key, which its owner may use again on purpose
	reads bool   // the body was read to find out
}

// markOf returns the mark of an unsafe request. keyHeader is the header of its
// endpoint's idempotency contract, "" without one.
func markOf(req *http.Request, keyHeader string) mark {
	h := req.Header
	stainless := field(h, "X-Stainless-Retry-Count")
	count := 0
	if stainless != "" {
		count, _ = strconv.Atoi(stainless)
	}
	switch {
	case namedCall(h) != "":
		return mark{id: namedCall(h)}
	case keyHeader != "" && h.Get(keyHeader) != "":
		return mark{id: "key " + h.Get(keyHeader), count: count, keyed: true}
	case stainless != "" && field(h, keyHeaderName) != "":
		return mark{id: "key " + field(h, keyHeaderName), count: count, keyed: true}
	case stainless != "":
		return mark{count: count, hash: req.GetBody != nil || !hasBody(req)}
	case field(h, "Mcp-Session-Id") != "" && req.GetBody != nil && hasBody(req):
		return mark{id: mcpRequest(req), reads: true}
	}
	return mark{}
}

// namedCall returns the name that an SDK gives its call, on every attempt of it,
// and on no other call; "" if it gives none.
func namedCall(h http.Header) string {
	if id := field(h, "Amz-Sdk-Invocation-Id"); id != "" {
		return "aws " + id
	}
	if id := first(field(h, "X-Goog-Gcs-Idempotency-Token"), googleInvocation(h)); id != "" {
		return "google " + id
	}
	return ""
}

// googleInvocation returns the call's id in the client header of Google's Go
// libraries: "gccl-invocation-id/<uuid> gccl-attempt-count/<n>".
func googleInvocation(h http.Header) string {
	_, rest, _ := strings.Cut(field(h, "X-Goog-Api-Client"), "gccl-invocation-id/")
	id, _, _ := strings.Cut(rest, " ")
	return id
}

// longestRequest bounds what of a body is read for the id of a JSON-RPC request.
const longestRequest = 1 << 20

// mcpRequest returns what tells one JSON-RPC request of an MCP session from the
// others: all of its body, which has an id that the session uses once (MCP,
// base protocol, requests). A notification has none and may come twice.
func mcpRequest(req *http.Request) string {
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, longestRequest+1))
	if err != nil || len(text) > longestRequest {
		return ""
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(text, &message) != nil || message.Method == "" || len(message.ID) == 0 || string(message.ID) == "null" {
		return ""
	}
	return "mcp " + field(req.Header, "Mcp-Session-Id") + " " + strconv.FormatUint(maphash.Bytes(bodySeed, text), 16)
}

// A markKey is where a marked call is found again: a hash of the same target,
// under the same credential, and of what names the call.
type markKey uint64

// keyOfMark returns where the call with the given id is found.
func keyOfMark(req *http.Request, id string) markKey {
	var h maphash.Hash
	h.SetSeed(bodySeed)
	add := func(part string) {
		h.WriteString(part)
		h.WriteByte(0)
	}
	for _, name := range [...]string{authorizationHeader, "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		add(stableCredential(field(req.Header, name)))
	}
	add(req.Method)
	add(req.URL.Scheme)
	add(strings.ToLower(req.URL.Host))
	add(req.URL.EscapedPath())
	add(req.URL.RawQuery)
	add(id)
	return markKey(h.Sum64())
}

// stableCredential returns the part of a credential that is the same on every
// attempt: a signature of AWS's version 4 is another each time.
func stableCredential(value string) string {
	if strings.HasPrefix(value, "AWS4-") {
		value, _, _ = strings.Cut(value, "/")
	}
	return value
}

// idOfHash names the call of a request by its body.
func idOfHash(req *http.Request) (string, error) {
	id := identify(req)
	if err := id.sum(); err != nil {
		return "", err
	}
	return "hash " + strconv.FormatUint(id.hash, 16), nil
}

// A markedCall is the record of one call of an SDK, whatever attempts it makes.
type markedCall struct {
	request
	key     markKey
	calls   int           // RoundTrips so far; under markedCalls.mu
	running bool          // one of them is under way; under markedCalls.mu
	seen    time.Time     // when the last one ended; under markedCalls.mu
	where   *list.Element // in markedCalls.oldest; nil while one is under way
}

// outcome says what is known of the call.
func (c *markedCall) outcome() Outcome {
	rec := c.record()
	return rec.Outcome()
}

// startsAfresh reports whether an attempt with mark m has nothing to do with
// what became of the call before: that failed for good, as AWS's calls do when
// they are throttled, or was answered, and whoever uses its key again asks what
// the server remembers.
func (m *mark) startsAfresh(o Outcome) bool {
	switch o {
	case Failed:
		return true
	case Succeeded, Incomplete:
		return m.keyed && m.count <= 0
	}
	return false
}

// The bounds of what is remembered of calls that no operation holds together.
const (
	maxMarked  = 1024
	longMarked = 5 * time.Minute
)

// A markedCalls remembers the calls of SDKs that went through a transport
// lately. The zero value is ready.
type markedCalls struct {
	mu     sync.Mutex
	byKey  map[markKey]*markedCall
	oldest list.List // of *markedCall of which nothing is under way, by the time they were seen
}

// claim returns the call with mark mk that key leads to, for one more RoundTrip
// of it; busy says that one is under way already. A call that its mark names is
// known from its first attempt on; of one that is known by its contents nil is
// returned if no attempt has failed.
func (m *markedCalls) claim(key markKey, mk *mark, now time.Time) (known *markedCall, busy bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known = m.byKey[key]
	switch {
	case known == nil:
	case known.running:
		return known, true
	case now.Sub(known.seen) > longMarked, mk.startsAfresh(known.outcome()):
		m.dropLocked(known)
		known = nil
	}
	switch {
	case known != nil:
		m.oldest.Remove(known.where)
	case mk.hash:
		return nil, false
	default:
		known = &markedCall{key: key}
		m.putLocked(known)
	}
	known.running, known.where = true, nil
	known.calls++
	return known, false
}

// add remembers c under its key, in place of what was there.
func (m *markedCalls) add(c *markedCall, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.byKey[c.key]; last != nil {
		m.dropLocked(last)
	}
	m.putLocked(c)
	c.seen, c.where = now, m.oldest.PushBack(c)
}

// putLocked makes room for c. A call that is under way is not forgotten: those
// are as many as their callers make.
func (m *markedCalls) putLocked(c *markedCall) {
	if m.oldest.Len() >= maxMarked {
		m.dropLocked(m.oldest.Front().Value.(*markedCall))
	}
	if m.byKey == nil {
		m.byKey = make(map[markKey]*markedCall)
	}
	m.byKey[c.key] = c
}

// leave says that a RoundTrip of c is over.
func (m *markedCalls) leave(c *markedCall, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.running, c.seen = false, now
	if m.byKey[c.key] == c {
		c.where = m.oldest.PushBack(c)
	}
}

// dropLocked forgets c.
func (m *markedCalls) dropLocked(c *markedCall) {
	delete(m.byKey, c.key)
	if c.where != nil {
		m.oldest.Remove(c.where)
	}
}

// claimMarked gives a call without an operation the record of the SDK's call
// that it is an attempt of, as far as the request tells.
func (c *call) claimMarked() error {
	keyHeader := ""
	if c.endpoint != nil {
		keyHeader = c.endpoint.KeyHeader
	}
	c.mark = markOf(c.req, keyHeader)
	m := &c.mark
	if m.id == "" && m.hash && m.count > 0 {
		id, err := idOfHash(c.req)
		if err != nil {
			return err
		}
		m.id, m.reads = id, true
	}
	if m.id == "" {
		return nil
	}
	known, busy := c.t.marked.claim(keyOfMark(c.req, m.id), m, time.Now())
	switch {
	case known == nil, busy && (m.hash || m.keyed): // of two calls alike, whose server tells them apart, or not
		return nil
	case busy:
		c.r = &known.request
		rec := c.r.record()
		return c.r.lost(c.req, &rec, Decide(rec, time.Now()), ErrInProgress).until(c.req.Context()).returned()
	}
	c.marked, c.r, c.n = known, &known.request, known.calls
	return nil
}

// leaveMarked ends the call's part in its SDK's call. The first attempt of one
// that is known by its contents only is remembered if it did not succeed.
func (c *call) leaveMarked() {
	switch {
	case c.marked != nil:
		c.t.marked.leave(c.marked, time.Now())
	case c.mark.hash && c.r == &c.own && !c.kept && c.tries > 0 && c.free():
		c.remember()
	}
}

// free reports whether nothing reads the last attempt's body any more: a
// GetBody may return that very reader.
func (c *call) free() bool {
	if !hasBody(c.req) || isSnapshot(c.req.GetBody) {
		return true
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return c.guard != nil && c.guard.await(now)
}

// remember keeps the record for a further attempt that declares itself one.
func (c *call) remember() {
	rec := c.own.record()
	if rec.settled() {
		return
	}
	id, err := idOfHash(c.req)
	if err != nil {
		return
	}
	known := &markedCall{key: keyOfMark(c.req, id), calls: 1}
	known.rec, known.cause = rec, c.own.lastCause()
	known.keyValue, known.delays = c.own.keyValue, c.own.delays
	c.t.marked.add(known, time.Now())
}
