package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// showRound writes the record of a round: who ran it, its moments in order, how
// it ended, what it used, and the end of what it wrote.
func showRound(w io.Writer, r *manager.Round) error {
	head := fmt.Sprintf("\nround %d", r.Number)
	if r.Worker != "" {
		head += ", worker " + cli.Safe(r.Worker)
	}
	if r.ExitCode != "" {
		head += ", exit code " + cli.Safe(r.ExitCode)
	}
	if r.Signal != "" {
		head += ", signal " + cli.Safe(r.Signal)
	}
	if r.Class != "" {
		head += ", class " + cli.Safe(string(r.Class))
	}
	if err := printf(w, "%s\n", head); err != nil {
		return err
	}
	if err := showMoments(w, r); err != nil {
		return err
	}
	if err := showRecord(w, r); err != nil {
		return err
	}
	return showStreams(w, r)
}

func showMoments(w io.Writer, r *manager.Round) error {
	names := slices.SortedFunc(maps.Keys(r.Stamps), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Stamps[a], r.Stamps[b]), cmp.Compare(place(a), place(b)))
	})
	table := cli.NewTable(w)
	for _, name := range names {
		table.Row("  "+moment(r.Stamps[name]), name)
	}
	return table.Flush()
}

// place orders moments that are the same: one move writes both "failure" and
// "failed", the stamp of the way before the state it leads to.
func place(name string) int {
	return slices.Index(statemachine.States(), statemachine.State(name))
}

// showRecord writes what is there of the rest.
func showRecord(w io.Writer, r *manager.Round) error {
	table := cli.NewTable(w)
	row := func(name, value string) {
		if value != "" {
			table.Row("  "+name, value)
		}
	}
	row(nodeField, r.Node)
	if r.Incarnation > 0 {
		row("incarnation", strconv.FormatInt(r.Incarnation, 10))
	}
	row("claim", r.Claim)
	row("program", sha256Text(r.ProgramSHA256))
	if r.UserTime > 0 || r.SystemTime > 0 {
		row("cpu time", fmt.Sprintf("%v user, %v system", r.UserTime, r.SystemTime))
	}
	if r.MaxMemory > 0 {
		row("max memory", fmt.Sprintf("%d bytes", r.MaxMemory))
	}
	row("resources", allottedText(r.Resources))
	row("progress", r.Progress.String())
	return table.Flush()
}

func sha256Text(hash string) string {
	if hash == "" {
		return ""
	}
	return "sha256 " + hash
}

// showStreams writes the end of what the round wrote.
func showStreams(w io.Writer, r *manager.Round) error {
	if r.Dropped {
		if err := printf(w, "  output and error are kept no longer (keep_rounds)\n"); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		name, text string
		size       int64
		hash       string
	}{
		{outputStream, r.Output, r.OutputBytes, r.OutputSHA256()},
		{errorStream, r.Error, r.ErrorBytes, r.ErrorSHA256()},
		{"stderr", r.Stderr, r.ErrorBytes, r.ErrorSHA256()},
	} {
		if s.text == "" {
			continue
		}
		size := fmt.Sprintf("%d bytes", s.size)
		if s.hash != "" {
			size += ", sha256 " + cli.Safe(s.hash)
		}
		if err := printf(w, "  %s (%s)\n%s", s.name, size, indent(tail(s.text))); err != nil {
			return err
		}
	}
	return nil
}

// allottedText is what the round got of its node: gpu=2 (0,1), mem=2048.
func allottedText(resources map[string]manager.Allotted) string {
	parts := make([]string, 0, len(resources))
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		a := resources[name]
		text := fmt.Sprintf("%s=%d", name, a.Count)
		if len(a.IDs) > 0 {
			text += " (" + strings.Trim(strings.ReplaceAll(fmt.Sprint(a.IDs), " ", ","), "[]") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
