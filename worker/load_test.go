package worker

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/task"
)

// What a worker offers arrives in its options, and those in its offer.
func TestOfferFromConfig(t *testing.T) {
	t.Parallel()
	o := complete(Options{}, config.Worker{
		Node: "n", Env: "python", Labels: []string{"b=1", "a=2"}, Resources: task.Resources{"gpu": 4, "mem": 9}, Classes: []string{"render=2"},
		Slots: 3, MaxThreads: task.AtMost(3),
	})
	o.Name = "w"
	want := task.Offer{
		Worker: "w", Node: "n", Env: "python", Labels: []string{"a=2", "b=1"}, Resources: task.Resources{"gpu": 4, "mem": 9}, Slots: 3,
		Classes: []string{"render=2"}, MaxThreads: task.AtMost(3), HandlersOnly: true,
	}
	if got := o.offer(); !reflect.DeepEqual(got, want) {
		t.Errorf("offers %+v, want %+v", got, want)
	}
	if o := complete(Options{}, config.Defaults().Worker); o.MaxThreads != task.Unlimited {
		t.Error("a limit that nobody wanted")
	}
}

// Each key of [worker] about fetching arrives at the fetcher.
func TestFetchOptions(t *testing.T) {
	t.Parallel()
	c := config.Worker{
		ProgramDir: "dir", ProgramCache: 14, FetchTimeout: 7 * time.Second,
		FetchMaxBytes: 11, FetchMaxEntries: 12, FetchMaxFileBytes: 13, FetchMaxRedirects: 3, Revalidate: 9 * time.Second,
		NetrcFile: "netrc", CAFile: "ca", SSHOptions: " -i  key ", RsyncPath: "/bin/rs", RequirePinned: true,
	}
	all := complete(Options{Name: "w"}, c)
	o := all.fetching()
	got := []any{o.Dir, o.Worker, o.Timeout, o.MaxBytes, o.MaxEntries, o.MaxFileBytes, o.CacheBytes,
		o.MaxRedirects, o.NetrcFile, o.CAFile, o.RsyncPath, o.RequirePinned, o.Revalidate}
	want := []any{"dir", "w", 7 * time.Second, int64(11), 12, int64(13), int64(14), 3, "netrc", "ca", "/bin/rs", true, 9 * time.Second}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("options %v, want %v", got, want)
	}
	if !slices.Equal(o.SSHExtra, []string{"-i", "key"}) {
		t.Errorf("ssh options %q: want those of the configuration", o.SSHExtra)
	}
}
