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

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

func main() {
	ctx := context.Background()
	m, err := manager.New(ctx, "outside", "", manager.WithSettings("redis.host="+os.Args[1], "tdf.namespace="+os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	v, err := read(ctx, m, os.Args[3:])
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
		for page, err := range m.Select(ctx, manager.Selection{All: true, Newest: true, Fields: task.HeadNames()}, 0) {
			if err != nil {
				return nil, err
			}
			if err := m.PresentRounds(ctx, page, true); err != nil {
				return nil, err
			}
			all = append(all, page...)
		}
		return all, nil
	case "queues":
		return m.Queues(ctx)
	default:
		id, err := strconv.ParseInt(what[1], 10, 64)
		if err != nil {
			return nil, err
		}
		return m.ViewPlan(ctx, id)
	}
}
