package main

import (
	"bytes"
	"testing"

	"github.com/tdf-go/tdf/bench/site"
)

// A task of the usual length takes at most 740 bytes of Redis while it waits, with the shipped redis.conf. The memory that Redis has
// for connections and for its file comes and goes: of three measurements the least counts.
func TestBytesOfAWaitingTask(t *testing.T) {
	t.Parallel()
	var each []float64
	for range 3 {
		each = append(each, bytesOfATask(t))
		if each[len(each)-1] <= 740 {
			return
		}
	}
	t.Errorf("%.1f bytes", each)
}

func bytesOfATask(t *testing.T) float64 {
	t.Helper()
	// The first ones fill the stream of events, and no table is about to grow after the last one.
	tasks := []int{12_000, 20_000}
	var used [2]float64
	err := site.With(t.Context(), func(s *site.Site) (err error) {
		for i, n := range tasks {
			if err := s.Open(t.Context(), n, longSpec()); err != nil {
				return err
			}
			info, err := s.Redis.Figures(t.Context())
			if err != nil {
				return err
			}
			used[i] = info["used_memory"]
		}
		return nil
	}, shippedConf)
	if err != nil {
		t.Fatal(err)
	}
	return (used[1] - used[0]) / float64(tasks[1])
}

// A tiny run does all that a large one does; its figures say nothing.
func TestLongSize(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{
		"memory", "scale", "quiet", "-conf", shippedConf, "-tasks", "50", "-fill", "50", "-few", "1000", "-many", "2000", "-rounds", "2",
		"-settle", "10ms", "-watch", "200ms",
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	matches(t, out.String(),
		`\| shipped redis\.conf \| -?\d+ \|`, `\| defaults of Redis \| -?\d+ \|`, // Redis may give back more than so few tasks take
		`\| behind 1000 that wait \| \d+ \| \d+-\d+ \| \d+ \| \d+-\d+ \| 1\.00 \|`, `\| behind 2000 that wait \| \d+ \| \d+-\d+ \| \d+ \| \d+-\d+ \| \d+\.\d\d \|`,
		`behind 2000 that wait in behind 1000 that wait, µs of Redis a task: \d+\.\d\d`,
		`\| 2000 \| -?\d+\.\d\d % \|`,
	)
}

// The results that are counted are all that there are, in each form.
func TestLongCollected(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"collected", "-conf", shippedConf, "-tasks", "70", "-bin", build(t)}, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	matches(t, out.String(), `\| --csv \| \d`, `\| --jsonl \| \d`, `\| --tar \| \d`, `\| --dir \| \d`)
}
