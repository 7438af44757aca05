module github.com/rubicon-go/rubicon/cmd/rubicon

go 1.26.0

require github.com/rubicon-go/rubicon v0.0.0
