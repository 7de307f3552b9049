// Package fn makes Go functions tasks, with typed values, alone or in a plan.
// A function is defined once, and used on both sides:
//
//	var (
//		Count = fn.New("count", func(ctx context.Context, file string) (int, error) { ... })
//		Add   = fn.New2("add", func(ctx context.Context, a, b int) (int, error) { return a + b, nil })
//		Sum   = fn.New("sum", func(ctx context.Context, parts []int) (int, error) { ... })
//	)
//
// A worker serves it:
//
//	err = worker.Run(ctx, site, worker.Options{Handlers: fn.Handlers(Count, Add, Sum)})
//
// Another program, or the same, lets a worker call it and waits for the value; or it
// submits many calls first:
//
//	n, err := Count.Do(ctx, m, "a.txt") // an int
//	...
//	future, err := Count.Submit(ctx, m, "b.txt")
//	...
//	n, err = future.Get(ctx) // waits; in another process: fn.Attach[int](m, id).Get(ctx)
//
// The program that builds a plan adds calls to it. A call adds a task and returns at once. An
// argument is a value, or the [Future] of another call; arguments of other types do not
// compile:
//
//	a := Count.Call(p, fn.Value("a.txt"))
//	b := Count.Call(p, fn.Value("b.txt"))
//	both := Add.Call(p, a, b)
//	all := Sum.Call(p, fn.All(a, b, both))
//	if err := p.Ready(ctx); err != nil {
//		return err
//	}
//	if _, err := p.Wait(ctx); err != nil {
//		return err
//	}
//	n, err := all.Get(ctx) // an int
//
// A call is a task like any other: it can be mixed with programs ([Output], and a
// Future as a [plan.Dep]), listed, held and retried, and it is run at least once, on
// any worker that serves it. Its class is the name of the function, so that workers without
// it, which may run programs, leave the call alone; until one serves it, it waits.
//
// Values travel as JSON, by the rules of encoding/json: exported fields only, and a text
// that is not UTF-8 has to be a []byte. A result is stored once, with its task,
// and read by each call that needs it; a known value is stored in the call.
//
// An error of the function makes the round a failure. A call in a plan is tried again up to five
// times, with growing pauses, because a failure would cost the plan. A call on its own is not,
// since its caller can decide. [WithSpec] changes Retry.Limit for either. An error in
// [worker.Permanent] fails the call at once, and so does an argument that cannot be decoded, a
// *[ValueError], or a result that cannot be encoded or has more bytes than the output_limit of the
// worker. The plan decides what happens to its dependants, see [plan.OnFailure].
package fn
