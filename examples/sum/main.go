// Command sum adds the numbers from M to N on any number of workers: tasks of
// up to P numbers each give partial sums, further tasks add those up, until one
// number is left.
//
//	sum [--continue] [--plan] M N P manager.cfg
//
// With --plan all tasks are opened at once, as a plan: those that add up the sums of
// others wait for them, and get them as words. Without it, this program waits.
//
// It starts with an empty namespace: whatever is in the one named by manager.cfg
// is deleted, and nothing else in that Redis. With --continue it goes on with
// what is there: after it was killed, or beside another one of the same sum.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "sum:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// run does the whole work and writes what happens to out.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	config, err := tdf.Load(o.config)
	if err != nil {
		return err
	}
	site, err := tdf.Connect(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = site.Close() }()
	m := manager.New(site, "sum", manager.Options{})
	if err := prepare(ctx, m, o); err != nil {
		return err
	}
	fmt.Fprintf(out, "computing sum of [%d,%d] with bucket size p=%d\n", o.from, o.to, o.bucket)
	add := handled
	if o.plan {
		add = planned
	}
	result, err := add(ctx, m, out, o.tree)
	if err != nil {
		return err
	}
	return conclude(out, o, result)
}

// handled adds the numbers up in a loop: whenever tasks have ended, it opens those
// that need them.
func handled(ctx context.Context, m *manager.Manager, out io.Writer, t tree) (int64, error) {
	a := newAdder(t, out)
	if err := a.begin(ctx, m); err != nil {
		return 0, err
	}
	if err := m.Run(ctx, a.handlers(m)); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, errors.New("stopped before the end")
	}
	return a.result(ctx, m)
}

// prepare empties the namespace, or sees that it holds nothing but this sum.
func prepare(ctx context.Context, m *manager.Manager, o options) error {
	if !o.goOn {
		_, err := m.Flush(ctx)
		return err
	}
	if o.plan {
		return nil // a plan has tasks of its own
	}
	first, err := m.Task(ctx, 1)
	if errors.Is(err, task.ErrNoTask) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, mine := o.placeOf(first.Key); !mine {
		return fmt.Errorf("the namespace %s holds something else: leave out --continue to have it deleted", m.Namespace())
	}
	return nil
}

// conclude prints the result beside what it should be.
func conclude(out io.Writer, o options, result int64) error {
	want := (o.to + o.from) * (o.to - o.from + 1) / 2
	fmt.Fprintf(out, "FINAL RESULT: %d\n", result)
	fmt.Fprintf(out, "result should be: %d = (%d+%d) / 2 * (%d-%d+1)\n", want, o.to, o.from, o.to, o.from)
	if result != want {
		return fmt.Errorf("the result %d is wrong", result)
	}
	return nil
}

var errUsage = errors.New("usage: sum [--continue] [--plan] M N P manager.cfg")

// options are the arguments: add the numbers from M to N, at most P in a task.
type options struct {
	tree
	config string
	// goOn says to go on with what the namespace holds.
	goOn bool
	// plan says to open all tasks at once, as a plan.
	plan bool
}

// largest keeps every sum within 64 bits, in Go and in the shell.
const largest = 1_000_000_000

func parse(args []string) (options, error) {
	var o options
	for ; len(args) > 0 && strings.HasPrefix(args[0], "--"); args = args[1:] {
		switch args[0] {
		case "--continue":
			o.goOn = true
		case "--plan":
			o.plan = true
		default:
			return o, fmt.Errorf("%s is not known\n%w", args[0], errUsage)
		}
	}
	if len(args) != 4 {
		return o, fmt.Errorf("expecting 4 arguments (%d given)\n%w", len(args), errUsage)
	}
	o.config = args[3]
	var err error
	if o.from, err = integer("M", args[0], -largest, largest); err != nil {
		return o, err
	}
	if o.to, err = integer("N", args[1], o.from, largest); err != nil {
		return o, err
	}
	// Tasks of one number each would never become fewer.
	o.bucket, err = integer("P", args[2], 2, largest)
	return o, err
}

func integer(name, text string, lowest, highest int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("%s=%s: write a whole number from %d to %d\n%w", name, text, lowest, highest, errUsage)
	}
	return n, nil
}

// tree says which task adds up what: the first ones, on level 0, up to bucket
// of the numbers each, those on a level above up to bucket sums of the level
// below, until there is one. It follows from the arguments alone, so every
// manager at any time has the same one.
type tree struct {
	from, to int64
	bucket   int64
}

// place is where in the tree a task is.
type place struct{ level, index int64 }

// width is how many tasks a level has.
func (t tree) width(level int64) int64 {
	n := t.to - t.from + 1
	for range level + 1 {
		n = (n + t.bucket - 1) / t.bucket
	}
	return n
}

// top is the level with one task.
func (t tree) top() int64 {
	level := int64(0)
	for t.width(level) > 1 {
		level++
	}
	return level
}

func (t tree) parent(p place) place { return place{p.level + 1, p.index / t.bucket} }

// children are the places whose sums a task above level 0 adds up.
func (t tree) children(p place) []place {
	first, end := p.index*t.bucket, min((p.index+1)*t.bucket, t.width(p.level-1))
	children := make([]place, 0, end-first)
	for i := first; i < end; i++ {
		children = append(children, place{p.level - 1, i})
	}
	return children
}

// numbers are what a task of level 0 adds up.
func (t tree) numbers(index int64) []string {
	var numbers []string
	for n := t.from + index*t.bucket; n <= min(t.to, t.from+(index+1)*t.bucket-1); n++ {
		numbers = append(numbers, strconv.FormatInt(n, 10))
	}
	return numbers
}

// key is the key under which the task of a place is opened.
func (t tree) key(p place) string {
	return fmt.Sprintf("sum %d %d %d: %d %d", t.from, t.to, t.bucket, p.level, p.index)
}

// placeOf is the place that a key is about, if it is one of this tree.
func (t tree) placeOf(key string) (p place, ok bool) {
	var k tree
	n, err := fmt.Sscanf(key, "sum %d %d %d: %d %d", &k.from, &k.to, &k.bucket, &p.level, &p.index)
	return p, err == nil && n == 5 && k == t
}
