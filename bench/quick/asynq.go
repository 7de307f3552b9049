package main

import (
	"context"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/bench/contend"
)

// asynq is the built program of bench/peers/asynq.
type asynq struct {
	binary, redis string
	parallel      int
}

// buildAsynq compiles it into dir.
func buildAsynq(ctx context.Context, o options, dir string) (asynq, error) {
	binary, err := contend.BuildAsynq(ctx, o.peers, dir)
	return asynq{binary, o.redis, o.parallel}, err
}

// contender runs every task as command; an empty one leaves the handler without work.
func (a asynq) contender(name, command string) contend.Contender {
	run := func(ctx context.Context, n int) (time.Duration, error) {
		cmd := contend.Command(ctx, a.binary, "-redis", a.redis, "-tasks", strconv.Itoa(n),
			"-concurrency", strconv.Itoa(a.parallel), "-command", command)
		var rep struct {
			Enqueue float64 `json:"enqueue_seconds"`
			Process float64 `json:"process_seconds"`
		}
		err := contend.Report(name, cmd, &rep)
		return time.Duration((rep.Enqueue + rep.Process) * float64(time.Second)), err
	}
	return contend.Contender{Name: name, Run: run}
}
