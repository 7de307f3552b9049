package verbs

import (
	"context"
	"errors"
	"fmt"
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
	dirs *[]string
}

const waitRepaired = "wait-repaired"

func (a *app) verify() *cobra.Command {
	v := &verify{}
	cmd := withJSON(&cobra.Command{
		Use: "verify", Short: "Check the state and the record of every task",
		Long: "verify reads all tasks of the namespace and the recorded events, and changes nothing. It may run at\n" +
			"any time. It ends with 1 if it finds a violation; a note is none.\n\n" +
			"Servers repair state sets, indices and the lists of plans from the records of tasks, within a minute\n" +
			"or two. With --wait-repaired verify repeats until they have repaired what they can, for two minutes\n" +
			"or the time given. If no server runs, start a tdf-server.\n\n" +
			"With --archive it also checks that every task that has left Redis is in the archive, and verifies\n" +
			"the checksums of all segments.",
		Example: "  tdf-manager verify\n  tdf-manager verify --wait-repaired\n  tdf-manager verify --wait-repaired=10m\n" +
			"  tdf-manager verify --archive /var/lib/tdf/archive",
		Args: cobra.NoArgs, RunE: a.withManager(v.do),
	})
	cmd.Flags().DurationVar(&v.wait, waitRepaired, 0, "wait until servers have repaired what they can")
	cmd.Flags().Lookup(waitRepaired).NoOptDefVal = "2m"
	v.dirs = archiveFlag(cmd)
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
		err = archiveError(audit.VerifyArchive(ctx, s.store, &report, *v.dirs))
	}
	if err != nil {
		return err
	}
	err = s.result(&report, func() { printReport(s, &report) })
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

func printReport(s *session, r *audit.Report) {
	printViolations(s, "", r.Violations)
	printViolations(s, "note: ", r.Notes)
	if r.Omitted > 0 {
		s.printf("... and %d more violations and notes\n", r.Omitted)
	}
	printSums(s, r)
	verdict := "no violations"
	if n := len(r.Violations); n > 0 {
		verdict = fmt.Sprintf("%d VIOLATIONS", n)
	}
	s.printf("%d tasks checked (%s), %s\n", r.Checked, countsLine(r.States), verdict)
}

// printSums says what became of all ids, and how far back the events go.
func printSums(s *session, r *audit.Report) {
	s.printf("%d opened = %d in a state + %d dead letters + %d left out + %d taken but never written",
		r.Account.Opened, r.Account.InStates, r.Account.DeadLetters, r.Account.LeftOut, r.Account.Unwritten)
	if r.Account.Purged > 0 {
		s.printf(" + %d purged", r.Account.Purged)
	}
	if r.Account.Missing > 0 {
		s.printf(" + %d LOST OR DAMAGED", r.Account.Missing)
	}
	history := "no events"
	if h := r.History; h.Events > 0 {
		history = fmt.Sprintf("%d events, from change %d on; %d of %d tasks from their beginning", h.Events, h.From, h.Whole, h.Tasks)
	}
	s.printf("\nhistory: %s\n", history)
	found := r.Archive
	if found == nil {
		return
	}
	s.printf("archive: %d tasks; %d purged = %d in it", found.Tasks, found.Purged, found.InArchive)
	if found.Before > 0 {
		s.printf(" + %d gone before it was begun", found.Before)
	}
	if found.Missing > 0 {
		s.printf(" + %d MISSING", found.Missing)
	}
	s.printf("\n")
}

func printViolations(s *session, head string, list []audit.Violation) {
	for _, v := range list {
		about := ""
		if v.ID != 0 {
			about = fmt.Sprintf("task %d: ", v.ID)
		}
		s.printf("%s%s%s: %s\n", head, about, v.Kind, cli.Safe(v.Text))
	}
}
