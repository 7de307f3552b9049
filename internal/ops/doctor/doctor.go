// Package doctor looks at a Redis, at the namespace in it and at this host, and
// says what is wrong, how bad it is, and what to do about it.
//
// [Gather] reads the facts once. The judges are pure functions over them, one
// file for each subject.
package doctor

import (
	"context"
	"errors"
	"slices"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Facts is all that the judges look at.
type Facts struct {
	// Redis is what the configuration says of the connection.
	Redis config.Redis
	// Exposed are files with secrets that every user of this host can read.
	Exposed []string
	// Server is what Redis says of itself, Refused why [store.Store.Check] refuses it.
	Server  store.Facts
	Refused error
	// CheckWarnings are those of [store.Store.Check].
	CheckWarnings []string

	// Now is the time of Redis, ServerSeen when a server was alive last (0: never).
	Now, ServerSeen statemachine.Time
	Workers         []store.WorkerInfo
	Nodes           []store.NodeInfo
	// Quarantine is the mode that servers have published.
	Quarantine string
	// Step is the last step of the clock of Redis that a server has noticed.
	Step  store.Step
	Gaps  []store.Epoch
	Sizes store.Sizes
	// HalfBuilt are the plans that nobody makes ready any more.
	HalfBuilt []task.Plan
	// Config is what the configuration says of servers, nil if it says nothing; Overstayed is how many archived tasks should have left
	// Redis long ago if all servers had it.
	Config     *config.Server
	Overstayed int64

	// Places are local directories that a worker of this configuration writes to.
	Places []Place
}

// Gather reads the facts. The error matches [store.ErrUnreachable] if Redis cannot
// be asked. The store's Check, which refuses some servers, only becomes a fact.
func Gather(ctx context.Context, st *store.Store, cfg *config.File) (*Facts, error) {
	f := &Facts{Redis: cfg.Redis, Exposed: cfg.Exposed()}
	info, err := st.Check(ctx)
	if errors.Is(err, store.ErrUnfit) {
		f.Refused, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	f.CheckWarnings = info.Warnings
	if f.Server, err = st.Facts(ctx); err != nil {
		return nil, err
	}
	if err := f.namespace(ctx, st); err != nil {
		return nil, err
	}
	if cfg.Given("server") {
		f.Config = &cfg.Server
		if f.Overstayed, err = st.Overstayed(ctx, rules(cfg.Server.ArchiveRetention), overstay); err != nil {
			return nil, err
		}
	}
	if cfg.Given("worker") {
		f.Places = places(&cfg.Worker)
	}
	return f, nil
}

// namespace reads what stands in the namespace.
func (f *Facts) namespace(ctx context.Context, st *store.Store) (err error) {
	if f.ServerSeen, err = st.ServerSeen(ctx); err != nil {
		return err
	}
	if f.Workers, f.Now, err = st.Workers(ctx); err != nil {
		return err
	}
	if f.Nodes, err = st.NodeRecords(ctx); err != nil {
		return err
	}
	if f.Quarantine, err = st.Quarantine(ctx); err != nil {
		return err
	}
	if f.Gaps, err = st.Gaps(ctx); err != nil {
		return err
	}
	if f.Step, err = st.LastStep(ctx); err != nil {
		return err
	}
	if f.HalfBuilt, err = st.HalfBuilt(ctx); err != nil {
		return err
	}
	f.Sizes, err = st.Sizes(ctx)
	return err
}

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// OK is as it should be.
	OK Severity = "ok"
	// Skip could not be looked at, or not with this login.
	Skip Severity = "skip"
	// Warn works, but is unwise.
	Warn Severity = "warn"
	// Fail loses or betrays something sooner or later, or does so now.
	Fail Severity = "fail"
)

// Finding is one thing that was looked at.
type Finding struct {
	// Check names the subject, such as "persistence".
	Check string `json:"check"`
	// Severity is how bad it is.
	Severity Severity `json:"severity"`
	// Found says what there is, Remedy what to do; empty where nothing is.
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// judge looks at one subject.
type judge func(*Facts) []Finding

// judges are all subjects in the order of the report.
func judges() []judge {
	return []judge{
		judgeVersion, judgeMemory, judgePersistence, judgeDurability, judgeReplication, judgeClock, judgeLatency,
		judgeLogin, judgeNetwork, judgeSecrets, judgeServer, judgeWorkers, judgeVersions, judgeNodes, judgeHistory,
		judgeTasks, judgePlans, judgeRetention, judgeDisk,
	}
}

// Examine judges the facts.
func Examine(f *Facts) []Finding {
	looks := judges()
	all := make([]Finding, 0, 2*len(looks))
	for _, look := range looks {
		all = append(all, look(f)...)
	}
	return all
}

// Sick reports whether a finding is a failure.
func Sick(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Fail })
}

func ok(check, found string) []Finding { return []Finding{{check, OK, found, ""}} }

func skip(check, found string) []Finding { return []Finding{{check, Skip, found, ""}} }

// unknown is the finding of what Redis does not answer: an access list forbids it, or
// this kind of Redis does not have it.
func unknown(check, what, command string) []Finding {
	return skip(check, what+" not checked: Redis does not answer "+command+" to this user")
}

func warn(check, found, remedy string) []Finding { return []Finding{{check, Warn, found, remedy}} }

func fail(check, found, remedy string) []Finding { return []Finding{{check, Fail, found, remedy}} }
