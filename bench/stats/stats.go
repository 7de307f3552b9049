// Package stats has the arithmetic that benchmarks share.
package stats

import "slices"

// Median returns the middle value, or the mean of the two in the middle, and 0 of nothing.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Ratios divides round by round.
func Ratios(values, by []float64) []float64 {
	out := make([]float64, 0, len(values))
	for i, v := range values {
		out = append(out, v/by[i])
	}
	return out
}
