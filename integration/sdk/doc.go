// Package sdk tests Rubicon below the SDKs that people use: what a call of each
// of them does to a server that fails, over plain net/http and over Rubicon.
//
// It holds tests only. Each SDK has a file that says how it makes one call and
// what it takes for a whole answer; the other files make all of them meet the
// same faults.
//
//	GOWORK=off go -C integration/sdk test ./...
//	GOWORK=off go -C integration/sdk test -run TestOneEffect -v
package sdk
