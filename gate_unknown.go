//go:build !go1.26 || go1.28

package rubicon

// gateKnown forbids rule P: this Go release was not tried. See gate_known.go.
const gateKnown = false
