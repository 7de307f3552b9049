package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/httpapi"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// web is a site over HTTP, asked with one token.
type web struct {
	client           *http.Client
	url, name, token string
}

// newWeb makes a client with a token of its own.
type newWeb func(name string, role task.TokenRole) (*web, error)

// withWeb calls do with a site that a handler serves on loopback, with a connection for as many at a time as there are slots.
func (b *bench) withWeb(ctx context.Context, do func(s *site.Site, m *manager.Manager, as newWeb) error) error {
	return b.atSite(ctx, func(s *site.Site, m *manager.Manager) error {
		gateway, err := s.Gateway(ctx, b.Slots)
		if err != nil {
			return err
		}
		o := httpapi.Options{Manager: m, Gateway: gateway, Logger: slog.New(slog.DiscardHandler)}
		srv := httptest.NewServer(httpapi.New(o)) //nolint:contextcheck // a handler has the context of each request
		defer srv.Close()
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: max(1, b.Slots)}}
		defer client.CloseIdleConnections()
		return do(s, m, func(name string, role task.TokenRole) (*web, error) {
			token, _, err := m.NewToken(ctx, task.TokenSpec{Name: name, Role: role}, manager.ChangeOptions{})
			return &web{client, srv.URL + "/api/v1", name, token}, err
		})
	})
}

// ask sends a request with a body of that type, and reads the answer to its end.
func (w *web) ask(ctx context.Context, method, path, kind string, body []byte) (answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Content-Type", kind)
	reply, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	answer, err = io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, reply.Status, answer)
	}
	return answer, err
}

// commandSpec is a task as a client of HTTP may open it.
var commandSpec = task.Spec{Source: "command:true"}

// openedOverHTTP opens the same tasks by the package and as a stream over HTTP.
func (b *bench) openedOverHTTP(ctx context.Context) ([]Table, error) {
	const byPackage, byStream = "opened by the package", "opened over HTTP"
	var body bytes.Buffer
	for spec := range numbered(commandSpec, b.Tasks) {
		fmt.Fprintf(&body, "{\"source\":%q,\"input\":%q}\n", spec.Source, spec.Input)
	}
	all := []*contender{
		{name: byPackage, run: b.openedBy(func(ctx context.Context, m *manager.Manager, _ *web) error {
			_, err := m.SubmitAll(ctx, numbered(commandSpec, b.Tasks), ofAJob.opening...)
			return err
		})},
		{name: byStream, run: b.openedBy(func(ctx context.Context, _ *manager.Manager, w *web) error {
			_, err := w.ask(ctx, http.MethodPost, "/tasks", "application/jsonl", body.Bytes())
			return err
		})},
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "http", Title: fmt.Sprintf("%d tasks of a job opened at once, on a site of its own", b.Tasks),
			Metrics: []Metric{opened}, Reference: byPackage,
		},
		ratios: []Metric{opened}, targets: []target{{byStream, byPackage, opened, 0.7, 0.7}},
	})
}

// openedBy measures one way to open the tasks.
func (b *bench) openedBy(open func(context.Context, *manager.Manager, *web) error) func(context.Context) (reading, error) {
	return func(ctx context.Context) (r reading, err error) {
		err = b.withWeb(ctx, func(_ *site.Site, m *manager.Manager, as newWeb) error {
			w, err := as("opener", task.TokenSubmit)
			if err != nil {
				return err
			}
			began := time.Now()
			err = open(ctx, m, w)
			r = reading{opened.Name: float64(b.Tasks) / time.Since(began).Seconds()}
			return err
		})
		return r, err
	}
}

// listings are the lists that are asked for: what is first, and what has to be searched.
var listings = []string{
	"/tasks", "/tasks?state=open&limit=500", "/tasks?tasks=j1", "/tasks?queue=default&program=other", "/tasks?attr=of%3Dnothing",
	"/tasks?state=failed&match=space", "/tasks/1", "/tasks/1/why", "/queues/default/why", "/jobs", "/jobs/j1", "/queues", "/nodes",
	"/workers", "/stats",
}

// lists asks for each list again and again, at a site where tasks wait.
func (b *bench) lists(ctx context.Context) (tables []Table, err error) {
	err = b.withWeb(ctx, func(_ *site.Site, m *manager.Manager, as newWeb) error {
		if _, err := m.SubmitAll(ctx, numbered(commandSpec, b.Tasks), ofAJob.opening...); err != nil {
			return err
		}
		b.say("%d tasks wait", b.Tasks)
		var all []*contender
		for i, path := range listings {
			w, err := as(fmt.Sprint("reader-", i), task.TokenSubmit)
			if err != nil {
				return err
			}
			all = append(all, &contender{name: "GET " + path, run: func(ctx context.Context) (reading, error) { return w.often(ctx, path) }})
		}
		tables, err = b.compare(ctx, all, comparison{Table: Table{
			Name: "lists", Title: fmt.Sprintf("What is asked over HTTP where %d tasks wait", b.Tasks),
			Metrics: []Metric{p50, p99}, Reference: all[0].name,
		}})
		return err
	})
	return tables, err
}

// asked is how often a list is asked for in a round; a token may ask 100 times a second, which a round does not outrun.
const asked = 100

func (w *web) often(ctx context.Context, path string) (reading, error) {
	var ms []float64
	for range asked {
		began := time.Now()
		if _, err := w.ask(ctx, http.MethodGet, path, "", nil); err != nil {
			return nil, err
		}
		ms = append(ms, time.Since(began).Seconds()*1000)
	}
	return percentiles(ms), nil
}
