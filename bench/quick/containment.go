package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/stats"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
)

// What a round under a shim is to reach of the speed of xargs: that of the strongest layer, and that of any.
const (
	aim   = 0.8
	floor = 0.6
)

// errTooSlow is what -strict makes of a layer below floor.
var errTooSlow = errors.New("containment costs too much")

// layers of containment, strongest first.
func layers() []shim.Layer { return []shim.Layer{shim.PIDNamespace, shim.Cgroup, shim.Group} }

// absent is a layer that is not available here.
type absent struct {
	layer  shim.Layer
	reason error
}

// compareContainment measures what each layer of containment costs and writes the table.
func compareContainment(ctx context.Context, o options, dir, script string, out, progress io.Writer) (err error) {
	all := []contend.Contender{contend.XargsDirectly(o.parallel, script), contend.Plain(o.parallel, script)}
	const first = 2 // of the layers in all
	var missing []absent
	for _, layer := range layers() {
		c, err := openContainer(layer)
		if err != nil {
			missing = append(missing, absent{layer, err})
			continue
		}
		defer func() { _ = c.Close() }()
		all = append(all, (&crew{container: c, script: script, temp: dir, slots: o.parallel}).contender())
	}
	samples, err := measure(ctx, o, all, progress)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, costTable(o, all, samples, missing)); err != nil {
		return err
	}
	if o.strict {
		return tooSlow(all[first:], samples[first:], samples[0])
	}
	return nil
}

// openContainer makes sure that it is that layer and no weaker one.
func openContainer(layer shim.Layer) (*shim.Container, error) {
	return shim.New(shim.Options{Want: layer, Require: true, Name: "bench-quick-" + strconv.Itoa(os.Getpid()) + "-" + string(layer)})
}

// costTable compares with xargs, the first of all.
func costTable(o options, all []contend.Contender, samples [][]sample, missing []absent) string {
	var w strings.Builder
	fmt.Fprintf(&w, "Cost of containment, without Redis: %s\n\n", o.size())
	fmt.Fprintf(&w, "| | tasks a second | lowest to highest | of %s | CPU ms a task | %[1]s in CPU time |\n", all[0].Name)
	fmt.Fprint(&w, "|---|--:|--:|--:|--:|--:|\n")
	for i, c := range all {
		fmt.Fprintf(&w, "%s %.2f | %.2f | %.2f |\n", leading(c.Name, rates(samples[i])),
			stats.Median(stats.Ratios(rates(samples[i]), rates(samples[0]))),
			stats.Median(costs(samples[i])), stats.Median(stats.Ratios(costs(samples[0]), costs(samples[i]))))
	}
	for _, a := range missing {
		fmt.Fprintf(&w, "| shim, %s | not here | | | | |\n", a.layer)
	}
	fmt.Fprintf(&w, "\nThe aim is %.1f of %s for %s, and never less than %.1f.\n", aim, all[0].Name, shim.PIDNamespace, floor)
	for _, a := range missing {
		fmt.Fprintf(&w, "%s is not available here: %v\n", a.layer, a.reason)
	}
	return w.String()
}

// tooSlow names the contenders that are below the floor.
func tooSlow(all []contend.Contender, samples [][]sample, reference []sample) (err error) {
	for i, c := range all {
		if ratio := stats.Median(stats.Ratios(rates(samples[i]), rates(reference))); ratio < floor {
			err = errors.Join(err, fmt.Errorf("%w: %s: %.2f of xargs, at least %.1f is demanded", errTooSlow, c.Name, ratio, floor))
		}
	}
	return err
}
