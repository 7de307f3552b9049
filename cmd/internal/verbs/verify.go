package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// verify is the verb of that name.
type verify struct {
	wait time.Duration
	json *bool
	dirs *[]string
}

const waitRepaired = "wait-repaired"

func (a *app) verify() *cobra.Command {
	v := &verify{}
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the state and the record of every task",
		Long: "verify reads all tasks of the namespace and the recorded events, and changes nothing. It may run\n" +
			"while everything is at work. It ends with 1 if something is wrong; notes are not.\n\n" +
			"Servers repair state sets, indices and the lists of plans within a minute or two, where the record of the task\n" +
			"says what is right. With --wait-repaired it verifies again until nothing is left that they repair, for two\n" +
			"minutes or the time that is given. Where no server runs, start a tdf-server.\n\n" +
			"With --archive it also makes sure that every task that has left Redis is in the archive, and that the checksums of\n" +
			"all segments are right.",
		Example: "  tdf-manager verify\n  tdf-manager verify --wait-repaired\n  tdf-manager verify --wait-repaired=10m\n" +
			"  tdf-manager verify --archive /var/lib/tdf/archive",
		Args: cobra.NoArgs,
	}
	cmd.Flags().DurationVar(&v.wait, waitRepaired, 0, "wait until servers have repaired what they can")
	cmd.Flags().Lookup(waitRepaired).NoOptDefVal = "2m"
	v.json = jsonFlag(cmd)
	v.dirs = archiveFlag(cmd)
	cmd.RunE = a.withStore(v.do)
	return cmd
}

func (v *verify) do(ctx context.Context, s *session) error {
	if v.wait < 0 {
		return cli.Usagef("--%s=%s: must not be negative", waitRepaired, v.wait)
	}
	report, err := v.repaired(ctx, s.store)
	unserved := errors.Is(err, errNoServer)
	if unserved {
		err = nil
	}
	if err == nil && len(*v.dirs) > 0 {
		if err = audit.VerifyArchive(ctx, s.store, &report, *v.dirs); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w", err))
		}
	}
	if err != nil {
		return err
	}
	if *v.json {
		err = cli.WriteJSON(s.out, &report)
	} else {
		err = printReport(s.out, &report)
	}
	switch {
	case err == nil && unserved:
		return cli.WithCode(cli.ExitTaskFailed, errNoServer)
	case err == nil && !report.OK():
		return cli.Exit(cli.ExitTaskFailed)
	}
	return err
}

// verifyAgain is how long verify waits for servers before it looks again.
const verifyAgain = time.Second

// errNoServer means that nobody is there to repair what was found.
var errNoServer = errors.New("no server runs: start a tdf-server, which repairs state sets, indices and the lists of plans")

// repaired verifies until servers have repaired what they can, or the time is over. The error is errNoServer, with the report, if
// there is something to repair and no server.
func (v *verify) repaired(ctx context.Context, s *store.Store) (audit.Report, error) {
	for end := time.Now().Add(v.wait); ; {
		report, err := audit.Verify(ctx, s)
		if err != nil || v.wait == 0 || !slices.ContainsFunc(report.Violations, func(f audit.Violation) bool { return f.Kind.Repairable() }) {
			return report, err
		}
		if err := serverRuns(ctx, s); err != nil {
			return report, err
		}
		if time.Now().After(end) || !timing.Pause(ctx, verifyAgain) {
			return report, ctx.Err()
		}
	}
}

// serverSilence is how long a server may be silent: it says every repair_interval that it is there, 5 s unless set.
const serverSilence = 60 * statemachine.Second

func serverRuns(ctx context.Context, s *store.Store) error {
	seen, err := s.ServerSeen(ctx)
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	if err == nil && now.Sub(seen) > serverSilence {
		return errNoServer
	}
	return err
}

func printReport(w io.Writer, r *audit.Report) error {
	if err := printViolations(w, "", r.Violations); err != nil {
		return err
	}
	if err := printViolations(w, "note: ", r.Notes); err != nil {
		return err
	}
	if r.Omitted > 0 {
		if err := printf(w, "... and %d more violations and notes\n", r.Omitted); err != nil {
			return err
		}
	}
	if err := printSums(w, r); err != nil {
		return err
	}
	verdict := "no violations"
	if n := len(r.Violations); n > 0 {
		verdict = fmt.Sprintf("%d VIOLATIONS", n)
	}
	return printf(w, "%d tasks checked (%s), %s\n", r.Checked, countsLine(r.States), verdict)
}

// printSums says what became of all ids, and how far back the events go.
func printSums(w io.Writer, r *audit.Report) error {
	sum := fmt.Sprintf("%d opened = %d in a state + %d dead letters + %d left out + %d taken but never written",
		r.Account.Opened, r.Account.InStates, r.Account.SetAside, r.Account.LeftOut, r.Account.Unwritten)
	if r.Account.Purged > 0 {
		sum += fmt.Sprintf(" + %d purged", r.Account.Purged)
	}
	if r.Account.Missing > 0 {
		sum += fmt.Sprintf(" + %d LOST OR DAMAGED", r.Account.Missing)
	}
	history := "history: no events"
	if h := r.History; h.Events > 0 {
		history = fmt.Sprintf("history: %d events, from change %d on; %d of %d tasks from their beginning", h.Events, h.From, h.Whole, h.Tasks)
	}
	if err := printf(w, "%s\n%s\n", sum, history); err != nil || r.Archive == nil {
		return err
	}
	found := r.Archive
	text := fmt.Sprintf("archive: %d tasks; %d purged = %d in it", found.Tasks, found.Purged, found.InArchive)
	if found.Before > 0 {
		text += fmt.Sprintf(" + %d gone before it was begun", found.Before)
	}
	if found.Missing > 0 {
		text += fmt.Sprintf(" + %d MISSING", found.Missing)
	}
	return printf(w, "%s\n", text)
}

func printViolations(w io.Writer, head string, list []audit.Violation) error {
	for _, v := range list {
		about := ""
		if v.ID != 0 {
			about = fmt.Sprintf("task %d: ", v.ID)
		}
		if err := printf(w, "%s%s%s: %s\n", head, about, v.Kind, cli.Safe(v.Text)); err != nil {
			return err
		}
	}
	return nil
}
