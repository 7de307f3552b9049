package hosttest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// RsyncDaemon runs rsync --daemon on loopback until the test ends, and gives its address. Its modules show dir: m to readers, w to
// writers, locked to those who have a password. Without rsync the test is skipped.
func RsyncDaemon(tb testing.TB, dir string) (address string) {
	tb.Helper()
	if _, err := exec.LookPath("rsync"); err != nil {
		tb.Skip("rsync is not installed")
	}
	conf, port := tb.TempDir(), strconv.Itoa(Port(tb))
	// As nobody, what root's daemon becomes, it may not pass the directory that holds dir.
	module := fmt.Sprintf("path = %s\nuid = %d\nuse chroot = no\n", dir, os.Getuid())
	secrets, file := filepath.Join(conf, "secrets"), filepath.Join(conf, "rsyncd.conf")
	for name, text := range map[string]string{secrets: "me:canary\n", file: "pid file = " + conf + "/pid\n[m]\n" + module +
		"[w]\n" + module + "read only = no\n[locked]\n" + module + "auth users = me\nsecrets file = " + secrets + "\nstrict modes = no\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	cmd := exec.CommandContext(tb.Context(), "rsync", "--daemon", "--no-detach", "--config="+file, "--address=127.0.0.1", "--port="+port)
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address = net.JoinHostPort("127.0.0.1", port)
	wait.Eventually(tb, 10*time.Second, func() bool {
		conn, err := new(net.Dialer).DialContext(tb.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, "rsync does not listen at %s", address)
	return address
}
