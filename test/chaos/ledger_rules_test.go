package chaos

import (
	"slices"
	"strings"
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
			a := examineLedger(parseLedger(c.text), boot)
			if a.executions != c.executions || !slices.Equal(entries(a.doubled), c.doubled) || !slices.Equal(entries(a.overlaps), c.overlaps) {
				t.Errorf("%+v, want %+v", a, c)
			}
		})
	}
	if a := examineLedger(parseLedger("3 0 start\n3 0 end\n4 0 start\n"), boot); a.finished[entry{3, 0}] != 1 || a.finished[entry{4, 0}] != 0 {
		t.Errorf("finished %v", a.finished)
	}
}

// boot is when the machine was started that writes the ledgers here.
var boot = time.Unix(1_000_000, 0)

// entries are the rounds of clashes.
func entries(clashes []clash) []entry {
	var all []entry
	for _, c := range clashes {
		all = append(all, c.entry)
	}
	return all
}

// at is so many seconds after it.
func at(seconds float64) time.Time { return boot.Add(time.Duration(seconds * float64(second))) }

// Programs say when they began, and when they were last heard of.
func TestLedgerTimes(t *testing.T) {
	t.Parallel()
	a := examineLedger(parseLedger("5 1 start 10.25 10.25\n5 1 beat 10.25 11.50\n5 1 start 12.00 12.01\n5 2 start 13.00 13.00\n"+
		"5 1 beat 12.00 13.50\n5 1 beat 10.25 13.75\n5 3 start 14.00 14.00\n5 1 end 10.25 14.50\n"), boot)
	one := entry{5, 1}
	if want := []clash{{one, at(10.25), at(12), time.Time{}}}; !slices.Equal(a.doubled, want) {
		t.Errorf("doubled %v, want %v", a.doubled, want)
	}
	if want := []clash{{one, at(12), at(13), at(13.5)}, {one, at(10.25), at(12), at(14.5)}}; !slices.Equal(a.overlaps, want) {
		t.Errorf("overlaps %v, want %v", a.overlaps, want)
	}
}

// A round may run again, or beside the next one, only around the moment in which a
// server notices that Redis has lost something.
func TestExcuse(t *testing.T) {
	t.Parallel()
	doubled := clash{first: at(100), second: at(200)}
	overlap := clash{first: at(100), second: at(200), until: at(203)}
	for name, c := range map[string]struct {
		noticed losses
		clash   clash
		excused bool
	}{
		"none noticed":                {nil, doubled, false},
		"none noticed, overlap":       {nil, overlap, false},
		"between":                     {losses{at(150)}, doubled, true},
		"right after the second":      {losses{at(200.1)}, doubled, true},
		"right after, overlap":        {losses{at(200.1)}, overlap, true},
		"at the end of the window":    {losses{at(205)}, doubled, true},
		"long after the second":       {losses{at(205.1)}, doubled, false},
		"long after, overlap":         {losses{at(205.1)}, overlap, false},
		"while the first began":       {losses{at(99)}, doubled, true},
		"before the first":            {losses{at(98.9)}, doubled, false},
		"before, overlap":             {losses{at(98.9)}, overlap, false},
		"before and after":            {losses{at(98.9), at(205.1)}, doubled, false},
		"the second one":              {losses{at(10), at(150)}, doubled, true},
		"over in time":                {losses{at(198)}, overlap, true},
		"lives on too long":           {losses{at(197.9)}, overlap, false},
		"without times":               {losses{at(100)}, clash{}, false},
		"the first is without a time": {losses{at(200)}, clash{second: at(200)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.noticed.excuse(c.clash); got != c.excused {
				t.Errorf("excused %t, want %t", got, c.excused)
			}
		})
	}
}

// A loss explains a round that ran twice if Redis died between the two begins.
func TestBetween(t *testing.T) {
	t.Parallel()
	doubled := clash{first: at(100), second: at(200)}
	for name, c := range map[string]struct {
		forgot  losses
		excused bool
	}{
		"none":                       {nil, false},
		"between":                    {losses{at(150)}, true},
		"while the first began":      {losses{at(99.5)}, true},
		"before the first":           {losses{at(99)}, false},
		"after the second":           {losses{at(200)}, false},
		"before and after":           {losses{at(98), at(201)}, false},
		"the second of two explains": {losses{at(98), at(199)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.forgot.between(doubled); got != c.excused {
				t.Errorf("excused %t, want %t", got, c.excused)
			}
		})
	}
}

// The log of all members tells when a loss was noticed.
func TestNotices(t *testing.T) {
	t.Parallel()
	const before = "2026/11/21 16:42:17 INFO processed manager=manager-1\n"
	const found = `{"level":"error","epoch":2,"changes":7,"time":"2026-11-21T16:42:17.595Z","message":"redis has lost at least 7 changes that"}` + "\n"
	const failed = `{"level":"error","time":"2026-11-21T16:42:17.600Z","message":"redis has lost changes, and no new epoch could be opened yet"}` + "\n"
	all, err := notices(before + found + failed)
	want := notice{2, time.Date(2026, 11, 21, 16, 42, 17, 595_000_000, time.UTC)}
	if err != nil || !slices.Equal(all, []notice{want}) {
		t.Errorf("%v, %v, want %v", all, err, want)
	}
	for _, bad := range []string{strings.Replace(found, `"epoch":2,`, "", 1), strings.Replace(found, `"time"`, `"at"`, 1), found[10:]} {
		if all, err := notices(bad); err == nil {
			t.Errorf("%q: %v", bad, all)
		}
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
			found := atOnce(all, func(manager string, s span) bool {
				return manager == "a" && frozen.from.Before(s.to) && s.from.Before(frozen.to)
			})
			var got []int64
			for _, e := range entries(found) {
				got = append(got, e.id)
			}
			if !slices.Equal(got, c.atOnce) || again(all) != c.again {
				t.Errorf("at once %v, again %d, want %v and %d", got, again(all), c.atOnce, c.again)
			}
		})
	}
}
