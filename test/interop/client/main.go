// Command client is a manager and a worker of another family: it takes part in
// a namespace as docs/PROTOCOL.md tells programs in other languages to, with raw
// commands over TCP, and uses nothing of this module.
//
//	client FLAGS open [FIELD=VALUE...]    opens -n tasks and prints their ids
//	client FLAGS claim NAME               claims a task and prints its id and round
//	client FLAGS complete ID ROUND OUTPUT ERROR
//	client FLAGS work NAME                claims and completes until nothing is open
//	client FLAGS archive                  archives what has ended and prints the ids
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// client is one foreign program at work.
type client struct {
	redis *redis
	ns    string
	out   io.Writer
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:6379", "host:port of Redis")
	user := flags.String("user", "", "user; the password is read from REDIS_PASSWORD")
	ns := flags.String("ns", "", "namespace")
	n := flags.Int("n", 1, "tasks to open")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	conn, err := dial(ctx, *addr, *user, os.Getenv("REDIS_PASSWORD"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.conn.Close() }() // nothing is buffered
	return (&client{redis: conn, ns: *ns, out: out}).command(*n, flags.Args())
}

func (c *client) command(n int, args []string) error {
	switch {
	case len(args) >= 1 && args[0] == "open":
		for range n {
			if err := c.open(args[1:]); err != nil {
				return err
			}
		}
		return nil
	case len(args) == 2 && args[0] == "claim":
		_, err := c.claim(args[1])
		return err
	case len(args) == 5 && args[0] == "complete":
		return c.complete(args[1], args[2], args[3], args[4])
	case len(args) == 2 && args[0] == "work":
		return c.work(args[1])
	case len(args) == 1 && args[0] == "archive":
		return c.archive()
	default:
		return errors.New("want open, claim, complete, work or archive")
	}
}

func (c *client) key(name string) string { return c.ns + ":" + name }

func (c *client) task(id string) string { return c.key("task:" + id) }

// say prints one line for the caller.
func (c *client) say(words ...any) error {
	if _, err := fmt.Fprintln(c.out, words...); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
