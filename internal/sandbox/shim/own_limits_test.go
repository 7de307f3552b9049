package shim

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

// A round has its own limits within those of its container, and the next one has those of the container again.
func TestLimitsOfARound(t *testing.T) {
	t.Parallel()
	needRoot(t, "memory_max")
	const mib = 1 << 20
	eachLayerWith(t, Options{MemoryMax: 60 * mib, PidsMax: 30}, func(t *testing.T, s *Slot) {
		takes := func(bytes string, own int64) bool {
			t.Helper()
			r, _ := run(t, s, Program{Dir: script(t, `x=$(head -c `+bytes+` /dev/zero | tr '\0' x)`), MemoryMax: own})
			if killed := r.Signal == syscall.SIGKILL; r.Cause != Ended || killed != r.OutOfMemory {
				t.Errorf("got %+v", r)
			}
			return !r.OutOfMemory
		}
		for range 2 {
			if takes("20000000", 12*mib) || !takes("20000000", 0) || takes("80000000", 1000*mib) || !takes("1000", 12*mib) {
				t.Error("another limit held")
			}
		}
		many := Program{Dir: script(t, `for i in 1 2 3 4 5 6; do sleep 0.1 & done 2>/dev/null; wait; echo fine`)}
		few := many
		few.PidsMax = 3
		for _, p := range []Program{many, few, many} {
			if _, text := run(t, s, p); (text == "fine\n") != (p.PidsMax == 0) {
				t.Errorf("with %d processes it wrote %q", p.PidsMax, text)
			}
		}
	})
}

// A limit that cannot be kept is no limit that is forgotten.
func TestLimitsWithoutThoseOfTheContainer(t *testing.T) {
	t.Parallel()
	for _, p := range []Program{{MemoryMax: 1 << 30}, {PidsMax: 100}} {
		s := open(t, Options{Want: Group, Name: t.Name()})
		p.Dir = script(t, "true")
		r, err := s.Run(context.Background(), p)
		if start := (*process.StartError)(nil); !errors.As(err, &start) || start.Reason != process.ReasonLimits || r.Started {
			t.Errorf("%+v, %v", r, err)
		}
		if _, text := run(t, s, Program{Dir: script(t, "echo fine")}); text != "fine\n" {
			t.Errorf("the next one wrote %q", text)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Nice lowers the priority of one round, and of its session.
func TestNice(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		p := Program{Dir: script(t, `nice; cat /proc/self/autogroup 2>/dev/null`)}
		_, before := run(t, s, p)
		p.Nice = 19 // there is no higher, however nice the tests are
		_, text := run(t, s, p)
		line, group, _ := strings.Cut(text, "\n")
		refused := group == "" || os.Geteuid() != 0 // others may change only ten sessions a second, on all of the host
		if line != "19" || !refused && !strings.Contains(group, "nice 19") {
			t.Errorf("got %q", text)
		}
		p.Nice = 0
		if _, after := run(t, s, p); strings.HasPrefix(after, "19\n") && !strings.HasPrefix(before, "19\n") {
			t.Errorf("the next one has %q", after)
		}
	})
}
