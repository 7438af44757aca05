package contract

import "bytes"

// bedrockConverse is the contract of Bedrock's ConverseStream.
//
// An event stream: messageStart, blocks of content in pieces, messageStop with
// the stopReason, metadata with the usage (AWS, API_runtime_ConverseStreamOutput).
// messageStop suffices: what lacks metadata is an answer of unknown usage.
// Exceptions are messages of their own and may follow anything.
func bedrockConverse() Contract {
	return Contract{
		Protocol: "bedrock-converse",
		Framing:  EventStream,
		Paths:    append(awsPaths(), "role", "stopReason", "contentBlockIndex?"),
		Names:    namesOfConverse,
		Claim:    claimConverse,
		Read:     readConverse,
	}
}

// namesOfConverse spares the scan of what carries output.
func namesOfConverse(name []byte) Use {
	switch string(name) {
	case "contentBlockStart", "contentBlockDelta", "contentBlockStop":
		return Skip
	}
	return Read
}

// claimConverse takes an event by its name and what such an event must have.
func claimConverse(_ *Answer, f *Frame) Claim {
	switch {
	case f.Origin != Event:
	case f.Named("messageStart") && f.Kind("role") == String,
		bytes.HasPrefix(f.Name, []byte("contentBlock")) && f.Kind("contentBlockIndex") == Number,
		f.Named("messageStop") && f.Kind("stopReason") == String:
		return Yes
	}
	return Maybe
}

// readConverse reads a message.
func readConverse(f *Frame, p *Progress) bool {
	switch {
	case f.Origin == Exception:
		failAWS(f, p)
	case f.Named("messageStop"):
		stopConverse(p, f.Get("stopReason"))
		p.Finish(Completed)
	default:
		return f.Named("messageStart") || f.Named("metadata") || namesOfConverse(f.Name) == Skip
	}
	return true
}

// stopConverse notes a stop reason of Converse, and of Nova.
func stopConverse(p *Progress, reason []byte) {
	switch string(reason) {
	case "max_tokens", "guardrail_intervened", "content_filtered", "model_context_window_exceeded",
		"malformed_model_output", "malformed_tool_use":
		p.Stop(Incomplete, reason)
	default:
		p.Stop(Completed, reason)
	}
}

// awsException is the contract of an event stream of any AWS service that
// begins with an exception, which says nothing of the service: it has failed.
func awsException() Contract {
	return Contract{
		Protocol: "aws-eventstream",
		Framing:  EventStream,
		Paths:    awsPaths(),
		Claim:    claimException,
		Read:     readException,
	}
}

// claimException takes an exception.
func claimException(_ *Answer, f *Frame) Claim {
	if f.Origin == Exception {
		return Yes
	}
	return Maybe
}

// readException reads an exception.
func readException(f *Frame, p *Progress) bool {
	if f.Origin == Exception {
		failAWS(f, p)
	}
	return true
}

// awsPaths returns what is looked at in an exception.
func awsPaths() []string { return []string{"message", "Message", "originalStatusCode"} }

// failAWS notes an exception by its type, or an error by its code. The data of
// an error is text.
func failAWS(f *Frame, p *Progress) {
	message := f.Get("message")
	if message == nil {
		message = f.Get("Message")
	}
	if message == nil {
		message = f.Text()
	}
	p.Fail(f.Name, f.Get("originalStatusCode"), message)
}
