package blame

import (
	"math"
	"testing"
	"time"
)

func TestExcuse(t *testing.T) {
	t.Parallel()
	fine, once := Record{Good: 200}, failed(1)
	passed := func(run int) Record { return Record{Good: 50, Bad: run, Run: run, Fresh: run} }
	for what, c := range map[string]struct {
		e      Evidence
		others int
		n      Node
		alive  int
		want   bool
	}{
		"quarantined":                         {of("p", passed(1), fine), 4, Node{Quarantined: true}, 1, true},
		"alone":                               {of("p", failed(9), fine), 0, Node{}, 1, false},
		"fails what others pass":              {of("p", passed(3), fine), 4, Node{}, 5, true},
		"unless much still runs":              {of("p", passed(3), fine), 4, Node{Running: 16}, 5, false},
		"others pass it":                      {of("p", once, fine), 0, Node{}, 5, true},
		"nobody has tried it":                 {of("p", once), 0, Node{}, 5, true},
		"one other fails it":                  {of("p", once, once), 0, Node{}, 5, true},
		"two others fail it":                  {of("p", once, once, once), 0, Node{}, 5, false},
		"the only other fails it":             {of("p", once, once), 0, Node{}, 2, false},
		"two others fail it, more pass":       {of("p", once, once, once, Record{Good: 3}), 0, Node{}, 5, true},
		"two others fail it, as many pass":    {of("p", once, once, once, Record{Good: 2}), 0, Node{}, 5, true},
		"two others fail it, fewer pass":      {of("p", once, once, once, Record{Good: 1}), 0, Node{}, 5, false},
		"the task failed on one other":        {of("p", once, fine), 1, Node{}, 5, true},
		"the task failed on two others":       {of("p", once, fine), 2, Node{}, 5, false},
		"the task failed on the only other":   {of("p", once, fine), 1, Node{}, 2, false},
		"nobody else ever tries it":           {of("p", failed(MostDoubts)), 0, Node{}, 5, true},
		"and it fails and fails":              {of("p", failed(MostDoubts+1)), 0, Node{}, 5, false},
		"one failure on a node that passes":   {of("p", passed(1), fine), 0, Node{}, 5, false},
		"two in a row on it":                  {of("p", passed(2), fine), 0, Node{}, 5, true},
		"two in a row, a fifth fails":         {of("p", passed(2), Record{Good: 801, Bad: 199}), 0, Node{}, 5, true},
		"two in a row, more than a fifth":     {of("p", passed(2), Record{Good: 799, Bad: 201}), 0, Node{}, 5, false},
		"two in a row, nobody else has tried": {of("p", passed(2)), 0, Node{}, 5, false},
	} {
		if got := Excuse(Failure{Node: "n", Others: c.others}, c.e, c.n, c.alive); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestGated(t *testing.T) {
	t.Parallel()
	for n, want := range map[Node]bool{{}: false, {Run: GateRun - 1}: false, {Run: GateRun}: true, {Quarantined: true}: true} {
		if n.Gated() != want {
			t.Errorf("%+v: %v", n, !want)
		}
	}
}

func TestNextTrial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trials      int
		first, want time.Duration
	}{
		{-1, time.Minute, time.Minute},
		{0, time.Minute, time.Minute},
		{1, time.Minute, 2 * time.Minute},
		{5, time.Minute, 32 * time.Minute},
		{6, time.Minute, time.Hour},
		{math.MaxInt, time.Minute, time.Hour},
		{1, 30 * time.Minute, time.Hour},
		{3, 2 * time.Hour, 2 * time.Hour},
		{math.MaxInt, math.MaxInt64, math.MaxInt64},
		{math.MaxInt, 0, 0},
	} {
		if got := NextTrial(c.trials, c.first); got != c.want {
			t.Errorf("after %d, first %v: %v, want %v", c.trials, c.first, got, c.want)
		}
	}
}
