package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestLoggerJSON(t *testing.T) {
	t.Parallel()
	for _, format := range []string{FormatAuto, FormatJSON} { // a buffer is no terminal
		var out bytes.Buffer
		log, err := NewLogger(&out, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("hidden")
		log.Info("claimed", "name", "w\n1", "task", 3)
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: not one line of JSON: %v: %s", format, err, out.String())
		}
		if got["message"] != "claimed" || got["level"] != "info" || got["name"] != "w\n1" || got["task"] != 3.0 {
			t.Errorf("%s: %v", format, got)
		}
		if _, err := time.Parse(stampFormat, got["time"].(string)); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// Programs read the log of the daemons, so its form stays: the level, the fields as
// they were given, the time, the message.
func TestLoggerLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := NewLogger(&out, "trace", FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().UTC().Format(stampFormat)
	log = log.With("worker", "w", "task", int64(3))
	log.Log(t.Context(), slog.LevelDebug-1, "finest")
	log.Warn("a -> b & c", "by", 1500*time.Millisecond, "programs", []string{"p<1>", "q"}, "error", errors.New(`no "x"`),
		"kept", true)
	log.LogAttrs(t.Context(), slog.LevelInfo, "moving", slog.String("rest", "5s"), slog.Attr{})
	stamp := regexp.MustCompile(`"time":"([^"]*)"`)
	for _, m := range stamp.FindAllStringSubmatch(out.String(), -1) {
		if at, err := time.Parse(stampFormat, m[1]); err != nil || at.Location() != time.UTC || m[1] < began {
			t.Errorf("time %s: %v", m[1], err)
		}
	}
	const want = `{"level":"trace","worker":"w","task":3,"time":"","message":"finest"}
{"level":"warn","worker":"w","task":3,"by":1500,"programs":["p<1>","q"],"error":"no \"x\"","kept":true,"time":"","message":"a -> b & c"}
{"level":"info","worker":"w","task":3,"rest":"5s","time":"","message":"moving"}
`
	if got := stamp.ReplaceAllString(out.String(), `"time":""`); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// What is below the level of the log is neither written nor made.
func TestLoggerLevel(t *testing.T) {
	t.Parallel()
	levels := []slog.Level{slog.LevelDebug - 1, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	for i, name := range []string{"trace", "debug", "info", "warn", "error", "disabled"} {
		var out bytes.Buffer
		log, err := NewLogger(&out, name, FormatJSON)
		if err != nil {
			t.Fatal(err)
		}
		for j, level := range levels {
			log.Log(t.Context(), level, "line")
			if log.Enabled(t.Context(), level) != (j >= i) || (out.Len() > 0) != (j >= i) {
				t.Errorf("--log-level %s: %v", name, level)
			}
		}
	}
}

func TestLoggerConsoleEscapes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := NewLogger(&out, "info", FormatConsole)
	if err != nil {
		t.Fatal(err)
	}
	const evil = "a\x1b[2Jb\nforged\r\u202e\u009b"
	log.Error(evil, "name\x1b", evil, "list", []string{evil}, "error", errors.New(evil), "map", map[string]string{evil: evil})
	line, rest, _ := strings.Cut(out.String(), "\n")
	if rest != "" {
		t.Errorf("more than one line: %q", out.String())
	}
	if Safe(line) != line {
		t.Errorf("invisible characters in %q", line)
	}
	if !strings.Contains(line, " ERR ") || !strings.Contains(line, `a\x1b[2Jb\nforged`) {
		t.Errorf("unexpected form: %s", line)
	}
}

func TestLoggerConsoleForm(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := NewLogger(&out, "debug", FormatConsole)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("", "name", "w 1", "task", 3)
	_, rest, _ := strings.Cut(out.String(), " DBG ")
	if strings.TrimSpace(rest) != `name="w 1" task=3` {
		t.Errorf("got %q", out.String())
	}
	if _, err := time.Parse(time.DateTime, out.String()[:len(time.DateTime)]); err != nil {
		t.Error(err)
	}
}

func TestLoggerRefusesUnknownWords(t *testing.T) {
	t.Parallel()
	for _, words := range [][2]string{{"loud", "json"}, {"", "json"}, {"info", "xml"}, {"info", ""}} {
		_, err := NewLogger(io.Discard, words[0], words[1])
		if ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "--log-") {
			t.Errorf("%q: %v", words, err)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTerminal(f) || IsTerminal(&bytes.Buffer{}) {
		t.Error("neither is a terminal")
	}
}

// settings is a configuration for the tests of Answer.
type settings struct{ err error }

func (s settings) Print(w io.Writer) error {
	_, _ = io.WriteString(w, "[redis]\n")
	return s.err
}

func (settings) Warnings() []string { return []string{"care\x1b"} }

func TestDaemonFlags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args string
		done bool
		out  string
	}{
		{"--print-config", true, "[redis]\n"},
		{"--check", true, "warning: care\\x1b\nconfiguration ok\n"},
		{"--check --print-config", true, "[redis]\n"},
		{"", false, ""},
	} {
		cmd := &cobra.Command{Use: "x"}
		flags := AddDaemonFlags(cmd, cmd.PersistentFlags())
		if err := cmd.ParseFlags(strings.Fields(tc.args + " --set a.b=c,d --set e.f=g --log-level debug --log-format json")); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		done, err := flags.Answer(&out, settings{})
		if done != tc.done || err != nil || out.String() != tc.out {
			t.Errorf("%q: %v, %v, %q", tc.args, done, err, out.String())
		}
		if strings.Join(flags.Settings, " ") != "a.b=c,d e.f=g" {
			t.Errorf("settings %q", flags.Settings)
		}
		log, err := NewLogger(&out, flags.LogLevel, flags.LogFormat)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		LogWarnings(log, settings{})
		if !strings.Contains(out.String(), `"level":"warn"`) {
			t.Errorf("warnings: %s", out.String())
		}
	}
	full := settings{err: errFull}
	if _, err := (&DaemonFlags{PrintConfig: true}).Answer(io.Discard, full); !errors.Is(err, errFull) {
		t.Errorf("error of Print: %v", err)
	}
	if _, err := (&DaemonFlags{Check: true}).Answer(errWriter{}, settings{}); !errors.Is(err, errFull) {
		t.Errorf("error of the writer: %v", err)
	}
}
