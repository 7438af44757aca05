package bench

import (
	"slices"
	"testing"
	"time"
)

// turns lets the contestants work by turns, and returns the median time of each.
// Which begins changes from turn to turn.
func turns(b *testing.B, contestants ...func() error) []time.Duration {
	times := make([][]time.Duration, len(contestants))
	for turn := 0; b.Loop(); turn++ {
		for i := range contestants {
			i = (i + turn) % len(contestants)
			begun := time.Now()
			if err := contestants[i](); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(begun))
		}
	}
	medians := make([]time.Duration, len(contestants))
	for i := range times {
		slices.Sort(times[i])
		medians[i] = times[i][len(times[i])/2]
	}
	b.ReportMetric(0, "ns/op") // of a turn: of no use
	return medians
}

// ratio returns a/b.
func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// each returns the nanoseconds of each of n parts of d.
func each(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) }
