//go:build go1.26 && !go1.28

package rubicon

// gateKnown admits rule P for the Go releases of this file's build constraint.
// To admit another, run TestRuleP and TestChaos -chaos.requests=60000 under it.
const gateKnown = true
