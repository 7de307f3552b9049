package top

import (
	"fmt"
	"io"
	"strings"
)

// once prints one snapshot.
func once(f *feed, o Options) error {
	a := f.read()
	if a.err != nil {
		return fmt.Errorf("read the snapshot: %w", a.err)
	}
	var m meters
	m.add(a.snapshot, a.at)
	if _, err := io.WriteString(o.Out, plain(a.snapshot, &m)); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return nil
}

// plain is a snapshot as text, without styles and with every cell whole.
func plain(s Snapshot, m *meters) string {
	var b strings.Builder
	for _, fact := range facts(s, m, "time "+s.At.Format(clock)) {
		fmt.Fprintln(&b, fact)
	}
	for i, t := range tables(s, m) {
		set := t.set(0)
		fmt.Fprintf(&b, "\n%s: %d\n%s\n", titles[i], len(t.rows), set.head())
		for _, r := range t.rows {
			fmt.Fprintln(&b, set.line(r.cells))
		}
	}
	return b.String()
}
