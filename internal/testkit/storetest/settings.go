package storetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
)

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
