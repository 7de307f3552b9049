package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errUsage = errors.New("usage: sum [--continue] [--plan] M N P manager.cfg")

// options are the arguments: add the numbers from M to N, at most P in a task.
type options struct {
	tree
	config string
	// goOn says to go on with what the namespace holds.
	goOn bool
	// plan says to open all tasks at once, as a plan.
	plan bool
}

// largest keeps every sum within 64 bits, in Go and in the shell.
const largest = 1_000_000_000

func parse(args []string) (options, error) {
	var o options
	for ; len(args) > 0 && strings.HasPrefix(args[0], "--"); args = args[1:] {
		switch args[0] {
		case "--continue":
			o.goOn = true
		case "--plan":
			o.plan = true
		default:
			return o, fmt.Errorf("%s is not known\n%w", args[0], errUsage)
		}
	}
	if len(args) != 4 {
		return o, fmt.Errorf("expecting 4 arguments (%d given)\n%w", len(args), errUsage)
	}
	o.config = args[3]
	var err error
	if o.from, err = integer("M", args[0], -largest, largest); err != nil {
		return o, err
	}
	if o.to, err = integer("N", args[1], o.from, largest); err != nil {
		return o, err
	}
	// Tasks of one number each would never become fewer.
	o.bucket, err = integer("P", args[2], 2, largest)
	return o, err
}

func integer(name, text string, lowest, highest int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("%s=%s: write a whole number from %d to %d\n%w", name, text, lowest, highest, errUsage)
	}
	return n, nil
}
