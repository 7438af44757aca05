// Package rubicontest has servers that fail on purpose, for tests of what a
// client does when a request meets the failure.
//
// A [Server] listens on loopback and plays a script: the n-th request gets the
// n-th [Fault], and the last one repeats. A Fault says, in the order in which
// it happens, how much of the request is read, whether the server acts on it,
// and what becomes of the answer:
//
//	srv := rubicontest.NewServer(rubicontest.H1,
//		rubicontest.Act().Close(),                   // acts, and the answer is lost
//		rubicontest.Act().Answer(200, "paid\n"),     // acts and answers
//	)
//	defer srv.Close()
//
// The server counts connections, requests and effects. That is the truth
// against which a test compares what the client was told: a request counts when
// its header block is complete, an effect when a Fault acts.
//
// Around it are the other things that stand between a client and a server:
// [Proxy] answers CONNECT, [Resolver] answers for names, [Relay] loses traffic
// without a word, [Refused] is an address at which nobody listens, and
// [Unanswered] one at which a connection is never established.
//
// [CheckContract] is for who writes a contract of their own for a streamed
// protocol: it compares what the contract says of recorded bodies, cut and
// changed in many ways, with what must be said of them.
//
// Everything that listens does so on 127.0.0.1, on ports that the system picks.
// Close ends each of these and returns when its goroutines have ended.
package rubicontest
