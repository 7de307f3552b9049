package shim

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
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
		if err := s.Extend(Now().Add(d)); err != nil {
			return err
		}
	}
	r, err := s.Run(context.Background(), Program{Dir: os.Getenv("DIR"), Env: []string{path, os.Getenv("MARKED")}, Grace: time.Minute})
	fmt.Printf("%+v %v\n", r, err)
	return err
}
