package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/audit"
)

// verify is the verb of that name.
type verify struct {
	repair bool
	opt    audit.RepairOptions
	json   *bool
	dirs   *[]string
}

func (a *app) verify() *cobra.Command {
	v := &verify{}
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that every task is in exactly one state, and its record in order",
		Long: "verify reads all tasks of the namespace and the recorded events, and changes nothing. It may run\n" +
			"while everything is at work. It ends with 1 if something is wrong; notes are not.\n\n" +
			"With --repair it puts state sets and indices right where the record of the task says what is right,\n" +
			"and verifies again: it ends with 0 if nothing is left. Records of tasks are never changed and no task is\n" +
			"deleted. This needs the rights of a server, where Redis has users with fewer.\n\n" +
			"With --archive it also makes sure that every task that has left Redis is in the archive, and that the checksums of\n" +
			"all segments are right.",
		Example: "  tdf-manager verify\n  tdf-manager verify --repair --dry-run\n  tdf-manager verify --repair --set-aside\n" +
			"  tdf-manager verify --archive /var/lib/tdf/archive",
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&v.repair, "repair", false, "put state sets and indices right")
	cmd.Flags().BoolVar(&v.opt.SetAside, "set-aside", false,
		"with --repair: take damaged tasks out of all sets, as the servers do")
	dryRunFlag(cmd, &v.opt.DryRun)
	v.json = jsonFlag(cmd)
	v.dirs = archiveFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("repair", archiveName)
	cmd.RunE = a.withStore(v.do)
	return cmd
}

func (v *verify) do(ctx context.Context, s *session) error {
	if !v.repair {
		if v.opt != (audit.RepairOptions{}) {
			return cli.Usagef("--set-aside and --dry-run say how to repair: add --repair")
		}
		return v.look(ctx, s)
	}
	repairs, err := audit.Repair(ctx, s.store, v.opt)
	if err != nil || v.opt.DryRun {
		return v.stopped(s, &repairs, err)
	}
	report, err := audit.Verify(ctx, s.store)
	if err != nil {
		return v.stopped(s, &repairs, err)
	}
	return v.answer(s, &repairs, &report)
}

// look verifies without repairing anything.
func (v *verify) look(ctx context.Context, s *session) error {
	report, err := audit.Verify(ctx, s.store)
	if err == nil && len(*v.dirs) > 0 {
		if err = audit.VerifyArchive(ctx, s.store, &report, *v.dirs); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w", err))
		}
	}
	if err != nil {
		return err
	}
	return v.answer(s, nil, &report)
}

// verified is the answer in JSON of a repair.
type verified struct {
	Repairs *audit.Repairs `json:"repairs"`
	// Report is what was found afterwards; nil in a dry run.
	Report *audit.Report `json:"report"`
}

// stopped answers without a report: a dry run, or what was done before an error.
func (v *verify) stopped(s *session, r *audit.Repairs, err error) error {
	if err != nil && len(r.Done) == 0 {
		return err
	}
	written := v.write(s, r, nil)
	switch {
	case err != nil:
		return err
	case written == nil && len(r.Left) > 0:
		return cli.Exit(cli.ExitTaskFailed)
	default:
		return written
	}
}

func (v *verify) answer(s *session, repairs *audit.Repairs, report *audit.Report) error {
	if err := v.write(s, repairs, report); err != nil {
		return err
	}
	if !report.OK() {
		return cli.Exit(cli.ExitTaskFailed)
	}
	return nil
}

func (v *verify) write(s *session, repairs *audit.Repairs, report *audit.Report) error {
	switch {
	case *v.json && repairs != nil:
		return cli.WriteJSON(s.out, verified{repairs, report})
	case *v.json:
		return cli.WriteJSON(s.out, report)
	}
	if repairs != nil {
		if err := v.printRepairs(s.out, repairs); err != nil {
			return err
		}
	}
	if report != nil {
		return printReport(s.out, report)
	}
	return nil
}

func (v *verify) printRepairs(w io.Writer, r *audit.Repairs) error {
	done := "repaired"
	if v.opt.DryRun {
		done = "would be repaired"
	}
	if err := printViolations(w, done+": ", r.Done); err != nil {
		return err
	}
	if err := printViolations(w, "left: ", r.Left); err != nil {
		return err
	}
	return printf(w, "%d %s, %d left\n", len(r.Done), done, len(r.Left))
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
	sum := fmt.Sprintf("%d opened = %d in a state + %d set aside + %d left out + %d taken but never written",
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
