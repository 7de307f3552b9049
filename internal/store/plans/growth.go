package plans

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// MaxGrowth is the most bytes that [Plans.KeepGrowth] keeps.
const MaxGrowth = 1 << 20

// KeepGrowth keeps the steps that a plan under construction opens later: as a text of at most
// [MaxGrowth] bytes, which package growth reads and writes, and how many they are. sources are the tasks for whose lines they are
// that there are already. If the plan has some, or is not being built any more, nothing happens. The error matches
// [task.ErrNoPlan] or [task.ErrNoTask].
func (s *Plans) KeepGrowth(ctx context.Context, plan task.PlanID, text string, steps int, sources []int64) error {
	if len(text) > MaxGrowth {
		return fmt.Errorf("plan %d: step templates need %d bytes, limit %d", plan, len(text), MaxGrowth)
	}
	of := conn.Subject{Plan: plan}
	for _, id := range sources {
		of.More = append(of.More, s.Keys.Task(id))
	}
	v, err := s.Run(ctx, "growth", of, text, steps)
	switch n, _ := v.(int64); {
	case err != nil:
		return err
	case n == -2:
		return noPlan(plan)
	case n == -1:
		return fmt.Errorf("plan %d: a task whose lines are needed: %w", plan, task.ErrNoTask)
	}
	return nil
}

// Growth is what is kept of the steps of a plan that are opened later.
type Growth struct {
	task.Plan
	// Nudges tells [Plans.Grown] what this was read after.
	Nudges string
	// Text is what [Plans.KeepGrowth] has kept, empty for nothing.
	Text string
	// Steps are those of which something is recorded, by their places.
	Steps map[int]GrownStep
}

// GrownStep is how far a step is.
type GrownStep struct {
	// Opened says that all of its tasks were opened, Skipped that it was not to run.
	Opened, Skipped bool
	// Tasks are those that were opened, of Of.
	Tasks []int64
	Of    int
	// Source is the task for whose lines they are; 0 for none.
	Source int64
}

// Growth reads it, at one moment. The error matches [task.ErrNoPlan].
func (s *Plans) Growth(ctx context.Context, plan task.PlanID) (*Growth, error) {
	var hash, kept *redis.MapStringStringCmd
	_, err := s.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		hash, kept = p.HGetAll(ctx, s.Keys.Plan(plan)), p.HGetAll(ctx, s.Keys.Growth(plan))
		return nil
	})
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("growth", err)
	}
	fields := hash.Val()
	g := &Growth{Plan: decodePlan(plan, fields), Nudges: fields["nudges"], Text: kept.Val()["template"], Steps: map[int]GrownStep{}}
	if g.State == "" {
		return nil, noPlan(plan)
	}
	if g.Nudges == "" {
		g.Nudges = "0"
	}
	for name, state := range kept.Val() {
		if at, is := strings.CutSuffix(name, ":state"); is {
			if i, err := strconv.Atoi(at); err == nil {
				g.Steps[i] = grownStep(kept.Val(), at, state)
			}
		}
	}
	return g, nil
}

func grownStep(fields map[string]string, at, state string) GrownStep {
	step := GrownStep{Opened: state == "opened", Skipped: state == "skipped", Tasks: spread(fields[at+":tasks"])}
	step.Of, _ = strconv.Atoi(fields[at+":of"])
	step.Source, _ = strconv.ParseInt(fields[at+":source"], 10, 64)
	return step
}

// mostSpread bounds what a damaged text can come to.
const mostSpread = 1_000_000

// spread are the ids of a text such as "5-104 110-112"; what somebody has damaged is left out.
func spread(text string) []int64 {
	var ids []int64
	for part := range strings.FieldsSeq(text) {
		from, to, _ := strings.Cut(part, "-")
		first, err := strconv.ParseInt(from, 10, 64)
		last, err2 := strconv.ParseInt(to, 10, 64)
		if err != nil || err2 != nil || last-first >= mostSpread {
			continue
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// Came is what became of a step of which no task is opened.
type Came struct {
	Step    int
	Skipped bool
	// Source is the task whose result has no lines, 0 for none.
	Source int64
}

// Grown says that all that can be opened of a plan is, after what was read with those nudges; trouble is why the rest cannot be,
// empty if it only has to wait. It returns false if that has to be looked at again: somebody has nudged meanwhile, or there are steps
// that come to no task, which it records as opened or skipped.
func (s *Plans) Grown(ctx context.Context, plan task.PlanID, nudges, trouble string, empty []Came) (bool, error) {
	args := append(make([]any, 0, 3+3*len(empty)), int64(plan), nudges, trouble)
	for _, c := range empty {
		state := "opened"
		if c.Skipped {
			state = "skipped"
		}
		args = append(args, c.Step, state, conn.IDText(c.Source))
	}
	v, err := s.Run(ctx, "grown", conn.Subject{Plan: plan}, args...)
	n, _ := v.(int64)
	return n == 1, err
}

// RetryGrowth has the servers look again at steps of a plan that could not be opened, and reports whether there are any. A plan that failed
// because of them is ready again.
func (s *Plans) RetryGrowth(ctx context.Context, plan task.PlanID) (bool, error) {
	v, err := s.Run(ctx, "regrow", conn.Subject{Plan: plan}, int64(plan))
	n, _ := v.(int64)
	return n == 1, err
}

// ResultOf reads the result of one task that has ended, also if it was repeated since. The error matches [task.ErrNoTask].
func (s *Plans) ResultOf(ctx context.Context, id int64) (task.Result, error) {
	found, err := s.tasks.Fields(ctx, []int64{id}, "round")
	if err != nil {
		return task.Result{}, err
	}
	if found[0] == nil {
		return task.Result{}, fmt.Errorf("task %d: %w", id, task.ErrNoTask)
	}
	result, output, size := found[0]["round"]+":result", found[0]["round"]+":output", found[0]["round"]+":output_bytes"
	if found, err = s.tasks.Fields(ctx, []int64{id}, result, output, size); err != nil {
		return task.Result{}, err
	}
	text, given := found[0][result]
	_, cut := found[0][size]
	if !given {
		text = strings.TrimSuffix(found[0][output], "\n")
	}
	return task.Result{Task: id, Text: text, Cut: cut && !given}, nil
}
