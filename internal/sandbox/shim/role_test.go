package shim

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// playRole is what a copy of the test binary does: it is a worker that runs the
// program of its directory in the layer that is its name, until it is killed.
func playRole(role string) int {
	layer, lease, _ := strings.Cut(role, ", ")
	lease, conceal := strings.CutSuffix(lease, " conceal")
	if conceal {
		if err := Conceal(); err != nil {
			return 3
		}
	}
	if err := playWorker(Layer(layer), lease); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func playWorker(layer Layer, lease string) error {
	c, err := New(only(Options{Want: layer, Name: os.Getenv("NAME"),
		CgroupDir: os.Getenv(cgroupVariable)}))
	if err != nil {
		return err
	}
	s, err := c.Start(0)
	if err != nil {
		return err
	}
	if lease != "" {
		d, err := time.ParseDuration(lease)
		if err != nil {
			return err
		}
		freezeOnHangup(s, d)
	}
	r, err := s.Run(context.Background(), Program{Dir: os.Getenv("DIR"), Env: []string{path, os.Getenv("MARKED")}, Grace: time.Minute})
	fmt.Printf("%+v %v\n", r, err)
	return err
}

// freezeOnHangup makes SIGHUP the moment in which the worker stops by itself, having renewed its lease for the last time.
func freezeOnHangup(s *Slot, lease time.Duration) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	go func() {
		<-hangup
		if err := s.Extend(Now().Add(lease)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	}()
}
