package contract

// Known returns the contracts of the protocols that this package knows, in the
// order in which they should be asked: a look-alike comes after what it looks
// like where that is the stricter one.
func Known() []Contract {
	return []Contract{
		openAIResponses(),
		anthropic(),
		gemini(),
		openAIChat(),
		ollama(),
		a2a(),
		a2aWrapped("result."),
		a2aWrapped(""),
		mcp(),
		mcpListening(),
		mcpSession(),
		kubernetes(),
		docker(),
		langGraph(),
		vercelUI(),
		eventSource(),
	}
}
