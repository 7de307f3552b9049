package tdf_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// What a field has that cannot be is said by the name of the field.
func TestConnectRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	for want, change := range map[string]func(*tdf.Config){
		"tdf.Config.Namespace is required":      func(c *tdf.Config) { c.Namespace = "" },
		"tdf.Config.Namespace: [tdf] namespace": func(c *tdf.Config) { c.Namespace = "a b" },
		"tdf.Config.Addr: [redis] port":         func(c *tdf.Config) { c.Addr = "localhost:x" },
		"only the server can hold":              func(c *tdf.Config) { c.Addr = "embedded" },
		"tdf.Config.DB: [redis] db":             func(c *tdf.Config) { c.DB = -1 },
		"tdf.Config.CAFile: [redis] ca_file":    func(c *tdf.Config) { c.CAFile = "/no/such.pem" },
		"tdf.Config.Durability":                 func(c *tdf.Config) { c.Durability = "perhaps" },
		"tdf.Config.ReadTimeout":                func(c *tdf.Config) { c.ReadTimeout = -1 },
		"sentinel_addrs":                        func(c *tdf.Config) { c.SentinelMaster = "mymaster" },
		"not in braces":                         func(c *tdf.Config) { c.ClusterAddrs = []string{"h:1"} },
		"tdf.Config.ServerName: [redis] server_name = \"r\": has no effect without tls": func(c *tdf.Config) { c.ServerName = "r" },
		"tdf.Config.CertFile: [redis] cert_file": func(c *tdf.Config) {
			c.TLS, c.CertFile, c.KeyFile = true, "/no/such.pem", os.Args[0]
		},
		"tdf.Config.KeyFile: [redis] key_file": func(c *tdf.Config) {
			c.TLS, c.CertFile, c.KeyFile = true, os.Args[0], "/no/such.pem"
		},
		"tdf.Config.SentinelPassword: [redis]":   func(c *tdf.Config) { c.SentinelPassword = "s" },
		"tdf.Config.SentinelAddrs: [redis]":      func(c *tdf.Config) { c.SentinelMaster, c.SentinelAddrs = "m", []string{"x:y"} },
		"tdf.Config.DialTimeout: [redis]":        func(c *tdf.Config) { c.DialTimeout = -1 },
		"tdf.Config.WriteTimeout: [redis]":       func(c *tdf.Config) { c.WriteTimeout = -1 },
		"tdf.Config.ReplicationTimeout: [redis]": func(c *tdf.Config) { c.ReplicationTimeout = -1 },
	} {
		c := tdf.Config{Addr: srv.Socket(), Namespace: "x"}
		change(&c)
		if _, err := tdf.Connect(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A Redis that is not there, or not to be used, is told from one that cannot be trusted.
func TestConnectNeedsRedis(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, redistest.WithPassword("sesame#1;"))
	locked.Do(t, "ACL", "SETUSER", "resizer", "on", ">open", "allcommands", "allkeys", "allchannels")
	evicting := redistest.Start(t, redistest.WithConfig("maxmemory-policy", "allkeys-lru"))
	for what, c := range map[string]struct {
		tdf.Config

		want error
		say  string
	}{
		"nobody there":     {tdf.Config{Addr: "/nonexistent.sock"}, task.ErrUnreachable, "redis-server"},
		"no password":      {tdf.Config{Addr: locked.Socket()}, task.ErrUnreachable, "password"},
		"wrong password":   {tdf.Config{Addr: locked.Socket(), Password: "sesame"}, task.ErrUnreachable, "password"},
		"no such database": {tdf.Config{Addr: redistest.Shared(t).Socket(), DB: 999}, task.ErrUnreachable, "db"},
		"evicting":         {tdf.Config{Addr: evicting.Socket()}, task.ErrUnfit, "maxmemory-policy"},
		"right":            {tdf.Config{Addr: locked.Socket(), Password: "sesame#1;"}, nil, ""},
		"a user":           {tdf.Config{Addr: locked.Socket(), Username: "resizer", Password: "open"}, nil, ""},
		"no such user":     {tdf.Config{Addr: locked.Socket(), Username: "resize", Password: "open"}, task.ErrUnreachable, "password"},
	} {
		c.Namespace = "n"
		site, err := tdf.Connect(t.Context(), c.Config)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want %v that says %q", what, err, c.want, c.say)
		}
		if site != nil {
			if err := site.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A file with every key of [redis] gives what a program would write.
func TestLoadGivesEveryField(t *testing.T) {
	t.Parallel()
	pem := filepath.Join(t.TempDir(), "some.pem")
	write(t, pem, "")
	given := map[string]bool{"Logger": true} // is in no file
	for text, want := range map[string]tdf.Config{
		"[tdf]\nnamespace=n\n[redis]\nhost=r\nport=6380\nusername=u\npassword=p#1;\ndb=3\ntls=true\nca_file=PEM\ncert_file=PEM\n" +
			"key_file=PEM\nserver_name=s\ndial_timeout=1.5\nread_timeout=2.5\nwrite_timeout=3.5\ndurability=safe\n": {
			Addr: "r:6380", Namespace: "n", Username: "u", Password: "p#1;", DB: 3,
			TLS: true, CAFile: pem, CertFile: pem, KeyFile: pem, ServerName: "s",
			DialTimeout: 1500 * time.Millisecond, ReadTimeout: 2500 * time.Millisecond, WriteTimeout: 3500 * time.Millisecond,
			Durability: "safe", ReplicationTimeout: time.Second,
		},
		"[tdf]\nnamespace=n\n[redis]\nsentinel_master=m\nsentinel_addrs=a:1,b:2\nsentinel_password=q\ndurability=ha\nreplication_timeout=0.5\n": {
			Namespace: "n", SentinelMaster: "m", SentinelAddrs: []string{"a:1", "b:2"}, SentinelPassword: "q",
			DialTimeout: 5 * time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
			Durability: "ha", ReplicationTimeout: 500 * time.Millisecond,
		},
		"[tdf]\nnamespace={n}\n[redis]\ncluster_addrs=a:1,b:2\n": {
			Namespace: "{n}", ClusterAddrs: []string{"a:1", "b:2"},
			DialTimeout: 5 * time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
			Durability: "fast", ReplicationTimeout: time.Second,
		},
	} {
		file := filepath.Join(t.TempDir(), "tdf.cfg")
		write(t, file, strings.ReplaceAll(text, "PEM", pem))
		c, err := tdf.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for field, value := range reflect.ValueOf(c).Fields() {
			wanted := reflect.ValueOf(want).FieldByIndex(field.Index)
			if field.IsExported() && fmt.Sprint(value) != fmt.Sprint(wanted) { // no list is as good as an empty one
				t.Errorf("%s is %v, want %v", field.Name, value, wanted)
			}
			given[field.Name] = given[field.Name] || !field.IsExported() || !wanted.IsZero()
		}
	}
	for name, is := range given {
		if !is {
			t.Errorf("no file gives %s", name)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file gives the fields and what is made from the site its defaults; the fields can be
// changed in between, and the rest of the file stays.
func TestLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tdf.cfg")
	text := "[redis]\nhost=" + redistest.Shared(t).Socket() + "\nread_timeout=2.5\n[tdf]\nnamespace=of-the-file\n" +
		"[task_defaults]\ntimeout=7\n"
	write(t, file, text)
	c, err := tdf.Load(file)
	if err != nil || c.Namespace != "of-the-file" || c.ReadTimeout != 2500*time.Millisecond || c.Addr != redistest.Shared(t).Socket() {
		t.Fatalf("%+v, %v", c, err)
	}
	c.Namespace = redistest.Namespace(t)
	site, err := tdf.Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = site.Close() }()
	m := manager.New(site, "m", manager.Options{})
	opened, err := m.Submit(t.Context(), task.Spec{Program: "p"})
	if err != nil {
		t.Fatal(err)
	}
	read, err := m.Task(t.Context(), opened.ID)
	if err != nil || read.Timeout != 7*time.Second || site.Namespace() != c.Namespace || m.Namespace() != c.Namespace {
		t.Errorf("%+v, %v, in %s", read, err, m.Namespace())
	}
	if _, err := tdf.Load(filepath.Join(t.TempDir(), "none.cfg")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
