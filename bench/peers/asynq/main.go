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
	"strings"
	"time"
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
	flags.StringVar(&opts.network, "network", "tcp", "kind of Redis address, tcp or unix")
	flags.StringVar(&opts.addr, "redis", "127.0.0.1:6379", "Redis address, host:port or socket")
	flags.IntVar(&opts.tasks, "tasks", 2000, "tasks to enqueue and process")
	flags.IntVar(&opts.concurrency, "concurrency", 2, "tasks processed at a time")
	flags.IntVar(&opts.enqueuers, "enqueuers", 1, "callers that enqueue at a time")
	flags.IntVar(&opts.warm, "warm", 0, "tasks enqueued and processed before, which are not measured")
	flags.DurationVar(&opts.check, "check-interval", time.Second, "how often an idle server looks for tasks, asynq's TaskCheckInterval")
	flags.IntVar(&opts.rate, "rate", 0, "measure instead how long each task takes from its enqueueing to its start, at so many a second")
	flags.DurationVar(&opts.limit, "limit", defaultLimit, "give up after this time")
	command := flags.String("command", "", "words of a program each task runs, without a shell; empty: do nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	opts.command = strings.Fields(*command)
	if err := opts.validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, opts.limit)
	defer cancel()
	var rep any
	var err error
	if opts.rate > 0 {
		rep, err = measureLatency(ctx, opts)
	} else {
		rep, err = measure(ctx, opts)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(rep)
}
