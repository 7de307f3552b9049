package config

import (
	"errors"
	"strings"
	"testing"
)

// TestOrder: flag > environment > file > default.
func TestOrder(t *testing.T) {
	t.Parallel()
	env := WithEnviron([]string{"TDF_REDIS_PORT=2"})
	flag := WithSettings("redis.port=3")
	file := with("redis", "port=1")
	for _, tc := range []struct {
		name string
		text string
		opts []Option
		want int
	}{
		{"default", minimal, nil, 6379},
		{"file", file, nil, 1},
		{"environment", file, []Option{env}, 2},
		{"flag", file, []Option{flag, env}, 3},
		{"flag over default", minimal, []Option{flag}, 3},
	} {
		if got := mustLoad(t, tc.text, ForServer, tc.opts...).Redis.Port; got != tc.want {
			t.Errorf("%s: port = %d; want %d", tc.name, got, tc.want)
		}
	}
}

// TestEveryKeyHasItsVariable sets each key through the environment to its own
// default and looks where Print says it came from.
func TestEveryKeyHasItsVariable(t *testing.T) {
	t.Parallel()
	for _, sec := range schemaOf(&File{}) {
		for _, k := range sec.keys {
			if k.fallback == "" {
				continue // an empty variable counts as not set
			}
			name := "TDF_" + strings.ToUpper(sec.name+"_"+k.name)
			f := mustLoad(t, minimal, ForServer, WithEnviron([]string{name + "=" + k.fallback}))
			if !strings.Contains(shown(t, f), "# environment "+name+"\n"+k.name+"="+k.fallback+"\n") {
				t.Errorf("%s has no effect", name)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	f, err := Load("", ForManager, WithEnviron([]string{
		"TDF_REDIS_HOST= redis ", "TDF_REDIS_PASSWORD= p w ", "TDF_TDF_NAMESPACE=n", "TDF_TASK_DEFAULTS_MAX_FAILS=4",
		"TDF_REDIS_PORT=", "TDF_TASK_ID=7", "TDF_WORKER=w", "TDF_REDIS_SERVICE_HOST=10.0.0.1", "PATH=/bin", "broken",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if f.Redis.Host != "redis" || f.Redis.Password != " p w " || f.TDF.Namespace != "n" || f.TaskDefaults.Defaults["max_fails"] != "4" || f.Redis.Port != 6379 {
		t.Errorf("got %v %q %q", f.Redis, f.TDF.Namespace, f.TaskDefaults.Defaults["max_fails"])
	}
}

func TestRefusedEnvironment(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		variable, want string
		sentinel       error
	}{
		{"TDF_REDIS_PASWORD=geheim", "did you mean TDF_REDIS_PASSWORD?", ErrUnknown},
		{"TDF_TASK_DEFAULT_MAX_FAILS=1", "did you mean TDF_TASK_DEFAULTS_MAX_FAILS?", ErrUnknown},
		{"TDF_REDIS_PORT=tcp://10.0.0.1:6379", `environment TDF_REDIS_PORT: [redis] port = "tcp://10.0.0.1:6379"`, ErrInvalid},
		{"TDF_REDIS_PASSWORD=geheim\n", "environment TDF_REDIS_PASSWORD: [redis] password: contains a control character", ErrInvalid},
		{"TDF_TDF_NAMESPACE=a b", "environment TDF_TDF_NAMESPACE: [tdf] namespace", ErrInvalid},
	} {
		e := refused(t, minimal, ForServer, WithEnviron([]string{tc.variable}))
		if !strings.Contains(e.Error(), tc.want) || strings.Contains(e.Error(), "geheim") || !errors.Is(e, tc.sentinel) {
			t.Errorf("%q: %v", tc.variable, e)
		}
	}
	if _, err := Load("", ForServer, WithEnviron(nil)); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "TDF_TDF_NAMESPACE") {
		t.Errorf("nothing at all: %v", err)
	}
}

func TestRefusedFlags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		flag, want string
		sentinel   error
	}{
		{"redis.port", "section.key=value", ErrInvalid},
		{"port=3", "section.key=value", ErrInvalid},
		{"redis.prt=3", "did you mean port?", ErrUnknown},
		{"reds.port=3", "did you mean [redis]?", ErrUnknown},
		{"redis.password=geheim", "TDF_REDIS_PASSWORD", ErrInvalid},
		{"redis.port=x", `flag --set: [redis] port = "x"`, ErrInvalid},
	} {
		e := refused(t, minimal, ForServer, WithSettings(tc.flag))
		if e.File != "flag --set" || !strings.Contains(e.Error(), tc.want) || strings.Contains(e.Error(), "geheim") || !errors.Is(e, tc.sentinel) {
			t.Errorf("%q: %v", tc.flag, e)
		}
	}
}
