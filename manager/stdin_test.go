package manager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// A submission takes a file along once, as it was when the submission met it first; what somebody has put is named by its hash.
func TestStdin(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	m := newManager(t, sp.Namespace, func(o *testOptions) { o.BatchSize = 2 })
	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	put, err := m.PutStdin(t.Context(), strings.NewReader("other"))
	if err != nil {
		t.Fatal(err)
	}
	specs := slices.Repeat([]task.Spec{{Program: "p", Stdin: "file:" + name}}, 5)
	opened, err := m.SubmitAll(t.Context(), slices.Values(append(specs, task.Spec{Program: "p", Stdin: put}, task.Spec{Program: "p"})))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"text", "text", "text", "text", "text", "other", ""} {
		one, err := m.Task(t.Context(), opened[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if text != "" {
			err = sp.Store.Blob(t.Context(), task.SourceSHA256(one.Stdin), &got)
		}
		if err != nil || got.String() != text || strings.Contains(one.Stdin, name) {
			t.Errorf("task %d reads %q of %q, %v, want %q", one.ID, got.String(), one.Stdin, err, text)
		}
	}
	if n := sp.Raw.ZCard(t.Context(), sp.Key("blobs")).Val(); n != 2 {
		t.Errorf("%d blobs, want 2", n)
	}
}

// A step that is opened later reads what the file held when the plan was made.
func TestStdinOfLaterSteps(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	m := newManager(t, sp.Namespace)
	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := m.NewPlan(t.Context(), task.PlanSpec{RequestKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{{Program: "p", Step: "list"}}), InPlan(plan))
	if err != nil {
		t.Fatal(err)
	}
	later := []LaterStep{{Name: "s", Lines: "list", Most: 10, Specs: []task.Spec{{Program: "p", Stdin: "file:" + name, Step: "s"}}}}
	if err := m.SubmitLater(t.Context(), plan, map[string][]int64{"list": {first[0].ID}}, later); err != nil {
		t.Fatal(err)
	}
	kept := sp.Raw.HGet(t.Context(), sp.Key(fmt.Sprint("growth:", plan)), "template").Val()
	hashes := sp.Raw.ZRange(t.Context(), sp.Key("blobs"), 0, -1).Val()
	if len(hashes) != 1 || !strings.Contains(kept, task.BlobSource(hashes[0])) || strings.Contains(kept, name) {
		t.Errorf("the template is %s, and there are %q", kept, hashes)
	}
}

// What cannot be taken along, or is not there, is an error that names it, and nothing is opened.
func TestStdinThatCannotBeHad(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	m := newManager(t, sp.Namespace)
	if err := sp.Store.PublishBlobs(t.Context(), 3, 100, time.Hour); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "large"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for stdin, want := range map[string]struct {
		is   error
		says []string
	}{
		"file:" + dir + "/none":                  {os.ErrNotExist, []string{"stdin", dir + "/none"}},
		"file:" + dir:                            {nil, []string{"stdin", "is a directory"}},
		"file:" + dir + "/large":                 {task.ErrNoRoom, []string{"stdin", "the limit of one blob is 3 bytes"}},
		task.BlobSource(strings.Repeat("0", 64)): {task.ErrNoBlob, []string{"stdin", strings.Repeat("0", 64), "put it again"}},
		"in.txt":                                 {nil, []string{"stdin", "in.txt", "file:PATH", "blob:sha256=HEX"}},
	} {
		_, err := m.Submit(t.Context(), task.Spec{Program: "p", Stdin: stdin})
		if err == nil || want.is != nil && !errors.Is(err, want.is) {
			t.Errorf("%s: %v, want %v", stdin, err, want.is)
			continue
		}
		for _, text := range want.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q in it", stdin, err, text)
			}
		}
	}
	if last, err := m.NewestTask(t.Context()); err != nil || last != 0 {
		t.Errorf("task %d is open, %v", last, err)
	}
	unusable := newManager(t, redistest.Namespace(t), func(o *testOptions) { o.BatchSize = -1 })
	if _, err := unusable.PutStdin(t.Context(), strings.NewReader("x")); err == nil {
		t.Error("a manager that cannot be used puts")
	}
}
