package contract_test

import "slices"

func init() {
	readers["gemini-interactions"] = typeReader("event_type", "interaction.completed", "interaction.complete")
	readers["openai-audio"] = typeReader("type", "transcript.text.done", "speech.audio.done")
	readers["openai-images"] = typeReader("type", "image_generation.completed", "image_edit.completed")
	readers["cohere-v2"] = typeReader("type", "message-end")
	readers["openai-assistants"] = func() reader {
		return func(name, text string, _ map[string]any) bool {
			return name == "thread.run.completed" || name == "thread.run.incomplete" ||
				name == "thread.run.requires_action" || text == doneMarker
		}
	}
	readers["watsonx"] = func() reader {
		return func(_, _ string, v map[string]any) bool {
			results, _ := v["results"].([]any)
			return len(results) == 1 && results[0].(map[string]any)["stop_reason"] != "not_finished"
		}
	}
	readers["bedrock-converse"] = func() reader {
		return func(name, _ string, _ map[string]any) bool { return name == "messageStop" }
	}
	readers["bedrock-invoke"] = func() reader { return invokeProves }
	readers["gemini-json-array"] = geminiReader
}

const doneMarker = "[DONE]"

// typeReader waits for an event whose member says one of the types.
func typeReader(member string, types ...string) func() reader {
	return func() reader {
		return func(_, _ string, v map[string]any) bool {
			kind, _ := v[member].(string)
			return slices.Contains(types, kind)
		}
	}
}

// invokeProves knows the last chunks of the recorded models.
func invokeProves(_, _ string, v map[string]any) bool {
	_, metrics := v["amazon-bedrock-invocationMetrics"]
	_, count := v["totalOutputTextTokenCount"].(float64)
	return metrics || v["messageStop"] != nil || v["is_finished"] == true || count
}
