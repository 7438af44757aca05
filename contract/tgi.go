package contract

// tgi is the contract of /generate_stream of Hugging Face's Text Generation
// Inference; its chat is Chat Completions.
//
// Data-only events, one a token. The last one has the generated_text, which is
// null before (router/src/server.rs), and there is no marker. Its details,
// where they were asked for, give the finish_reason. A failure is an error of
// text, with an error_type.
func tgi() Contract {
	return Contract{
		Protocol: "tgi",
		Framing:  SSE,
		Paths:    []string{"token?", "token.id?", "generated_text?", "details.finish_reason", "error", "error_type"},
		Claim:    claimTGI,
		Read:     readTGI,
	}
}

// claimTGI takes a token or a failure.
func claimTGI(_ *Answer, f *Frame) Claim {
	if isToken(f) && f.Kind("token.id") == Number || f.Kind("error") == String && f.Kind("error_type") == String {
		return Yes
	}
	return Maybe
}

// isToken reports whether f is a token, which says of the whole text whether it
// is there.
func isToken(f *Frame) bool {
	return f.Kind("token") == Object && f.Kind("generated_text") != Absent
}

// readTGI reads a token or a failure.
func readTGI(f *Frame, p *Progress) bool {
	switch {
	case f.Named("error") || f.Has("error"):
		p.Fail(f.Get("error_type"), nil, f.Get("error"))
	case f.Kind("generated_text") == String:
		endTGI(p, f.Get("details.finish_reason"))
	default:
		return f.Kind("token") == Object
	}
	return true
}

// endTGI notes the last token. Reasons are length, eos_token, stop_sequence.
func endTGI(p *Progress, reason []byte) {
	s := Completed
	if string(reason) == "length" {
		s = Incomplete
	}
	p.Stop(s, reason)
	p.Finish(s)
}
