package spool

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary act as a worker that fills the spool below
// the directory it names.
const childEnv = "TDF_SPOOL_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(fill(dir))
	}
	goleak.VerifyTestMain(m)
}

// fill stores entries until it is killed, and says the number of each that is
// stored. It ends by itself long after every test has had enough.
func fill(dir string) int {
	s, err := Open(dir, "n", "w")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for i := range 1000 {
		if err := s.Put(fmt.Sprint("task ", i), content(i)); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(i)
	}
	return 0
}

func content(i int) []byte { return []byte(strings.Repeat(fmt.Sprint(i, " "), 10_000)) }

func open(t *testing.T, dir string) *Spool {
	t.Helper()
	s, err := Open(dir, "n", "w")
	noErr(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func child(dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want checks names and data of all entries, in order.
func want(t *testing.T, s *Spool, pairs ...string) {
	t.Helper()
	all, err := s.All()
	noErr(t, err)
	var got []string
	for i := range all {
		data, err := all[i].Data()
		noErr(t, err)
		if all[i].Size != int64(len(data)) || all[i].Stored.IsZero() {
			t.Errorf("%+v for %d bytes", all[i], len(data))
		}
		got = append(got, all[i].Name+"="+string(data))
	}
	if strings.Join(got, "|") != strings.Join(pairs, "|") {
		t.Errorf("got %q, want %q", got, pairs)
	}
}
