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
	"strconv"
	"strings"
	"time"
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

// errLost means that another client was first; nothing was written.
var errLost = errors.New("somebody else was first")

// now is the time of this host, as the original took it.
func now() string { return strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', 6, 64) }

// open creates a task the original's way: INCR, then hash and set in one MULTI.
func (c *client) open(changes []string) error {
	answer, err := c.redis.do("INCR", c.key("task_id"))
	if err != nil {
		return err
	}
	id := fmt.Sprint(answer)
	start := "0"
	hash := []string{
		"HMSET", c.task(id), "program", "p", "source", "s", "input", "1 2", "id", id, "start_after", "0", "end_before", "inf",
		"timeout", "inf", "max_fails", "0", "max_timeouts", "0", "state", "open", "round", "0", "fails", "0", "timeouts", "0",
		"log", "", "namespace", c.ns, "0:open", now(),
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		hash = append(hash, name, value)
		if name == "start_after" {
			start = value
		}
	}
	if err := c.redis.transaction(hash, []string{"ZADD", c.key("open"), start, id}); err != nil {
		return err
	}
	return c.say(id)
}

// claimed is a task that this client holds.
type claimed struct{ id, round string }

// claim takes the first of the open tasks that it may run, and prints it. It
// returns nil if there is none.
func (c *client) claim(name string) (*claimed, error) {
	answer, err := c.redis.do("ZRANGE", c.key("open"), "0", "9")
	if err != nil {
		return nil, err
	}
	for _, id := range texts(answer) {
		round, err := c.claimOne(name, id)
		switch {
		case errors.Is(err, errLost):
			continue
		case err != nil:
			return nil, err
		default:
			return &claimed{id, round}, c.say(id, round)
		}
	}
	return nil, nil //nolint:nilnil // nothing to claim is no error
}

func (c *client) claimOne(name, id string) (round string, err error) {
	answer, err := c.redis.do("HMGET", c.task(id), "state", "round", "start_after", "end_before", "queue", "env", "labels")
	if err != nil {
		return "", err
	}
	t := texts(answer)
	if t[0] != "open" || !due(t[2], t[3]) || t[4]+t[5]+t[6] != "" {
		return "", errLost
	}
	if err := c.take("open", id); err != nil {
		return "", err
	}
	at := now()
	return t[1], c.redis.transaction(
		[]string{"HMSET", c.task(id), "state", "running", t[1] + ":worker", name, t[1] + ":running", at},
		[]string{"ZADD", c.key("running"), at, id})
}

func due(start, end string) bool {
	from, err1 := strconv.ParseFloat(start, 64)
	to, err2 := strconv.ParseFloat(end, 64)
	at := float64(time.Now().UnixMicro()) / 1e6
	return err1 == nil && err2 == nil && from <= at && at <= to
}

// take removes the task from a set; without that nothing may be written.
func (c *client) take(state, id string) error {
	answer, err := c.redis.do("ZREM", c.key(state), id)
	if err != nil {
		return err
	}
	if answer != int64(1) {
		return errLost
	}
	return nil
}

// complete hands in the result of a round, if it is still this client's.
func (c *client) complete(id, round, output, errText string) error {
	answer, err := c.redis.do("HMGET", c.task(id), "state", "round")
	if err != nil {
		return err
	}
	if t := texts(answer); t[0] != "running" || t[1] != round {
		return errLost
	}
	if err := c.take("running", id); err != nil {
		return err
	}
	at := now()
	return c.redis.transaction(
		[]string{"HMSET", c.task(id), "state", "executed", round + ":output", output, round + ":error", errText, round + ":executed", at},
		[]string{"ZADD", c.key("executed"), at, id})
}

// work claims and completes until nothing can be claimed.
func (c *client) work(name string) error {
	for {
		t, err := c.claim(name)
		if err != nil || t == nil {
			return err
		}
		if err := c.complete(t.id, t.round, "foreign "+t.id+"\n", ""); err != nil {
			return err
		}
	}
}

// archive closes the books on everything that has ended; state stays.
func (c *client) archive() error {
	for _, state := range []string{"succeeded", "failed", "timed_out", "expired"} {
		answer, err := c.redis.do("ZRANGE", c.key(state), "0", "-1")
		if err != nil {
			return err
		}
		for _, id := range texts(answer) {
			if err := c.archiveOne(state, id); err != nil && !errors.Is(err, errLost) {
				return err
			}
		}
	}
	return nil
}

func (c *client) archiveOne(state, id string) error {
	answer, err := c.redis.do("HMGET", c.task(id), "round")
	if err != nil {
		return err
	}
	if err := c.take(state, id); err != nil {
		return err
	}
	at := now()
	err = c.redis.transaction(
		[]string{"HMSET", c.task(id), texts(answer)[0] + ":archived", at},
		[]string{"ZADD", c.key("archived"), at, id})
	if err != nil {
		return err
	}
	return c.say(id)
}
