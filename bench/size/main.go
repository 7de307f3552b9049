// Command size measures what waiting tasks cost: the memory of one, in Redis as configs/redis.conf sets it up and with Redis'
// defaults, beside ways to keep less; whether a task takes longer where many others wait; what a server and Redis
// do while nothing is due; and how often an idle worker asks Redis. Each part has redis-servers of its own. The tables are
// Markdown; bench/README.md says how to read them.
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("size", run) }

// run measures the parts that were asked for and writes their tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	return frame.Within(ctx, o.limit, func(ctx context.Context) error { return o.parts(ctx, out, progress) })
}

func (o *options) parts(ctx context.Context, out, progress io.Writer) error {
	for _, part := range parts() {
		if !o.wants(part.name) {
			continue
		}
		_, _ = fmt.Fprintf(progress, "%s\n", part.name)
		table, err := part.measure(ctx, *o, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if _, err := io.WriteString(out, table+"\n"); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	return nil
}

// part is one of the measurements.
type part struct {
	name    string
	measure func(context.Context, options, io.Writer) (string, error)
}

func parts() []part {
	return []part{{"memory", measureMemory}, {"forms", measureForms}, {"scale", measureScale}, {"quiet", measureQuiet}, {"idle", measureIdle}}
}
