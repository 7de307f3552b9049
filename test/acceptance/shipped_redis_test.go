package acceptance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/ops/doctor"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
)

const shippedRedis = root + "/configs/redis.conf"

// A redis-server takes the shipped redis.conf, line for line; a task lives on it from its opening to the archive and stays
// packed; and the doctor finds nothing wrong with what that file is about.
func TestShippedRedisConfiguration(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithConfigFile(shippedRedis))
	for name, value := range directives(t) {
		if name == "bind" || name == "port" { // those of the test
			continue
		}
		reply, _ := srv.Do(t, "CONFIG", "GET", name).([]any)
		if len(reply) != 2 || fmt.Sprint(reply[1]) != value {
			t.Errorf("CONFIG GET %s: %v, want %q", name, reply, value)
		}
	}
	w := worldOn(t, storetest.On(t, srv))
	w.all(t)
	spec := w.script(t, "p", "echo done")
	spec.Input = strings.Repeat("i", 100)
	id := w.open(t, spec)[0]
	w.archived(t, id, sm.Succeeded)
	key := w.Key("task:" + fmt.Sprint(id))
	if encoding := srv.Do(t, "OBJECT", "ENCODING", key); fmt.Sprint(encoding) != "listpack" {
		t.Errorf("an archived task is kept as %v, want listpack", encoding)
	}
	w.sound(t)
	for _, f := range examine(t, srv, w.Namespace) {
		if slices.Contains([]string{"memory", "persistence", "durability"}, f.Check) && f.Severity != doctor.OK {
			t.Errorf("the doctor: %+v", f)
		}
	}
}

// examine is what the doctor of an administrator finds.
func examine(t *testing.T, srv *redistest.Server, namespace string) []doctor.Finding {
	t.Helper()
	cfg := &config.File{Redis: storetest.Where(srv)}
	cfg.Redis.Durability = config.DurabilityFast
	st, err := store.Dial(cfg.Redis, namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	facts, err := doctor.Gather(t.Context(), st, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Examine(facts)
}

// directives are the lines of the shipped redis.conf, with sizes as Redis tells them.
func directives(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(shippedRedis)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && !strings.HasPrefix(name, "#") {
			found[name] = strings.Trim(strings.ReplaceAll(value, "4gb", fmt.Sprint(4<<30)), `"`)
		}
	}
	return found
}
