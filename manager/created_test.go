package manager

import (
	"testing"
	"time"
)

// When a task was made does not change when it is held or released.
func TestCreated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields map[string]string
		want   int64
	}{
		{map[string]string{}, 0},
		{map[string]string{"0:open": "5"}, 5},
		{map[string]string{"0:blocked": "5"}, 5},
		{map[string]string{"0:blocked": "5", "0:open": "9"}, 5},
		{map[string]string{"0:blocked": "9", "0:open": "5"}, 5},
		{map[string]string{"created": "3", "0:blocked": "9", "0:open": "5"}, 3},
	} {
		var want time.Time
		if c.want > 0 {
			want = time.Unix(c.want, 0)
		}
		if got := created(c.fields); !got.Equal(want) {
			t.Errorf("%v: made at %v, want %v", c.fields, got, want)
		}
	}
}
