package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/statemachine"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == writerProgram {
		writeForEver(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

const ns = "sum"

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a writer; its problems fail the test.
func open(t *testing.T, dir string, change ...func(*Options)) *Writer {
	t.Helper()
	opt := Options{Dir: dir, Namespace: ns, TDF: "test", Problem: func(err error) { t.Errorf("problem: %v", err) }}
	for _, f := range change {
		f(&opt)
	}
	w, err := Open(opt)
	noErr(t, err)
	return w
}

// record is task id at a revision, created with the namespace.
func record(id, rev int64) Record {
	return NewRecord(id, 1, statemachine.Succeeded, map[string]string{
		"rev": fmt.Sprint(rev), "round": "0", "0:open": "100.5", "0:archived": fmt.Sprintf("%d.000000", 1000+id),
		"0:output": fmt.Sprintf("output %d\n", id), "log": strings.Repeat("a line\n", 10),
	})
}

func records(rev int64, ids ...int64) []Record {
	all := make([]Record, len(ids))
	for i, id := range ids {
		all[i] = record(id, rev)
	}
	return all
}

// read reads a directory, and what is wrong with it.
func read(t *testing.T, dirs ...string) (all []Record, damages []string) {
	t.Helper()
	r := Reader{Dirs: dirs, Namespace: ns, Verify: true, Damaged: func(e *DamageError) {
		damages = append(damages, filepath.Base(e.Path)+" "+e.Problem)
		if e.Remedy == "" {
			t.Errorf("%v has no remedy", e)
		}
	}}
	noErr(t, r.Latest(t.Context(), func(e *Entry) error {
		record, err := e.Record()
		all = append(all, record)
		return err
	}))
	return all, damages
}

// ids are those that a directory has, in order.
func ids(t *testing.T, dirs ...string) []int64 {
	t.Helper()
	all, damages := read(t, dirs...)
	if damages != nil {
		t.Errorf("damaged: %q", damages)
	}
	list := make([]int64, len(all))
	for i, r := range all {
		list[i] = r.ID
	}
	slices.Sort(list)
	return list
}

// files are those of a directory that end so.
func files(t *testing.T, dir, end string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"+end))
	noErr(t, err)
	return all
}

func wantIDs(t *testing.T, dir string, want ...int64) {
	t.Helper()
	if got := ids(t, dir); !slices.Equal(got, want) {
		t.Errorf("the archive has %v, want %v", got, want)
	}
}

// clock is a time that the test moves.
type clock struct{ now time.Time }

func (c *clock) set(o *Options) {
	c.now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return c.now }
}
