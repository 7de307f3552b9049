package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slowFrom is from which time on Redis notes a command; it keeps so many of them, which is more than come between two
// looks.
const (
	slowFrom = 500 * time.Microsecond
	slowKept = 100_000
)

// slowlog gathers the slow calls of scripts from Redis, which counts the time of execution alone. That is time on the
// clock: where the system gives the processor to somebody else meanwhile, it counts.
type slowlog struct {
	db    *redis.Client
	names map[string]string // of scripts by their hashes
	found map[string]slowScript
}

// slowScript is what a script took.
type slowScript struct {
	calls   int           // that took longer than slowFrom
	all     time.Duration // of them
	longest time.Duration
	above   int // calls that took longer than longestScript
}

func watchSlow(ctx context.Context, db *redis.Client, names map[string]string, from time.Duration) (*slowlog, error) {
	for name, value := range map[string]any{
		"slowlog-log-slower-than": from.Microseconds(), "slowlog-max-len": slowKept,
	} {
		if err := db.ConfigSet(ctx, name, fmt.Sprint(value)).Err(); err != nil {
			return nil, fmt.Errorf("CONFIG SET %s: %w", name, err)
		}
	}
	return &slowlog{db: db, names: names, found: map[string]slowScript{}}, nil
}

// take reads what has come since the last time, so that it neither overflows nor counts as memory.
func (s *slowlog) take(ctx context.Context) error {
	var noted *redis.SlowLogCmd
	_, err := s.db.TxPipelined(ctx, func(p redis.Pipeliner) error { // what comes in between would be lost
		noted = p.SlowLogGet(ctx, slowKept)
		p.Do(ctx, "slowlog", "reset")
		return nil
	})
	if err != nil {
		return fmt.Errorf("SLOWLOG GET and RESET: %w", err)
	}
	for _, call := range noted.Val() {
		if len(call.Args) < 2 || !strings.EqualFold(call.Args[0], "evalsha") {
			continue // what loads scripts
		}
		s.note(s.names[call.Args[1]], call.Duration)
	}
	return nil
}

func (s *slowlog) note(name string, took time.Duration) {
	script := s.found[name]
	script.calls++
	script.all += took
	script.longest = max(script.longest, took)
	if took > longestScript {
		script.above++
	}
	s.found[name] = script
}

// String is a cell of the table.
func (s slowScript) String() string {
	switch {
	case s.longest == 0:
		return "-"
	case s.above == 0:
		return fmt.Sprintf("%.1f", s.longest.Seconds()*1000)
	}
	return fmt.Sprintf("%.1f (%d)", s.longest.Seconds()*1000, s.above)
}
