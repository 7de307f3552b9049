package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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

// account is what the programs have written: what was really executed.
type account struct {
	// executions counts the rounds that were begun, also a second time.
	executions int
	// doubled are the rounds that were begun again, overlaps those that lived on
	// when a later one of their task had begun.
	doubled, overlaps []entry
	// finished counts how often a round came to its end.
	finished map[entry]int
}

// examineLedger reads the ledger in the order in which it was written.
func examineLedger(lines []line) account {
	a := account{finished: map[entry]int{}}
	begun, last, told := map[entry]bool{}, map[int64]entry{}, map[entry]bool{}
	for _, l := range lines {
		switch l.what {
		case "start":
			a.executions++
			if begun[l.entry] {
				a.doubled = append(a.doubled, l.entry)
			}
			begun[l.entry], last[l.id] = true, l.entry
		case "end":
			a.finished[l.entry]++
		}
		if last[l.id] != l.entry && !told[l.entry] {
			told[l.entry] = true
			a.overlaps = append(a.overlaps, l.entry)
		}
	}
	return a
}
