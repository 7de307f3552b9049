package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/base/timing"
)

// Bounds of how far the clocks may be apart. TDF uses that of Redis alone; people
// and logs use that of the host.
const (
	skewWarn = time.Second
	skewFail = 5 * time.Minute
)

// stepRecent is for how long a step of the clock is a warning.
const stepRecent = 24 * time.Hour

// judgeStep names the last step of the clock of Redis.
func judgeStep(f *Facts, r *report) {
	ago := timing.ToStd(f.Now.Sub(f.Step.At))
	if f.Step.Ahead < time.Second && (f.Step.At == 0 || ago > stepRecent) {
		return
	}
	text := "the clock of Redis is behind what it has shown before"
	if f.Step.At != 0 {
		way := "forward"
		if f.Step.By < 0 {
			way = "back"
		}
		text = fmt.Sprintf("the clock of Redis has stepped %s by %v, %v ago",
			way, f.Step.By.Abs().Round(100*time.Millisecond), ago.Round(time.Second))
	}
	text += fmt.Sprintf("; stamps are %v ahead of it", f.Step.Ahead.Round(100*time.Millisecond))
	r.warn(text, "run a time service that slews the clock (chrony, systemd-timesyncd), on the hosts of all replicas too")
}

func judgeClock(f *Facts, r *report) {
	skew := f.Server.Skew.Abs()
	text := fmt.Sprintf("clock of Redis against this host's: %+.3f s, give or take %.3f s", f.Server.Skew.Seconds(), f.Server.Margin.Seconds())
	const remedy = "run a time service (chrony, systemd-timesyncd) on both hosts; start_after and end_before mean the clock of Redis"
	switch {
	case skew > skewFail+f.Server.Margin:
		r.fail(text, remedy)
	case skew > skewWarn+f.Server.Margin:
		r.warn(text, remedy)
	default:
		r.ok(text)
	}
	judgeStep(f, r)
}

// judgeNetwork looks at who can listen in.
func judgeNetwork(f *Facts, r *report) {
	switch {
	case f.Redis.TLS:
		r.ok("TLS, at least 1.2")
	case local(&f.Redis):
		r.ok("Redis is on this host")
	default:
		r.warn("no TLS, and Redis is on another host: passwords and tasks can be read on the way",
			"tls=true and ca_file in [redis], tls-port in redis.conf; or a network that nobody else is in")
	}
}

// judgeSecrets looks at the files that passwords and keys are read from.
func judgeSecrets(f *Facts, r *report) {
	if len(f.Exposed) == 0 {
		r.ok("no file with a secret can be read by every user of this host")
		return
	}
	r.fail(strings.Join(f.Exposed, ", ")+" can be read by every user of this host", "chmod 600, and a new password")
}

// local reports whether all of Redis is reached without a network.
func local(r *config.Redis) bool {
	addresses := append(append([]string{}, r.ClusterAddrs...), r.SentinelAddrs...)
	if len(addresses) == 0 {
		network, address := r.Addr()
		if network == "unix" {
			return true
		}
		addresses = []string{address}
	}
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		ip := net.ParseIP(host)
		if err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// Place is a directory of a worker on this host.
type Place struct {
	// Setting names the key of [worker], Path is the directory.
	Setting, Path string
	// Free is how many bytes are free there, unless Err says why that is not known.
	Free uint64
	Err  error
}

// places looks at the directories of a worker. One that is not there yet is looked at
// where it would be made.
func places(w *config.Worker) []Place {
	program := w.ProgramDir
	if program == "" {
		program = "."
	}
	spool, temp := w.SpoolDir, w.TempDir
	if spool == "" {
		spool = filepath.Join(program, ".tdf", "spool")
	}
	if temp == "" {
		temp = os.TempDir()
	}
	all := []Place{{Setting: "program_dir", Path: program}, {Setting: "spool_dir", Path: spool}, {Setting: "temp_dir", Path: temp}}
	for i := range all {
		all[i].Free, all[i].Err = disk.Free(existing(all[i].Path))
	}
	return all
}

// existing is the nearest directory above that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// Bounds of free space.
const (
	freeWarn = 1 << 30
	freeFail = 64 << 20
)

func judgeDisk(f *Facts, r *report) {
	if len(f.Places) == 0 {
		r.skip("not checked: the configuration has no [worker]; the disk of Redis cannot be seen from here")
	}
	for _, p := range f.Places {
		text := fmt.Sprintf("%s %s: %d MiB free", p.Setting, p.Path, p.Free/mib)
		remedy := "make room there, or name another directory"
		switch {
		case p.Err != nil:
			r.warn(p.Setting+" "+p.Path+": "+p.Err.Error(), "check the path and the permissions")
		case p.Free == disk.Unknown:
			r.skip(p.Setting + " " + p.Path + ": not checked, a file system without a size")
		case p.Free < freeFail:
			r.fail(text, remedy)
		case p.Free < freeWarn:
			r.warn(text, remedy)
		default:
			r.ok(text)
		}
	}
}
