package stats

import (
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{9, 1, 5, 6}, 5.5}} {
		before := slices.Clone(tc.values)
		if got := Median(tc.values); got != tc.want {
			t.Errorf("median of %v: %v", tc.values, got)
		}
		if !slices.Equal(before, tc.values) {
			t.Errorf("%v was sorted in place", before)
		}
	}
}

func TestRatios(t *testing.T) {
	t.Parallel()
	if got := Ratios([]float64{4, 9}, []float64{2, 3}); !slices.Equal(got, []float64{2, 3}) {
		t.Error(got)
	}
}
