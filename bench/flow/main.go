// Command flow lets many tasks flow through one Redis while their servers keep few of them (archive_retention), and watches what
// Redis needs for it. A manager opens tasks so that some always wait, a worker with a Go handler runs them, another manager
// archives them, and a server removes what is beyond the retention: the real code, on a private redis-server as configs/redis.conf
// sets it up. At the end every id that was opened is looked for, as `tdf-manager verify` does. The tables are Markdown;
// bench/README.md says how to read them.
package main

import (
	"context"
	"errors"
	"io"

	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("flow", run) }

// run measures, writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	var r *result
	err = frame.Within(ctx, o.limit, func(ctx context.Context) error {
		f, err := gather(ctx, o, progress)
		if err != nil {
			return err
		}
		err = errors.Join(f.measure(), f.close())
		r = f.result()
		return err
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, r.markdown()); err != nil {
		return err
	}
	if o.json != "" {
		if err := frame.WriteJSON(o.json, r); err != nil {
			return err
		}
	}
	return r.check(o.strict)
}
