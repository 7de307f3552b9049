package main

import (
	"fmt"
	"strings"
)

// tables are Markdown.
func (f *fleet) tables() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Fleet: %d workers of %d slots, %d servers, %d managers, %d queues; %s of delay each way; all registered after %.1f s\n\n",
		f.o.workers, f.o.slots, f.o.servers, f.o.managers, f.o.queues, f.o.delay, f.idle.startup.Seconds())
	fmt.Fprintf(&w, "| an idle worker | |\n|---|--:|\n| commands a second | %.2f |\n| Redis' processor time, µs a second | %.0f |\n"+
		"| its own, µs a second | %.0f |\n| memory of Redis, bytes | %.0f |\n| connections | %.1f |\n\n",
		f.idle.commands, 1e6*f.idle.redisCPU, 1e6*f.idle.ownCPU, f.idle.memory, f.idle.connections)
	fmt.Fprint(&w, "| a task takes | tasks a second | of what the slots could do | Redis' processor time, µs a task | of a core | "+
		"all others', µs a task | commands a task | tasks a worker: least / median / most | Jain's index | "+
		"of the first half, by queue: least / median / most | Jain's index |\n"+
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, l := range f.loads {
		f.row(&w, &l)
	}
	return w.String()
}

func (f *fleet) row(w *strings.Builder, l *load) {
	could := "-"
	if l.work > 0 {
		could = fmt.Sprintf("%.0f %%", 100*l.rate()*l.work.Seconds()/float64(f.o.workers*f.o.slots))
	}
	n := float64(l.tasks)
	fmt.Fprintf(w, "| %s | %.0f | %s | %.0f | %.0f %% | %.0f | %.1f | %s | %.3f | %s | %.3f |\n", l.work, l.rate(), could,
		1e6*l.redisCPU/n, 100*l.redisCPU/l.took.Seconds(), 1e6*l.ownCPU/n, l.reads/n,
		spread(l.perWorker), jain(l.perWorker), spread(l.perQueue), jain(l.perQueue))
}
