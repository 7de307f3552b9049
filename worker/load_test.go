package worker

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/config"
)

// Each key of [worker] about fetching arrives at the fetcher.
func TestFetchOptions(t *testing.T) {
	t.Parallel()
	c := config.Worker{
		ProgramDir: "dir", FetchTimeout: 7 * time.Second,
		FetchMaxBytes: 11, FetchMaxEntries: 12, FetchMaxFileBytes: 13, FetchMaxRedirects: 3,
		NetrcFile: "netrc", CAFile: "ca", SSHOptions: " -i  key ", RsyncPath: "/bin/rs", RequirePinned: true,
	}
	o := fetchOptions("w", c)
	got := []any{o.Dir, o.Worker, o.Timeout, o.MaxBytes, o.MaxDownloadBytes, o.MaxEntries, o.MaxFileBytes,
		o.MaxRedirects, o.NetrcFile, o.CAFile, o.RsyncPath, o.RequirePinned}
	want := []any{"dir", "w", 7 * time.Second, int64(11), int64(11), 12, int64(13), 3, "netrc", "ca", "/bin/rs", true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("options %v, want %v", got, want)
	}
	if !slices.Equal(o.SSHExtra, []string{"-i", "key"}) || !slices.Contains(o.SSHOptions, "-oBatchMode=yes") {
		t.Errorf("ssh options %q, %q: want those of the configuration and the safe ones", o.SSHExtra, o.SSHOptions)
	}
}
