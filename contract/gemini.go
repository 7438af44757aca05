package contract

// gemini is the contract of generateContent with alt=sse, of the Gemini API and
// of Vertex.
//
// Data-only events without any terminal: the last chunk has a finishReason for
// each candidate, and the body ends (Google, "GenerateContentResponse"). Early
// wires said STOP on every chunk; the worst reason counts. A blocked prompt is
// answered by a promptFeedback.blockReason without candidates. Errors come as
// data or as bare JSON between the events. The clients read lines, so a last
// chunk counts that lacks its blank line.
func gemini() Contract {
	return Contract{
		Protocol: "gemini-generatecontent",
		Framing:  SSE,
		Paths:    geminiPaths(),
		EOF:      EOFAfterLine,
		Claim:    claimGemini,
		Read:     readGemini,
	}
}

// geminiPaths returns what is looked at in a GenerateContentResponse.
func geminiPaths() []string {
	return []string{
		"candidates", "candidates[]", "candidates[].index", "candidates[].finishReason",
		"candidates[].content?", "candidates[].safetyRatings?",
		"promptFeedback?", "promptFeedback.blockReason", "responseId", "usageMetadata?", "modelVersion?",
		"error", "error.status", "error.code", "error.message",
	}
}

// claimGemini takes a response by what is in or beside its candidates, which
// others have as well, or an error in the envelope of Google's APIs.
func claimGemini(_ *Answer, f *Frame) Claim {
	switch {
	case f.Kind("error") == Object && f.Kind("error.code") == Number && f.Has("error.status"):
		return Yes
	case !isGemini(f):
		return Maybe
	}
	return yesIf(f.Kind("candidates[].content") == Object || f.Has("candidates[].finishReason") ||
		f.Kind("candidates[].safetyRatings") == Array || f.Kind("promptFeedback") == Object ||
		f.Kind("usageMetadata") == Object || f.Kind("modelVersion") == String)
}

// isGemini reports whether f is a GenerateContentResponse.
func isGemini(f *Frame) bool {
	return f.Kind("candidates") == Array || f.Kind("promptFeedback") == Object ||
		f.Kind("usageMetadata") == Object && f.Kind("modelVersion") == String
}

// readGemini reads a response or an error.
func readGemini(f *Frame, p *Progress) bool {
	switch {
	case f.Named("error") || f.Has("error"):
		failGoogle(f, p)
		return true
	case !isGemini(f):
		return false
	}
	p.ID(f.Get("responseId"))
	if reason := f.Get("promptFeedback.blockReason"); isReason(reason) {
		p.Stop(Incomplete, reason)
	}
	for i := range f.Len("candidates[]") {
		readCandidate(f, p, i)
	}
	return true
}

// readCandidate reads the i-th candidate of a response.
func readCandidate(f *Frame, p *Progress, i int) {
	index := 0
	if text := f.At("candidates[].index", i); text != nil {
		index = decimal(text)
	}
	switch reason := f.At("candidates[].finishReason", i); {
	case !isReason(reason):
		p.Part(index)
	case string(reason) == "STOP" || string(reason) == "1":
		p.StopPart(index, Completed, reason)
	default:
		p.StopPart(index, Incomplete, reason)
	}
}

// isReason reports whether text is a reason. With enum-encoding=int they are
// numbers, and 0 is none.
func isReason(text []byte) bool {
	switch string(text) {
	case "", "0", "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED":
		return false
	}
	return true
}

// failGoogle notes an error in the envelope of Google's APIs.
func failGoogle(f *Frame, p *Progress) {
	message := f.Get("error.message")
	if message == nil {
		message = f.Get("error")
	}
	p.Fail(f.Get("error.status"), f.Get("error.code"), message)
}
