// Outside prints as JSON what a namespace holds. Anybody may write such a program.
//
//	outside HOST NAMESPACE tasks
//	outside HOST NAMESPACE queues
//	outside HOST NAMESPACE plan ID
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strconv"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

func main() {
	ctx := context.Background()
	site, err := tdf.Connect(ctx, tdf.Config{Addr: os.Args[1], Namespace: os.Args[2]})
	if err != nil {
		log.Fatal(err)
	}
	defer site.Close()
	v, err := read(ctx, manager.New(site, "outside", manager.Options{}), os.Args[3:])
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		log.Fatal(err)
	}
}

// read reads what is asked for.
func read(ctx context.Context, m *manager.Manager, what []string) (any, error) {
	switch what[0] {
	case "tasks":
		var all []*task.Task
		for t, err := range m.Select(ctx, manager.Selection{All: true, Newest: true, Fields: task.HeadNames()}) {
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		return all, m.PresentRounds(ctx, all, true)
	case "queues":
		return m.Queues(ctx)
	default:
		id, err := strconv.ParseInt(what[1], 10, 64)
		if err != nil {
			return nil, err
		}
		return m.ViewPlan(ctx, task.PlanID(id))
	}
}
