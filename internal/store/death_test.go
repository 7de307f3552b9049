package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// TestDeathAfterAnyCommand: a call of a script that writes is one step. Whichever of its commands was the
// last before the client died, it has done nothing or all: there is no moment in
// which a task is in its old set no more and not yet in the new one.
func TestDeathAfterAnyCommand(t *testing.T) {
	t.Parallel()
	for _, name := range store.MutatingScripts() {
		if slices.Contains([]string{"flush", "blob", "arrive"}, name) {
			continue // these two go part by part, and are done again or leave; the last is part of connecting
		}
		for what, l := range allLosses(name) {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				l.dieAnywhere(t)
			})
		}
	}
}

// mostCommands is more than any call sends.
const mostCommands = 20

func (l *loss) dieAnywhere(t *testing.T) {
	t.Helper()
	whole := storetest.New(t)
	l.begin(t, whole)
	before := dump(t, whole)
	l.call(t, whole.Store).must(t)
	after := dump(t, whole)
	for n := 1; ; n++ {
		sp := storetest.New(t)
		l.begin(t, sp)
		if !l.dieAfter(t, sp, n) {
			if n == 1 {
				t.Error("the call sends no command")
			}
			return // it is over before
		}
		if now := dump(t, sp); !cmp.Equal(now, before) && !cmp.Equal(now, after) {
			sameDump(t, before, now, "after death at a command in the middle")
		}
		if n == mostCommands {
			t.Fatal("the call does not end")
		}
	}
}

// dieAfter makes the call by a client that dies when Redis has carried out its
// nth command. It reports whether there was one.
func (l *loss) dieAfter(t *testing.T, sp *storetest.Space, n int) bool {
	t.Helper()
	far, proxy := through(t, sp)
	dies := far.Dial(t, conn.WithRetries(-1))
	call := l.call(t, dies)
	seen := 0
	drop := proxy.DropReply(func(args []string) bool {
		greeting := []string{"hello", "auth", "select", "client", "ping", "info"}
		if len(args) > 0 && !slices.Contains(greeting, strings.ToLower(args[0])) && !slices.Contains(args, dies.Script("arrive").Hash()) {
			seen++
		}
		return seen == n
	})
	_, err := call()
	if err == nil && drop.Happened() {
		t.Error("the call has succeeded without an answer")
	}
	return drop.Happened()
}
