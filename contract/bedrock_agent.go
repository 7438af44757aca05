package contract

// bedrockAgent is the contract of Bedrock's InvokeAgent and InvokeInlineAgent,
// where the stream begins with a trace, files, or control that is returned.
//
// An event stream of chunks of text and of traces, without a terminal event:
// the body ends at the boundary of a frame (AWS, API_agent-runtime_ResponseStream).
// An agent that returns control waits for the result of an action.
func bedrockAgent() Contract {
	return Contract{
		Protocol: "bedrock-agent",
		Framing:  EventStream,
		Paths:    append(awsPaths(), "sessionId?", "trace?", "invocationId?", "files?"),
		EOF:      EOFEnds,
		Names:    namesOfAgent,
		Claim:    claimAgent,
		Read:     readAgent,
	}
}

// bedrockAgentText is the same contract where the stream begins with a chunk.
// What its base64 holds tells it from a model's chunk: text, and no JSON.
func bedrockAgentText() Contract {
	c := bedrockAgent()
	c.Inside = "bytes"
	c.Claim = claimAgentText
	return c
}

// namesOfAgent spares the scan of output and of traces.
func namesOfAgent(name []byte) Use {
	switch string(name) {
	case "chunk", "trace", "files":
		return Skip
	}
	return Read
}

// claimAgent takes an event that no model has, by what it must have.
func claimAgent(_ *Answer, f *Frame) Claim {
	switch {
	case f.Origin != Event:
	case f.Named("trace") && f.Kind("trace") == Object && f.Kind("sessionId") == String,
		f.Named("returnControl") && f.Kind("invocationId") == String,
		f.Named("files") && f.Kind("files") == Array:
		return Yes
	}
	return Maybe
}

// claimAgentText takes a chunk that is text. One that is JSON may be a model's,
// so nobody takes it.
func claimAgentText(_ *Answer, f *Frame) Claim {
	if f.Origin == Event && f.Named("chunk") && !f.JSON() {
		return Yes
	}
	return Maybe
}

// readAgent reads a message.
func readAgent(f *Frame, p *Progress) bool {
	switch {
	case f.Origin == Exception:
		failAWS(f, p)
	case f.Named("returnControl"):
		p.Stop(Incomplete, f.Name)
	default:
		return namesOfAgent(f.Name) == Skip
	}
	return true
}
