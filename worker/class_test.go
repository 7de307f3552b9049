package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	ran := func(change func(*result)) *result {
		r := result{Result: shim.Result{Started: true}}
		change(&r)
		return &r
	}
	exit := ran(func(r *result) { r.ExitCode = 1 })
	none := notRun()
	start := func(reason process.Reason) error { return fmt.Errorf("x: %w", &process.StartError{Reason: reason}) }
	fetching := func(err error) error { return &fetchingError{&fetch.Error{Err: err}} }
	output := func(err error) error { return errors.Join(nil, &capture.OutputError{Err: err}) }
	for name, c := range map[string]struct {
		stopped error
		res     *result
		err     error
		want    sm.Class
	}{
		"exit code":       {nil, exit, nil, sm.ClassProgram},
		"signal":          {nil, ran(func(r *result) { r.Signal = syscall.SIGSEGV }), nil, sm.ClassProgram},
		"stderr":          {nil, ran(func(*result) {}), nil, sm.ClassProgram},
		"handler's error": {nil, ran(func(r *result) { r.ExitCode = -1 }), errors.New("it broke"), sm.ClassProgram},

		"timeout":               {ErrTimeout, exit, nil, sm.ClassTime},
		"timeout while fetched": {ErrTimeout, &none, fetching(os.ErrDeadlineExceeded), sm.ClassTime},
		"timeout, shim lost":    {ErrTimeout, exit, shim.ErrShimLost, sm.ClassTime},
		"end_before":            {errEndBefore, exit, nil, sm.ClassTime},
		"rlimit cpu":            {nil, ran(func(r *result) { r.Signal = syscall.SIGXCPU }), nil, sm.ClassTime},
		"memory_max":            {nil, ran(func(r *result) { r.Signal, r.OutOfMemory = syscall.SIGKILL, true }), nil, sm.ClassMemory},
		"rlimit fsize":          {nil, ran(func(r *result) { r.Signal = syscall.SIGXFSZ }), nil, sm.ClassDisk},
		"output, disk full":     {nil, exit, output(syscall.ENOSPC), sm.ClassDisk},
		"output, over quota":    {nil, exit, output(syscall.EDQUOT), sm.ClassDisk},

		"output, other trouble":   {nil, exit, output(syscall.EIO), sm.ClassHost},
		"survives KILL":           {nil, exit, shim.ErrUnkillable, sm.ClassHost},
		"no private directory":    {nil, &none, syscall.ENOSPC, sm.ClassHost},
		"no interpreter":          {nil, &none, start(process.ReasonInterpreter), sm.ClassHost},
		"no wrapper":              {nil, &none, start(process.ReasonWrapper), sm.ClassHost},
		"no such user, no limits": {nil, &none, start(process.ReasonLimits), sm.ClassHost},
		"no memory to start":      {nil, &none, start(process.ReasonResources), sm.ClassHost},
		"no directory":            {nil, &none, start(process.ReasonDirectory), sm.ClassHost},
		"no shim":                 {nil, &none, &hostError{errors.New("x")}, sm.ClassHost},
		"disk full while fetched": {nil, &none, fetching(syscall.ENOSPC), sm.ClassHost},

		"no run.sh":           {nil, &none, start(process.ReasonMissing), sm.ClassProgram},
		"exec format":         {nil, &none, start(process.ReasonFormat), sm.ClassProgram},
		"not executable":      {nil, &none, start(process.ReasonNotExecutable), sm.ClassProgram},
		"arguments too long":  {nil, &none, start(process.ReasonArguments), sm.ClassProgram},
		"source nobody reads": {nil, &none, fetching(task.ErrInvalidSource), sm.ClassProgram},
		"name nobody takes":   {nil, &none, fetching(task.ErrInvalidProgram), sm.ClassProgram},
		"archive without it":  {nil, &none, fetching(fetch.ErrNotRunnable), sm.ClassProgram},
		"no archive":          {nil, &none, fetching(task.ErrInvalidFormat), sm.ClassProgram},
		"no argument":         {nil, &none, &argumentError{"x"}, sm.ClassProgram},

		"server says no":     {nil, &none, fetching(errors.New("HTTP status 503")), sm.ClassFetch},
		"fetch timed out":    {nil, &none, fetching(fetch.ErrTimeout), sm.ClassFetch},
		"checksum":           {nil, &none, fetching(fetch.ErrChecksum), sm.ClassFetch},
		"another's fetcher":  {nil, &none, &fetchingError{errors.New("x")}, sm.ClassFetch},
		"shim lost":          {nil, exit, shim.ErrShimLost, sm.ClassInfrastructure},
		"panic, no room":     {nil, &none, &ownError{"x"}, sm.ClassInfrastructure},
		"shim lost, no disk": {nil, exit, errors.Join(shim.ErrShimLost, output(syscall.ENOSPC)), sm.ClassInfrastructure},
	} {
		if got := classify(c.stopped, c.res, c.err); got != c.want {
			t.Errorf("%s: class %s, want %s", name, got, c.want)
		}
	}
}

// Results of others that cannot be used are a failure of which the node is innocent.
func TestForeignFault(t *testing.T) {
	t.Parallel()
	none := notRun()
	end := (&round{Claimed: &Claimed{}}).conclude(t.Context(), &none, &argumentError{"x"})
	if news := end.news(true); end.event != sm.Report || end.class != sm.ClassProgram || end.trouble != "x" || news != "" {
		t.Errorf("%+v, news %q", end, news)
	}
}

// What a round says of its node.
func TestNews(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    ending
		failed bool
		want   tasks.NodeNews
	}{
		"success":            {ending{event: sm.Report, class: sm.ClassProgram}, false, tasks.NodeGood},
		"failure":            {ending{event: sm.Report, class: sm.ClassProgram}, true, tasks.NodeBad},
		"own fault":          {ending{event: sm.Report, class: sm.ClassInfrastructure}, true, ""},
		"others' fault":      {ending{event: sm.Report, class: sm.ClassProgram, foreign: true}, true, ""},
		"overdue":            {ending{event: sm.StopOverdue, class: sm.ClassTime}, true, tasks.NodeBad},
		"cancelled":          {ending{event: sm.Terminate, class: sm.ClassProgram}, true, ""},
		"handed back":        {ending{event: sm.HandBack, why: ErrDraining}, true, ""},
		"handed back, no go": {ending{event: sm.HandBack, why: &hostError{errors.New("x")}}, true, tasks.NodeBad},
	} {
		if got := c.end.news(c.failed); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The class stands in the record, and what happened in the evidence.
func TestClassIsRecorded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.Store.PublishQuarantine(t.Context(), "warn"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.programs, "nosh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.programs, "nosh", "run.sh"), []byte("#!/no/such/shell\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := map[int64]string{
		s.open(t, s.script(t, "fine", "true")):                                                                             "-",
		s.open(t, s.script(t, "exit", "exit 3")):                                                                           "program",
		s.open(t, s.script(t, "big", `exec head -c 200000 /dev/zero > "$TDF_WORKDIR/f"`)):                                  "disk",
		s.open(t, s.script(t, "slow", "sleep 60"), limits("1", "0")):                                                       "time",
		s.open(t, func(sp *task.Definition) { storetest.Set(sp, "program", "away", "source", "rsync:/no/such/path.zip") }): "fetch",
		s.open(t, func(sp *task.Definition) { storetest.Set(sp, "program", "nosh", "source", "rsync:/x/run.sh") }):         "host",
	}
	s.start(t, func(o *options) {
		var err error
		o.container, err = shim.New(shim.Options{Want: shim.Group, Name: s.Namespace, Rlimits: map[string]uint64{"fsize": 100_000}})
		if err != nil {
			t.Fatal(err)
		}
		o.Node = "n"
	})
	for id, class := range want {
		task := s.await(t, id, sm.Executed, sm.TimedOut)
		checkFields(t, task, map[string]string{"0:class": class})
		if class != "-" && task.State == sm.Executed && string(task.Current.Class) != class {
			t.Errorf("task %d is read with class %q", id, task.Current.Class)
		}
	}
	got, err := s.Store.Evidence(t.Context(), "fine", "slow")
	fine, slow := got["fine"]["n"], got["slow"]["n"]
	if err != nil || fine.Good != 1 || fine.Bad != 0 || slow.Good != 0 || slow.Bad != 1 {
		t.Errorf("evidence %v, %v", got, err)
	}
}
