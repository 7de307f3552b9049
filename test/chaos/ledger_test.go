package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// entry is a round of a task.
type entry struct {
	id    int64
	round int
}

// String is the round as findings name it.
func (e entry) String() string { return fmt.Sprintf("%d/%d", e.id, e.round) }

// line is one line of a ledger: a round, what happened, and further words.
type line struct {
	entry
	what string
	more []string
}

// readLedger reads a ledger of programs or handlers. A last line that was cut by
// a kill does not count.
func readLedger(t *testing.T, dir, name string) []line {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return parseLedger(string(text))
}

func parseLedger(text string) []line {
	var lines []line
	for one := range strings.Lines(text) {
		if words := strings.Fields(one); len(words) >= 3 && strings.HasSuffix(one, "\n") {
			id, _ := strconv.ParseInt(words[0], 10, 64)
			lines = append(lines, line{entry{id, number(words[1])}, words[2], words[3:]})
		}
	}
	return lines
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // 0 for none; the checks find what is missing
	return n
}

// execution is one run of a round. When it began tells it from another one.
type execution struct {
	entry
	began time.Time
}

// execution reads what programs write on each line: how long the machine had been
// running when the program began, and now. Without it the times are zero, and
// excuse nothing.
func (l line) execution(booted time.Time) (x execution, now time.Time) {
	x.entry = l.entry
	if len(l.more) < 2 {
		return x, now
	}
	began, err := uptime(l.more[0])
	up, err2 := uptime(l.more[1])
	if err != nil || err2 != nil {
		return x, now
	}
	x.began = booted.Add(began)
	return x, booted.Add(up)
}

// account is what the programs have written: what was really executed.
type account struct {
	// executions counts the rounds that were begun, also a second time.
	executions int
	// doubled are the rounds that were begun again, overlaps the executions that
	// lived on when a later one of their task had begun, each once.
	doubled, overlaps []clash
	// finished counts how often a round came to its end.
	finished map[entry]int
	// mounts counts the programs that were killed with something mounted.
	mounts int

	begun  map[entry]execution     // the last one of a round
	last   map[int64]execution     // the last one of a task
	next   map[execution]execution // the one of its task that began after it
	beside map[execution]int       // its place in overlaps
}

// examineLedger reads the ledger in the order in which it was written.
func examineLedger(lines []line, booted time.Time) *account {
	a := &account{
		finished: map[entry]int{}, begun: map[entry]execution{}, last: map[int64]execution{},
		next: map[execution]execution{}, beside: map[execution]int{},
	}
	for _, l := range lines {
		x, now := l.execution(booted)
		switch l.what {
		case "start":
			a.begin(x)
		case "end":
			a.finished[l.entry]++
		case "mount":
			a.mounts++
		}
		if a.last[l.id] != x {
			a.livesOn(x, now)
		}
	}
	return a
}

// begin notes an execution, and whether its round had begun before.
func (a *account) begin(x execution) {
	a.executions++
	if before, again := a.begun[x.entry]; again {
		a.doubled = append(a.doubled, clash{entry: x.entry, first: before.began, second: x.began})
	}
	if before, known := a.last[x.id]; known {
		a.next[before] = x
	}
	a.begun[x.entry], a.last[x.id] = x, x
}

// livesOn notes that an execution was heard of when a later one had begun.
func (a *account) livesOn(x execution, now time.Time) {
	i, known := a.beside[x]
	if !known {
		i = len(a.overlaps)
		a.beside[x] = i
		a.overlaps = append(a.overlaps, clash{entry: x.entry, first: x.began, second: a.next[x].began})
	}
	a.overlaps[i].until = now
}
