package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/worker"
)

func main() {
	ctx := context.Background()
	greet := fn.New("greet", func(_ context.Context, name string) (string, error) { return "hello " + name, nil })
	site, err := tdf.Connect(ctx, tdf.Config{Addr: "localhost:6379", Namespace: "hello"}) // or tdf.Load("tdf.cfg")
	if err != nil {
		log.Fatal(err)
	}
	defer site.Close()
	go func() { log.Fatal(worker.Run(ctx, site, worker.Options{Handlers: fn.Handlers(greet)})) }()
	text, err := greet.Do(ctx, manager.New(site, "hello", manager.Options{}), "world") // submit, wait, decode
	fmt.Println(text, err)
}
