package storetest

import (
	"cmp"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// AdvancePlans does what one pass of a server does for plans, in pages of that size, and
// reports whether there was anything to do. Without move the tasks that may run stay where they are.
func AdvancePlans(tb testing.TB, st *store.Store, page int, move bool) bool {
	tb.Helper()
	drains, err := st.DueWork(tb.Context(), 0, 100)
	if err != nil {
		tb.Fatal(err)
	}
	for _, d := range drains {
		if d.Growth > 0 {
			if _, _, err := growth.Pass(tb.Context(), st, d.Growth, page); err != nil {
				tb.Fatal(err)
			}
		} else if d.Plan > 0 {
			moveFreed(tb, st, d.Plan, page, move)
		} else if _, err := st.NotifyDependants(tb.Context(), page, d.Task); err != nil {
			tb.Fatal(err)
		}
	}
	return len(drains) > 0
}

func moveFreed(tb testing.TB, st *store.Store, plan task.PlanID, page int, move bool) {
	tb.Helper()
	freed, now, err := st.FreedTasks(tb.Context(), plan, 0, page)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range freed {
		t := &freed[i]
		m, err := statemachine.Decide(&t.Task.Task, statemachine.Occurrence{Event: t.Event(), Actor: statemachine.Server}, now)
		if err != nil {
			tb.Fatal(err)
		}
		if !move {
			continue
		}
		if out, err := st.Apply(tb.Context(), tasks.Commit{Move: m, Writer: "server", Bucket: t.Task.Bucket}); err != nil || out[0].Err != nil {
			tb.Fatalf("%+v, error %v", out, err)
		}
	}
}

// Config loads a configuration with nothing but these settings, each section.key=value,
// beside a place that nobody connects to. They may be secrets.
func Config(tb testing.TB, settings ...string) *config.File {
	tb.Helper()
	environ := append(make([]string, 0, 2+len(settings)), "TDF_REDIS_HOST=none", "TDF_TDF_NAMESPACE={none}")
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		environ = append(environ, "TDF_"+strings.ToUpper(strings.Replace(key, ".", "_", 1))+"="+value)
	}
	cfg, err := config.Load("", config.ForManager, config.WithEnviron(environ))
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

// Redis is the section [redis] with these settings, each key=value.
func Redis(tb testing.TB, settings ...string) config.Redis {
	tb.Helper()
	full := make([]string, len(settings))
	for i, s := range settings {
		full[i] = "redis." + s
	}
	return Config(tb, full...).Redis
}

// Setting makes a change of a daemon's options out of settings: what they make differ
// from the defaults, having gone the way of a configuration, and nothing else.
func Setting[O any](tb testing.TB, read func(*config.File) O, settings ...string) func(*O) {
	tb.Helper()
	given, plain := reflect.ValueOf(read(Config(tb, settings...))), reflect.ValueOf(read(Config(tb)))
	return func(o *O) {
		into := reflect.ValueOf(o).Elem()
		for i := range given.NumField() {
			if into.Field(i).CanSet() && !reflect.DeepEqual(given.Field(i).Interface(), plain.Field(i).Interface()) {
				into.Field(i).Set(given.Field(i))
			}
		}
	}
}

// Site is a site in the namespace, on connections that know the test's clock.
func (sp *Space) Site(tb testing.TB, log *slog.Logger, settings ...string) *tdf.Site {
	tb.Helper()
	return siteAt(tb, sp.Where, sp.Namespace, log, settings, conn.WithClock(clockScript))
}

// At is a site with settings as in manager.batch_size=1000; where stands for those of
// [redis]. Without a logger it is silent. It is closed when the test ends.
func At(tb testing.TB, where config.Redis, namespace string, log *slog.Logger, settings ...string) *tdf.Site {
	tb.Helper()
	return siteAt(tb, where, namespace, log, settings)
}

func siteAt(tb testing.TB, where config.Redis, namespace string, log *slog.Logger, settings []string, opts ...conn.Option) *tdf.Site {
	tb.Helper()
	file := Config(tb, settings...)
	file.Redis, file.TDF.Namespace = where, namespace
	internal, err := store.Open(file, cmp.Or(log, slog.New(slog.DiscardHandler)), opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = internal.Store.Close() })
	return &tdf.Site{Internal: internal}
}
