package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// losses are the moments at which servers noticed that Redis had lost what it had
// acknowledged.
type losses []time.Time

// clash is work that was begun a second time, or went on when what comes after it
// had begun.
type clash struct {
	entry
	// first and second are when the two began.
	first, second time.Time
	// until is when the first was last heard of beside the second; zero if it was
	// not.
	until time.Time
}

// atWork is how long after its claim a program may write its first line.
const atWork = second

// cleared is how long it may take from the begin of what should not have begun
// until a server notices the loss, and then until all is over that was begun
// before: a lease, and what a machine needs that is busy.
const cleared = lease + 3*second

// excuse reports whether a loss that was noticed explains the clash. When Redis has
// gone back, a program that has seen nothing of it may claim what was claimed
// before, until a server looks, notices the loss and opens a new epoch. What was
// begun before that is over when its program hears of it, or else when its lease
// ends. So a clash is allowed only if a loss was noticed
//
//   - not before the first began: what is claimed in the new epoch is not lost with
//     the former one;
//   - not long after the second began: servers have looked by then;
//   - not long before the first was last heard of beside the second.
//
// All else breaks a promise, and any clash does when no loss was noticed, or nobody
// has written when it was.
func (l losses) excuse(c clash) bool {
	if c.first.IsZero() || c.second.IsZero() {
		return false
	}
	for _, at := range l {
		if !at.Before(c.first.Add(-atWork)) && !at.After(c.second.Add(cleared)) && !c.until.After(at.Add(cleared)) {
			return true
		}
	}
	return false
}

// between reports whether one of the losses came after the first began, and before
// the second. That explains a round that ran twice also where nobody has noticed the
// loss: who alone had seen what was lost may have been killed before it could say so,
// and then the first is over. If it had lived on, it would be an overlap.
func (l losses) between(c clash) bool {
	return slices.ContainsFunc(l, func(at time.Time) bool {
		return at.After(c.first.Add(-atWork)) && at.Before(c.second)
	})
}

// describe tells about a clash that has no excuse.
func (l losses) describe(c clash) string {
	const clock = "15:04:05.000"
	text := fmt.Sprintf("begun at %s, and the other at %s", c.first.Format(clock), c.second.Format(clock))
	if !c.until.IsZero() {
		text += ", heard of until " + c.until.Format(clock)
	}
	for _, at := range l {
		text += ", loss noticed at " + at.Format(clock)
	}
	return text
}

// notice is what a server logs when it has opened a new epoch.
type notice struct {
	Epoch int64     `json:"epoch"`
	Time  time.Time `json:"time"`
}

// notices finds them in a log of all members.
func notices(log string) ([]notice, error) {
	var all []notice
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"redis has lost at least `) {
			continue
		}
		var n notice
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			return nil, fmt.Errorf("notice of a loss %q: %w", line, err)
		}
		if n.Epoch == 0 || n.Time.IsZero() {
			return nil, fmt.Errorf("notice of a loss %q: %w", line, errNotice)
		}
		all = append(all, n)
	}
	return all, nil
}

var errNotice = errors.New("want the fields epoch and time")

// logged are the notices of this run.
func (tr *trial) logged(t *testing.T) []notice {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.dir, "fleet.log"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := notices(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// bootTime is when the machine was started. Programs write how long ago that was:
// a shell can read it without starting another process.
func bootTime(t *testing.T) time.Time {
	t.Helper()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	word, _, _ := strings.Cut(string(text), " ")
	up, err := uptime(word)
	if err != nil {
		t.Fatal(err)
	}
	return time.Now().Round(0).Add(-up) // logs do not have the monotonic clock
}

// uptime reads a time as /proc/uptime tells it, in seconds.
func uptime(text string) (time.Duration, error) {
	up, err := time.ParseDuration(text + "s")
	if err != nil {
		return 0, fmt.Errorf("uptime %q: %w", text, err)
	}
	return up, nil
}
