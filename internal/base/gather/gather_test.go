package gather

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

// writes is a file that notes each write.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(b))
	return len(b), nil
}

// Kept lines come with the next one, or with a flush, in one write and in order.
func TestKeptLinesComeTogether(t *testing.T) {
	t.Parallel()
	file := &writes{}
	w := New(file)
	put := func(keep bool, line string) {
		t.Helper()
		to := w.Write
		if keep {
			to = w.Keeper().Write
		}
		if n, err := to([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	put(false, "1\n")
	put(true, "2\n")
	put(true, "3\n")
	put(false, "4\n")
	put(true, "5\n")
	w.Flush()
	w.Flush()
	if want := []string{"1\n", "2\n3\n4\n", "5\n"}; !slices.Equal(file.all, want) {
		t.Errorf("got %q, want %q", file.all, want)
	}
	put(true, strings.Repeat("x", most))
	if len(file.all) != 4 {
		t.Error("there is no end of what is kept")
	}
}

// Lines of several goroutines are all there, each whole and in its own order.
func TestManyKeepLines(t *testing.T) {
	t.Parallel()
	file := &writes{}
	w := New(file)
	var all sync.WaitGroup
	const lines = 500
	for g := range 4 {
		all.Go(func() {
			for i := range lines {
				_, _ = w.Keeper().Write(fmt.Appendf(nil, "%d %d\n", g, i))
				if i%5 == 4 {
					w.Flush()
				}
			}
		})
	}
	all.Wait()
	next := [4]int{}
	for line := range strings.Lines(strings.Join(file.all, "")) {
		var g, i int
		if _, err := fmt.Sscanf(line, "%d %d\n", &g, &i); err != nil || next[g] != i {
			t.Fatalf("line %q: %v, want %d of %d", line, err, next[g], g)
		}
		next[g]++
	}
	if next != [4]int{lines, lines, lines, lines} {
		t.Errorf("there are %v lines", next)
	}
}

// A handler that keeps nothing writes at once.
func TestOtherHandlers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, flush := Log(slog.New(slog.NewTextHandler(&out, nil)))
	log.Info("there")
	if !strings.Contains(out.String(), "there") {
		t.Error("it is kept")
	}
	flush()
}
