// Package bench measures what a [rubicon.Transport] costs beside what real
// programs run with it. It has no code of its own, only benchmarks, and tests
// that the contestants do the same work:
//
//	GOWORK=off go -C bench test ./...
//	GOWORK=off go -C bench test -run '^$' -bench . -count 6 ./...
//
// Each benchmark measures its baseline in the same run, turn by turn with what
// it is compared with, and reports the ratio of the two medians. Read the
// ratios, not the times, which are the machine's, and take the median of
// several passes.
//
//   - BenchmarkSDK answers: how much longer does an SDK take over a whole stream
//     when a Transport is below it? The streams are decoded by openai-go,
//     sashabaranov/go-openai and anthropic-sdk-go, from a stub and over loopback.
//     added-% is the difference of the two times, and within the noise of most
//     machines. share-% is what the guarded body costs by itself over the same
//     bytes in the same pieces, divided by the time of the whole decode: the
//     target is at most 1.
//   - BenchmarkLines answers: how fast is the guarded body, beside the line
//     decoders inside the SDKs, which do no JSON? x-lines is how many times
//     faster, x-newlines its speed as a part of a bare search for line feeds.
//   - BenchmarkUnary answers: what does one RoundTrip cost over a stub, beside
//     nothing at all (raw), beside x/oauth2's Transport, which adds a header,
//     and beside go-retryablehttp? x-raw is the ratio to raw. Over a stub a
//     Transport gathers no evidence, since there is none; what evidence costs
//     is in BenchmarkRoundTrip of the root and in BenchmarkLoopback.
//   - BenchmarkLoopback answers the same over a real connection, where a
//     Transport gathers all the evidence. Allocations are the whole process's,
//     the server's included; subtract raw's.
//
// The watcher alone is measured in package contract, the guarded body over
// 64 MiB in the root.
package bench
