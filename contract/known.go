package contract

// Known returns the contracts of the protocols that this package knows, in the
// order in which they should be asked: a look-alike comes after what it looks
// like where that is the stricter one.
func Known() []Contract {
	return []Contract{
		a2a(),
		a2aWrapped("result."),
		a2aWrapped(""),
		mcp(),
		mcpListening(),
		mcpSession(),
		langGraph(),
		vercelUI(),
		openAIResponses(),
		anthropic(),
		gemini(),
		geminiArray(),
		geminiInteractions(),
		openAIAssistants(),
		openAIAudio(),
		openAIImages(),
		cohere(),
		tgi(),
		watsonx(),
		openAIChat(),
		replicate(),
		bedrockConverse(),
		bedrockInvoke(),
		bedrockAgent(),
		bedrockAgentText(),
		awsException(),
		ollama(),
		kubernetes(),
		docker(),
		eventSource(),
	}
}
