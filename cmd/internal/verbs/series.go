package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/task"
)

// series is the group of verbs about recurring tasks.
func (a *app) series() *cobra.Command {
	cmd := &cobra.Command{
		Use: seriesName, Short: "Make tasks that run again and again, look at and change them",
		Long: "series makes, shows and changes recurring tasks. Each occurrence is a task of its own, which a\n" +
			"server opens when it is due. Attributes: cron with zone, every, or eta=true (the program\n" +
			"writes eta= to $TDF_CONTROL); start, end, jitter; overlap (skip, queue, allow, replace); missed (skip,\n" +
			"once, all); max_behind; and task_NAME for each field of the task.",
		Example: "  tdf-manager series add nightly --cron '0 3 * * *' --zone Europe/Berlin -- backup --all\n" +
			"  tdf-manager series ls\n  tdf-manager series set nightly overlap=queue task_timeout=1h\n  tdf-manager series run nightly",
	}
	cmd.AddCommand(a.seriesAdd(), a.seriesLs(), a.seriesShow(), a.seriesSet(), a.seriesPause(true), a.seriesPause(false), a.seriesRun(),
		a.seriesRm())
	return cmd
}

// seriesAdding is the verb add with its flags.
type seriesAdding struct {
	submission

	set map[string]*string
	eta bool
}

func (a *app) seriesAdd() *cobra.Command {
	n := &seriesAdding{set: map[string]*string{}}
	cmd := withJSON(withDryRun(&cobra.Command{
		Use: "add KEY [flags] [-- WORDS...]", Short: "Make a recurring task",
		Long: "add makes a series under a key of its own. WORDS and the flags of the task are those of submit; times\n" +
			"such as --end-before +10m count from when an occurrence is due. --cron, --every or --eta say when that is.\n" +
			"The task knows its series as the attributes series, scheduled and occurrence.",
		Example: "  tdf-manager series add nightly --cron '30 2 * * 1-5' -- backup --all\n" +
			"  tdf-manager series add poll --every 10s --overlap queue -- ./check host\n" +
			"  tdf-manager series add crawl --eta --upload . -- ./crawl https://host/",
		Args: cobra.MinimumNArgs(1), RunE: a.withManager(n.do),
	}))
	n.taskFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&n.upload, uploadName, "", "take a directory or a file along through Redis, for the program or command")
	cmd.MarkFlagsMutuallyExclusive(uploadName, sourceField)
	for name, usage := range map[string]string{
		"cron":  "when it is due: five fields such as '30 4 * * 1-5', or @daily",
		"zone":  "time zone of --cron, such as Europe/Berlin (default UTC)",
		"every": "how often it is due, such as 10m", "start": "earliest time", "end": "latest time",
		"jitter":     "most that an occurrence begins later than it is due, each by a part of its own",
		"overlap":    "what happens to an occurrence while the one before runs: skip (default), queue, allow or replace",
		"missed":     "what happens to occurrences that could not begin: skip, once (default) or all",
		"max_behind": "how late an occurrence may begin",
	} {
		n.set[name] = flags.String(strings.ReplaceAll(name, "_", "-"), "", usage)
	}
	flags.BoolVar(&n.eta, "eta", false, "the program says when it is due next: eta= in $TDF_CONTROL")
	return cmd
}

func (n *seriesAdding) do(ctx context.Context, s *session) (err error) {
	key := s.args[0]
	if at := s.cmd.ArgsLenAtDash(); at > 1 || at < 0 && len(s.args) > 1 || at == 0 {
		return cli.Usagef("%q: give one key, and the command behind --", strings.Join(s.args, " "))
	}
	s.args = s.args[1:]
	if err := n.checkSeries(s); err != nil {
		return err
	}
	packed, err := n.pack(ctx, s)
	if err != nil {
		return err
	}
	if packed != nil {
		defer func() { err = errors.Join(err, packed.Close()) }()
	}
	of, err := n.task(ctx, s)
	if err != nil {
		return err
	}
	set := map[string]string{}
	for name, text := range n.set {
		if s.cmd.Flags().Changed(strings.ReplaceAll(name, "_", "-")) {
			set[name] = *text
		}
	}
	if n.eta {
		set["eta"] = "true"
	}
	if !s.dryRun {
		if err := n.put(ctx, s, packed); err != nil {
			return err
		}
	}
	made, err := answer.AddSeries(ctx, s.manager, key, of, set, s.change())
	if err != nil {
		return err
	}
	return s.result(made, func() { s.printf("%s\n", cli.Safe(addedText(made))) })
}

// checkSeries refuses what cannot be opened again and again.
func (n *seriesAdding) checkSeries(s *session) error {
	if *n.texts[keyField] != "" {
		return cli.Usagef("--key would make all occurrences one task; leave it out")
	}
	if source := *n.texts[sourceField]; strings.HasPrefix(source, task.FilePrefix) {
		return cli.Usagef("--source %s lies here, and an occurrence begins elsewhere; take it along with --upload", source)
	}
	at, words := s.cmd.ArgsLenAtDash(), len(s.args) > 0
	if words && at != 1 {
		return cli.Usagef("write WORDS behind --")
	}
	if program := *n.texts[programField]; program != "" {
		return nil
	}
	if n.command = words; !words {
		return cli.Usagef("--program is missing; write the name of the program, or a command behind --")
	}
	return n.checkCommand(s, s.args[0])
}

// task is what the flags and words say of the task. What counts from now for submit counts from each occurrence.
func (n *seriesAdding) task(ctx context.Context, s *session) (series.Task, error) {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return nil, err
	}
	given, err := n.given(now)
	if err != nil {
		return nil, err
	}
	if n.uploaded != "" {
		given.Source = task.BlobSource(n.uploaded)
	}
	given = n.withWords(given, s.args)
	if err := n.keepStdin(ctx, s, &given); err != nil {
		return nil, err
	}
	of := series.NewTask(&given)
	for _, name := range []string{"start_after", "end_before"} {
		if text := *n.texts[name]; text != "" {
			if err := of.Set(name, text); err != nil {
				return nil, err
			}
		}
	}
	return of, nil
}

// keepStdin takes along what each occurrence reads.
func (n *seriesAdding) keepStdin(ctx context.Context, s *session, spec *task.Spec) error {
	name, here := strings.CutPrefix(spec.Stdin, task.FilePrefix)
	if !here {
		return nil
	}
	if n.stdin != "-" {
		if err := badStdin(spec.Stdin); err != nil {
			return err
		}
	}
	if s.dryRun {
		spec.Stdin = ""
		return nil
	}
	in, _, err := s.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	spec.Stdin, err = s.manager.PutStdin(ctx, in)
	return err
}

func addedText(made *answer.SeriesChanged) string {
	text := "added series " + made.Key
	if made.DryRun {
		text = "would add series " + made.Key
	}
	if made.Next.IsZero() {
		return text + "; it is never due"
	}
	return text + "; it is due first at " + when(made.Next)
}

func readSeries(ctx context.Context, s *session, key string) (*series.Series, error) {
	found, err := answer.OneSeries(ctx, s.manager, key)
	return found, s.unknownSeries(ctx, key, err)
}

// unknownSeries completes the error of a key that no series has.
func (s *session) unknownSeries(ctx context.Context, key string, err error) error {
	if !errors.Is(err, task.ErrNoRecord) {
		return err
	}
	var known []string
	if all, failed := answer.AllSeries(ctx, s.manager, "", 1000); failed == nil {
		for _, one := range all {
			known = append(known, one.Key)
		}
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("no such series: %q; %s", key, answer.Meant(key, known, "see "+s.command("series ls"))))
}

func (a *app) seriesLs() *cobra.Command {
	var after string
	limit := 0
	cmd := withJSON(&cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the series", Args: cobra.NoArgs,
		Long: "ls lists the series by their keys. DUE is when, NEXT the next time, RUNS how many occurrences have begun.",
		Example: "  tdf-manager series ls\n" +
			"  tdf-manager series ls --json | jq -r '.[] | select(.error).key'",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			all, err := answer.AllSeries(ctx, s.manager, after, limit)
			if err != nil {
				return err
			}
			return s.result(all, func() { listSeries(s, all) })
		}),
	})
	cmd.Flags().StringVar(&after, "after", "", "list the series whose keys follow this one")
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most this `number` of series; 0 for all")
	return cmd
}

func listSeries(s *session, all []*series.Series) {
	if len(all) == 0 {
		s.note("there is no series; make one with %s", s.command("series add KEY"))
		return
	}
	table := s.out.Table("KEY", "STATE", "DUE", "NEXT", "LAST", "RUNS", "OVERLAP", "MISSED")
	for _, one := range all {
		table.Row(one.Key, seriesState(one), dueText(&one.Definition), whenOrDash(one.Next), whenOrDash(one.Last), one.Number,
			string(one.Overlap), string(one.Missed))
	}
	table.Flush()
}

// seriesState is how a series is, in a word.
func seriesState(s *series.Series) string {
	switch {
	case s.Error != "":
		return "error"
	case s.Paused:
		return pausedField
	case s.Waits:
		return "waits"
	case s.Over():
		return "over"
	case s.Next.IsZero():
		return "runs"
	}
	return "-"
}

// dueText is when a series is due.
func dueText(d *series.Definition) string {
	var parts []string
	if d.Cron != "" {
		parts = append(parts, d.Cron+" "+cmp.Or(d.Zone, "UTC"))
	}
	if d.Every > 0 {
		parts = append(parts, "every "+time.Duration(d.Every).String())
	}
	if d.ETA {
		parts = append(parts, "as it says")
	}
	return strings.Join(parts, ", or ")
}

func whenOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return when(t)
}

func (a *app) seriesShow() *cobra.Command {
	return showing(a, &cobra.Command{
		Use: "show KEY", Short: "Show a series, and what became of its newest occurrences",
		Long:    "show shows the attributes of a series and its newest occurrences. All of its tasks are listed by ls --attr series=KEY.",
		Example: "  tdf-manager series show nightly\n  tdf-manager series show nightly --json | jq '.history[-1].task'",
	}, readSeries, showSeries)
}

func showSeries(_ context.Context, s *session, one *series.Series) error {
	table := s.out.Table()
	table.Row(seriesName, one.Key)
	table.Row("state", seriesState(one))
	table.Some("error", one.Error)
	for _, a := range answer.SeriesAttributes(&one.Definition) {
		table.Row(a.Name, a.Text)
	}
	table.Row("created", when(one.Created))
	table.Row("next", whenOrDash(one.Next))
	table.Row("runs", one.Number)
	for _, e := range slices.Backward(one.History) {
		table.Row(e.What, eventText(&e))
	}
	table.Flush()
	return nil
}

func eventText(e *series.Entry) string {
	switch {
	case e.Number == 0 && e.Before.IsZero():
		return when(e.At)
	case e.Number == 0:
		return when(e.At) + " up to " + when(e.Before)
	}
	text := fmt.Sprintf("%s: occurrence %d, task %d", when(e.At), e.Number, e.Task)
	if late := e.Begun.Sub(e.At); late >= time.Second {
		text += ", " + rounded(late) + " late"
	}
	return text
}

func (a *app) seriesSet() *cobra.Command {
	return withJSON(withDryRun(&cobra.Command{
		Use: "set KEY ATTRIBUTE=VALUE...", Short: "Change attributes of a series, all of them or none",
		Long: "set changes attributes of a series; see series for them. An empty value restores the default. Another\n" +
			"cron, zone, every, eta or start makes it due anew, from now on. Tasks that are open stay as they are.",
		Example: "  tdf-manager series set nightly 'cron=0 4 * * *' overlap=queue\n" +
			"  tdf-manager series set poll every=1m task_timeout= --dry-run",
		Args: cobra.MinimumNArgs(2), RunE: a.withManager(func(ctx context.Context, s *session) error {
			set, err := parseAttributes(s.args[1:])
			if err != nil {
				return err
			}
			after, err := answer.SetSeries(ctx, s.manager, s.args[0], set, s.change())
			if err != nil {
				return s.unknownSeries(ctx, s.args[0], err)
			}
			return s.result(after, func() { printSet(s, "series "+after.Key, after.Differences) })
		}),
	}))
}

// seriesPause makes the verbs pause and resume.
func (a *app) seriesPause(pause bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause KEY...", Short: "Let no occurrence begin; running ones go on",
		Example: "  tdf-manager series pause nightly\n  tdf-manager series pause nightly poll --dry-run",
	}
	did, would := "paused", "would pause"
	if !pause {
		did, would = "resumed", "would resume"
		cmd = &cobra.Command{
			Use: "resume KEY...", Short: "Let occurrences begin again; those of the meantime are left out",
			Example: "  tdf-manager series resume nightly\n  tdf-manager series resume nightly poll",
		}
	}
	return a.changingSeries(cmd, func(ctx context.Context, s *session, key string) (*answer.SeriesChanged, string, error) {
		one, err := answer.PauseSeries(ctx, s.manager, key, pause, s.change())
		if s.dryRun {
			return one, would, err
		}
		return one, did, err
	})
}

func (a *app) seriesRun() *cobra.Command {
	return a.changingSeries(&cobra.Command{
		Use: "run KEY...", Short: "Begin an occurrence now",
		Long: "run begins an occurrence now, also while another one runs or the series is paused. When it is due next\n" +
			"does not change, unless its program says that.",
		Example: "  tdf-manager series run nightly\n  tdf-manager series run nightly --json | jq '.[0].history[-1].task'",
	}, func(ctx context.Context, s *session, key string) (*answer.SeriesChanged, string, error) {
		one, err := answer.RunSeries(ctx, s.manager, key, s.change())
		if err != nil || s.dryRun {
			return one, "would begin an occurrence", err
		}
		return one, fmt.Sprintf("began occurrence %d, task %d", one.Number, one.History[len(one.History)-1].Task), nil
	})
}

// changingSeries makes a verb that does one thing to each series named.
func (a *app) changingSeries(
	cmd *cobra.Command, do func(ctx context.Context, s *session, key string) (*answer.SeriesChanged, string, error),
) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = a.withManager(func(ctx context.Context, s *session) error {
		if _, err := readAll(ctx, s, readSeries); err != nil { // all or none
			return err
		}
		all := []*answer.SeriesChanged{}
		err := s.logged(ctx, "series "+cmd.Name(), func(ctx context.Context) error {
			for _, key := range s.args {
				one, did, err := do(ctx, s, key)
				if err != nil {
					return s.unknownSeries(ctx, key, err)
				}
				if all = append(all, one); !s.json {
					s.printf("series %s: %s\n", cli.Safe(key), did)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return s.result(all, func() {})
	})
	return withJSON(withDryRun(cmd))
}

func (a *app) seriesRm() *cobra.Command {
	return removing(a, seriesName, &cobra.Command{
		Use: "rm KEY...", Aliases: []string{removeAlias}, Short: "Remove series; their tasks go on",
		Long:    "rm removes series. No further occurrence begins; tasks that are open go on.",
		Example: "  tdf-manager series rm nightly\n  tdf-manager series rm nightly poll --dry-run",
	}, readSeries, func(ctx context.Context, s *session, key string) error {
		return s.unknownSeries(ctx, key, series.Remove(ctx, s.manager, key, s.change()))
	})
}

const seriesName = "series"
