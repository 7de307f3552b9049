package main

import (
	"errors"
	"fmt"
	"strconv"
)

var errUsage = errors.New("usage: plan [--seed S] TASKS NEEDS manager.cfg")

// options are the arguments.
type options struct {
	tasks, needs int
	seed         uint64
	config       string
}

func parse(args []string) (options, error) {
	o := options{seed: 1}
	if len(args) > 1 && args[0] == "--seed" {
		seed, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return o, fmt.Errorf("seed S=%s: write a whole number that is not negative\n%w", args[1], errUsage)
		}
		o.seed, args = seed, args[2:]
	}
	if len(args) != 3 {
		return o, fmt.Errorf("expecting 3 arguments (%d given)\n%w", len(args), errUsage)
	}
	o.config = args[2]
	var err error
	if o.tasks, err = integer("TASKS", args[0], 1, 100_000); err != nil {
		return o, err
	}
	o.needs, err = integer("NEEDS", args[1], 1, 1000)
	return o, err
}

func integer(name, text string, lowest, highest int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("%s=%s: write a whole number from %d to %d\n%w", name, text, lowest, highest, errUsage)
	}
	return n, nil
}
