package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated reference")

func TestPrintLoadsAgain(t *testing.T) {
	t.Parallel()
	text := with("redis", "username=`u`\nport=1") +
		"[worker]\nenvironment=LANG,TZ\noutput_limit=64KiB\n[task_defaults]\ntimeout=1m\nmax_fails=inf\n[server]\nround_duration=2s\n"
	first := mustLoad(t, text, ForServer, WithEnviron([]string{"TDF_REDIS_DB=3"}), WithSettings("manager.batch_size=7"))
	second := mustLoad(t, shown(t, first), ForServer)
	if diff := compare(first, second); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
	for _, want := range []string{
		"test.cfg line 3\nusername=`u`\n", "# environment TDF_REDIS_DB\ndb=3\n", "# flag --set\nbatch_size=7\n", "# default\ntls=false\n",
	} {
		if !strings.Contains(shown(t, first), want) {
			t.Errorf("Print lacks %q", want)
		}
	}
}

// TestSchema: what every line of the table must have.
func TestSchema(t *testing.T) {
	t.Parallel()
	for _, sec := range schemaOf(&File{}) {
		seen := map[string]bool{}
		for _, k := range sec.keys {
			if seen[k.name] || k.doc == "" || k.kind == "" || !strings.HasSuffix(k.doc, ".") {
				t.Errorf("[%s] %s: twice, or without type or text", sec.name, k.name)
			}
			seen[k.name] = true
			if err := k.parse(k.fallback); err != nil && !k.required {
				t.Errorf("[%s] %s: default %q is refused: %v", sec.name, k.name, k.fallback, err)
			}
		}
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	if err := WriteReference(&want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "..", "docs", "CONFIGURATION.md")
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the schema says (%v); run go test ./internal/base/config -update", path, err)
	}
}

func TestShippedFiles(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]Kind{"server": ForServer, "worker": ForWorker, "manager": ForManager} {
		f, err := Load(filepath.Join("..", "..", "..", "configs", name+".cfg"), kind, WithEnviron(nil))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := defaults(t)
		want.Kind, want.TDF.Namespace = kind, "MyProject"
		want.Worker.OutputFile, want.Worker.ErrorFile = f.Worker.OutputFile, f.Worker.ErrorFile
		if diff := compare(want, f); diff != "" {
			t.Errorf("%s.cfg differs from the defaults it promises: -want +got:\n%s", name, diff)
		}
	}
}

// TestShippedFilesNameEveryKey: a file shows all that its program reads.
func TestShippedFilesNameEveryKey(t *testing.T) {
	t.Parallel()
	for name, own := range map[string][]string{
		"server": {"redis", "tdf", "server"}, "worker": {"redis", "tdf", "worker"}, "manager": {"redis", "tdf", "manager", "task_defaults"},
	} {
		f, err := Load(filepath.Join("..", "..", "..", "configs", name+".cfg"), ForServer, WithEnviron(nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range own {
			for _, k := range schemaOf(&File{}).section(section).keys {
				if f.settings[section+"."+k.name].level != fromFile {
					t.Errorf("%s.cfg does not say what %s in [%s] is", name, k.name, section)
				}
			}
		}
	}
}
