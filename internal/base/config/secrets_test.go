package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func passwordFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPasswordFile(t *testing.T) {
	t.Parallel()
	path := passwordFile(t, "ab #c \n", 0o600)
	f := mustLoad(t, with("redis", "password=None\npassword_file="+path), ForWorker)
	if f.Redis.Password != "ab #c " || f.Redis.PasswordFile != path || len(f.Warnings()) != 0 {
		t.Errorf("password %q file %q warnings %v", f.Redis.Password, f.Redis.PasswordFile, f.Warnings())
	}
}

// TestPasswordSources: of password and password_file the stronger source wins.
func TestPasswordSources(t *testing.T) {
	t.Parallel()
	path := passwordFile(t, "of-file", 0o600)
	inFile := with("redis", "password=in-cfg")
	for _, tc := range []struct {
		name, text, env, want string
	}{
		{"variable names a file", inFile, "TDF_REDIS_PASSWORD_FILE=" + path, "of-file"},
		{"variable holds it", with("redis", "password_file="+path), "TDF_REDIS_PASSWORD=in-env", "in-env"},
		{"variable says none", with("redis", "password_file="+path), "TDF_REDIS_PASSWORD=None", ""},
		{"variable beats cfg", inFile, "TDF_REDIS_PASSWORD=in-env", "in-env"},
	} {
		f := mustLoad(t, tc.text, ForServer, WithEnviron([]string{tc.env}))
		if f.Redis.Password != tc.want {
			t.Errorf("%s: %q", tc.name, f.Redis.Password)
		}
		mustLoad(t, shown(t, f), ForServer)
	}
	if e := refused(t, with("redis", "password=x\npassword_file="+path), ForServer); e.Key != "password_file" {
		t.Errorf("both in one source: %v", e)
	}
	for _, content := range []string{"", "\n", "a\nb\n", "a\x00b"} {
		e := refused(t, with("redis", "password_file="+passwordFile(t, content, 0o600)), ForServer)
		if e.Key != "password_file" {
			t.Errorf("content %q: %v", content, e)
		}
	}
}

func TestWarnsOfExposedSecrets(t *testing.T) {
	t.Parallel()
	path := passwordFile(t, "x", 0o600)
	if err := os.Chmod(path, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	f := mustLoad(t, with("redis", "password_file="+path), ForServer)
	if len(f.Warnings()) != 1 || !strings.Contains(f.Warnings()[0], path) {
		t.Errorf("warnings: %v", f.Warnings())
	}
	cfg := write(t, with("redis", "password=x\nsentinel_password=y\nsentinel_master=m\nsentinel_addrs=a:1"))
	if err := os.Chmod(cfg, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Load(cfg, ForServer, WithEnviron(nil))
	if err != nil || len(f.Warnings()) != 1 || !strings.Contains(f.Warnings()[0], cfg) {
		t.Errorf("%v, %v", f, err)
	}
}

// TestSecretsNeverShow tries every way in which Go shows a value.
func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	const canary = "Canary7"
	f := mustLoad(t, with("redis", "password="+canary+"\nsentinel_password="+canary+"\nsentinel_master=m\nsentinel_addrs=a:1"), ForServer)
	if f.Redis.Password != canary || f.Redis.SentinelPassword != canary {
		t.Fatal("not loaded")
	}
	asJSON, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Print": shown(t, f), "JSON": string(asJSON),
		"%v": fmt.Sprintf("%v %v", f, *f), "%+v": fmt.Sprintf("%+v %+v", f, *f), "%#v": fmt.Sprintf("%#v %#v", f, *f),
		"redis": fmt.Sprintf("%v %+v %#v %v %+v %#v %s", f.Redis, f.Redis, f.Redis, &f.Redis, &f.Redis, &f.Redis, f.Redis),
	} {
		if strings.Contains(text, canary) {
			t.Errorf("%s shows the secret: %s", name, text)
		}
	}
	if !strings.Contains(shown(t, f), "\npassword=****\n") {
		t.Error("Print does not say that there is a password")
	}
}

func TestLoginsInOtherValuesAreMasked(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"redis://u:geheim@h", "redis://:ge/heim@h", "u:geheim@h", "u:ge@heim@h"} {
		e := refused(t, "[redis]\nhost="+host+"\n[tdf]\nnamespace=t\n", ForServer)
		if strings.Contains(e.Error(), "heim") || !strings.Contains(e.Error(), hidden) {
			t.Errorf("%q: %v", host, e)
		}
	}
}
