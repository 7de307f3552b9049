package manager

import (
	"testing"
	"time"
)

func TestHandfulGrowsWhereHandlersAreQuick(t *testing.T) {
	t.Parallel()
	var h batchSizer
	steps := []struct {
		n    int
		took time.Duration
		want int
	}{
		{16, time.Millisecond, 32},
		{20, time.Millisecond, 32}, // no more were there
		{32, shortTime, 64},
		{64, time.Millisecond, mostAtOnce},
		{64, shortTime + 1, readAtOnce},
		{3, time.Hour, readAtOnce},
		{16, time.Millisecond, 32},
	}
	if n := h.size(); n != readAtOnce {
		t.Fatalf("the first batch has %d tasks, want %d", n, readAtOnce)
	}
	for i, s := range steps {
		if h.took(s.n, s.took); h.size() != s.want {
			t.Errorf("step %d: after %d tasks in %v the next batch has %d, want %d", i, s.n, s.took, h.size(), s.want)
		}
	}
}
