package acceptance

import (
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// wire is two network namespaces and a pair of interfaces between them. Nothing
// else is reachable from either, so their addresses can be any.
type wire struct{ hub, far string }

const hubAddress = "192.0.2.1" // of the documentation network

// newWire makes the namespaces. It skips the test where that is not permitted.
func newWire(t *testing.T) wire {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("making network namespaces needs the program %s", program)
		}
	}
	id := strings.ToLower(rand.Text()[:8])
	n := wire{"tdf-" + id + "-hub", "tdf-" + id + "-far"}
	for _, name := range []string{n.hub, n.far} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("making network namespaces is not permitted here: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	ip(t, "link", "add", "wire", "netns", n.hub, "type", "veth", "peer", "name", "wire", "netns", n.far)
	for name, address := range map[string]string{n.hub: hubAddress, n.far: "192.0.2.2"} {
		ip(t, "-n", name, "address", "add", address+"/30", "dev", "wire")
		ip(t, "-n", name, "link", "set", "wire", "up")
	}
	return n
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// listen makes a listener in the hub's namespace.
func (n wire) listen(t *testing.T) net.Listener {
	t.Helper()
	type answer struct {
		listener net.Listener
		err      error
	}
	got := make(chan answer, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		space, err := os.Open(filepath.Join("/run/netns", n.hub))
		if err == nil {
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		var l net.Listener
		if err == nil {
			l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", hubAddress+":0")
		}
		got <- answer{l, err}
	}()
	a := wait.Receive(t, patience, got, "no listener")
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.listener
}

// cut and mend take the far end's link down, and up again.
func (n wire) cut(t *testing.T)  { ip(t, "-n", n.far, "link", "set", "wire", "down") }
func (n wire) mend(t *testing.T) { ip(t, "-n", n.far, "link", "set", "wire", "up") }

// far starts a worker in the far namespace, which reaches Redis over the wire only.
func (w *world) far(t *testing.T, n wire, name string, set ...string) *daemon {
	t.Helper()
	proxy := redistest.NewProxyOn(t, n.listen(t), "unix", w.Server.Socket())
	args := append([]string{"--net=" + filepath.Join("/run/netns", n.far), program(t, "tdf-worker")},
		w.reaching(t, name, proxy.Addr(), set...)...)
	command := exec.Command("nsenter", args...) // which becomes the worker
	command.Dir = w.own(t, name)
	return w.start(t, command)
}

// C1 with a real link that goes down and comes back.
func TestLinkDown(t *testing.T) {
	t.Parallel()
	n := newWire(t)
	w := newWorld(t)
	w.cutOff(t, w.far(t, n, "cut", "slots=4"), func() { n.cut(t) }, func() { n.mend(t) })
}

// A5: the whole network of a host with eight tasks goes, for good.
func TestHostGone(t *testing.T) {
	t.Parallel()
	n := newWire(t)
	w := newWorld(t)
	w.leasing(t)
	dies := w.far(t, n, "dies", "slots=8")
	ids, l := w.eight(t, "dies")
	w.worker(t, "other", "slots=8")
	at := w.redisNow(t)
	n.cut(t)
	w.allBack(t, ids, at, shortLease+2*sm.Second)
	w.noneLeft(t, "dies")
	w.finishElsewhere(t, ids, l)
	w.kill(t, dies) // it would wait for its network
}
