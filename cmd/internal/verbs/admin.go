package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/ops/access"
	"github.com/tdf-go/tdf/internal/ops/doctor"
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
		Use: name, Short: "Archive every task that ends, until stopped",
		Long: name + " stands in for a project's own manager: it archives every ended task and reads none. It refuses to\n" +
			"run while a project's own manager is alive on the namespace, because that manager waits for the\n" +
			"outcomes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asDaemon(archiveAll, manager.Options{Standby: true, Force: force})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "run beside a project's own manager, which then misses outcomes")
	return cmd
}

func archiveAll(ctx context.Context, s *session) error {
	cli.UseProcessors(1) // passes follow one another, and wait for Redis
	return s.manager.Run(ctx, manager.Handlers{Unhandled: manager.Archive})
}

func (a *app) doctor() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "doctor", Short: "Examine Redis, the namespace and this host, and name remedies",
		Long: "doctor looks at Redis (version, memory, persistence, replication, clock, latency, user, TLS), at the\n" +
			"namespace (servers, workers, nodes, history, damaged tasks, plans) and, if the configuration has\n" +
			"[worker], at the disks of this host. It changes nothing. It ends with 1 if a finding is of the kind\n" +
			"fail, and with 3 if Redis cannot be reached. Checks that its user has no right to make are skipped,\n" +
			"and leave a line in ACL LOG.",
		Example: "  tdf-manager doctor\n  tdf-manager --config worker.cfg doctor --json", Args: cobra.NoArgs,
		RunE: a.dialled(false, func(ctx context.Context, s *session) error {
			facts, err := doctor.Gather(ctx, s.store, s.cfg)
			if err != nil {
				return err
			}
			findings := doctor.Examine(facts)
			for i := range findings {
				findings[i].Remedy = s.named(findings[i].Remedy)
			}
			if err := s.result(findings, func() { printDiagnosis(s, findings) }); err != nil || !doctor.Sick(findings) {
				return err
			}
			return cli.Exit(cli.ExitTaskFailed)
		}),
	})
}

func printDiagnosis(s *session, findings []doctor.Finding) {
	table := s.out.Table("SEVERITY", "CHECK", "FOUND")
	for _, f := range findings {
		table.Row(f.Severity, f.Check, f.Found)
		if f.Remedy != "" {
			table.Row("", "", "-> "+f.Remedy)
		}
	}
	table.Flush()
}

// aclFlags say which user is printed, and how.
type aclFlags struct {
	user, passwordFile, redis string
	loadScripts, setUser      bool
}

func (a *app) acl() *cobra.Command {
	var flags aclFlags
	cmd := &cobra.Command{
		Use: "acl server|worker|manager|viewer", Short: "Print a user of Redis with the least rights of a role",
		Long: "acl prints a user of Redis with exactly the rights that a role needs in the namespace and the\n" +
			"database of the configuration: a line for the aclfile of redis.conf, or with --setuser a command for\n" +
			"redis-cli. It does not connect to Redis. Without --password-file the line holds a placeholder that\n" +
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
	if flags.setUser {
		s.printf("ACL SETUSER %s\n", quoted(append([]string{user.Login()}, words...)))
	} else {
		s.printf("user %s %s\n", user.Login(), strings.Join(words, " "))
	}
	return nil
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
		s.note("%s can be read by every user of this host: chmod 600 it, and take a new password", cli.Safe(path))
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
	var yes bool
	cmd := withDryRun(&cobra.Command{
		Use: "flush --yes", Short: "Delete everything in the namespace but the log of changes", Args: cobra.NoArgs,
		Long: "flush deletes the whole namespace, running tasks included; workers stop these. Only the log of changes\n" +
			"stays, and says who did it. Other namespaces of the same Redis stay. With access lists it needs the\n" +
			"login of an administrator.",
		Example: "  tdf-manager flush --dry-run\n  tdf-manager flush --yes",
		RunE:    a.withManager(func(ctx context.Context, s *session) error { return flush(ctx, s, yes) }),
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that all tasks are deleted, running ones included")
	return cmd
}

func flush(ctx context.Context, s *session, yes bool) error {
	if yes && !s.dryRun {
		n, err := s.manager.Flush(ctx)
		if err != nil {
			return err
		}
		s.printf("deleted %d keys of namespace %s\n", n, cli.Safe(s.store.Namespace()))
		return nil
	}
	all, err := s.manager.Count(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("would delete all %d tasks of namespace %s, %d of which have not ended",
		all.Total(), cli.Safe(s.store.Namespace()), all.Left())
	if !s.dryRun {
		return cli.WithCode(cli.ExitUsage, fmt.Errorf("flush %s; add --yes", what))
	}
	s.printf("%s\n", what)
	return nil
}
