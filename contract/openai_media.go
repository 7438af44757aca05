package contract

import "bytes"

// openAIAudio is the contract of transcriptions and speech that are streamed as
// events.
//
// Events by type: text or sound in pieces, then transcript.text.done or
// speech.audio.done, then [DONE] (OpenAI, API reference, "Audio"). Look-alikes
// send [DONE] alone, which suffices. Speech that is sent as sound has no events
// and no contract.
func openAIAudio() Contract {
	return Contract{
		Protocol: "openai-audio",
		Framing:  SSE,
		Paths:    append(openAIMediaPaths(), "delta?", "text?", "audio?", "usage?"),
		Names:    namesOfMedia,
		Claim:    claimAudio,
		Read:     readMedia,
	}
}

// openAIImages is the contract of images whose generation or editing is
// streamed: partial images, then image_generation.completed or
// image_edit.completed (OpenAI, API reference, "Image streaming"). Of several
// images, the first one that is completed ends the stream.
func openAIImages() Contract {
	return Contract{
		Protocol: "openai-images",
		Framing:  SSE,
		Paths:    append(openAIMediaPaths(), "b64_json?", "partial_image_index?"),
		Names:    namesOfMedia,
		Claim:    claimImages,
		Read:     readMedia,
	}
}

// openAIMediaPaths returns what is looked at in events of either kind.
func openAIMediaPaths() []string {
	return []string{"type", "code", "message", "error", "error.type", "error.code", "error.message"}
}

// namesOfMedia spares the scan of what carries output. Most services give the
// type in the data only.
func namesOfMedia(name []byte) Use {
	switch string(name) {
	case "transcript.text.delta", "transcript.text.segment", "speech.audio.delta",
		"image_generation.partial_image", "image_edit.partial_image":
		return Skip
	}
	return Read
}

// claimAudio takes an event by its type and what such an event must have.
func claimAudio(_ *Answer, f *Frame) Claim {
	kind := f.Get("type")
	switch {
	case bytes.HasPrefix(kind, []byte("transcript.text.")):
		if f.Kind("delta") == String || f.Kind("text") == String {
			return Yes
		}
	case bytes.HasPrefix(kind, []byte("speech.audio.")):
		if f.Kind("audio") == String || f.Kind("delta") == String || f.Kind("usage") == Object {
			return Yes
		}
	}
	return Maybe
}

// claimImages takes an event by its type and what such an event must have.
func claimImages(_ *Answer, f *Frame) Claim {
	kind := f.Get("type")
	if (bytes.HasPrefix(kind, []byte("image_generation.")) || bytes.HasPrefix(kind, []byte("image_edit."))) &&
		(f.Kind("b64_json") == String || f.Kind("partial_image_index") == Number) {
		return Yes
	}
	return Maybe
}

// readMedia reads an event by the type that its data gives.
func readMedia(f *Frame, p *Progress) bool {
	switch kind := f.Get("type"); string(kind) {
	case "transcript.text.done", "speech.audio.done", "image_generation.completed", "image_edit.completed":
		p.Finish(Completed)
	case "error":
		failResponses(f, p)
	case "":
		return readMarker(f, p)
	default:
		return bytes.HasPrefix(kind, []byte("transcript.")) || bytes.HasPrefix(kind, []byte("speech.")) ||
			bytes.HasPrefix(kind, []byte("image_"))
	}
	return true
}

// readMarker reads what has no type: [DONE] or an error.
func readMarker(f *Frame, p *Progress) bool {
	switch {
	case f.Named("error") || f.Has("error"):
		failAs(f, p)
	case string(f.Text()) == doneMarker:
		p.Finish(Completed)
	default:
		return false
	}
	return true
}
