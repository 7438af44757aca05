package contract_test

func init() {
	readers["mcp"] = func() reader {
		return func(_, _ string, v map[string]any) bool {
			return v["method"] == nil && (v["result"] != nil || v["error"] != nil)
		}
	}
	readers["a2a"] = a2aReader
}

// a2aReader knows what the recordings have: updates that say final, or errors.
func a2aReader() reader {
	return func(_, _ string, v map[string]any) bool {
		result, _ := v["result"].(map[string]any)
		return result["final"] == true || v["error"] != nil
	}
}
