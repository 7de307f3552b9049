// Cron submits a task for each tick of a clock, once, however many of it run. For tasks that recur without a program of your own see
// package series.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

const every = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	site, err := tdf.Connect(ctx, tdf.Config{Addr: "localhost:6379", Namespace: "cron"})
	if err != nil {
		log.Fatal(err)
	}
	defer site.Close()
	m := manager.New(site, "cron", manager.Options{})
	for err == nil {
		err = tick(ctx, m)
	}
	if ctx.Err() == nil { // it may be interrupted in the middle of a call, too
		log.Fatal(err)
	}
}

// tick waits for the next tick and submits its task.
func tick(ctx context.Context, m *manager.Manager) error {
	now, err := m.Now(ctx) // the time of the site: that of this host may be another
	if err != nil {
		return err
	}
	next := now.Truncate(every).Add(every)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(next.Sub(now)):
	}
	opened, err := m.Submit(ctx, task.Spec{Program: "tick", Class: "tick", Key: "tick " + next.UTC().Format(time.RFC3339)})
	if err == nil {
		fmt.Println("task", opened.ID, "existing", opened.Existing)
	}
	return err
}
