package embedded_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/embedded"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, where config.Redis) config.Redis {
	t.Helper()
	where.Host, where.DialTimeout, where.ReadTimeout, where.WriteTimeout = config.EmbeddedHost, time.Second, time.Second, time.Second
	where, end, err := embedded.Start(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return where
}

func check(t *testing.T, where config.Redis) error {
	t.Helper()
	st, err := store.Dial(where, "n")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	_, err = st.Check(t.Context())
	return err
}

// Others can join with the address it fills in, and only with its password.
func TestPassword(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]config.Redis{
		"none": {}, "password": {Password: "secret"}, "user": {Username: "ann", Password: "secret"},
	} {
		where := start(t, c)
		if where.Host != "127.0.0.1" || where.Port == 0 {
			t.Errorf("%s: listens at %s:%d", name, where.Host, where.Port)
		}
		if err := check(t, where); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.Password == "" {
			continue
		}
		where.Password = "wrong"
		if err := check(t, where); !errors.Is(err, task.ErrUnreachable) || !strings.Contains(err.Error(), "password") {
			t.Errorf("%s, wrong password: %v", name, err)
		}
	}
}

// A port that is taken is an error that names the setting.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	taken := start(t, config.Redis{})
	_, _, err := embedded.Start(config.Redis{Host: config.EmbeddedHost, Port: taken.Port})
	if err == nil || !strings.Contains(err.Error(), "[redis] port") {
		t.Errorf("error %v", err)
	}
}
