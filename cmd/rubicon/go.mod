module github.com/rubicon-go/rubicon/cmd/rubicon

go 1.26.0

require (
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/rubicon-go/rubicon v0.0.0
	golang.org/x/net v0.62.0
	golang.org/x/oauth2 v0.38.0
)

// tests
require go.uber.org/goleak v1.3.0

require (
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	golang.org/x/text v0.43.0 // indirect
)
