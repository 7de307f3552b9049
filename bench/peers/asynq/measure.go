package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const (
	defaultLimit = 2 * time.Minute
	taskType     = "noop"
)

// options say what to measure and where.
type options struct {
	network, addr      string
	tasks, concurrency int
	limit              time.Duration
	command            []string // followed by the number of the task
}

func (o options) validate() error {
	if o.tasks < 1 {
		return fmt.Errorf("-tasks=%d: must be at least 1", o.tasks)
	}
	if o.concurrency < 1 {
		return fmt.Errorf("-concurrency=%d: must be at least 1", o.concurrency)
	}
	if o.network != "tcp" && o.network != "unix" {
		return fmt.Errorf("-network=%q: must be tcp or unix", o.network)
	}
	return nil
}

// report is what one measurement found.
type report struct {
	Tasks          int     `json:"tasks"`
	EnqueueSeconds float64 `json:"enqueue_seconds"` // one by one, by one caller
	ProcessSeconds float64 `json:"process_seconds"` // from the start of the server to the end of the last handler
	PerSecond      float64 `json:"per_second"`      // tasks through both phases, one after the other
}

// measure enqueues all tasks and then processes them.
func measure(ctx context.Context, o options) (report, error) {
	if err := o.validate(); err != nil {
		return report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	redis := asynq.RedisClientOpt{Network: o.network, Addr: o.addr, PoolSize: o.concurrency + 4}
	// Tasks left by an interrupted run would be counted as ours: each run has a queue of its own.
	queue := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	enqueue, err := enqueueAll(ctx, redis, queue, o.tasks)
	if err != nil {
		return report{}, err
	}
	process, err := processAll(ctx, redis, queue, o)
	if err != nil {
		return report{}, err
	}
	return report{
		Tasks: o.tasks, EnqueueSeconds: enqueue.Seconds(), ProcessSeconds: process.Seconds(),
		PerSecond: float64(o.tasks) / (enqueue + process).Seconds(),
	}, nil
}

func enqueueAll(ctx context.Context, redis asynq.RedisClientOpt, queue string, n int) (time.Duration, error) {
	client := asynq.NewClient(redis)
	defer func() { _ = client.Close() }()
	start := time.Now()
	for i := range n {
		task := asynq.NewTask(taskType, []byte(strconv.Itoa(i)))
		if _, err := client.EnqueueContext(ctx, task, asynq.Queue(queue), asynq.MaxRetry(0)); err != nil {
			return 0, fmt.Errorf("enqueueing task %d: %w", i, err)
		}
	}
	return time.Since(start), nil
}

func processAll(ctx context.Context, redis asynq.RedisClientOpt, queue string, o options) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(o.tasks))
	done := make(chan struct{})
	failed := make(chan error, 1)
	handler := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		if err := work(ctx, o.command, string(t.Payload())); err != nil {
			select {
			case failed <- err:
			default:
			}
			return err
		}
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	})
	srv := asynq.NewServer(redis, asynq.Config{
		Concurrency: o.concurrency, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel,
	})
	start := time.Now()
	if err := srv.Start(handler); err != nil {
		return 0, fmt.Errorf("starting the asynq server: %w", err)
	}
	defer srv.Shutdown()
	select {
	case <-done:
		return time.Since(start), nil
	case err := <-failed:
		return 0, fmt.Errorf("a task failed: %w", err)
	case <-ctx.Done():
		return 0, fmt.Errorf("%d of %d tasks left: %w", left.Load(), o.tasks, ctx.Err())
	}
}

// work runs the command with the task number as its last word, if there is one; it should echo that word.
func work(ctx context.Context, command []string, number string) error {
	if len(command) == 0 {
		return nil
	}
	args := append(append([]string{}, command[1:]...), number)
	out, err := exec.CommandContext(ctx, command[0], args...).Output()
	if err != nil {
		return err
	}
	if len(out) == 0 {
		return errors.New("the program printed nothing: it should echo its argument")
	}
	return nil
}
