package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

func (a *app) planCheck() *cobra.Command {
	var source planSource
	var graph string
	cmd := withJSON(&cobra.Command{
		Use: "check FILE", Short: "Check a plan file and say what it would run; without Redis",
		Long: "check reads a plan file (- is stdin), fills in its parameters and checks every task, except whether\n" +
			"its queue exists. Errors name their lines.",
		Example: "  tdf-manager plan check pipeline.yaml -p day=2026-11-21\n  tdf-manager plan check pipeline.yaml --graph mermaid",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.session(cmd, args).checkPlan(&source, graph) },
	})
	source.flags(cmd)
	graphFlag(cmd, &graph)
	return cmd
}

func (s *session) checkPlan(source *planSource, graph string) error {
	if err := source.read(s, time.Now()); err != nil {
		return err
	}
	if graph != "" {
		return s.drawn(source.Draw(graph))
	}
	return s.result(source.Plan, func() {
		s.printf("%s: plan %q: %s\n", cli.Safe(source.path), source.Name, source.Plan)
	})
}

func graphFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "graph", "", "draw what needs what: text, dot (for Graphviz) or mermaid (for Markdown)")
	cmd.MarkFlagsMutuallyExclusive("graph", jsonName)
}

// drawn prints a graph in the form that was asked for.
func (s *session) drawn(text string, err error) error {
	if err != nil {
		return cli.Usagef("--graph %w", err)
	}
	s.printf("%s", text)
	return s.out.Err()
}

// planSource is a plan file on a command line, with values of its parameters.
type planSource struct {
	params []string

	path string
	*answer.PlanFile
}

func (p *planSource) flags(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringArrayVarP(&p.params, "param", "p", nil,
		"name=value of a parameter of the file, name=a,b,c of one that is a list; may be repeated")
}

// read reads and checks the file (- is stdin), but for what only Redis knows. now
// is for times such as +10m.
func (p *planSource) read(s *session, now time.Time) error {
	given, err := parsePairs(p.params, "-p %q is not a parameter; write name=value such as -p day=2026-11-21",
		"parameter %[1]s is given twice; give it once, a list as %[1]s=a,b,c")
	if err != nil {
		return err
	}
	var data []byte
	if data, p.path, err = readPlanFile(s); err != nil {
		return err
	}
	p.PlanFile, err = answer.ReadPlan(p.path, data, given, now)
	return cli.WithCode(cli.ExitUsage, err)
}

// takeAlong puts what steps take along into Redis, each once, and names it in their tasks. Nothing else is opened before.
func (p *planSource) takeAlong(ctx context.Context, s *session, now time.Time) error {
	some := false
	err := p.TakeAlong(func(name, program string) (string, error) {
		if program != "" {
			if err := fetch.Uploadable(name, program); err != nil {
				return "", badUpload(err)
			}
		}
		some = true
		source, err := s.takenAlong(ctx, name)
		if err != nil {
			return "", badUpload(err)
		}
		return task.SourceSHA256(source), nil
	})
	if err == nil && some {
		err = p.Define(now)
	}
	return err
}

// badUpload is an error of a person, if it is about what lies here.
func badUpload(err error) error {
	if errors.As(err, new(*fs.PathError)) || errors.Is(err, fetch.ErrNotRunnable) {
		err = cli.WithCode(cli.ExitUsage, err)
	}
	return fmt.Errorf("%w; nothing was opened", err)
}

// largestPlan bounds a plan file, in bytes.
const largestPlan = 16 << 20

func readPlanFile(s *session) (data []byte, name string, err error) {
	in, name, err := s.open(s.args[0])
	if err != nil {
		err = fmt.Errorf("%w; write the path of a plan file, or - for stdin", err)
	} else {
		defer in.Close()
		data, err = io.ReadAll(io.LimitReader(in, largestPlan+1))
	}
	if err == nil && len(data) > largestPlan {
		err = fmt.Errorf("%s has more than %d bytes; make several plans", name, largestPlan)
	}
	if err != nil {
		return nil, name, cli.WithCode(cli.ExitUsage, fmt.Errorf("read plan: %w", err))
	}
	return data, name, nil
}
