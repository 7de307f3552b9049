package task

import (
	"errors"
	"strings"
	"testing"
)

const hash64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want Source
	}{
		{"http://h/p.zip", Source{SourceHTTP, "http://h/p.zip", "http://h/p.zip", "p.zip", FormatZip, ""}},
		{"https://h:8080/a/run.sh?x=1", Source{SourceHTTP, "https://h:8080/a/run.sh?x=1", "https://h:8080/a/run.sh?x=1", "run.sh", FormatScript, ""}},
		{"http://h/get?file=dir/p.tar.bz&x=p.tgz", Source{SourceHTTP, "http://h/get?file=dir/p.tar.bz&x=p.tgz", "http://h/get?file=dir/p.tar.bz&x=p.tgz", "p.tgz", FormatTarGz, ""}},
		{"http://h/p.tar#sha256=" + strings.ToUpper(hash64), Source{SourceHTTP, "http://h/p.tar", "http://h/p.tar", "p.tar", FormatTar, hash64}},
		{"rsync:run.sh", Source{SourceLocal, "rsync:run.sh", "run.sh", "run.sh", FormatScript, ""}},
		{"rsync:/local/crawler-1.tar.gz", Source{SourceLocal, "rsync:/local/crawler-1.tar.gz", "/local/crawler-1.tar.gz", "crawler-1.tar.gz", FormatTarGz, ""}},
		{"rsync:a/b:c/p.tar.bz", Source{SourceLocal, "rsync:a/b:c/p.tar.bz", "a/b:c/p.tar.bz", "p.tar.bz", FormatTarBz2, ""}},
		{"rsync:p.tar.xz#sha256=" + hash64, Source{SourceLocal, "rsync:p.tar.xz", "p.tar.xz", "p.tar.xz", FormatTarXz, hash64}},
		{"rsync:bla.fasel:program-v1.zip", Source{SourceShell, "rsync:bla.fasel:program-v1.zip", "bla.fasel:program-v1.zip", "program-v1.zip", FormatZip, ""}},
		{"rsync:me@host:run.sh", Source{SourceShell, "rsync:me@host:run.sh", "me@host:run.sh", "run.sh", FormatScript, ""}},
		{"rsync://host:873/mod/dir/p.tar.zst", Source{SourceDaemon, "rsync://host:873/mod/dir/p.tar.zst", "rsync://host:873/mod/dir/p.tar.zst", "p.tar.zst", FormatTarZst, ""}},
		{"rsync:rsync://host/mod/p.tar.bz2", Source{SourceDaemon, "rsync:rsync://host/mod/p.tar.bz2", "rsync://host/mod/p.tar.bz2", "p.tar.bz2", FormatTarBz2, ""}},
		{"blob:sha256=" + strings.ToUpper(hash64), Source{
			SourceBlob, "blob:sha256=" + strings.ToUpper(hash64), "", "the upload", FormatTarZst, hash64,
		}},
		{"command:./sim" + Pin(hash64), Source{SourceCommand, "command:./sim" + Pin(hash64), "./sim", "sim", "", hash64}},
		{"command:sh" + Pin(hash64), Source{SourceCommand, "command:sh" + Pin(hash64), "sh", "sh", "", hash64}},
		{"http://h/p.zip" + PinFirst, Source{SourceHTTP, "http://h/p.zip", "http://h/p.zip", "p.zip", FormatZip, ""}},
		{"command:convert", Source{SourceCommand, "command:convert", "convert", "convert", "", ""}},
		{"command:/opt/a b/c#1", Source{SourceCommand, "command:/opt/a b/c#1", "/opt/a b/c#1", "c#1", "", ""}},
		{"rsync:host::mod/p.zip", Source{SourceDaemon, "rsync:host::mod/p.zip", "rsync://host/mod/p.zip", "p.zip", FormatZip, ""}},
	} {
		got, err := ParseSource(c.in)
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", c.in, got, err, c.want)
		}
	}
}

func TestParseSourceRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]error{
		"":                                     ErrInvalidSource,
		"command:":                             ErrInvalidSource,
		"command:./sim#sha256=":                ErrInvalidSource,
		"command:../sim" + Pin(hash64):         ErrInvalidSource,
		"command:bin/../../sim" + Pin(hash64):  ErrInvalidSource,
		"command:." + Pin(hash64):              ErrInvalidSource,
		"command:./" + Pin(hash64):             ErrInvalidSource,
		"command:" + Pin(hash64):               ErrInvalidSource,
		"blob:sha256=":                         ErrInvalidSource,
		"blob:sha256=" + hash64[1:]:            ErrInvalidSource,
		"blob:sha256=" + hash64 + ".zip":       ErrInvalidSource,
		"blob:x.zip" + Pin(hash64):             ErrInvalidSource,
		"command:./sim":                        ErrInvalidSource,
		"command:bin/sim":                      ErrInvalidSource,
		"command:/bin/":                        ErrInvalidSource,
		"command:..":                           ErrInvalidSource,
		"command:a\nb":                         ErrInvalidSource,
		"p.zip":                                ErrInvalidSource,
		"ftp://h/p.zip":                        ErrInvalidSource,
		"file:///etc/p.zip":                    ErrInvalidSource,
		"HTTP//h/p.zip":                        ErrInvalidSource,
		"http:///p.zip":                        ErrInvalidSource,
		"http://-h/p.zip":                      ErrInvalidSource,
		"http://h:port/p.zip":                  ErrInvalidSource,
		"http://h/%zz/p.zip":                   ErrInvalidSource,
		"http://h/p.zip\n":                     ErrInvalidSource,
		"http://h/p\x00.zip":                   ErrInvalidSource,
		"http://h/\xff.zip":                    ErrInvalidSource,
		"http://h/p.zip#":                      ErrInvalidSource,
		"http://h/p.zip#sha256=12":             ErrInvalidSource,
		"http://h/p.zip#md5=" + hash64:         ErrInvalidSource,
		"http://h/p.zip#sha256=" + hash64[1:]:  ErrInvalidSource,
		"http://h/p.zip#sha256=x" + hash64[1:]: ErrInvalidSource,
		"http://h/" + strings.Repeat("x", 2048) + ".zip": ErrInvalidSource,
		"rsync:-e/run.sh":                  ErrInvalidSource,
		"rsync:a/--rsync-path=x/run.sh":    ErrInvalidSource,
		"rsync:-oProxyCommand=x:run.sh":    ErrInvalidSource,
		"rsync:me@-oProxyCommand=x:run.sh": ErrInvalidSource,
		"rsync:host:-x/run.sh":             ErrInvalidSource,
		"rsync::run.sh":                    ErrInvalidSource,
		"rsync:@h:run.sh":                  ErrInvalidSource,
		"rsync:h:a;b/run.sh":               ErrInvalidSource,
		"rsync:h:$(id)/run.sh":             ErrInvalidSource,
		"rsync:h:*/run.sh":                 ErrInvalidSource,
		"rsync:h:a b/run.sh":               ErrInvalidSource,
		"rsync:h;id:run.sh":                ErrInvalidSource,
		"rsync://host":                     ErrInvalidSource,
		"rsync://host/run.sh":              ErrInvalidSource,
		"rsync://host:x/m/run.sh":          ErrInvalidSource,
		"rsync:///m/run.sh":                ErrInvalidSource,
		"rsync:x.wrongExtension":           ErrInvalidFormat,
		"rsync:xrun.sh":                    ErrInvalidFormat,
		"rsync:.zip":                       ErrInvalidFormat,
		"rsync:dir/":                       ErrInvalidFormat,
		"http://h/p.rar":                   ErrInvalidFormat,
		"http://h/":                        ErrInvalidFormat,
		"http://h":                         ErrInvalidFormat,
		"http://h/xrun.sh":                 ErrInvalidFormat,
	} {
		_, err := ParseSource(in)
		if !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", in, err, want)
		}
	}
}

func TestParseSourceHidesCredentials(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"http://user:canary@h/p.zip", "https://canary@h/p.zip", "http://user:ca/canary@h/p.zip",
		"http://user:can@canary@h/p.zip", "http://user:canary@h/p.wrong", "http://user:canary@h/%zz.zip",
		"rsync://user:canary@h/m/run.sh", "rsync:user:canary@h:run.sh", "rsync:user:canary@h::m/run.sh",
		"ftp://user:canary@h/p.zip", "http://user:canary@h/p.zip#sha256=1", "http://user:canary@h/p.zip\x01",
	} {
		_, err := ParseSource(in)
		if err == nil {
			t.Errorf("%s was accepted", in)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: shown in %q", in, err)
		}
	}
}

func TestValidProgram(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sum", "crawler-1.1.23", "A_b", "0", strings.Repeat("x", 128)} {
		if err := ValidProgram(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "/abs", "a/../../b", "a/b", ".tdf", "-x", "_x", "a b",
		"a\n", "a\x00", "ä", strings.Repeat("x", 129)} {
		if err := ValidProgram(name); !errors.Is(err, ErrInvalidProgram) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	for _, s := range []string{"http://h/p.zip", "https://u:p@h/run.sh#sha256=" + hash64, "rsync:h::m/p.tar", "rsync://h/m/p.tgz", "rsync:-x:run.sh"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		src, err := ParseSource(s)
		if err != nil {
			if !errors.Is(err, ErrInvalidSource) && !errors.Is(err, ErrInvalidFormat) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if src.Format == "" || src.Path == "" || src.File == "" || !strings.HasPrefix(s, src.Location) {
			t.Fatalf("%q: incomplete %+v", s, src)
		}
		if src.Kind != SourceLocal && strings.HasPrefix(src.Path, "-") || strings.ContainsAny(s, "\x00\n") {
			t.Fatalf("%q: dangerous %+v", s, src)
		}
		if again, err := ParseSource(src.Location); err != nil || again.Path != src.Path || again.SHA256 != "" {
			t.Fatalf("%q: not stable: %+v, %v", s, again, err)
		}
	})
}

func TestParseDestination(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Source{
		"/a//b/":               {Kind: SourceLocal, Location: "file:/a/b", Path: "/a/b"},
		"file:///a b":          {Kind: SourceLocal, Location: "file:/a b", Path: "/a b"},
		"file:/":               {Kind: SourceLocal, Location: "file:/", Path: "/"},
		"rsync://h:873/m/":     {Kind: SourceDaemon, Location: "rsync://h:873/m", Path: "rsync://h:873/m"},
		"rsync:h::m/a":         {Kind: SourceDaemon, Location: "rsync:h::m/a", Path: "rsync://h/m/a"},
		"rsync:me@h:a/b":       {Kind: SourceShell, Location: "rsync:me@h:a/b", Path: "me@h:a/b"},
		"rsync:h:/a":           {Kind: SourceShell, Location: "rsync:h:/a", Path: "h:/a"},
		"rsync:rsync://h/m/.x": {Kind: SourceDaemon, Location: "rsync:rsync://h/m/.x", Path: "rsync://h/m/.x"},
	} {
		got, err := ParseDestination(in)
		if again, _ := ParseDestination(got.Location); err != nil || got != want || again != want {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "a", "./a", "file:", "file:a", "file://host/a", "/a\n", "http://h/a", "rsync:", "rsync:/a", "rsync:a", "rsync:h:", "rsync:h:/",
		"rsync://h", "rsync://me:canary@h/m", "rsync://h/me:canary@x/y", "rsync:h:a b", "rsync:-e:a", "rsync:h:$(x)", "blob:sha256=" + hash64,
		"rsync:h:" + strings.Repeat("x", 3000),
	} {
		if got, err := ParseDestination(in); !errors.Is(err, ErrInvalidSource) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %+v, error %v", in, got, err)
		}
	}
	if to := ReturnedTo("file:/", 7, 2); to != "file:/7.2" {
		t.Errorf("returned to %s", to)
	}
}
