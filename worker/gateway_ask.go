package worker

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// SiteView is what a worker behind a [Gateway] has to know before it registers.
type SiteView struct {
	Namespace string `json:"namespace" doc:"Name of the namespace that it works for."`
	// Grace is how long servers leave an overdue round to its worker.
	Grace task.Seconds `json:"grace" doc:"How long servers leave an overdue round to its worker, in seconds; null where none has said it."`
}

// Site is what a worker has to know before it registers.
func (g *Gateway) Site(ctx context.Context) (SiteView, error) {
	site, err := g.site.Site(ctx)
	return SiteView{Namespace: site.Namespace, Grace: task.Seconds(timing.ToStd(site.Grace))}, err
}

// Listen waits until a heartbeat of a worker is wanted at once, at most d. It is a hint: a call may be missing.
func (g *Gateway) Listen(ctx context.Context, name string, d time.Duration) (called bool) {
	ctx, cancel := context.WithTimeout(ctx, min(d, mostWait))
	defer cancel()
	var heard atomic.Int32
	g.site.Listen(ctx, name, func() {
		if heard.Add(1) > 1 { // the first says that it listens
			cancel()
		}
	}, func() {}, func(string) {})
	return heard.Load() > 1
}

// NameHolder is who has the name of a worker, for one that wants it and may watch whether that one lives.
type NameHolder struct {
	Incarnation int64        `json:"incarnation"`
	Identity    string       `json:"identity"`
	Host        string       `json:"host"`
	Node        string       `json:"node"`
	PID         int          `json:"pid"`
	Heartbeat   time.Time    `json:"heartbeat"`
	Silent      task.Seconds `json:"silent"`
	Lease       task.Seconds `json:"lease"`
}

// HolderOf is what a worker is told that was refused its name.
func HolderOf(e *NameTakenError) NameHolder {
	w := &e.Holder
	return NameHolder{
		Incarnation: w.Incarnation, Identity: strings.TrimPrefix(w.Identity, overHTTP), Host: w.Host, Node: w.Node, PID: w.PID,
		Heartbeat: w.Heartbeat, Silent: task.Seconds(timing.ToStd(e.Silent)), Lease: task.Seconds(timing.ToStd(e.Lease)),
	}
}

// RoundQuestion is what a worker asks about a round that it runs; of the questions one is asked at a time.
type RoundQuestion struct {
	RoundRef

	// Results asks what tasks have brought that this one needs.
	Results []int64 `json:"results,omitempty" maxItems:"50" doc:"Ids of tasks that this one needs: what have they brought?"`
	// Fields asks for fields of the record of the task.
	Fields []string `json:"fields,omitempty" maxItems:"40" doc:"Fields of its record: feeds, avoid, and class and node of former rounds."`
	// First asks which version all tasks of its plan or job run of its source, and may say one.
	First *firstQuestion `json:"first,omitempty" doc:"Which version of its source do all tasks of its plan or job run?"`
	// Keepers asks who else keeps the version that it is pinned to.
	Keepers string `json:"keepers,omitempty" maxLength:"400" doc:"PROGRAM@SHA256, the version that it is pinned to: who else keeps that?"`
}

// firstQuestion asks for the version of a source that its first worker has pinned.
type firstQuestion struct {
	Source string `json:"source" doc:"The source of the task."`
	SHA256 string `json:"sha256,omitempty" pattern:"^([0-9a-f]{64})?$" doc:"The version that this worker has, if no other was said before."`
}

// RoundFacts is the answer.
type RoundFacts struct {
	Results []argument        `json:"results,omitempty" doc:"What they have brought, in their order; a text that is no UTF-8 as base64."`
	Fields  map[string]string `json:"fields,omitempty" doc:"Those fields that are there."`
	Version string            `json:"version,omitempty" doc:"Hash of the version that was said first."`
	Keep    []string          `json:"keep,omitempty" doc:"Workers that keep it."`
	Asked   int               `json:"asked,omitempty" doc:"How many workers were asked."`
}

// Ask answers a question. The error matches statemachine.ErrStale if the worker does not hold the round, and is a
// *statemachine.FieldError if it asks about something else.
func (g *Gateway) Ask(ctx context.Context, name string, q *RoundQuestion) (a RoundFacts, err error) {
	fields, err := g.held(ctx, name, &q.RoundRef)
	if err != nil {
		return a, err
	}
	switch source := fields["source"]; {
	case len(q.Results) > 0:
		return g.askResults(ctx, q, task.ParseNeeds(fields["needs"]))
	case len(q.Fields) > 0:
		return g.askFields(ctx, q)
	case q.First != nil:
		plan, sum := task.PlanOf(fields[planField]), q.First.SHA256
		if pinned := q.First.Source + task.PinFirst; plan == 0 || source != pinned || sum != "" && !isHash(sum) {
			return a, &statemachine.FieldError{Field: "first", Value: pinned, Want: "the source of the task, and a hash or nothing"}
		}
		a.Version, err = g.site.FirstVersion(ctx, plan, q.First.Source, q.First.SHA256)
	case q.Keepers != "":
		sum := task.SourceSHA256(source)
		if pinned := []string{fields["program"] + "@" + sum, uploads + "@" + sum}; sum == "" || !slices.Contains(pinned, q.Keepers) {
			return a, &statemachine.FieldError{Field: "keepers", Value: q.Keepers, Want: "the version that the task is pinned to"}
		}
		a.Keep, a.Asked, err = g.askKeepers(ctx, name, q)
	default:
		err = &statemachine.FieldError{Field: "results", Value: "", Want: "there; ask for results, fields, first or keepers"}
	}
	return a, err
}

// held are fields of the task of a round that a worker holds now.
func (g *Gateway) held(ctx context.Context, name string, r *RoundRef) (map[string]string, error) {
	of, claim := statemachine.RoundField(r.Round, "worker"), statemachine.RoundField(r.Round, "claim")
	found, err := g.site.Fields(ctx, []int64{r.Task}, "state", "round", "program", "source", "needs", planField, of, claim)
	if err != nil {
		return nil, err
	}
	f := found[0]
	if f["state"] != string(statemachine.Running) || f["round"] != strconv.Itoa(r.Round) || f[of] != name || f[claim] != r.Claim {
		return nil, fmt.Errorf("task %d, round %d: worker %s does not hold it: %w", r.Task, r.Round, name, statemachine.ErrStale)
	}
	return f, nil
}

func (g *Gateway) askResults(ctx context.Context, q *RoundQuestion, needs []task.Need) (a RoundFacts, err error) {
	ids := idsOf(needs)
	for _, id := range q.Results {
		if !slices.Contains(ids, id) {
			return a, &statemachine.FieldError{Field: "results", Value: strconv.FormatInt(id, 10), Want: "a task that this one needs"}
		}
	}
	found, err := g.site.Results(ctx, q.Results)
	for i := range found {
		a.Results = append(a.Results, argumentOf(&found[i]))
	}
	return a, err
}

func (g *Gateway) askFields(ctx context.Context, q *RoundQuestion) (a RoundFacts, err error) {
	for _, name := range q.Fields {
		n, of, ok := statemachine.ParseRoundField(name)
		former := ok && n < q.Round && (of == "class" || of == "node")
		if !former && name != "feeds" && name != avoidField {
			return a, &statemachine.FieldError{Field: "fields", Value: name, Want: "feeds, avoid, or class or node of a former round"}
		}
	}
	found, err := g.site.Fields(ctx, []int64{q.Task}, q.Fields...)
	if err == nil {
		a.Fields = found[0]
	}
	return a, err
}

func (g *Gateway) askKeepers(ctx context.Context, name string, q *RoundQuestion) ([]string, int, error) {
	found, err := g.site.TasksByID(ctx, []int64{q.Task})
	if err != nil || found[0] == nil {
		return nil, 0, err
	}
	return g.site.Keepers(ctx, name, found[0].Bucket, q.Keepers)
}

// Holds returns an error that matches statemachine.ErrStale if a worker holds no round.
func (g *Gateway) Holds(ctx context.Context, name string) error {
	w, _, err := g.site.Worker(ctx, name)
	if err == nil && len(w.Tasks) == 0 {
		err = fmt.Errorf("worker %s holds no round: %w", name, statemachine.ErrStale)
	}
	return err
}

// PutFiles keeps what a round of a worker returns, which is to name it in its report; see [Rounds].
func (g *Gateway) PutFiles(ctx context.Context, name, sha256 string, size int64, content io.ReaderAt, asked bool) error {
	if err := g.Holds(ctx, name); err != nil {
		return err
	}
	return g.site.PutFiles(ctx, sha256, size, content, asked)
}
