package main

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
)

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
