// Package fn makes Go functions the tasks of a plan, with typed values.
// A function is defined once, and used on both sides:
//
//	var (
//		Count = fn.New1("count", func(ctx context.Context, file string) (int, error) { ... })
//		Add   = fn.New2("add", func(ctx context.Context, a, b int) (int, error) { return a + b, nil })
//		Sum   = fn.New1("sum", func(ctx context.Context, parts []int) (int, error) { ... })
//	)
//
// A worker serves it:
//
//	handlers, err := fn.Handlers(Count, Add, Sum)
//	...
//	err = worker.Run(ctx, site, worker.Options{Handlers: handlers})
//
// The program that builds a plan calls it. A call adds a task and returns at once. An
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
// any worker that serves it.
//
// Values travel as JSON, by the rules of encoding/json: exported fields only, and a text
// that is not UTF-8 has to be a []byte. A result is stored once, with its task,
// and read by each call that needs it; a known value is stored in the call.
//
// An error of the function makes the round a failure: the call is tried again, five
// times in all after the first with the rests of plans, unless [WithSpec] says otherwise. An error in
// [worker.Permanent] fails the call at once, and so does an argument that cannot be decoded,
// a *[ValueError], or a result that cannot be encoded or has more bytes than the
// output_limit of the worker. The plan decides what
// happens to its dependants, see [plan.OnFailure].
package fn
