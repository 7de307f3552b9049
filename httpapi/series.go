package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/task"
)

// series serves what opens tasks again and again.
func (a *api) series() {
	const tag = "series"
	add(a, operation{
		method: http.MethodGet, path: "/series", id: "list-series", tag: tag, role: task.TokenRead, does: "List series, by their keys",
		detail: "To go on, name the last key as after.",
	}, a.listSeries)
	add(a, operation{
		method: http.MethodGet, path: "/series/{key}", id: "show-series", tag: tag, role: task.TokenRead,
		does:   "Show a series, and what became of its newest occurrences",
		detail: "GET /tasks?attr=series=KEY lists all of its tasks.",
	}, a.showSeries)
	change := func(method, path, id, does, detail string) operation {
		return operation{method: method, path: path, id: id, tag: tag, does: does, detail: detail, role: task.TokenOperate}
	}
	added := change(http.MethodPost, "/series", "add-series", "Make a series",
		"Its role is that of changes: a series goes on when the token that made it is revoked.")
	added.status = http.StatusCreated
	add(a, added, a.addSeries)
	add(a, change(http.MethodPatch, "/series/{key}", "set-series", "Change attributes of a series, all of them or none",
		"An empty text restores the default. Another cron, zone, every, eta or start makes it due anew, from now on."), a.setSeries)
	for verb, does := range map[string]string{
		"pause": "Let no occurrence begin; running ones go on", "resume": "Let occurrences begin again; those of the meantime are left out",
	} {
		add(a, change(http.MethodPost, "/series/{key}/"+verb, verb+"-series", does, ""),
			func(ctx context.Context, in *changedSeriesIn) (*body[[]*answer.SeriesChanged], error) {
				done, err := answer.PauseSeries(ctx, a.m, in.Key, verb == "pause", callerOf(ctx).change("", in.DryRun))
				return &body[[]*answer.SeriesChanged]{[]*answer.SeriesChanged{done}}, err
			})
	}
	add(a, change(http.MethodPost, "/series/{key}/run", "run-series", "Begin an occurrence now",
		"Also while another one runs or the series is paused."), a.runSeries)
	add(a, change(http.MethodDelete, "/series/{key}", "remove-series", "Remove a series; its tasks go on", ""), a.removeSeries)
}

type listSeriesIn struct {
	After string `query:"after" maxLength:"200" doc:"List the series whose keys follow this one."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"List at most this many."`
}

// seriesListed has the way to the next page.
type seriesListed struct {
	Link string `header:"Link" doc:"The next page, if there may be one."`
	Body []*series.Series
}

func (a *api) listSeries(ctx context.Context, in *listSeriesIn) (*seriesListed, error) {
	found, err := answer.AllSeries(ctx, a.m, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &seriesListed{Body: found}
	if len(found) == in.Limit {
		q := url.Values{"after": {found[len(found)-1].Key}, "limit": {strconv.Itoa(in.Limit)}}
		out.Link = "<" + root + "/series?" + q.Encode() + `>; rel="next"`
	}
	return out, nil
}

type seriesIn struct {
	Key string `path:"key" maxLength:"200" doc:"Key of the series."`
}

func (a *api) showSeries(ctx context.Context, in *seriesIn) (*body[*series.Series], error) {
	found, err := answer.OneSeries(ctx, a.m, in.Key)
	return &body[*series.Series]{found}, err
}

type addSeriesIn struct {
	Body struct {
		Key    string            `json:"key" maxLength:"200" doc:"Its unique key." example:"nightly"`
		Task   series.Task       `json:"task" doc:"The task of each occurrence, as POST /tasks takes it; +10m counts from when it is due."`
		Set    map[string]string `json:"set" doc:"Attributes with their values, as texts." example:"{\"cron\":\"0 3 * * *\"}"`
		DryRun bool              `json:"dry_run,omitempty" doc:"Say what would be done, and do nothing."`
	}
}

func (a *api) addSeries(ctx context.Context, in *addSeriesIn) (*body[*answer.SeriesChanged], error) {
	b := &in.Body
	made, err := answer.AddSeries(ctx, a.m, b.Key, b.Task, b.Set, callerOf(ctx).change("", b.DryRun))
	return &body[*answer.SeriesChanged]{made}, err
}

type setSeriesIn struct {
	Key  string `path:"key" maxLength:"200" doc:"Key of the series."`
	Body setIn
}

func (a *api) setSeries(ctx context.Context, in *setSeriesIn) (*body[*answer.SeriesSet], error) {
	set, err := answer.SetSeries(ctx, a.m, in.Key, in.Body.Set, callerOf(ctx).change("", in.Body.DryRun))
	return &body[*answer.SeriesSet]{set}, err
}

// changedSeriesIn names a series to change or remove.
type changedSeriesIn struct {
	Key    string `path:"key" maxLength:"200" doc:"Key of the series."`
	DryRun bool   `query:"dry_run" doc:"Say what would be done, and do nothing."`
}

func (a *api) runSeries(ctx context.Context, in *changedSeriesIn) (*body[[]*answer.SeriesChanged], error) {
	done, err := answer.RunSeries(ctx, a.m, in.Key, callerOf(ctx).change("", in.DryRun))
	return &body[[]*answer.SeriesChanged]{[]*answer.SeriesChanged{done}}, err
}

func (a *api) removeSeries(ctx context.Context, in *changedSeriesIn) (*body[answer.Removed], error) {
	err := series.Remove(ctx, a.m, in.Key, callerOf(ctx).change("", in.DryRun))
	return &body[answer.Removed]{answer.Removed{Removed: []string{in.Key}, DryRun: in.DryRun}}, err
}
