package worker

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/cgroup"
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

// A worker offers the memory of its host, unless it is told how much, and its slots as cpus, which it cannot be told.
func TestMeasuredResources(t *testing.T) {
	t.Parallel()
	o := complete(Options{}, config.Worker{Slots: 3, Resources: task.Resources{"gpu": 4}})
	offer := o.offer()
	offer.HandlersOnly = false
	if want := int(cgroup.Memory() >> 20); want < 64 || offer.Resources[task.Memory] != want || offer.Slots != 3 {
		t.Errorf("offers %v and %d slots, want %d MiB", offer.Resources, offer.Slots, want)
	}
	for _, asks := range []string{"cpus=3,gpu=4", "cpus=4"} {
		if why := task.Unfit(task.Bucket{Resources: asks}, task.QueueSpec{}, offer); (len(why) == 0) != (asks == "cpus=3,gpu=4") {
			t.Errorf("%s: %v", asks, why)
		}
	}
	var wrong *OptionError
	o.Resources = task.Resources{task.CPUs: 4}
	if err := o.validateOffer(); !errors.As(err, &wrong) || wrong.Field != "Resources" || !strings.Contains(err.Error(), "number of slots") {
		t.Errorf("cpus by hand: %v", err)
	}
}
