package main

import (
	"context"
	"path/filepath"

	"github.com/tdf-go/tdf/bench/contend"
)

// references is how many of the contenders, the first ones, the others are compared with.
const references = 2

// systems are TDF and its peers, each with all it needs, in dir.
func systems(ctx context.Context, o options, dir, script string) ([]contend.Contender, error) {
	asynq, err := buildAsynq(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	all := []contend.Contender{
		contend.Xargs(o.parallel, script),
		asynq.contender("asynq, sh run.sh", "sh "+script),
	}
	for _, layer := range o.layers {
		one := contend.TDF{
			Bin: bin, Dir: dir, Redis: o.redis, Script: script, Workers: 1, Slots: o.parallel, Containment: layer,
		}
		all = append(all, one.Contender())
	}
	many := contend.TDF{
		Bin: bin, Dir: dir, Redis: o.redis, Script: script, Workers: o.parallel, Slots: 1, Containment: o.layers[0],
	}
	return append(all, many.Contender(), asynq.contender("asynq, handler does nothing", "")), nil
}
