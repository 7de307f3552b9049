package chaos

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// settings are what the environment says.
type settings struct {
	seed     uint64
	duration time.Duration
	report   string // file for the report as JSON, empty for none
	keep     string // directory for logs and ledgers, empty for one that is removed
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{
		seed: uint64(time.Now().UnixNano()), duration: 40 * time.Second,
		report: os.Getenv("CHAOS_REPORT"), keep: os.Getenv("TDF_CHAOS_DIR"),
	}
	if text := os.Getenv("TDF_CHAOS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TDF_CHAOS_SEED=%s: want a whole number", text)
		}
		s.seed = n
	}
	if text := os.Getenv("TDF_CHAOS_DURATION"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			t.Fatalf("TDF_CHAOS_DURATION=%s: want a duration such as 45s", text)
		}
		s.duration = d
	}
	t.Logf("TDF_CHAOS_SEED=%d TDF_CHAOS_DURATION=%s", s.seed, s.duration)
	return s
}

// directory is where everything of the run is written.
func (s settings) directory(t *testing.T) string {
	t.Helper()
	if s.keep == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(s.keep, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(s.keep, "chaos-"+strconv.FormatUint(s.seed, 10)+"-") //nolint:usetesting // it is kept
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("logs and ledgers are kept in %s", dir)
	return dir
}
