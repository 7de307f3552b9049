package shim

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// Programs that cannot be executed cost the shim no descriptors, also where a
// launcher has been started before that shows.
func TestFailedStartsKeepNoDescriptors(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user may not look at the shim's descriptors")
	}
	s := open(t, Options{Want: Group, Rlimits: map[string]uint64{"core": 0}})
	count := func() int {
		t.Helper()
		entries, err := os.ReadDir("/proc/" + strconv.Itoa(s.PID()) + "/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	bad := install(t, "#!/no/such/interpreter\n", 0o755)
	fail := func() {
		t.Helper()
		if _, err := s.Run(context.Background(), Program{Dir: bad}); err == nil {
			t.Fatal("it ran")
		}
	}
	fail()
	before := count()
	for range 20 {
		fail()
	}
	// The answer is sent before the files that came with the question are closed.
	wait.Eventually(t, time.Minute, func() bool { return count() <= before }, "no more than the %d descriptors before", before)
}
