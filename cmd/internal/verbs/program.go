package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// programs is the group of verbs about the versions of programs that workers keep.
func (a *app) programs() *cobra.Command {
	cmd := &cobra.Command{
		Use: programField, Aliases: []string{"programs"}, Short: "List the versions of programs that workers keep, and remove them",
		Long: "program asks the workers which versions of programs they keep on their disks, and removes versions\n" +
			"there. A version is sum@3f9a: the program, and the first digits of its hash.\n\n" +
			"Workers that do not answer in time are named on stderr, and the exit code is 4.",
		Example: "  tdf-manager program ls\n  tdf-manager program show sum\n  tdf-manager program rm sum@3f9a --dry-run\n" +
			"  tdf-manager program gc --unused-for 7d",
	}
	cmd.AddCommand(a.programLs(), a.programShow(), a.programRm(), a.programGc())
	return cmd
}

// asking is one of these verbs with its flags.
type asking struct {
	answer.Asking

	timeout, unused string
	idleFor         time.Duration
}

// asks adds the flags to a verb.
func (a *app) asks(o *asking, cmd *cobra.Command, do verb) *cobra.Command {
	cmd.RunE = a.withManager(func(ctx context.Context, s *session) error {
		if err := o.parse(); err != nil {
			return err
		}
		if err := o.check(ctx, s); err != nil {
			return err
		}
		return do(ctx, s)
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Workers, workerField, nil, "only these workers, separated by commas")
	flags.StringSliceVar(&o.Nodes, nodeField, nil, "only workers of these nodes, separated by commas")
	flags.StringVar(&o.timeout, "timeout", "10s", "longest time to wait for answers, such as 90 or 1m30s")
	return withJSON(cmd)
}

func (o *asking) parse() (err error) {
	if o.Patience, err = answer.Span("--timeout", o.timeout); err != nil {
		return err
	}
	if o.Patience <= 0 {
		return cli.Usagef("--timeout %q: want a time such as 90 or 1m30s", o.timeout)
	}
	if o.unused == "" {
		return nil
	}
	var ok bool
	if o.idleFor, ok = config.Age(o.unused); !ok {
		return cli.Usagef("--unused-for %q: want a number with a unit s, m, h, d or w, such as 12h or 30d", o.unused)
	}
	return nil
}

// check refuses workers and nodes that nobody knows.
func (o *asking) check(ctx context.Context, s *session) error {
	workers, err := s.manager.Workers(ctx)
	if err != nil {
		return err
	}
	for _, name := range o.Workers {
		if _, err := s.workerNamed(name, workers); err != nil {
			return err
		}
	}
	for _, name := range o.Nodes {
		if _, err := readNode(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// stocked writes what workers have answered. Then it says who has not, or could not do it, and makes the exit code.
func (s *session) stocked(stocks []task.Stock, failed bool, forPeople func()) error {
	if err := s.result(stocks, forPeople); err != nil {
		return err
	}
	silent, more := []string{}, 0
	for i := range stocks {
		stock := &stocks[i]
		more += stock.More
		switch {
		case stock.Silent:
			silent = append(silent, cli.Safe(stock.Worker))
		case stock.Error != "":
			failed = true
			s.warn("worker %s: %s", cli.Safe(stock.Worker), cli.Safe(stock.Error))
		}
	}
	if more > 0 {
		s.warn("%d versions are not shown, the smallest of their workers; name the programs, or workers", more)
	}
	if len(silent) > 0 {
		s.warn("no answer in time from %s; a worker of an older release answers nothing", strings.Join(silent, ", "))
	}
	return waitCode(len(silent) > 0, failed)
}

// copied is a version in one program directory, which several workers may share.
type copied struct {
	task.StoredVersion

	workers   []string
	node, dir string
}

// copies joins what workers say that share a directory, in the order of programs and of last use, the newest first.
func copies(stocks []task.Stock) []copied {
	found := map[string]*copied{}
	for i := range stocks {
		stock := &stocks[i]
		for _, v := range stock.Versions {
			key := stock.Place + "\x00" + v.Program + "\x00" + v.SHA256
			c := found[key]
			if c == nil {
				found[key] = &copied{v, []string{stock.Worker}, stock.Node, filepath.Join(stock.Dir, v.Program, v.SHA256)}
				continue
			}
			c.workers = append(c.workers, stock.Worker)
			c.join(&v)
		}
	}
	all := make([]copied, 0, len(found))
	for _, c := range found {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b copied) int {
		return cmp.Or(strings.Compare(a.Program, b.Program), b.Used.Compare(a.Used), strings.Compare(a.SHA256, b.SHA256),
			strings.Compare(a.workers[0], b.workers[0]))
	})
	return all
}

// join adds what another worker of the same directory says of a version.
func (c *copied) join(v *task.StoredVersion) {
	c.Rounds, c.Slots = c.Rounds+v.Rounds, c.Slots+v.Slots
	if v.Used.After(c.Used) {
		c.Used = v.Used
	}
	if c.Kept = cmp.Or(c.Kept, v.Kept); v.Removed || c.Removed {
		c.Removed, c.Kept = true, ""
	}
}

func (a *app) programLs() *cobra.Command {
	o := &asking{}
	return a.asks(o, &cobra.Command{
		Use: "ls [NAME[@HASH]...]", Aliases: []string{listAlias}, Short: "List the versions of programs that workers keep",
		Long: "ls lists versions of programs, a line each. SIZE is the room on all disks together, WORKERS counts\n" +
			"those that have it, ROUNDS those rounds that run it now. USED is when a round had it last.",
		Example: "  tdf-manager program ls\n  tdf-manager program ls sum --node node-1,node-2\n  tdf-manager program ls --json",
	}, func(ctx context.Context, s *session) error {
		stocks, err := o.Ask(ctx, s.manager, task.Errand{Versions: s.args})
		if err != nil {
			return err
		}
		now, err := s.shownAt(ctx)
		if err != nil {
			return err
		}
		return s.stocked(stocks, false, func() { listPrograms(s, copies(stocks), now) })
	})
}

// listPrograms joins the copies of a version to a line.
func listPrograms(s *session, all []copied, now time.Time) {
	if len(all) == 0 {
		s.printf("no worker that has answered keeps such a program\n")
		return
	}
	rows, nodes := []*copied{}, map[*copied][]string{}
	for i := range all {
		c := &all[i]
		same := slices.IndexFunc(rows, func(r *copied) bool { return r.Program == c.Program && r.SHA256 == c.SHA256 })
		if same < 0 {
			rows, same = append(rows, &copied{StoredVersion: c.StoredVersion, workers: slices.Clone(c.workers)}), len(rows)
		} else {
			rows[same].Bytes += c.Bytes
			rows[same].workers = append(rows[same].workers, c.workers...)
			rows[same].join(&c.StoredVersion)
		}
		nodes[rows[same]] = append(nodes[rows[same]], c.node)
	}
	table := s.out.Table("PROGRAM", "VERSION", "SIZE", "WORKERS", "NODES", "ROUNDS", "USED")
	for _, r := range rows {
		on := once(nodes[r])
		slices.Sort(on)
		table.Row(r.Program, shortHash(r.SHA256), disk.SizeText(uint64(r.Bytes)), len(r.workers), answer.Some(on), r.Rounds, since(r.Used, now))
	}
	table.Flush()
}

// shortHash is a hash as tables have it.
func shortHash(sha256 string) string {
	if sha256 == "" {
		return "(by hand)"
	}
	return sha256[:min(len(sha256), 12)]
}

// since is how long ago something was.
func since(then, now time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return age(max(0, now.Sub(then)))
}

func (a *app) programShow() *cobra.Command {
	o := &asking{}
	return a.asks(o, &cobra.Command{
		Use: "show NAME[@HASH]...", Short: "Show where the versions of a program are", Args: cobra.MinimumNArgs(1),
		Long: "show prints each version and, for each program directory that has it, the workers that share it, its\n" +
			"source, and whether rounds run it. A slot holds what it runs, or has run last.",
		Example: "  tdf-manager program show sum\n  tdf-manager program show sum@3f9a --json",
	}, func(ctx context.Context, s *session) error {
		stocks, err := o.Programs(ctx, s.manager, s.args...)
		if err != nil {
			return s.noVersion(err)
		}
		now, err := s.shownAt(ctx)
		if err != nil {
			return err
		}
		return s.stocked(stocks, false, func() { showPrograms(s, copies(stocks), now) })
	})
}

// noVersion adds the remedy to the error for what no worker keeps.
func (s *session) noVersion(err error) error {
	if none, ok := errors.AsType[answer.NoVersionError](err); ok {
		return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w; see %s", none, s.command("program ls")))
	}
	return err
}

// showPrograms prints the copies of each version.
func showPrograms(s *session, all []copied, now time.Time) {
	slices.SortStableFunc(all, func(a, b copied) int {
		return cmp.Or(strings.Compare(a.Program, b.Program), strings.Compare(a.SHA256, b.SHA256))
	})
	for i := range all {
		c := &all[i]
		if i == 0 || c.Program != all[i-1].Program || c.SHA256 != all[i-1].SHA256 {
			s.printf("%s %s\n", cli.Safe(c.Program), cli.Safe(cmp.Or(c.SHA256, "(by hand)")))
		}
		table := s.out.Table()
		table.Row("  workers", strings.Join(c.workers, ", ")+" on node "+c.node)
		table.Row("  directory", c.dir)
		table.Row("  size", fmt.Sprintf("%s, %d files", disk.SizeText(uint64(c.Bytes)), c.Files))
		table.Some("  source", c.Source)
		table.Row("  installed", when(c.Installed))
		table.Row("  used", fmt.Sprintf("%s (%s)", when(c.Used), since(c.Used, now)))
		table.Row("  in use", fmt.Sprintf("%d rounds run it, %d slots hold it", c.Rounds, c.Slots))
		table.Flush()
	}
}

func (a *app) programRm() *cobra.Command {
	o := &asking{}
	return withDryRun(a.asks(o, &cobra.Command{
		Use: "rm NAME[@HASH]...", Aliases: []string{removeAlias}, Short: "Remove versions of programs from the workers",
		Args: cobra.MinimumNArgs(1),
		Long: "rm removes a version from the disks of all workers, or all versions of a program. A version that a\n" +
			"round runs stays, and so does a program that was put there by hand; then the exit code is 1. A task\n" +
			"that wants a removed version fetches it again.",
		Example: "  tdf-manager program rm sum@3f9a\n  tdf-manager program rm sum --worker w1 --dry-run",
	}, func(ctx context.Context, s *session) error {
		stocks, err := o.RemovePrograms(ctx, s.manager, s.args, s.dryRun)
		if err != nil {
			return s.noVersion(err)
		}
		return s.removedPrograms(stocks, true)
	}))
}

func (a *app) programGc() *cobra.Command {
	o := &asking{}
	cmd := withDryRun(a.asks(o, &cobra.Command{
		Use: "gc [NAME[@HASH]...]", Short: "Remove versions that were not used for a while",
		Long: "gc removes versions that no round has used for some time, from the disks of all workers. What a slot\n" +
			"has run last stays, and so does what was put there by hand. A task that wants a removed version fetches\n" +
			"it again. Workers remove versions by themselves beyond [worker] program_cache.",
		Example: "  tdf-manager program gc --dry-run\n  tdf-manager program gc --unused-for 12h --node node-1",
	}, func(ctx context.Context, s *session) error {
		stocks, err := o.CollectPrograms(ctx, s.manager, s.args, o.idleFor, s.dryRun)
		if err != nil {
			return err
		}
		return s.removedPrograms(stocks, false)
	}))
	cmd.Flags().StringVar(&o.unused, "unused-for", "30d", "remove what was not used for that long, such as 12h or 7d")
	return cmd
}

// removedPrograms says what was removed, and what was kept, which is a failure where it was named.
func (s *session) removedPrograms(stocks []task.Stock, named bool) error {
	all := copies(stocks)
	kept := slices.ContainsFunc(all, func(c copied) bool { return c.Kept != "" })
	return s.stocked(stocks, kept && named, func() { listRemoved(s, all) })
}

func listRemoved(s *session, all []copied) {
	did, n, bytes := "removed", 0, int64(0)
	if s.dryRun {
		did = "would remove"
	}
	for i := range all {
		c := &all[i]
		what := fmt.Sprintf("%s@%s of %s", c.Program, shortHash(c.SHA256), answer.Some(c.workers))
		if c.Kept != "" {
			s.printf("kept %s: %s\n", cli.Safe(what), cli.Safe(c.Kept))
			continue
		}
		s.printf("%s %s: %s\n", did, cli.Safe(what), disk.SizeText(uint64(c.Bytes)))
		n, bytes = n+1, bytes+c.Bytes
	}
	s.printf("%s %d versions: %s\n", did, n, disk.SizeText(uint64(bytes)))
}
