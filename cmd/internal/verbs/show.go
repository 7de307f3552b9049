package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/ops/cold"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func (a *app) show() *cobra.Command {
	cmd := withJSON(&cobra.Command{
		Use: "show ID", Short: "Show a task with all its rounds and its log, or a job", Args: cobra.ExactArgs(1),
		Long: "show prints a task, by its id, with all its rounds and its log; or how far a job is, by its name, such\n" +
			"as j7. last is the job of the task opened last, or that task if it is alone.",
		Example: "  tdf-manager show 7\n  tdf-manager show j7",
	})
	dirs := archiveFlag(cmd)
	one := a.withTask(dirs, showOne)
	cmd.RunE = liveOrCold(dirs, a.withManager(func(ctx context.Context, s *session) error {
		if done, err := s.showJob(ctx); done {
			return err
		}
		t, err := s.readTask(ctx)
		if err != nil {
			return err
		}
		return showOne(s, t) //nolint:contextcheck // it is that of the command
	}), one)
	return cmd
}

func showOne(s *session, t *task.Task) error { return s.result(t, func() { showTask(s, t) }) }

// withTask makes a verb about the task that the only argument names, in Redis or, if there are directories, in an archive.
func (a *app) withTask(dirs *[]string, do func(s *session, t *task.Task) error) runFunc {
	live := a.withManager(func(ctx context.Context, s *session) error {
		t, err := s.readTask(ctx)
		if err != nil {
			return err
		}
		return do(s, t)
	})
	cold := a.withArchive(dirs, func(ctx context.Context, s *session, a *cold.Archive) error {
		t, err := s.findTask(ctx, a)
		if err != nil {
			return err
		}
		return do(s, t)
	})
	return liveOrCold(dirs, live, cold)
}

// liveOrCold runs the verb that reads Redis or, if there are directories, the one that reads an archive.
func liveOrCold(dirs *[]string, live, cold runFunc) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		if len(*dirs) > 0 {
			return cold(cmd, args)
		}
		return live(cmd, args)
	}
}

// readTask reads the task that the only argument names.
func (s *session) readTask(ctx context.Context) (*task.Task, error) {
	id, err := bulk.ParseID(s.args[0], bulk.Newest(ctx, s.manager))
	if err != nil {
		return nil, err
	}
	t, err := s.manager.Task(ctx, id)
	if errors.Is(err, task.ErrPurged) {
		err = fmt.Errorf("%w; %s", err, purgedRemedy)
	}
	return t, err
}

// purgedRemedy is where tasks may be that have left Redis.
const purgedRemedy = "if [server] archive_dir was set, add --archive and that directory"

func showTask(s *session, t *task.Task) {
	out := s.out
	if t.Err != nil {
		out.Printf("%s\n", cli.Safe(t.Err.Error()))
	}
	s.showFields(t)
	for i := range t.Rounds {
		showRound(s, &t.Rounds[i])
	}
	var log strings.Builder
	for _, entry := range t.Log {
		log.WriteString(entry.String() + "\n")
	}
	out.Printf("\nlog\n%s", indent(clean.URLs(log.String())))
}

// indent escapes a text of several lines for a terminal and moves it in.
func indent(text string) string {
	if text == "" {
		return ""
	}
	text = strings.TrimRight(cli.SafeLines(text), "\n")
	return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

func moment(t statemachine.Time) string {
	const longAgo = statemachine.Time(86400e6) // a random offset on no start at all is no date
	switch {
	case t == 0:
		return "0"
	case t == statemachine.Never, t < longAgo:
		return t.Text()
	}
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02 15:04:05.000000Z")
}

// bound is a moment as text, empty for the zero time.
func bound(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return when(t)
}

func span(d time.Duration) string {
	if d == 0 {
		return statemachine.Forever.Text()
	}
	return d.String()
}

func (s *session) showFields(t *task.Task) {
	state := string(t.State)
	if end := t.EndState(); end != t.State && end != statemachine.None {
		state += " (" + string(end) + ")"
	}
	if t.OnStderr() {
		state += ": " + onStderr
	}
	table := s.out.Table()
	table.Row("task", t.ID)
	table.Row("state", state)
	if !t.Created.IsZero() {
		table.Row("created", when(t.Created))
	}
	stepRows(table, t)
	planRows(table, t)
	table.Row("program", t.Program)
	table.Row("source", clean.Source(t.Source))
	table.Row("input", task.InputText(t.Input, t.Argv))
	table.Some(variablesField, pairsText(t.Variables))
	table.Some(paramsField, string(t.Params))
	table.Some(stdinField, s.stdinText(t.Stdin))
	placeRows(table, t)
	table.Row("start_after", cmp.Or(bound(t.StartAfter), "0"))
	if !t.NotBefore.IsZero() {
		table.Row("not_before", when(t.NotBefore)+" (rests after a failure)")
	}
	table.Row("end_before", cmp.Or(bound(t.EndBefore), statemachine.Never.Text()))
	table.Row("timeout", span(t.Timeout))
	limitRows(table, t)
	counterRows(table, t)
	table.Row("fail_on", t.FailOn)
	table.Some(returnField, strings.Join(t.Return, ", "))
	table.Some("return_to", clean.Source(t.ReturnTo))
	policyRows(table, t)
	table.Flush()
}

// limitRows are what the task sets to its rounds.
func limitRows(table *cli.Table, t *task.Task) {
	if t.MemoryMax > 0 {
		table.Row("memory_max", clean.SizeText(t.MemoryMax))
	}
	table.Some("pids_max", t.Fields["pids_max"])
	table.Some("nice", t.Fields["nice"])
}

// stdinText is what a program reads, and how much that is.
func (s *session) stdinText(stdin string) string {
	hash := task.SourceSHA256(stdin)
	if hash == "" || s.store == nil {
		return stdin
	}
	switch size, there, err := s.store.BlobSize(s.cmd.Context(), hash); {
	case err != nil:
		return stdin + " (not known whether Redis keeps it: " + err.Error() + ")"
	case !there:
		return stdin + " (kept no longer)"
	default:
		return fmt.Sprintf("%s (%d bytes)", stdin, size)
	}
}

// stepRows are what operators did with the task, and the tasks it is linked with.
func stepRows(table *cli.Table, t *task.Task) {
	if t.State == statemachine.Blocked && (t.Hold != "" || t.Plan == 0) { // else its plan lets it wait
		table.Row("held", cmp.Or(t.Hold, "without a reason"))
	}
	if !t.CancelRequested.IsZero() {
		table.Row("stop asked for", when(t.CancelRequested))
	}
	table.Some("cancel reason", t.CancelReason)
	table.Some("cut", strings.Join(t.Cut, ", "))
	for _, link := range []struct {
		name string
		id   int64
	}{{"retry_of", t.RetryOf}, {"retried_by", t.RetriedBy}} {
		if link.id > 0 {
			table.Row(link.name, fmt.Sprintf("task %d", link.id))
		}
	}
	if t.ReplayOf > 0 {
		table.Row("replay_of", fmt.Sprintf("task %d, round %d", t.ReplayOf, t.ReplayRound))
	}
}

// planRows are what the task is in its plan.
func planRows(table *cli.Table, t *task.Task) {
	if t.Plan == 0 {
		return
	}
	if strings.Trim(t.Fields[planField], "0123456789") == "" {
		table.Row(planField, t.Plan)
	} else {
		table.Row("job", plans.JobName(t.Plan))
	}
	table.Some(stepField, t.Step)
	table.Some("needs", needsText(t.Needs))
}

// placeRows are where and when the task may run.
func placeRows(table *cli.Table, t *task.Task) {
	table.Row("queue", t.Queue)
	table.Row("priority", orZero(t.Priority))
	table.Some(envField, t.Env)
	table.Some("labels", strings.Join(t.Labels, ", "))
	table.Some("resources", amounts(t.Resources))
	table.Some("class", t.Class)
	table.Some("key", t.Key)
	table.Some("comment", t.Comment)
	table.Some(metaField, pairsText(t.Meta))
}

// pairsText are texts as people write them: tenant=acme, trace=7.
func pairsText(m map[string]string) string {
	return joined(m, func(name, text string) string { return name + "=" + text })
}

// amounts are resources as people write them: gpu=1, mem=2048.
func amounts(resources map[string]int) string {
	return joined(resources, func(name string, n int) string { return name + "=" + strconv.Itoa(n) })
}

// joined are texts about what has names, in their order.
func joined[V any](m map[string]V, text func(name string, v V) string) string {
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, text(name, m[name]))
	}
	return strings.Join(parts, ", ")
}

func counterRows(table *cli.Table, t *task.Task) {
	table.Row("fails", fmt.Sprintf("%d (%s)", t.Fails, atMost(t.Retry.Limit)))
	table.Row("timeouts", fmt.Sprintf("%d (%s)", t.Timeouts, atMost(t.MaxTimeouts)))
	table.Row("losses", fmt.Sprintf("%d (%s)", t.Losses, atMost(t.MaxLosses)))
	if t.Faults > 0 || t.Charge == task.ChargeProgram {
		table.Row("faults", fmt.Sprintf("%d (%s; not the program's own)", t.Faults, atMost(t.MaxFaults)))
	}
	if t.Releases > 0 {
		table.Row("releases", fmt.Sprintf("%d (handed back, at no cost)", t.Releases))
	}
}

// atMost is how often something may happen.
func atMost(limit task.Limit) string {
	if limit == task.Unlimited {
		return string(limit)
	}
	return "at most " + strconv.Itoa(limit.N())
}

// orZero is 0 for a number that the record has not, because it is damaged.
func orZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// policyRows are what happens after a failure, and after the end, where it is not the plain thing.
func policyRows(table *cli.Table, t *task.Task) {
	for _, f := range task.Fields() {
		text, _ := t.Text(f.Name)
		policy := slices.Contains([]string{"on_cut", "return_on", "charge", "archive", "workdir"}, f.Name) ||
			strings.HasPrefix(f.Name, "retry_") || strings.HasSuffix(f.Name, "_exit_codes")
		if policy && text != f.Default {
			table.Some(f.Name, text)
		}
	}
}

// showRound writes the record of a round: who ran it, its moments in order, how
// it ended, what it used, and the end of what it wrote.
func showRound(s *session, r *task.Round) {
	out := s.out
	head := fmt.Sprintf("\nround %d", r.Number)
	if r.Worker != "" {
		head += ", worker " + cli.Safe(r.Worker)
	}
	if r.ExitCode != nil {
		head += ", exit code " + strconv.Itoa(*r.ExitCode)
	}
	if r.Signal != "" {
		head += ", signal " + cli.Safe(r.Signal)
	}
	if r.Class != "" {
		head += ", class " + cli.Safe(string(r.Class))
	}
	out.Printf("%s\n", head)
	showMoments(out, r)
	showRecord(out, r)
	s.showFiles(r)
	showStreams(out, r)
}

// showFiles writes what the round has returned, and until when Redis keeps it.
func (s *session) showFiles(r *task.Round) {
	switch {
	case r.Files.Count == 0:
		return
	case r.Files.To != "":
		s.printf("  files (%d, %d bytes; at %s)\n", r.Files.Count, r.Files.Bytes, cli.Safe(r.Files.To))
		return
	}
	kept := "not in an archive"
	if s.store != nil {
		switch till, err := s.store.FilesUntil(s.cmd.Context(), r.Files.SHA256); {
		case err != nil:
			kept = "not known how long they are kept: " + cli.Safe(err.Error())
		case till.IsZero():
			kept = "kept no longer (file_retention)"
		default:
			kept = "kept until " + when(till) + "; results --dir writes them"
		}
	}
	s.printf("  files (%d, %d bytes packed; %s)\n", r.Files.Count, r.Files.Bytes, kept)
}

func showMoments(out *cli.Output, r *task.Round) {
	names := slices.SortedFunc(maps.Keys(r.Stamps), func(a, b string) int {
		return cmp.Or(r.Stamps[a].Compare(r.Stamps[b]), cmp.Compare(place(a), place(b)))
	})
	table := out.Table()
	for _, name := range names {
		table.Row("  "+when(r.Stamps[name]), name)
	}
	table.Flush()
}

// place orders moments that are the same: one move writes both "failure" and
// "failed", the stamp of the way before the state it leads to.
func place(name string) int {
	return slices.Index(statemachine.States(), statemachine.State(name))
}

// showRecord writes what is there of the rest.
func showRecord(out *cli.Output, r *task.Round) {
	table := out.Table()
	table.Some("  node", r.Node)
	if r.Incarnation > 0 {
		table.Row("  incarnation", r.Incarnation)
	}
	table.Some("  claim", r.Claim)
	if r.ProgramSHA256 != "" {
		table.Row("  program", "sha256 "+r.ProgramSHA256)
	}
	if r.UserTime > 0 || r.SystemTime > 0 {
		table.Row("  cpu time", fmt.Sprintf("%v user, %v system", r.UserTime, r.SystemTime))
	}
	if r.MaxMemory > 0 {
		table.Row("  max memory", fmt.Sprintf("%d bytes", r.MaxMemory))
	}
	table.Some("  resources", allottedText(r.Resources))
	table.Some("  progress", r.Progress.String())
	table.Flush()
}

// showStreams writes the end of what the round wrote.
func showStreams(out *cli.Output, r *task.Round) {
	if r.Dropped {
		out.Printf("  output and error are kept no longer (keep_rounds)\n")
	}
	for _, s := range []struct {
		name, text string
		size       int64
		cut        bool
		hash       string
	}{
		{returned.Output, r.Output, r.OutputBytes, r.OutputHash != "", r.OutputSHA256()},
		{returned.Error, r.Error, r.ErrorBytes, r.ErrorHash != "", r.ErrorSHA256()},
		{"stderr", r.Stderr, r.ErrorBytes, r.ErrorHash != "", r.ErrorSHA256()},
		{"trace", r.Trace, int64(len(r.Trace)), false, ""},
	} {
		if s.text == "" {
			continue
		}
		size := fmt.Sprintf("%d bytes", s.size)
		switch {
		case s.cut && returned.Place(r.Whole) != "":
			size += ", an excerpt; more is at " + cli.Safe(returned.Place(r.Whole))
		case s.cut && len(r.Whole) > 0:
			size += ", an excerpt; logs prints what is kept of it"
		case s.cut:
			size += ", of which a part is kept"
		}
		if s.hash != "" {
			size += ", sha256 " + cli.Safe(s.hash)
		}
		out.Printf("  %s (%s)\n%s", s.name, size, indent(clean.Tail(s.text)))
	}
}

// allottedText is what the round got of its node: gpu=2 (0,1), mem=2048.
func allottedText(resources map[string]task.Allotted) string {
	return joined(resources, func(name string, a task.Allotted) string {
		text := fmt.Sprintf("%s=%d", name, a.Count)
		if len(a.IDs) > 0 {
			text += " (" + strings.Trim(strings.ReplaceAll(fmt.Sprint(a.IDs), " ", ","), "[]") + ")"
		}
		return text
	})
}
