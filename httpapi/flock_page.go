package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/task"
)

// Bounds of the page.
const (
	mostCounted  = 10_000 // tasks that are looked at
	mostRows     = 1000   // of functions, and of workers
	mostFailures = 20
	errorsLook   = 200 // failures of the site among which they are looked for
)

// flockPage is what the page shows.
type flockPage struct {
	Namespace string
	Functions []*functionRow
	Workers   []task.Worker
	Errors    []manager.Failure
	At        time.Time
	Counted   int
	Cut       bool // there are more tasks
}

type functionRow struct {
	function

	Waiting, Running int
}

// page answers with functions, workers and errors, in place of Flock's admin page.
func (f *flock) page(ctx context.Context, _ *doorRequest) (*doorAnswer, error) {
	seen, err := f.m.Overview(ctx, errorsLook)
	if err != nil {
		return nil, err
	}
	p := &flockPage{Namespace: seen.Namespace, At: seen.At.UTC()}
	for i := range seen.Workers {
		if w := &seen.Workers[i]; len(p.Workers) < mostRows && widOf(w.Name) != 0 && w.State.Alive() {
			p.Workers = append(p.Workers, *w)
		}
	}
	for _, failure := range seen.Failures {
		if strings.HasPrefix(failure.Round.Worker, workerPrefix) && len(p.Errors) < mostFailures {
			p.Errors = append(p.Errors, failure)
		}
	}
	if err := f.count(ctx, p); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := flockTemplate.Execute(&text, p); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	return &doorAnswer{status: http.StatusOK, page: text.Bytes()}, nil
}

// count fills in the functions with their tasks.
func (f *flock) count(ctx context.Context, p *flockPage) error {
	rows := map[int64]*functionRow{}
	for r, err := range f.m.Records(ctx, task.KindFlock, "") {
		if err != nil {
			return err
		}
		fn, err := parseFunction(&r)
		if err != nil { // a damaged one keeps no other away
			continue
		}
		if len(p.Functions) == mostRows {
			break
		}
		rows[fn.FID] = &functionRow{function: *fn}
		p.Functions = append(p.Functions, rows[fn.FID])
	}
	for s, err := range series.List(ctx, f.m, seriesPrefix) {
		switch {
		case errors.Is(err, task.ErrUnreachable):
			return err
		case err != nil: // it is damaged
			p.Cut = true
			return nil
		case !strings.HasPrefix(s.Key, seriesPrefix):
			return nil
		case p.Counted == mostCounted:
			p.Cut = true
			return nil
		}
		p.Counted++
		row := cmp.Or(rows[(&flockTask{s: s}).fid()], &functionRow{})
		switch {
		case len(s.Live) > 0:
			row.Running++
		case !s.Over():
			row.Waiting++
		}
	}
	return nil
}

var flockTemplate = template.Must(template.New("flock").Funcs(template.FuncMap{
	"wid":  widOf,
	"env":  func(w task.Worker) string { return strings.TrimPrefix(strings.Join(w.Classes, " "), class("")) },
	"span": func(s task.Seconds) time.Duration { return time.Duration(s).Round(time.Second) },
	"at":   func(t time.Time) string { return t.UTC().Format(time.DateTime) },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{{.Namespace}}</title>
<style>body{font-family:sans-serif}table{border-collapse:collapse}td,th{border:1px solid #999;padding:2px 8px;text-align:left}</style>
</head>
<body>
<h1>{{.Namespace}}</h1>
<p>{{at .At}} UTC</p>
<h2>Functions</h2>
<table><tr><th>fid</th><th>env</th><th>name</th><th>scheduled</th><th>due or reserved</th></tr>
{{range .Functions}}<tr><td>{{.FID}}</td><td>{{.Env}}</td><td>{{.Name}}</td><td>{{.Waiting}}</td><td>{{.Running}}</td></tr>
{{end}}</table>
{{if .Cut}}<p>Only {{.Counted}} tasks are counted; there are more.</p>
{{end}}<h2>Workers</h2>
<table><tr><th>wid</th><th>env</th><th>ip</th><th>pid</th><th>state</th><th>last heartbeat</th><th>tasks</th></tr>
{{range .Workers}}<tr><td>{{wid .Name}}</td><td>{{env .}}</td><td>{{.Host}}</td><td>{{.PID}}</td><td>{{.Doing}}</td>` +
	`<td>{{span .Silent}} ago</td><td>{{len .Tasks}}</td></tr>
{{end}}</table>
<h2>Recent errors</h2>
<table><tr><th>time</th><th>task of TDF</th><th>wid</th><th>error</th></tr>
{{range .Errors}}<tr><td>{{at .At}}</td><td>{{.Task.ID}}</td><td>{{wid .Round.Worker}}</td><td>{{.Round.Error}}</td></tr>
{{end}}</table>
</body>
</html>
`))
