package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// session is one verb at work.
type session struct {
	program string // that has the verb
	cmd     *cobra.Command
	args    []string
	// json, dryRun and reason are the flags of those names.
	json, dryRun bool
	reason       string
	out          *cli.Output
	cfg          *config.File
	log          *slog.Logger
	// site has all connections of the verb, which are those of store; manager is there in
	// verbs made by withManager.
	site    *tdf.Site
	store   *store.Store
	manager *manager.Manager
	// pinned is the Pin of the manager; nil if it has none.
	pinned func(ctx context.Context, source string) (string, error)
}

type (
	verb    func(ctx context.Context, s *session) error
	runFunc func(*cobra.Command, []string) error
)

// withManager makes a verb that works as a manager does.
func (a *app) withManager(do verb) runFunc { return a.dialled(false, a.managed(do, manager.Options{})) }

// asDaemon makes a verb that works as a manager does and stays, also without its terminal.
func (a *app) asDaemon(do verb, o manager.Options) runFunc {
	return a.dialled(true, func(ctx context.Context, s *session) error {
		return cli.Outlive(ctx, s.cfg, s.log, func(ctx context.Context) error { return a.managed(do, o)(ctx, s) })
	})
}

// managed gives the session its manager. What that opens waits for no handlers of others: it is archived when it ends, unless
// the task or its queue says otherwise.
func (a *app) managed(do verb, o manager.Options) verb {
	return func(ctx context.Context, s *session) error {
		if err := s.site.Check(ctx); err != nil {
			return err
		}
		s.cfg.TaskDefaults.ArchiveAtOnce()
		var err error
		if s.pinned, err = s.pin(); err != nil {
			return err
		}
		o.Pin = s.pinned
		s.manager = manager.New(s.site, "tdf-manager", o)
		return do(manager.WithCaller(ctx, operator(), ""), s)
	}
}

// dialled makes a verb that has the connections to Redis, and no others. daemon says that it stays, and logs what it does;
// another has one pool of connections.
func (a *app) dialled(daemon bool, do verb) runFunc {
	return a.verb(func(ctx context.Context, s *session) (err error) {
		if s.log, err = a.logger(s.cmd, daemon); err != nil {
			return err
		}
		var opts []conn.Option
		if !daemon {
			opts = append(opts, conn.WithOnePool())
		}
		internal, err := store.Open(s.cfg, s.log, opts...)
		if err != nil {
			return err
		}
		s.site, s.store = &tdf.Site{Internal: internal}, internal.Store
		defer func() { err = errors.Join(err, s.site.Close()) }()
		return do(ctx, s)
	})
}

// verb is what all verbs have in common.
func (a *app) verb(do verb) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		cfg, done, err := a.load(cmd)
		if done || err != nil {
			return err
		}
		s := a.session(cmd, args)
		s.cfg = cfg
		return s.finish(do(cmd.Context(), s))
	}
}

func (a *app) session(cmd *cobra.Command, args []string) *session {
	given := func(flag string) bool {
		is, _ := cmd.Flags().GetBool(flag) // not every verb has it
		return is
	}
	reason, _ := cmd.Flags().GetString(reasonName)
	return &session{
		program: a.program, cmd: cmd, args: args, out: cli.NewOutput(cmd.OutOrStdout()),
		json: given(jsonName), dryRun: given(dryRunName), reason: reason,
	}
}

// printf writes to the output of the verb.
func (s *session) printf(format string, args ...any) { s.out.Printf(format, args...) }

// result writes what a verb found or did: with --json as one value, else as people read it.
func (s *session) result(value any, forPeople func()) error {
	if s.json {
		s.out.JSON(value)
	} else {
		forPeople()
	}
	return s.out.Err()
}

// change goes with every change: who wants it, why, and whether it is meant.
func (s *session) change() manager.ChangeOptions {
	return manager.ChangeOptions{By: operator(), Reason: s.reason, DryRun: s.dryRun}
}

// logged makes all that do changes one entry of the log of changes.
func (s *session) logged(ctx context.Context, what string, do func(context.Context) error) error {
	return s.manager.Logged(ctx, what, "", s.change(), do)
}

// operator is who is at work, for the logs of tasks.
func operator() string {
	who, err := user.Current()
	if err != nil {
		return "tdf-manager"
	}
	host, err := os.Hostname()
	if err != nil {
		return cli.Safe(who.Username)
	}
	return cli.Safe(who.Username + "@" + host)
}

// command is how another verb is called.
func (s *session) command(format string, args ...any) string {
	return s.program + " " + fmt.Sprintf(format, args...)
}

// named makes a text call the programs as this one does.
func (s *session) named(text string) string {
	if s.program == TDF {
		return asTDF.Replace(text)
	}
	return text
}

// note tells people, on stderr, what the output cannot say; warn does so in the name of the program.
func (s *session) note(format string, args ...any) {
	fmt.Fprintf(s.cmd.ErrOrStderr(), format+"\n", args...)
}

func (s *session) warn(format string, args ...any) { s.note(s.program+": "+format, args...) }

// withExitCode gives errors of the packages below their exit code.
func withExitCode(err error) error {
	var coded cli.Coded
	var field *statemachine.FieldError
	var filter *bulk.FilterError
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case errors.Is(err, conn.ErrManagerAlive):
		return cli.WithCode(cli.ExitUsage,
			fmt.Errorf("%w; it waits for the outcomes. Stop it first, or add --force", err))
	case errors.Is(err, task.ErrUnreachable), errors.Is(err, task.ErrUnfit), errors.Is(err, task.ErrProtocol):
		return cli.WithCode(cli.ExitRedis, err)
	case errors.Is(err, task.ErrNotFound), errors.Is(err, task.ErrRequestKey), errors.Is(err, task.ErrKeyTaken),
		errors.Is(err, task.ErrNeedsResults), errors.As(err, &field), errors.As(err, &filter):
		return cli.WithCode(cli.ExitUsage, err)
	default:
		return err
	}
}

// The flags that many verbs have.
const (
	jsonName   = "json"
	dryRunName = "dry-run"
	reasonName = "reason"
)

// withJSON adds --json to a verb.
func withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool(jsonName, false, "print one JSON value, also for errors")
	return cmd
}

// withDryRun adds -n to a verb that changes something.
func withDryRun(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolP(dryRunName, "n", false, "print what would be done, with the same exit code, and change nothing")
	return cmd
}

// withReason adds --reason to a verb.
func withReason(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String(reasonName, "", "why, for the record of each task")
	return cmd
}

// shownAt is the time of the namespace, which a table counts ages by. JSON has moments, and asks for no time.
func (s *session) shownAt(ctx context.Context) (time.Time, error) {
	if s.json {
		return time.Time{}, nil
	}
	return s.manager.Now(ctx)
}

// finish gives the error of a verb, and of its output, its remedy and its exit code.
func (s *session) finish(err error) error {
	if lost := s.out.Err(); lost != nil && (err == nil || cli.Silent(err)) {
		return lost
	} else if lost != nil {
		err = errors.Join(err, lost)
	}
	var coded cli.Coded
	if !errors.As(err, &coded) && bulk.Denied(err) {
		return cli.WithCode(cli.ExitRedis, fmt.Errorf("[redis] username = %s: Redis does not let this user do it; %s: %w",
			cmp.Or(s.cfg.Redis.Username, "default"), s.neededLogin(), err))
	}
	return withExitCode(err)
}

// neededLogin says with which login the verb works.
func (s *session) neededLogin() string {
	switch s.cmd.Name() {
	case "flush":
		return "use the login of an administrator of Redis"
	case "verify":
		return "use the login of a server, as " + s.command("acl server") + " prints it"
	default:
		return "use the login of a manager, as " + s.command("acl manager") + " prints it"
	}
}

// parseWhen reads a moment as the fields of tasks have it, inf as one that never comes. An empty text is the zero time.
func parseWhen(field, text string, now time.Time) (time.Time, error) {
	var spec task.Spec
	err := spec.Set("end_before", text, now)
	if spec.EndIn < 0 {
		return time.UnixMicro(int64(statemachine.Never)), nil
	}
	return spec.EndBefore, answer.About(field, err)
}
