package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// selectorHelp tells how tasks are named, in the help of all verbs that take some.
const selectorHelp = "Tasks are named as 7, 3-9, 1,3,5-8, last (the one opened last) or all; --state, --queue,\n" +
	"--program and --match narrow them, and need no names: then all tasks that fit are meant."

// choice is what words and flags say about which tasks are meant.
type choice struct{ manager.Filter }

func (c *choice) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&c.States, "state", nil, "only tasks in these states, separated by commas")
	flags.StringVar(&c.Queue, "queue", "", "only tasks of this queue")
	flags.StringVar(&c.Program, "program", "", "only tasks of this program")
	flags.StringVar(&c.Match, "match", "", "only tasks whose last round has an error that fits this regular expression")
}

// selection puts words and flags together.
func (c *choice) selection(ctx context.Context, s *session) (manager.Selection, error) {
	return c.read(s, c.Selection, s.manager.Newest(ctx))
}

// archived is selection of tasks of an archive. newest says what the word last means.
func (c *choice) archived(s *session, newest func() (int64, error)) (manager.Selection, error) {
	return c.read(s, c.Archived, newest)
}

func (c *choice) read(
	s *session, parse func(newest func() (int64, error)) (manager.Selection, error), newest func() (int64, error),
) (manager.Selection, error) {
	for _, name := range []string{queueField, programField, "match"} {
		if flag := s.cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return manager.Selection{}, cli.Usagef("--%s is empty; leave it out, or say what to look for", name)
		}
	}
	c.Tasks = s.args
	sel, err := parse(newest)
	if wrong, ok := errors.AsType[*manager.FilterError](err); ok && s.cmd.Flags().Lookup(wrong.Field) != nil {
		err = cli.Usagef("--%w", err)
	}
	return sel, err
}

// nothing is what to say where no task fits: an unknown queue explains it.
func (c *choice) nothing(ctx context.Context, s *session) error {
	if c.Queue == "" {
		return nil
	}
	_, err := s.manager.Queue(ctx, c.Queue)
	return s.unknownQueue(ctx, c.Queue, err)
}

// unknownQueue adds to the error for a queue that is not there which one may have
// been meant.
func (s *session) unknownQueue(ctx context.Context, name string, err error) error {
	if !errors.Is(err, manager.ErrNoQueue) {
		return err
	}
	queues, listErr := s.manager.Queues(ctx)
	if listErr != nil {
		return err // it says enough
	}
	known := make([]string, len(queues))
	for i := range queues {
		known[i] = queues[i].Name
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w; %s", err, meant(name, known, "see "+s.command("queue ls"))))
}

// shortRanges is ranges for people, who read no thousand of them.
func shortRanges(ids []int64) string {
	const most = 500
	text := ranges(ids)
	if len(text) <= most {
		return text
	}
	whole := text[:strings.LastIndexByte(text[:most], ',')]
	return whole + ",... (--json has all of them)"
}

// ranges writes ids as a selector: 1-31,40.
func ranges(ids []int64) string {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := strconv.FormatInt(ids[i], 10)
		if j > i {
			part += "-" + strconv.FormatInt(ids[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
