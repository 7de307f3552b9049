package worker

import (
	"strconv"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// record gathers the fields of one round: names and values in turn.
type record struct {
	round  int
	fields []string
}

func (c *record) set(name, value string) {
	c.fields = append(c.fields, statemachine.RoundField(c.round, name), value)
}

// fields are the record of the round.
func (e *ending) fields(round int, text, aside string) []string {
	c := &record{round: round}
	res := &e.result
	c.set("output", string(res.stdout.Data))
	c.set("error", text)
	if aside != "" {
		c.set("stderr", aside)
	}
	if res.brought != nil {
		c.set("result", *res.brought)
	}
	if text != "" && (e.event == statemachine.Report || e.event == statemachine.StopOverdue) {
		c.set("class", string(e.class))
	}
	c.size("output", &res.stdout)
	c.size("error", &res.stderr)
	if res.program != "" {
		c.set("program_sha256", res.program)
	}
	if res.Started {
		c.usage(res)
	}
	return c.fields
}

// exit is the exit code of a program that had one.
func (res *result) exit() (code int, ok bool) {
	if !res.Started || res.Signal != 0 || res.ExitCode < 0 {
		return 0, false
	}
	return res.ExitCode, true
}

// usage is how the program ended and what it took.
func (c *record) usage(res *result) {
	if res.Signal != 0 {
		c.set("signal", res.Signal.String())
	} else if code, ok := res.exit(); ok {
		c.set("exit_code", strconv.Itoa(code))
	}
	c.set("user_time", timing.FromStd(res.UserTime).Text())
	c.set("system_time", timing.FromStd(res.SystemTime).Text())
	c.set("max_memory", strconv.FormatInt(res.MaxMemory, 10))
}

// size describes a stream of which not all is stored; of any other, size and
// hash can be had from what is stored.
func (c *record) size(stream string, s *capture.Captured) {
	if s.Truncated {
		c.set(stream+"_bytes", strconv.FormatInt(s.Size, 10))
		c.set(stream+"_sha256", s.SHA256)
	}
}

// dropRound is the round that loses its output when a round is recorded of a task
// that keeps the output of only so many: the first half of them and the last
// half, rounded up. It is negative for none.
func dropRound(round, keep int) int {
	first := keep / 2
	if drop := round - (keep - first); keep > 0 && drop >= first {
		return drop
	}
	return -1
}

// drop takes the output of a middle round out of the task, visibly.
func drop(order *store.Order, round int) {
	if round < 0 {
		return
	}
	order.Fields = append(order.Fields, statemachine.RoundField(round, "dropped"), "1")
	for _, name := range []string{"output", "error", "stderr", "result"} {
		order.Drop = append(order.Drop, statemachine.RoundField(round, name))
	}
}
