package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// answers are error answers of Redis, and what of them a start says: what to look
// at, and what to do. An empty remedy is for what stays as it is.
var answers = map[string]struct{ text, setting, remedy string }{
	"loading":     {"LOADING Redis is loading the dataset in memory", "[redis] host, port", "loaded its data"},
	"memory":      {"OOM command not allowed when used memory > 'maxmemory'.", "maxmemory of ", "raise it"},
	"disk":        {"MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.", "stop-writes-on-bgsave-error of ", "disk is full"},
	"append-only": {"MISCONF Errors writing to the AOF file: No space left on device", "dir of ", "make room"},
	"replicas":    {"NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write of ", "start the missing replicas"},
	"replica":     {"READONLY You can't write against a read only replica.", "replicaof of ", "name the master"},
	"script":      {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "busy-reply-threshold of ", "SCRIPT KILL"},
	"clients":     {"ERR max number of clients reached", "maxclients of ", "close connections"},
	"password":    {"WRONGPASS invalid username-password pair or user is disabled.", "[redis] password", "what the server expects"},
	"inside 6.2": {
		"ERR Error running script (call to f_0a): @user_script:5: @user_script: 5: -OOM command not allowed when used memory > 'maxmemory'.",
		"maxmemory of ", "raise it",
	},
	"transaction": {"EXECABORT Transaction discarded because of: MISCONF Redis is configured", "stop-writes-on-bgsave-error of ", "disk is full"},
	"lost master": {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "[redis] host, port", "redis-server runs there"},
	"cluster":     {"CLUSTERDOWN The cluster is down", "[redis] host, port", "redis-server runs there"},
	"moving slot": {"TRYAGAIN Multiple keys request during rehashing of slot", "[redis] host, port", "redis-server runs there"},
	"role":        {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", "[redis] host, port", "redis-server runs there"},
	"apart":       {"ERR Script attempted to access a non local key in a cluster node script: 0a, on @user_script:5.", "[redis] host, port", "redis-server runs there"},
	"aborted":     {"EXECABORT Transaction discarded because of previous errors.", "[redis] host, port", "redis-server runs there"},
	"forgotten":   {"NOSCRIPT No matching script. Please use EVAL.", "[redis] host, port", "redis-server runs there"},
	"in a script": {"READONLY You can't write against a read only replica. script: 0a, on @user_script:5.", "replicaof of ", "name the master"},

	"permission":   {text: "NOPERM this user has no permissions to run the 'get' command"},
	"busy group":   {text: "BUSYGROUP Consumer Group name already exists"},
	"busy key":     {text: "BUSYKEY Target key name already exists."},
	"wrong script": {text: "ERR Error running script (call to f_0a): @user_script:5: attempt to index a nil value"},
	"any other":    {text: "ERR something else"},
}

// TestTemporaryAnswers: what means that Redis cannot serve now is the same to a
// caller as a Redis that is not there; a start says what to do about it.
func TestTemporaryAnswers(t *testing.T) {
	t.Parallel()
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := answering(t, a.text, "")
			_, plain := st.LastID(t.Context())
			_, script := st.Register(t.Context(), storetest.Registration("w"))
			_, transaction := st.Count(t.Context())
			for what, err := range map[string]error{"plain": plain, "script": script, "transaction": transaction} {
				if err == nil || errors.Is(err, task.ErrUnreachable) != (a.remedy != "") {
					t.Errorf("%s: error %v; matches ErrUnreachable: %v", what, err, a.remedy == "")
				}
			}
			checkSaid(t, st, a.setting, a.remedy)
		})
	}
}

func checkSaid(t *testing.T, st *store.Store, setting, remedy string) {
	t.Helper()
	_, err := st.Check(t.Context())
	var said *conn.SetupError
	if !errors.As(err, &said) {
		t.Fatalf("check: %v", err)
	}
	if remedy == "" {
		return
	}
	if said.ExitCode() != 3 || !strings.HasPrefix(said.Setting, setting) || !strings.Contains(said.Remedy, remedy) {
		t.Errorf("check: %v, want %q and %q", err, setting, remedy)
	}
}

// TestCheckIsHindered: that Redis is hindered while it is being checked does not
// mean that INFO is forbidden.
func TestCheckIsHindered(t *testing.T) {
	t.Parallel()
	busy := answers["script"]
	checkSaid(t, answering(t, busy.text, "info"), busy.setting, busy.remedy)
	info, err := answering(t, answers["permission"].text, "info").Check(t.Context())
	if err != nil || len(info.Warnings) != 1 {
		t.Errorf("without permission: %+v, error %v", info, err)
	}
}

// answering is a store on a Redis that answers one command with an error, or every
// one, and to the others that nothing is there.
func answering(t *testing.T, text, command string) *store.Store {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { refuse(conn, text, command) })
		}
	})
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	where := config.Redis{Host: host, Port: n, DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second}
	st, err := store.Dial(where, "ns", conn.WithRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		_ = st.Close() // ends the connections, too
		work.Wait()
	})
	return st
}

// refuse answers each array of bulk strings that comes, but for HELLO, which an
// old Redis does not know.
func refuse(conn net.Conn, text, command string) {
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		words, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "*"))
		if err != nil {
			return
		}
		first := ""
		for i := range 2 * words { // no word has more than one line: a script comes by its hash
			if !lines.Scan() {
				return
			}
			if i == 1 {
				first = lines.Text()
			}
		}
		answer := "-" + text
		switch {
		case strings.EqualFold(first, "hello"):
			answer = "-ERR unknown command 'HELLO'"
		case command != "" && strings.EqualFold(first, "ping"):
			answer = "+PONG"
		case command != "" && !strings.EqualFold(first, command):
			answer = "$-1"
		}
		if _, err := fmt.Fprintf(conn, "%s\r\n", answer); err != nil {
			return
		}
	}
}

// TestHindered: a Redis that is really short of memory, or of replicas, or has too
// many clients, and then no more.
func TestHindered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setting, bad, good, says string }{
		"memory":   {"maxmemory", "1", "0", " is out of memory: OOM command not allowed when used memory > 'maxmemory'; maxmemory: raise it, or let "},
		"replicas": {"min-replicas-to-write", "1", "0", " lacks replicas: NOREPLICAS Not enough good replicas to write; min-replicas-to-write: "},
		// It hangs up, mostly before its answer is read; TestTemporaryAnswers has that.
		"clients": {"maxclients", "1", "100", "( has too many clients: |: broken pipe$|: connection reset by peer$|: EOF$)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			sp := storetest.On(t, server)
			open := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, err := sp.Dial(t, conn.WithRetries(-1)).Open(ctx, tasks.OpenRequest{Key: "r", Specs: []task.Definition{storetest.Spec()}})
				return err
			}
			if err := sp.Raw.ConfigSet(t.Context(), c.setting, c.bad).Err(); err != nil {
				t.Fatal(err)
			}
			if err := open(); !errors.Is(err, task.ErrUnreachable) || !regexp.MustCompile(c.says).MatchString(err.Error()) {
				t.Errorf("with %s %s: %v", c.setting, c.bad, err)
			}
			if err := sp.Raw.ConfigSet(t.Context(), c.setting, c.good).Err(); err != nil {
				t.Fatal(err)
			}
			if err := open(); err != nil {
				t.Errorf("with %s %s: %v", c.setting, c.good, err)
			}
		})
	}
}

// A slot that moves is found in time; without a cluster the address is wrong.
func TestMovedSlot(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"MOVED 7345 127.0.0.1:33307", "ASK 7345 127.0.0.1:33307"} {
		if err := store.Failed(config.Redis{ClusterAddrs: []string{"127.0.0.1:1"}}, answer); !errors.Is(err, task.ErrUnreachable) {
			t.Errorf("of a cluster: %v", err)
		}
		if err := store.Failed(config.Redis{Host: "localhost"}, answer); errors.Is(err, task.ErrUnreachable) {
			t.Errorf("of a single Redis: %v", err)
		}
	}
}
