package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// token is the group of verbs about the access tokens of the HTTP interface.
func (a *app) token() *cobra.Command {
	cmd := &cobra.Command{
		Use: tokenField, Aliases: []string{"tokens"}, Short: "Make access tokens for the HTTP interface, list and revoke them",
		Long: "token makes, lists and revokes the access tokens of the namespace, which requests to the HTTP\n" +
			"interface show. The role of a token is read, submit (also opens tasks), operate (also changes\n" +
			"tasks, queues, nodes and workers), admin (also makes and revokes tokens), or work (is a worker).",
		Example: "  tdf-manager token add ci --role submit --expires 90d > ci.token\n" +
			"  tdf-manager token ls\n  tdf-manager token rm ci",
	}
	cmd.AddCommand(a.tokenAdd(), a.tokenLs(), a.tokenRm())
	return cmd
}

// readToken finds a token by its name, or else by its ID.
func readToken(ctx context.Context, s *session, name string) (*task.Token, error) {
	tokens, err := s.manager.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	found, known := search(tokens, name, func(t *task.Token) string { return t.Name })
	if found == nil {
		found, _ = search(tokens, name, func(t *task.Token) string { return t.ID })
	}
	if found == nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("%w: %q; %s", task.ErrNoToken, name,
			answer.Meant(name, known, "see "+s.command("token ls"))))
	}
	return found, nil
}

// tokenAdding is the verb add with its flags.
type tokenAdding struct{ role, expires string }

func (a *app) tokenAdd() *cobra.Command {
	t := &tokenAdding{}
	cmd := &cobra.Command{
		Use: "add NAME --role ROLE", Short: "Make a token and print it",
		Long: "add prints a new token, once: only its hash is kept. Its holder may do what its role allows,\n" +
			"so write it into a file that nobody else can read. One of role work is named after its worker.",
		Example: "  (umask 077; tdf-manager token add ci --role submit --expires 90d > ci.token)\n" +
			"  tdf-manager token add lab-1 --role work\n" +
			"  tdf-manager token add ci --role submit --dry-run",
		Args: cobra.ExactArgs(1), RunE: a.withManager(t.do),
	}
	cmd.Flags().StringVar(&t.role, "role", "", "what its holder may do: read, submit, work, operate or admin")
	cmd.Flags().StringVar(&t.expires, "expires", "", "how long it is good, such as 12h or 90d (default: until it is revoked)")
	return withJSON(withDryRun(cmd))
}

func (t *tokenAdding) do(ctx context.Context, s *session) error {
	if s.cmd.Flags().Changed("expires") && t.expires == "" {
		return cli.Usagef("--expires is empty; leave it out for a token that is good until it is revoked, or write a time such as 90d")
	}
	made, err := answer.AddToken(ctx, s.manager, s.args[0], task.TokenRole(t.role), t.expires, s.change())
	if errors.Is(err, task.ErrTokenExists) {
		return fmt.Errorf("%w; revoke it with %s, or choose another name", err, s.command("token rm %s", s.args[0]))
	}
	if err != nil {
		return err
	}
	return s.result(made, func() { printToken(s, made.Token, made.Secret) })
}

// printToken writes what the holder shows alone to stdout, so that it can go into a file.
func printToken(s *session, t *task.Token, secret string) {
	until := "until it is revoked"
	if !t.Expires.IsZero() {
		until = "until " + when(t.Expires)
	}
	if s.dryRun {
		s.printf("would add token %s: role %s, good %s\n", t.Name, t.Role, until)
		return
	}
	s.printf("%s\n", secret)
	s.note("token %s: role %s, good %s. It is not shown again. Send it as the header\nAuthorization: Bearer TOKEN", t.Name, t.Role, until)
}

func (a *app) tokenLs() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the tokens", Args: cobra.NoArgs,
		Long: "ls lists the tokens by name, expired ones too. ID is what a token has behind tdf_.",
		Example: "  tdf-manager token ls\n" +
			"  tdf-manager token ls --json | jq -r '.[] | select(.role == \"admin\").name'",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			tokens, err := s.manager.Tokens(ctx)
			if err != nil {
				return err
			}
			now, err := s.shownAt(ctx)
			if err != nil {
				return err
			}
			return s.result(tokens, func() { listTokens(s, tokens, now) })
		}),
	})
}

func listTokens(s *session, tokens []task.Token, now time.Time) {
	if len(tokens) == 0 {
		s.note("there is no token; make one with %s", s.command("token add NAME --role ROLE"))
		return
	}
	table := s.out.Table("NAME", "ID", "ROLE", "EXPIRES", "CREATED", "BY")
	for i := range tokens {
		t := &tokens[i]
		table.Row(dashText(t.Name), t.ID, cmp.Or(string(t.Role), "damaged"), expiryText(t, now), when(t.Created), dashText(t.By))
	}
	table.Flush()
}

func expiryText(t *task.Token, now time.Time) string {
	switch {
	case t.Role == "":
		return "-"
	case t.Expires.IsZero():
		return "never"
	case !now.Before(t.Expires):
		return "expired"
	}
	return when(t.Expires)
}
