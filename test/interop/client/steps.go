package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

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
