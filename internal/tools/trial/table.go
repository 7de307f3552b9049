package trial

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Table is faults that are tried one at a time, each a row.
type Table struct {
	// Columns are the names of the faults' cells.
	Columns []string
	Faults  []Fault
	// Sound are the tests of all faults. They are run without any: a test that fails
	// anyway proves nothing.
	Sound []Suite
}

// Print tries all faults in a copy of the tree, and prints the table. It returns an
// error if a fault survives.
func (t *Table) Print(out io.Writer, tree string) error {
	broken, err := Copy(tree)
	if err != nil {
		return fmt.Errorf("copy the tree: %w", err)
	}
	defer func() { _ = os.RemoveAll(broken) }()
	if err := t.checkSound(out, broken); err != nil {
		return err
	}
	line := strings.Repeat("|---", len(t.Columns)+2) + "|"
	fmt.Fprintf(out, "| %s | found by | seconds |\n%s\n", strings.Join(t.Columns, " | "), line)
	var survived []string
	for i := range t.Faults {
		f := &t.Faults[i]
		found, err := f.print(out, broken)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if !found {
			survived = append(survived, f.Name)
		}
	}
	if len(survived) > 0 {
		return fmt.Errorf("the tests find nothing wrong with: %s", strings.Join(survived, ", "))
	}
	return nil
}

func (t *Table) checkSound(out io.Writer, tree string) error {
	began := time.Now()
	for _, s := range t.Sound {
		if r := s.Try(tree); !r.Green {
			return fmt.Errorf("%s fails without any fault:\n%s", s, r.Output)
		}
	}
	fmt.Fprintf(out, "The tests of all %d pass without a fault (%.0f s).\n\n", len(t.Faults), time.Since(began).Seconds())
	return nil
}

// print tries a fault, prints its row and reports whether it was found.
func (f *Fault) print(out io.Writer, tree string) (bool, error) {
	began := time.Now()
	test, err := f.Try(tree)
	if err != nil {
		return false, err
	}
	by := "**nothing: it survived**"
	if test != "" {
		by = fmt.Sprintf("`%s` in %s", test, strings.Join(f.Suite.Packages, " "))
	}
	fmt.Fprintf(out, "| %s | %s | %.0f |\n", strings.Join(f.Cells, " | "), by, time.Since(began).Seconds())
	return test != "", nil
}
