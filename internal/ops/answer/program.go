package answer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// Asking says which workers are asked about the versions of programs that they keep, all if it names none, and how long they may take.
type Asking struct {
	Workers, Nodes []string
	Patience       time.Duration
}

// Ask has the workers do an errand.
func (q *Asking) Ask(ctx context.Context, m *manager.Manager, e task.Errand) ([]task.Stock, error) {
	return m.Errand(ctx, e, q.Patience, func(w *task.Worker) bool {
		return (len(q.Workers) == 0 || slices.Contains(q.Workers, w.Name)) && (len(q.Nodes) == 0 || slices.Contains(q.Nodes, w.Node))
	})
}

// Programs lists the versions that words such as sum or sum@3f9a mean, or all. Where words are given, a [NoVersionError] says that
// nobody keeps any of them.
func (q *Asking) Programs(ctx context.Context, m *manager.Manager, words ...string) ([]task.Stock, error) {
	stocks, err := q.Ask(ctx, m, task.Errand{Versions: words})
	none := !slices.ContainsFunc(stocks, func(s task.Stock) bool { return len(s.Versions) > 0 })
	if err == nil && len(words) > 0 && none && allAnswered(stocks) {
		err = NoVersionError(strings.Join(words, " "))
	}
	return stocks, err
}

// RemovePrograms removes versions from the workers. The error is a [NoVersionError], or a [bulk.FilterError] about a word that could
// mean several.
func (q *Asking) RemovePrograms(ctx context.Context, m *manager.Manager, words []string, dryRun bool) ([]task.Stock, error) {
	stocks, err := q.Ask(ctx, m, task.Errand{Versions: words})
	if err != nil {
		return nil, err
	}
	exact, err := exactly(stocks, words)
	if err != nil {
		return nil, err
	}
	if !dryRun && len(exact) > 0 {
		return q.Ask(ctx, m, task.Errand{Versions: exact, Remove: true})
	}
	if dryRun {
		markKept(stocks)
	}
	return stocks, nil
}

// CollectPrograms removes the versions that were not used for a while.
func (q *Asking) CollectPrograms(
	ctx context.Context, m *manager.Manager, words []string, unused time.Duration, dryRun bool,
) ([]task.Stock, error) {
	var stocks []task.Stock
	err := m.Logged(ctx, "program gc", "", manager.ChangeOptions{}, func(ctx context.Context) (err error) {
		stocks, err = q.Ask(ctx, m, task.Errand{Versions: words, UnusedFor: task.Seconds(unused), Remove: !dryRun})
		return err
	})
	if dryRun {
		markKept(stocks)
	}
	return stocks, err
}

// NoVersionError says of which program no worker keeps a version. It matches [task.ErrNotFound].
type NoVersionError string

// Error implements error.
func (e NoVersionError) Error() string { return "no worker that was asked keeps " + string(e) }

// Unwrap returns the kind.
func (NoVersionError) Unwrap() error { return task.ErrNotFound }

// allAnswered reports whether what no worker has is nowhere.
func allAnswered(stocks []task.Stock) bool {
	return !slices.ContainsFunc(stocks, func(s task.Stock) bool { return s.Silent || s.Error != "" })
}

// exactly are the words, each once, with whole hashes. The error names the versions that one could mean, or one that is nowhere.
func exactly(stocks []task.Stock, words []string) (exact []string, err error) {
	for i, word := range words {
		if slices.Contains(words[:i], word) {
			continue
		}
		found := meant(stocks, word)
		_, _, pinned := strings.Cut(word, "@")
		switch {
		case len(found) == 0 && allAnswered(stocks):
			return nil, NoVersionError(word)
		case pinned && len(found) > 1:
			return nil, &bulk.FilterError{Field: "version", Problem: clean.Line(fmt.Sprintf("%s is ambiguous: it may be %s", word, Some(found)), 0)}
		case pinned && len(found) == 1:
			word = found[0]
		}
		if len(found) > 0 {
			exact = append(exact, word)
		}
	}
	return exact, nil
}

// meant are the versions that a word means, as NAME@HASH, sorted.
func meant(stocks []task.Stock, word string) (found []string) {
	means := task.Errand{Versions: []string{word}}
	for i := range stocks {
		for _, v := range stocks[i].Versions {
			if means.Means(v.Program, v.SHA256) {
				found = append(found, v.Program+"@"+v.SHA256)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Some are the first of many names.
func Some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most-1], ", "), len(names)-most+1)
}

// markKept says in a dry run which versions would be kept.
func markKept(stocks []task.Stock) {
	for i := range stocks {
		for k := range stocks[i].Versions {
			stocks[i].Versions[k].Kept = wouldKeep(&stocks[i].Versions[k], stocks[i].Dir)
		}
	}
}

// wouldKeep is why a version would not be removed.
func wouldKeep(v *task.StoredVersion, dir string) string {
	switch {
	case v.SHA256 == "":
		return "it was put there by hand; remove " + filepath.Join(dir, v.Program) + " on its host"
	case v.Rounds > 0:
		return fmt.Sprintf("%d rounds run it", v.Rounds)
	default:
		return ""
	}
}
