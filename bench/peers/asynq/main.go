// Command asynq measures hibiken/asynq with the same work that TDF's benchmarks do: it enqueues a number of tasks,
// processes them in this process, and prints one JSON object. It has a module of its own so that asynq never becomes a
// dependency of TDF. Point it at a private Redis: it leaves asynq's bookkeeping keys behind.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "asynq:", err)
		os.Exit(1)
	}
}

// run parses args, measures and writes the report to out.
func run(ctx context.Context, args []string, out, usage io.Writer) error {
	opts := options{}
	flags := flag.NewFlagSet("asynq", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&opts.socket, "redis", "", "path of the socket of Redis")
	flags.IntVar(&opts.tasks, "tasks", 2000, "tasks to enqueue and process")
	flags.IntVar(&opts.concurrency, "concurrency", 2, "tasks processed at a time")
	flags.IntVar(&opts.enqueuers, "enqueuers", 1, "callers that enqueue at a time")
	flags.IntVar(&opts.warm, "warm", 0, "tasks enqueued and processed before, which are not measured")
	flags.DurationVar(&opts.check, "check-interval", time.Second, "how often an idle server looks for tasks, asynq's TaskCheckInterval")
	flags.IntVar(&opts.rate, "rate", 0, "measure instead how long each task takes from its enqueueing to its start, at so many a second")
	command := flags.String("command", "", "words of a program each task runs, without a shell; empty: do nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	opts.command = strings.Fields(*command)
	if err := opts.validate(); err != nil {
		return err
	}
	rep, err := measure(ctx, opts)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(rep)
}

const taskType = "noop"

// options say what to measure and where.
type options struct {
	socket             string
	tasks, concurrency int
	enqueuers, warm    int
	rate               int
	check              time.Duration
	command            []string // followed by the number of the task
}

func (o options) validate() error {
	for name, value := range map[string]int{"tasks": o.tasks, "concurrency": o.concurrency, "enqueuers": o.enqueuers} {
		if value < 1 {
			return fmt.Errorf("-%s=%d: must be at least 1", name, value)
		}
	}
	for name, value := range map[string]int{"rate": o.rate, "warm": o.warm} {
		if value < 0 {
			return fmt.Errorf("-%s=%d: must not be negative", name, value)
		}
	}
	if o.check < time.Millisecond {
		return fmt.Errorf("-check-interval=%s: must be at least 1ms", o.check)
	}
	if o.socket == "" {
		return errors.New("-redis: want the path of a socket")
	}
	return nil
}

// redis is how the Redis is reached. Tasks left by an interrupted run would be counted as ours: each run has a queue of
// its own.
func (o options) redis() (opt asynq.RedisClientOpt, queue string) {
	opt = asynq.RedisClientOpt{Network: "unix", Addr: o.socket, PoolSize: max(o.concurrency, o.enqueuers) + 4}
	return opt, "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

func (o options) config(queue string) asynq.Config {
	return asynq.Config{
		Concurrency: o.concurrency, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: o.check,
	}
}

// report is what one measurement found: the two times, or the latencies.
type report struct {
	Enqueue float64 `json:"enqueue_seconds,omitempty"` // one by one, by so many callers
	Process float64 `json:"process_seconds,omitempty"` // from the start of the server to the end of the last handler
	// Latencies are what each task took from just before it was enqueued to the start of its handler, in milliseconds.
	Latencies []float64 `json:"latencies_ms,omitempty"`
}

// measure enqueues all tasks and then processes them, after those that warm up; with a rate it measures latencies.
func measure(ctx context.Context, o options) (report, error) {
	if o.rate > 0 {
		return measureLatency(ctx, o)
	}
	if o.warm > 0 {
		if _, err := life(ctx, o, o.warm); err != nil {
			return report{}, err
		}
	}
	return life(ctx, o, o.tasks)
}

func life(ctx context.Context, o options, n int) (report, error) {
	redis, queue := o.redis()
	enqueue, err := enqueueAll(ctx, redis, queue, o.enqueuers, n)
	if err != nil {
		return report{}, err
	}
	process, err := processAll(ctx, redis, queue, o, n)
	return report{Enqueue: enqueue.Seconds(), Process: process.Seconds()}, err
}

func enqueueAll(ctx context.Context, redis asynq.RedisClientOpt, queue string, callers, n int) (time.Duration, error) {
	client := asynq.NewClient(redis)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	var next atomic.Int64
	start := time.Now()
	for range callers {
		calls.Go(func() {
			for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
				if err := enqueueOne(ctx, client, queue, strconv.FormatInt(i, 10)); err != nil {
					cancel(fmt.Errorf("task %d: %w", i, err))
				}
			}
		})
	}
	calls.Wait()
	return time.Since(start), context.Cause(ctx)
}

func enqueueOne(ctx context.Context, client *asynq.Client, queue, payload string) error {
	_, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(payload)), asynq.Queue(queue), asynq.MaxRetry(0))
	if err != nil {
		return fmt.Errorf("enqueueing: %w", err)
	}
	return nil
}

func processAll(ctx context.Context, redis asynq.RedisClientOpt, queue string, o options, n int) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(n))
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
	srv := asynq.NewServer(redis, o.config(queue))
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
		return 0, fmt.Errorf("%d of %d tasks left: %w", left.Load(), n, ctx.Err())
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

// measureLatency enqueues tasks one by one at a steady rate while a server waits for them. The first ones, o.warm, are
// not measured.
func measureLatency(ctx context.Context, o options) (report, error) {
	redis, queue := o.redis()
	client := asynq.NewClient(redis)
	defer func() { _ = client.Close() }()
	start, all := time.Now(), o.warm+o.tasks
	took := make(chan time.Duration, all)
	srv := asynq.NewServer(redis, o.config(queue))
	err := srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		enqueued, err := strconv.ParseInt(string(t.Payload()), 10, 64)
		took <- time.Since(start) - time.Duration(enqueued)
		return err
	}))
	if err != nil {
		return report{}, fmt.Errorf("starting the asynq server: %w", err)
	}
	defer srv.Shutdown()
	steps := time.NewTicker(time.Second / time.Duration(o.rate))
	defer steps.Stop()
	var rep report
	for i := range all {
		select {
		case <-ctx.Done():
			return report{}, fmt.Errorf("%d of %d tasks enqueued: %w", i, all, ctx.Err())
		case <-steps.C:
		}
		if err := enqueueOne(ctx, client, queue, strconv.FormatInt(int64(time.Since(start)), 10)); err != nil {
			return report{}, err
		}
	}
	for i := range all {
		select {
		case <-ctx.Done():
			return report{}, fmt.Errorf("%d of %d tasks begun: %w", i, all, ctx.Err())
		case d := <-took:
			if i >= o.warm {
				rep.Latencies = append(rep.Latencies, d.Seconds()*1000)
			}
		}
	}
	return rep, nil
}
