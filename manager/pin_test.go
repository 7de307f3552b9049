package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

// All tasks of a submission have the version that its source had when it was met first; the next submission asks again.
func TestPin(t *testing.T) {
	t.Parallel()
	ns, asked := redistest.Namespace(t), 0
	pin := func(_ context.Context, source string) (string, error) {
		if strings.Contains(source, "bad") {
			return "", errors.New("no such host")
		}
		asked++
		return source + task.Pin(strings.Repeat(fmt.Sprint(asked), 64)), nil
	}
	m := newManager(t, ns, func(o *testOptions) { o.Pin, o.BatchSize = pin, 2 })
	specs := slices.Repeat([]task.Spec{{Program: "p", Source: "http://h/p.zip"}}, 5)
	specs = append(specs, task.Spec{Program: "q", Source: "http://h/q.zip"}, task.Spec{Program: "handler"})
	sources := func() (all []string) {
		t.Helper()
		opened, err := m.SubmitAll(t.Context(), slices.Values(specs), WithRequestKey(fmt.Sprint("key ", asked)))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range opened {
			one, err := m.Task(t.Context(), o.ID)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one.Source)
		}
		return all
	}
	p1, q2 := "http://h/p.zip#sha256="+strings.Repeat("1", 64), "http://h/q.zip#sha256="+strings.Repeat("2", 64)
	if got := sources(); !slices.Equal(got, []string{p1, p1, p1, p1, p1, q2, ""}) || asked != 2 {
		t.Errorf("asked %d times: %q", asked, got)
	}
	p3 := "http://h/p.zip#sha256=" + strings.Repeat("3", 64)
	if got := sources(); got[0] != p3 || got[4] != p3 {
		t.Errorf("the second submission: %q", got)
	}
	again, err := m.SubmitAll(t.Context(), slices.Values(specs), WithRequestKey("key 2"))
	if err != nil || again[0].ID != 8 {
		t.Errorf("the second one repeated, of other versions: %v, %v", again, err)
	}
	_, err = m.Submit(t.Context(), task.Spec{Program: "p", Source: "http://bad/p.zip"})
	if fieldOf(err) != "source" || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v, want an error about the source", err)
	}
}
