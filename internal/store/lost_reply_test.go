package store_test

import (
	"crypto/sha1"
	"encoding/hex"
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
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// loss is a call whose first reply is lost: go-redis repeats it.
type loss struct {
	// prepare fills the namespace before; nil for nothing.
	prepare func(*testing.T, *storetest.Space)
	// call reads what it needs and returns the call itself.
	call func(*testing.T, *store.Store) step
	// hint marks an answer that may be lost: something else covers it.
	hint bool
}

// step is one mutation; what it answers must not depend on a repetition.
type step func() (any, error)

// done is a step without an answer.
func done(f func() error) step { return func() (any, error) { return nil, f() } }

func (s step) must(t *testing.T) any {
	t.Helper()
	answer, err := s()
	if err != nil {
		t.Fatal(err)
	}
	return answer
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
	want := l.call(t, plain.Store).must(t)
	far, proxy := through(t, lossy)
	call := l.call(t, far.Store)
	drop := proxy.DropReply(match(far.Store))
	got := call.must(t)
	if !drop.Happened() {
		t.Fatal("the reply was not lost: the scenario does not make the call")
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(tasks.TaskHeader{})); diff != "" && !l.hint {
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
			losses := allLosses(name)
			if len(losses) == 0 {
				t.Fatal("a script that writes has no scenario in scriptLosses")
			}
			runLosses(t, losses, func(st *store.Store) redistest.Match {
				return script(st.Script(name).Hash())
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

// script matches the calls of a script, by its hash or by the hash of its text.
func script(hash string) redistest.Match {
	return func(args []string) bool {
		if len(args) < 2 {
			return false
		}
		text := sha1.Sum([]byte(args[1]))
		return strings.EqualFold(args[0], "EVALSHA") && args[1] == hash ||
			strings.EqualFold(args[0], "EVAL") && hex.EncodeToString(text[:]) == hash
	}
}

// reads are the methods of go-redis that change nothing.
var reads = []string{
	"Ping", "Info", "Time", "Get", "HGet", "HMGet", "HGetAll", "SMembers", "SIsMember", "ZScore", "ZCard", "SCard", "HLen", "HVals", "HKeys", "HExists", "Exists", "ZCount", "ZRangeWithScores",
	"ZRangeByScoreWithScores", "ZRevRangeByScoreWithScores", "ZRangeArgs", "Scan", "ZRevRange", "LRange", "LLen", "LPosCount",
	"SScan", "ZScan", "ZRange", "XRangeN", "XRevRangeN", "XLen", "SlowLogLen", "ConfigGet",
	"Pipelined", "TxPipelined", "Subscribe", "Close", "StrLen", "ScriptExists", "ReloadState", "AddHook",
}

// plainMutations are the methods called on a Redis client in this package's
// files, without the reads: what is new there needs a scenario.
func plainMutations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "growth/") {
			continue // nothing there talks to Redis
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
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && isClient(sel.X) && !slices.Contains(reads, sel.Sel.Name) {
					names = append(names, sel.Sel.Name)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isClient recognises what the package calls its clients and pipelines.
func isClient(x ast.Expr) bool {
	return slices.Contains([]string{"s.Redis", "s.Session", "s.Patient", "p", "node", "client"}, types.ExprString(x))
}
