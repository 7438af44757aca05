package contract

import "bytes"

// ollama is the contract of Ollama's own API: chat, generate, pull, push and
// create.
//
// One JSON object a line; the last one has done true (docs/api/streaming.mdx),
// in newer backends perhaps only a done_reason; of pull and its kin the last
// one has status success. A line with an error ends the stream (errors.mdx).
func ollama() Contract {
	return Contract{
		Protocol: "ollama",
		Framing:  Lines | Values,
		Paths: []string{"model?", "done", "done_reason", "status", "digest?", "id?", "error",
			"created_at?", "message?", "response?"},
		Claim: claimOllama,
		Read:  readOllama,
	}
}

// claimOllama takes a line with a model, done and what else an answer has, or
// the first status of a transfer.
func claimOllama(_ *Answer, f *Frame) Claim {
	done := f.Kind("done")
	switch {
	case f.Kind("model") == String && (done == True || done == False || f.Has("done_reason")):
		return yesIf(f.Kind("created_at") == String || f.Kind("message") == Object || f.Kind("response") == String)
	case isOllamaStatus(f.Get("status")) && f.Kind("id") == Absent:
		return Yes
	}
	return Maybe
}

// isOllamaStatus reports whether a transfer of Ollama's begins with the status.
func isOllamaStatus(status []byte) bool {
	switch string(status) {
	case "pulling manifest", "retrieving manifest", "gathering model components",
		"reading model metadata", "creating model layer", "creating system layer", "parsing modelfile":
		return true
	}
	return bytes.HasPrefix(status, []byte("using existing layer sha256:"))
}

// readOllama reads a line.
func readOllama(f *Frame, p *Progress) bool {
	switch {
	case f.Has("error"):
		p.Fail(nil, nil, f.Get("error"))
	case f.Kind("done") == True || f.Has("done_reason"):
		finishOllama(p, f.Get("done_reason"))
	case f.Is("status", "success"):
		p.Finish(Completed)
	default:
		return f.Kind("model") == String || f.Kind("status") == String
	}
	return true
}

// finishOllama notes the last line.
func finishOllama(p *Progress, reason []byte) {
	s := Completed
	if string(reason) == "length" {
		s = Incomplete
	}
	p.Stop(s, reason)
	p.Finish(s)
}
