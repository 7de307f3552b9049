package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
)

var errUsage = errors.New("usage: sources [-pause SECONDS] [-suffix TEXT] manager.cfg")

// options are what the command line says.
type options struct {
	// pause is how many seconds each program takes; empty means 2.
	pause string
	// suffix ends the names of all programs. A program directory remembers its
	// source, and port and directory of the sources are new ones each time; so
	// the names are too, unless told otherwise.
	suffix string
	config string
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("sources", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.pause, "pause", "", "`seconds` that each program takes (default 2)")
	flags.StringVar(&o.suffix, "suffix", fmt.Sprintf("-%04x", rand.N(1<<16)),
		"end of the programs' names; those of an earlier run cannot be used again")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() != 1 {
		return o, fmt.Errorf("expecting 1 argument (%d given)\n%w", flags.NArg(), errUsage)
	}
	o.config = flags.Arg(0)
	if seconds, err := strconv.ParseFloat(o.pause, 64); o.pause != "" && (err != nil || !(seconds >= 0 && seconds <= 60)) {
		return o, fmt.Errorf("-pause=%s: write a number of seconds from 0 to 60\n%w", o.pause, errUsage)
	}
	return o, nil
}
