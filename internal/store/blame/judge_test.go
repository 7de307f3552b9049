package blame

import (
	"math"
	"testing"
)

// of is the evidence of one program: the record of node n, and of the others.
func of(_ string, n Record, others ...Record) Evidence {
	e := Evidence{"n": n}
	for i, r := range others {
		e[name(i)] = r
	}
	return e
}

// failed is the record of a node that has failed everything.
func failed(run int) Record { return Record{Bad: run, Run: run, Fresh: run} }

func TestJudge(t *testing.T) {
	t.Parallel()
	fine, broken, half := Record{Good: 200}, Record{Bad: 20, Run: 20, Fresh: 20}, Record{Good: 500, Bad: 500}
	for what, c := range map[string]struct {
		run, running, alive int
		evidence            []Evidence
		want                Verdict
	}{
		"nothing failed":                        {0, 0, 5, []Evidence{of("p", Record{Good: 1}, fine)}, Forgive},
		"fails what 200 passed":                 {3, 0, 5, []Evidence{of("p", failed(3), fine)}, Quarantine},
		"two are too few":                       {2, 0, 5, []Evidence{of("p", failed(2), Record{Good: 1e6})}, Suspect},
		"one is nothing special":                {1, 0, 5, []Evidence{of("p", failed(1), fine)}, Forgive},
		"few elsewhere need a longer run":       {5, 0, 5, []Evidence{of("p", failed(5), Record{Good: 13})}, Suspect},
		"which it then is":                      {10, 0, 5, []Evidence{of("p", failed(10), Record{Good: 13})}, Quarantine},
		"alone":                                 {50, 0, 1, []Evidence{of("p", failed(50), fine)}, Forgive},
		"nobody else has run it":                {5, 0, 5, []Evidence{of("p", failed(5))}, Suspect},
		"nor will, and the node passes others":  {5, 0, 5, []Evidence{of("p", failed(5)), of("q", Record{Good: 1})}, Forgive},
		"others have begun and not failed":      {5, 0, 5, []Evidence{of("p", failed(5), Record{Good: 2})}, Suspect},
		"fails everywhere":                      {30, 0, 5, []Evidence{of("p", failed(30), broken)}, Forgive},
		"shown by three":                        {5, 0, 5, []Evidence{of("p", failed(5), Record{Bad: 3})}, Forgive},
		"not by two":                            {5, 0, 5, []Evidence{of("p", failed(5), Record{Bad: 2})}, Suspect},
		"half fail: 9 are nothing special":      {9, 0, 5, []Evidence{of("p", failed(9), half)}, Forgive},
		"half fail: 11 are":                     {11, 0, 5, []Evidence{of("p", failed(11), half)}, Suspect},
		"half fail: 19 may be an accident":      {19, 0, 5, []Evidence{of("p", failed(19), half)}, Suspect},
		"half fail: 21 are no accident":         {21, 0, 5, []Evidence{of("p", failed(21), half)}, Quarantine},
		"broken program and fine one":           {8, 0, 5, []Evidence{of("b", failed(4), broken), of("p", failed(4), fine)}, Quarantine},
		"one accident among a broken program":   {8, 0, 5, []Evidence{of("b", failed(7), broken), of("p", failed(1), fine)}, Forgive},
		"one task again and again":              {9, 0, 5, []Evidence{of("p", Record{Bad: 9, Run: 9, Fresh: 1}, fine)}, Suspect},
		"tasks that failed elsewhere":           {9, 0, 5, []Evidence{of("p", Record{Bad: 9, Run: 9}, Record{Good: 50, Bad: 50})}, Forgive},
		"all in a run: a shared fault":          {9, 0, 5, []Evidence{of("p", failed(9), Record{Good: 200, Bad: 4, Run: 4})}, Suspect},
		"much still runs":                       {3, 16, 5, []Evidence{of("p", failed(3), fine)}, Suspect},
		"much still runs, but too much failed":  {12, 16, 5, []Evidence{of("p", failed(12), fine)}, Quarantine},
		"what it failed before its run is over": {3, 0, 5, []Evidence{of("p", Record{Bad: 100}, fine), of("q", failed(3), half)}, Forgive},
	} {
		if got := Judge("n", Node{Run: c.run, Running: c.running}, c.evidence, c.alive); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// chance is exact where a formula is known, and near rate^run for many.
func TestChance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    score
		run  int
		want float64
	}{
		{score{}, 0, 1}, {score{}, 1, 0.5}, {score{good: 4}, 3, 1.0 / 56}, {score{good: 0, bad: 9}, 10, 0.5}, {score{5e8, 5e8}, 10, 1.0 / 1024},
	} {
		if got := c.s.chance(c.run); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%+v, %d in a row: %v, want %v", c.s, c.run, got, c.want)
		}
	}
	if got := ways(3, 2); got != 10 {
		t.Errorf("3 of 5 in %v ways", got)
	}
}
