package contend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// daemon is one of the built programs while it runs.
type daemon struct {
	name, log string
	cmd       *exec.Cmd
}

// startDaemon runs a program in dir, with its log in a file there, as a
// supervisor would. It logs as much as it does by default.
func startDaemon(ctx context.Context, dir, name, binary string, args ...string) (*daemon, error) {
	d := &daemon{name: name, log: filepath.Join(dir, name+".log"), cmd: Command(ctx, binary, args...)}
	file, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	d.cmd.Dir, d.cmd.Stderr = dir, file
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	d.cmd.WaitDelay = Wait
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (make build makes it): %w", name, err)
	}
	return d, nil
}

// awaitLine waits until a text stands in the log.
func (d *daemon) awaitLine(ctx context.Context, text string) error {
	err := Poll(ctx, func() bool {
		content, err := os.ReadFile(d.log)
		return err == nil && bytes.Contains(content, []byte(text))
	})
	if err != nil {
		return fmt.Errorf("%s does not say %q: %w\n%s", d.name, text, err, d.tail())
	}
	return nil
}

// tail is the end of the log.
func (d *daemon) tail() []byte {
	content, err := os.ReadFile(d.log)
	if err != nil {
		return []byte(err.Error())
	}
	return content[max(0, len(content)-1000):]
}

// stopAll ends daemons in good order.
func stopAll(daemons []*daemon) error {
	for _, d := range daemons {
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // Wait tells if it has ended before
	}
	var errs []error
	for _, d := range daemons {
		killer := time.AfterFunc(Wait, func() { _ = d.cmd.Process.Kill() })
		if err := d.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w\n%s", d.name, err, d.tail()))
		}
		killer.Stop()
	}
	return errors.Join(errs...)
}
