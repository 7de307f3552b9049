package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/storetest"
)

// loss is a call whose first reply is lost: go-redis repeats it.
type loss struct {
	// prepare fills the namespace before; nil for nothing.
	prepare func(*testing.T, *storetest.Space)
	// call answers what must be the same with and without the loss.
	call func(*testing.T, *store.Store) any
	// hint marks an answer that may be lost: something else covers it.
	hint bool
}

// through is the space as seen over a proxy.
func through(t *testing.T, sp *storetest.Space) (*storetest.Space, *redistest.Proxy) {
	t.Helper()
	proxy := sp.Server.Proxy(t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	far := *sp
	far.Where.Host = host
	if far.Where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	far.Store = far.Dial(t)
	return &far, proxy
}

// play makes the call once as it is and once, in another namespace, with its
// reply lost, and compares answers and namespaces.
func (l *loss) play(t *testing.T, match func(*store.Store) redistest.Match) {
	t.Helper()
	plain, lossy := storetest.New(t), storetest.New(t)
	for _, sp := range []*storetest.Space{plain, lossy} {
		sp.SetClock(t, noon)
		if l.prepare != nil {
			l.prepare(t, sp)
		}
	}
	want := l.call(t, plain.Store)
	far, proxy := through(t, lossy)
	drop := proxy.DropReply(match(far.Store))
	got := l.call(t, far.Store)
	if !drop.Happened() {
		t.Fatal("the reply was not lost: the scenario does not make the call")
	}
	if diff := cmp.Diff(want, got); diff != "" && !l.hint {
		t.Errorf("the repeated call answers otherwise (- once, + repeated):\n%s", diff)
	}
	sameDump(t, dump(t, plain), dump(t, lossy), "after a lost reply")
}

// TestLostReply: every script that writes, and every plain command that does,
// may be sent twice. The list of scripts is the store's own.
func TestLostReply(t *testing.T) {
	t.Parallel()
	for _, name := range store.MutatingScripts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(scriptLosses[name]) == 0 {
				t.Fatal("a script that writes has no scenario in scriptLosses")
			}
			runLosses(t, scriptLosses[name], func(st *store.Store) redistest.Match {
				return redistest.Script(st.Script(name).Hash(), scriptText(t, st, name))
			})
		})
	}
	for _, name := range plainMutations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, ok := commandLosses[name]
			if !ok {
				t.Fatal("a command that is not known to be a read has no scenario in commandLosses")
			}
			runLosses(t, l.cases, func(*store.Store) redistest.Match { return redistest.Command(l.command) })
		})
	}
}

func runLosses(t *testing.T, losses map[string]loss, match func(*store.Store) redistest.Match) {
	t.Helper()
	for name, l := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.play(t, match)
		})
	}
}

// scriptText is the text go-redis sends with EVAL.
func scriptText(t *testing.T, st *store.Store, name string) string {
	t.Helper()
	text := st.ScriptText(name)
	if text == "" {
		t.Fatalf("no script %s", name)
	}
	return text
}

// reads are the methods of go-redis that change nothing.
var reads = []string{
	"Ping", "Info", "Time", "Get", "HGet", "HMGet", "HGetAll", "SMembers", "ZScore", "ZCard", "ZRangeArgs", "Scan",
	"Pipelined", "TxPipelined", "Subscribe", "Close",
}

// plainMutations are the methods called on a Redis client in this package's
// files, without the reads: what is new there needs a scenario.
func plainMutations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && isClient(sel.X) && !slices.Contains(reads, sel.Sel.Name) {
				names = append(names, sel.Sel.Name)
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isClient recognises what the package calls its clients and pipelines.
func isClient(x ast.Expr) bool {
	return slices.Contains([]string{"s.rdb", "p", "node"}, types.ExprString(x))
}
