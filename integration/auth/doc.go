// Package auth tests Rubicon's credentials against real authorization servers,
// ory/fosite and mockoidc, and beside what others make of a rejected token.
//
// It holds tests only. A test of a public report has the report's number in its
// name.
//
//	GOWORK=off go -C integration/auth test ./...
//	GOWORK=off go -C integration/auth test -race -run TestStress -stress 1m
package auth
