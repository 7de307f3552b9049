package redistest

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// The clock of a server that runs can be set, in both directions.
func TestClock(t *testing.T) {
	t.Parallel()
	clock := NewClock(t)
	clock.Set(t, -time.Hour)
	s := Start(t, WithClock(clock))
	for _, want := range []time.Duration{-time.Hour, time.Hour, -1500 * time.Millisecond, 0} {
		clock.Set(t, want)
		sent := time.Now()
		now, _ := s.Do(t, "TIME").([]any)
		seconds, err := strconv.ParseInt(fmt.Sprint(now[0]), 10, 64)
		micros, err2 := strconv.ParseInt(fmt.Sprint(now[1]), 10, 64)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if off := time.Unix(seconds, 0).Sub(sent); off < want-time.Second || off > want+time.Since(sent) || micros < 0 || micros > 999999 {
			t.Errorf("the clock is off by %v (%d us), want %v", off, micros, want)
		}
	}
}
