// Retry has two typed functions: one is tried again until it succeeds, the other panics.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

type page struct {
	URL  string
	Size int
}

var tries atomic.Int32

var (
	fetch = fn.New("fetch", func(_ context.Context, url string) (page, error) {
		if tries.Add(1) < 3 {
			return page{}, worker.RetryAfter(errors.New("busy"), 50*time.Millisecond)
		}
		return page{url, 42}, nil
	}, fn.WithSpec(func(s *task.Spec) { s.Retry.Limit = task.AtMost(5) }))
	shout = fn.New("shout", func(_ context.Context, p page) (string, error) { panic("no voice for " + p.URL) })
)

func main() {
	ctx := context.Background()
	site, err := tdf.Connect(ctx, tdf.Config{Addr: "localhost:6379", Namespace: "retry"})
	if err != nil {
		log.Fatal(err)
	}
	defer site.Close()
	go worker.Run(ctx, site, worker.Options{Handlers: fn.Handlers(fetch, shout)})
	m := manager.New(site, "retry", manager.Options{})
	found, err := fetch.Do(ctx, m, "example.org")
	fmt.Println(found, err, "after", tries.Load(), "tries")
	_, err = shout.Do(ctx, m, found)
	fmt.Println(strings.Contains(err.Error(), "no voice for example.org"))
}
