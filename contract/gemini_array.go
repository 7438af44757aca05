package contract

// geminiArray is the contract of generateContent without alt=sse: the chunks
// that [gemini] knows as events are the elements of one JSON array that is sent
// piece by piece.
//
// The array must be closed, and a finishReason have come for each candidate.
// With enum-encoding=int the reasons are numbers. A failure is an element with
// an error in the envelope of Google's APIs. Arrays are common, so a claim
// needs members that come together nowhere else.
func geminiArray() Contract {
	return Contract{
		Protocol: "gemini-json-array",
		Framing:  Elements,
		Paths:    append(geminiPaths(), "candidates[].content.parts?"),
		EOF:      EOFAfterStop,
		Claim:    claimGeminiArray,
		Read:     readGemini,
	}
}

// claimGeminiArray takes a chunk, or an error of Google's.
func claimGeminiArray(_ *Answer, f *Frame) Claim {
	switch {
	case f.Kind("candidates") == Array:
		if f.Kind("usageMetadata") == Object || f.Has("candidates[].finishReason") ||
			f.Kind("candidates[].content.parts") == Array {
			return Yes
		}
	case f.Has("promptFeedback.blockReason"):
		return Yes
	case isGemini(f) && f.Kind("modelVersion") == String:
		return Yes
	case f.Kind("error.code") == Number && isGoogleStatus(f.Get("error.status")):
		return Yes
	}
	return Maybe
}

// isGoogleStatus reports whether text is a code of google.rpc.Code.
func isGoogleStatus(text []byte) bool {
	switch string(text) {
	case "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
		"OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS":
		return true
	}
	return false
}
