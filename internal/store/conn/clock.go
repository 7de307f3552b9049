package conn

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// Clock is the time of the namespace at the moment of a reading, and by how much it
// was ahead of TIME of Redis. See lib/now.lua, which has the rule.
type Clock struct {
	Now   statemachine.Time
	Ahead statemachine.Duration
}

// slew is how long the offset takes to shrink by one, as in lib/now.lua.
const slew = 20

// ClockOf reads the time of an answer, which comes first, and the offset in microseconds from its place.
func ClockOf(r Reply, ahead int) Clock {
	return Clock{Now: r.Time(0), Ahead: statemachine.Duration(r.Number(ahead))}
}

// Redis is TIME of Redis at the moment of the reading: what start_after and
// end_before mean.
func (c Clock) Redis() statemachine.Time { return c.Now.Add(-c.Ahead) }

// Moment is when TIME of Redis will be at, by the time of the namespace, as long as
// it does not step.
func (c Clock) Moment(at statemachine.Time) statemachine.Time {
	left := max(0, at.Sub(c.Redis()))
	return at.Add(max(0, c.Ahead-left/slew))
}

// RedisTime returns TIME of Redis, which start_after and end_before are compared with.
func (s *Conn) RedisTime(ctx context.Context) (statemachine.Time, error) {
	c, err := s.clock(ctx)
	return c.Redis(), err
}

// Now returns the time of the namespace, the only clock of TDF: TIME of Redis, but
// that it never goes back.
func (s *Conn) Now(ctx context.Context) (statemachine.Time, error) {
	c, err := s.clock(ctx)
	return c.Now, err
}

func (s *Conn) clock(ctx context.Context) (Clock, error) {
	var at *redis.TimeCmd
	var mark *redis.StringCmd
	err := s.Pipelined(ctx, "time", func(p redis.Pipeliner) {
		at, mark = p.Time(ctx), p.HGet(ctx, s.Keys.Meta(), "clock")
	})
	if err != nil {
		return Clock{}, err
	}
	now := statemachine.Time(at.Val().UnixMicro())
	ahead := offset(mark.Val(), now)
	return Clock{Now: now.Add(ahead), Ahead: ahead}, nil
}

// offset is by how much the time of the namespace is ahead when TIME of Redis is now.
func offset(mark string, now statemachine.Time) statemachine.Duration {
	var last statemachine.Time
	var ahead statemachine.Duration
	if n, _ := fmt.Sscanf(mark, "%d %d", &last, &ahead); n != 2 {
		return 0
	}
	if now < last {
		return ahead + last.Sub(now)
	}
	return max(0, ahead-now.Sub(last)/slew)
}

// Step is a step of the clock of Redis that a server has noticed.
type Step struct {
	// At is when, by the time of the namespace; 0 for never.
	At statemachine.Time
	// By is how far, negative for back.
	By time.Duration
	// Ahead is by how much the time of the namespace is ahead of TIME now.
	Ahead time.Duration
}

// NoteStep records a step, for [Conn.LastStep].
func (s *Conn) NoteStep(ctx context.Context, at statemachine.Time, by time.Duration) error {
	text := at.Text() + " " + timing.FromStd(by).Text()
	if err := s.Redis.HSet(ctx, s.Keys.Meta(), "clock_step", text).Err(); err != nil {
		return s.Failed("note step", err)
	}
	return nil
}

// LastStep is the last one that was noted.
func (s *Conn) LastStep(ctx context.Context) (Step, error) {
	c, err := s.clock(ctx)
	if err != nil {
		return Step{}, err
	}
	text, err := s.Redis.HGet(ctx, s.Keys.Meta(), "clock_step").Result()
	if err != nil && !IsNil(err) {
		return Step{}, s.Failed("step", err)
	}
	step := Step{Ahead: timing.ToStd(c.Ahead)}
	var at string
	var by float64
	if n, _ := fmt.Sscanf(text, "%s %f", &at, &by); n == 2 {
		step.By = time.Duration(by * float64(time.Second))
		step.At, _ = statemachine.ParseTime(at) // a text that is no time counts as never
	}
	return step, nil
}
