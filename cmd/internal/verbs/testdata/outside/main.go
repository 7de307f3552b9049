// Outside prints as JSON what a namespace holds: the queues, or a plan. It is a
// program as anybody may write one.
//
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
	case "queues":
		return m.Queues(ctx)
	default:
		id, err := strconv.ParseInt(what[1], 10, 64)
		if err != nil {
			return nil, err
		}
		plan, err := m.ViewPlan(ctx, id)
		if err == nil && plan.State == task.PlanBuilding {
			log.Printf("plan %d is not all there yet", id)
		}
		return plan, err
	}
}
