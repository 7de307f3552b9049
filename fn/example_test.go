package fn_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

// Functions are defined once, for the workers that serve them and for their callers.
var (
	Split = fn.New("split", func(_ context.Context, text string) ([]string, error) { return strings.Fields(text), nil })
	Count = fn.New2("count", func(_ context.Context, words []string, letter string) (int, error) {
		return strings.Count(strings.Join(words, ""), letter), nil
	})
	Max = fn.New("max", func(_ context.Context, all []int) (int, error) { return slices.Max(all), nil })
)

// Values go from call to call, on any number of workers.
func Example() {
	ctx := context.Background()
	m, done := exampleSite(Split, Count, Max) // a server, and a worker with fn.Handlers(Split, Count, Max)
	defer done()

	p, err := plan.New(ctx, m, "letters")
	if err != nil {
		panic(err)
	}
	words := Split.Call(p, fn.Value("one two three"))
	var counts []*fn.Future[int]
	for _, letter := range []string{"e", "o", "t"} {
		counts = append(counts, Count.Call(p, words, fn.Value(letter))) // Count.Call(p, words, fn.Value(1)) does not compile
	}
	most := Max.Call(p, fn.All(counts...))
	if err := p.Ready(ctx); err != nil {
		panic(err)
	}
	if _, err := p.Wait(ctx); err != nil {
		panic(err)
	}
	n, err := most.Get(ctx)
	fmt.Println(n, err)
	// Output: 3 <nil>
}

// A function may add calls to the plan it runs in, if it finds out then what there is
// to do.
func ExampleGrow() {
	ctx := context.Background()
	var m *manager.Manager // of the worker's process, in the same namespace
	letters := fn.New("letters", func(ctx context.Context, words []string) (int64, error) {
		p, err := fn.Grow(ctx, m)
		if err != nil {
			return 0, err
		}
		var counts []*fn.Future[int]
		for _, word := range words {
			counts = append(counts, Count.Call(p, fn.Value([]string{word}), fn.Value("e")))
		}
		most := Max.Call(p, fn.All(counts...))
		if err := p.Send(ctx); err != nil {
			return 0, err
		}
		return most.ID(), nil
	})
	m, done := exampleSite(letters, Split, Count, Max)
	defer done()

	p, err := plan.New(ctx, m, "words")
	if err != nil {
		panic(err)
	}
	most := letters.Call(p, Split.Call(p, fn.Value("one two three")))
	if err := p.Ready(ctx); err != nil {
		panic(err)
	}
	if _, err := p.Wait(ctx); err != nil { // also for what was added
		panic(err)
	}
	id, err := most.Get(ctx)
	if err != nil {
		panic(err)
	}
	n, err := fn.Result[int](p, plan.ID(id)).Get(ctx)
	fmt.Println(n, err)
	// Output: 2 <nil>
}

// exampleSite is a site with a worker that serves the functions, and a manager.
func exampleSite(functions ...fn.Function) (m *manager.Manager, done func()) {
	site, _, stop, err := tdftest.Start() // else tdf.Connect
	if err != nil {
		panic(err)
	}
	ctx, drain := context.WithCancel(context.Background())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_ = worker.Run(ctx, site, worker.Options{Handlers: fn.Handlers(functions...)})
	}()
	return manager.New(site, "example", manager.Options{}), func() {
		drain()
		<-drained
		stop()
	}
}
