package chaos

import (
	"slices"
	"testing"
	"time"
)

// What the ledgers say must be seen, or the run proves nothing.
func TestLedger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text              string
		executions        int
		doubled, overlaps []entry
	}{
		"one after the other": {"1 0 start\n1 0 beat\n1 1 start\n1 1 end\n", 2, nil, nil},
		"two tasks at once":   {"1 0 start\n2 0 start\n1 0 end\n2 0 end\n", 2, nil, nil},
		"begun again":         {"1 0 start\n1 0 end\n1 0 start\n", 2, []entry{{1, 0}}, nil},
		"lives on":            {"1 0 start\n1 1 start\n1 0 beat\n1 0 beat\n1 1 end\n", 2, nil, []entry{{1, 0}}},
		"ends too late":       {"7 1 start\n7 2 start\n7 2 end\n7 1 end\n", 2, nil, []entry{{7, 1}}},
		"cut by a kill":       {"1 0 start\n1 0 en", 1, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := examineLedger(parseLedger(c.text))
			if a.executions != c.executions || !slices.Equal(a.doubled, c.doubled) || !slices.Equal(a.overlaps, c.overlaps) {
				t.Errorf("%+v, want %+v", a, c)
			}
		})
	}
	if a := examineLedger(parseLedger("3 0 start\n3 0 end\n4 0 start\n")); a.finished[entry{3, 0}] != 1 || a.finished[entry{4, 0}] != 0 {
		t.Errorf("finished %v", a.finished)
	}
}

// Two managers at one task are seen, unless the first one was frozen, or had died.
func TestHandledAtOnce(t *testing.T) {
	t.Parallel()
	frozen := span{time.UnixMicro(100), time.UnixMicro(200)}
	for name, c := range map[string]struct {
		text   string
		atOnce []int64
		again  int
	}{
		"in turn":          {"1 0 start a 1 7\n1 0 end a 2 7\n2 0 start b 3 8\n2 0 end b 4 8\n", nil, 0},
		"handed over":      {"1 0 start a 1 7\n1 0 end a 2 7\n1 0 start b 3 8\n1 0 end b 4 8\n", nil, 1},
		"at once":          {"1 0 start a 1 7\n1 0 start b 2 8\n1 0 end b 3 8\n1 0 end a 4 7\n", []int64{1}, 1},
		"after a death":    {"1 0 start a 1 7\n1 0 start b 2 8\n1 0 end b 3 8\n", nil, 1},
		"after a freeze":   {"1 0 start a 99 7\n1 0 start b 150 8\n1 0 end b 151 8\n1 0 end a 201 7\n", nil, 1},
		"freeze elsewhere": {"1 0 start b 99 7\n1 0 start a 150 8\n1 0 end a 151 8\n1 0 end b 201 7\n", []int64{1}, 1},
		"by itself":        {"1 0 start a 1 7\n1 0 end a 2 7\n1 0 start a 3 9\n", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := handlings(parseLedger(c.text))
			got := atOnce(all, func(manager string, s span) bool {
				return manager == "a" && frozen.from.Before(s.to) && s.from.Before(frozen.to)
			})
			if !slices.Equal(got, c.atOnce) || again(all) != c.again {
				t.Errorf("at once %v, again %d, want %v and %d", got, again(all), c.atOnce, c.again)
			}
		})
	}
}
