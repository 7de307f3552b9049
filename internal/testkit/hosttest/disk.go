package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SmallDisk mounts a tmpfs of size bytes ("3m" is understood too) and returns its
// path. Only the calling goroutine sees it, and what that one starts: it gets a
// thread and a mount namespace of its own, which end with the test, however
// that ends. So files must be opened by the test's own goroutine. Without the
// right to mount the test is skipped.
func SmallDisk(tb testing.TB, size string) string {
	tb.Helper()
	dir, err := TrySmallDisk(tb, size)
	if err != nil {
		tb.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	return dir
}

// TrySmallDisk is [Small] for a test that can do without: the error says why there is
// none. The thread is the goroutine's own in any case.
func TrySmallDisk(tb testing.TB, size string) (string, error) {
	tb.Helper()
	dir := tb.TempDir()
	// Never unlocked: the thread ends with the goroutine, and the mount with it.
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	}
	if err != nil {
		return "", fmt.Errorf("mounting a tmpfs: %w", err)
	}
	tb.Cleanup(func() { // before the directory is removed; files may still be open
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	return dir, nil
}

// FillDisk writes a file until nothing more fits into dir, and returns its path;
// removing it makes room again.
func FillDisk(tb testing.TB, dir string) string {
	tb.Helper()
	name := filepath.Join(dir, "filler")
	syscall.ForkLock.RLock() // a program that is being started would have the file too, and keep its room
	defer syscall.ForkLock.RUnlock()
	file, err := os.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			tb.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		tb.Fatal(err)
	}
	return name
}

// WithoutSync calls f where fsync fails as on a broken disk. f must not leave its goroutine: what others do meanwhile is not concerned.
func WithoutSync(tb testing.TB, f func()) {
	tb.Helper()
	var err error
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and the filter with it
		if err = refuse(unix.SYS_FSYNC, unix.EIO); err == nil {
			f()
		}
	})
	done.Wait()
	if err != nil {
		tb.Fatalf("letting fsync fail: %v", err)
	}
}

// refuse lets a system call fail from now on in this thread.
func refuse(number uint32, errno unix.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&program)), 0, 0) //nolint:gosec // the kernel reads the filter during the call
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}
