package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/ops/access"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/ops/doctor"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
)

// run is the archiving loop. In tdf it is called like the other daemons.
func (a *app) run() *cobra.Command {
	name := "run"
	if a.program == TDF {
		name = "manager"
	}
	var force bool
	cmd := &cobra.Command{
		Use: name, Short: "Archive whatever ends, until stopped",
		Long: name + " takes the place of a project's own manager: it archives every task that ends, without\n" +
			"looking at it. While a project's own manager is alive on the namespace it refuses, because\n" +
			"that one waits for the outcomes.",
		Args: cobra.NoArgs,
		RunE: a.withManager(true, func() []manager.Option { return []manager.Option{manager.StandIn(force)} },
			func(ctx context.Context, s *session) error {
				cli.UseProcessors(1) // passes follow one another, and wait for Redis
				return s.manager.Run(ctx, manager.Handlers{})
			}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "run beside a project's own manager, which then misses outcomes")
	return cmd
}

func (a *app) doctor() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with Redis, this namespace and this host, and say the remedy",
		Long: "doctor looks at Redis (version, memory, persistence, replication, clock, latency, user, TLS), at the\n" +
			"namespace (servers, workers, nodes, history, damaged tasks, plans) and, if the configuration has [worker], at\n" +
			"the disks of this host. It changes nothing. It ends with 1 if a finding is of the kind fail, and with 3 if Redis\n" +
			"cannot be reached. What its user may not ask is skipped, and says so; each such question is in ACL LOG.",
		Example: "  tdf-manager doctor\n  tdf-manager --config worker.cfg doctor --json", Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.dialled(func(ctx context.Context, s *session) error {
		facts, err := doctor.Gather(ctx, s.store, s.cfg)
		if err != nil {
			return err
		}
		findings := doctor.Examine(facts)
		if err := printDiagnosis(s, findings, *asJSON); err != nil {
			return err
		}
		if doctor.Sick(findings) {
			return cli.Exit(cli.ExitTaskFailed)
		}
		return nil
	}, store.WithOnePool())
	return cmd
}

func printDiagnosis(s *session, findings []doctor.Finding, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(s.out, findings)
	}
	table := cli.NewTable(s.out, "SEVERITY", "CHECK", "FOUND")
	for _, f := range findings {
		table.Row(f.Severity, f.Check, f.Found)
		if f.Remedy != "" {
			table.Row("", "", "-> "+f.Remedy)
		}
	}
	return table.Flush()
}

// aclFlags say which user is printed, and how.
type aclFlags struct {
	user, passwordFile, redis string
	loadScripts, setUser      bool
}

func (a *app) acl() *cobra.Command {
	var flags aclFlags
	cmd := &cobra.Command{
		Use: "acl server|worker|manager|viewer", Short: "Print the least that a role may do, as a user of Redis",
		Long: "acl prints a user of Redis that may do what the role needs in the namespace and the database of the\n" +
			"configuration, and nothing else: a line for the file that aclfile in redis.conf names, or with --setuser a\n" +
			"command for redis-cli. It does not talk to Redis. Without --password-file the line holds a placeholder that\n" +
			"Redis refuses. What a stolen login can do: docs/OPERATIONS.md.",
		Example: "  tdf-manager acl worker --password-file worker.password >> users.acl\n" +
			"  tdf-manager acl viewer --setuser --redis 6.2",
		Args: cobra.ExactArgs(1), ValidArgs: []string{"server", "worker", "manager", "viewer"},
	}
	f := cmd.Flags()
	f.StringVar(&flags.user, "user", "", "name of the user (default tdf-ROLE-NAMESPACE)")
	f.StringVar(&flags.passwordFile, "password-file", "", "file with the password; only its SHA-256 is printed")
	f.StringVar(&flags.redis, "redis", "7", "version of Redis: 7, or 6.2, whose rules are wider")
	f.BoolVar(&flags.loadScripts, "load-scripts", false, "also allow to load scripts, for a program of another version than all servers")
	f.BoolVar(&flags.setUser, "setuser", false, "print ACL SETUSER for redis-cli instead of a line of an aclfile")
	cmd.RunE = a.verb(func(_ context.Context, s *session) error { return printACL(s, &flags) })
	return cmd
}

func printACL(s *session, flags *aclFlags) error {
	role, err := access.ParseRole(s.args[0])
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	if flags.redis != "7" && flags.redis != "6.2" {
		return cli.Usagef("--redis %q: want 7 or 6.2", flags.redis)
	}
	user := access.User{
		Role: role, Namespace: s.cfg.TDF.Namespace, Database: s.cfg.Redis.DB, Name: flags.user,
		Old: flags.redis == "6.2", LoadScripts: flags.loadScripts,
	}
	if flags.passwordFile != "" {
		if user.PasswordHash, err = hashIn(s, flags.passwordFile); err != nil {
			return err
		}
	}
	words, err := user.Rules()
	if err != nil {
		return cli.WithCode(cli.ExitUsage, err)
	}
	if !flags.setUser {
		return printf(s.out, "user %s %s\n", user.Login(), strings.Join(words, " "))
	}
	return printf(s.out, "ACL SETUSER %s\n", quoted(append([]string{user.Login()}, words...)))
}

// hashIn is the hash of the password in a file.
func hashIn(s *session, path string) (string, error) {
	password, err := config.ReadPassword(path)
	var wrong *config.Error
	var unread *fs.PathError
	switch {
	case errors.As(err, &wrong):
		err = fmt.Errorf("--password-file %q: %s; write the password into it", path, wrong.Problem)
	case errors.As(err, &unread):
		err = fmt.Errorf("--password-file %q: %w; name a file that this user can read", path, unread.Err)
	}
	if err != nil {
		return "", cli.WithCode(cli.ExitUsage, err)
	}
	if config.Exposed(path) {
		fmt.Fprintf(s.cmd.ErrOrStderr(), "%s can be read by every user of this host: chmod 600 it, and take a new password\n", cli.Safe(path))
	}
	return access.Hash(password), nil
}

// quoted writes words as redis-cli reads them. A selector is one word.
func quoted(words []string) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i, w := range words {
		words[i] = `"` + quote.Replace(w) + `"`
	}
	return strings.Join(words, " ")
}

func (a *app) flush() *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use: "flush --yes", Short: "Delete everything in the namespace, and nothing else", Args: cobra.NoArgs,
		Long: "flush deletes the whole namespace, also the tasks being worked on; workers stop what they run of them, and\n" +
			"other namespaces of the same Redis stay. Where Redis has access lists it takes the login of an administrator.",
		Example: "  tdf-manager flush --dry-run\n  tdf-manager flush --yes",
	}
	dryRunFlag(cmd, &dryRun)
	cmd.Flags().BoolVar(&yes, "yes", false, "really delete all tasks, also those being worked on")
	cmd.RunE = a.withStore(func(ctx context.Context, s *session) error {
		name := cli.Safe(s.store.Namespace())
		if !yes || dryRun {
			counts, err := s.store.Count(ctx)
			if err != nil {
				return err
			}
			all := manager.Counts(counts)
			if dryRun {
				return printf(s.out, "would delete all %d tasks of namespace %s, %d of which have not ended\n", all.Total(), name, all.Left())
			}
			return cli.WithCode(cli.ExitUsage, fmt.Errorf(
				"flush would delete all %d tasks of namespace %s, %d of which have not ended; add --yes",
				all.Total(), name, all.Left()))
		}
		n, err := s.store.Flush(ctx)
		if err != nil {
			return err
		}
		return printf(s.out, "deleted %d keys of namespace %s\n", n, name)
	})
	return cmd
}

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
