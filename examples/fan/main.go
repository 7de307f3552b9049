// Fan counts words in several texts at once, and adds up what it found.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/worker"
)

var (
	count = fn.New("count", func(_ context.Context, text string) (int, error) { return len(strings.Fields(text)), nil })
	total = fn.New("total", func(_ context.Context, counts []int) (sum int, err error) {
		for _, n := range counts {
			sum += n
		}
		return sum, nil
	})
)

func main() {
	ctx := context.Background()
	site, err := tdf.Connect(ctx, tdf.Config{Addr: "localhost:6379", Namespace: "fan"})
	if err != nil {
		log.Fatal(err)
	}
	defer site.Close()
	go worker.Run(ctx, site, worker.Options{Handlers: fn.Handlers(count, total)})
	p, err := plan.New(ctx, manager.New(site, "fan", manager.Options{}), "words")
	if err != nil {
		log.Fatal(err)
	}
	var counts []*fn.Future[int]
	for _, text := range []string{"to be", "or not to be", "that is the question"} {
		counts = append(counts, count.Call(p, fn.Value(text)))
	}
	all := total.Call(p, fn.All(counts...))
	if err := p.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	n, err := all.Get(ctx)
	fmt.Println(n, "words", err)
}
