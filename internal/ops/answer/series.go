package answer

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// SeriesChanged is a series that was made or changed.
type SeriesChanged struct {
	*series.Series

	DryRun bool `json:"dry_run"`
}

// SeriesSet is a series whose attributes were changed.
type SeriesSet struct {
	*series.Series
	Changes
}

// taskPrefix is before the name of a field of the task of a series.
const taskPrefix = "task_"

// SeriesKeys are the attributes of a series that can be set, beside task_NAME for each field of its task.
func SeriesKeys() []string {
	return []string{"cron", "zone", "every", "eta", "start", "end", "jitter", "overlap", "missed", "max_behind"}
}

// SeriesAttributes are what can be set of a series, as far as it is set.
func SeriesAttributes(d *series.Definition) []Attribute {
	var list []Attribute
	add := func(name, text string) {
		if text != "" {
			list = append(list, Attribute{name, text})
		}
	}
	span := func(d task.Seconds) string {
		if d == 0 {
			return ""
		}
		return time.Duration(d).String()
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	add("cron", d.Cron)
	add("zone", d.Zone)
	add("every", span(d.Every))
	if d.ETA {
		add("eta", "true")
	}
	add("start", at(d.Start))
	add("end", at(d.End))
	add("jitter", span(d.Jitter))
	add("overlap", string(d.Overlap))
	add("missed", string(d.Missed))
	add("max_behind", span(d.MaxBehind))
	for _, name := range slices.Sorted(maps.Keys(d.Task)) {
		var text string
		if json.Unmarshal(d.Task[name], &text) != nil {
			text = string(d.Task[name])
		}
		add(taskPrefix+name, text)
	}
	return list
}

// setSeries sets attributes of a definition to what their texts say; an empty text is the default.
func setSeries(d *series.Definition, set map[string]string, now time.Time) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := setSeriesKey(d, name, set[name], now); err != nil {
			return err
		}
	}
	return nil
}

func setSeriesKey(d *series.Definition, name, text string, now time.Time) (err error) {
	if field, ofTask := strings.CutPrefix(name, taskPrefix); ofTask {
		return setSeriesTask(d, field, text)
	}
	switch name {
	case "cron":
		d.Cron = text
	case "zone":
		d.Zone = text
	case "overlap":
		d.Overlap = series.Overlap(text)
	case "missed":
		d.Missed = series.Missed(text)
	case "eta":
		if d.ETA = text == "true"; text != "" && text != "true" && text != "false" {
			err = &statemachine.FieldError{Field: name, Value: text, Want: "true or false"}
		}
	default:
		return setSeriesTime(d, name, text, now)
	}
	return err
}

// setSeriesTime sets an attribute that is a length of time or a moment.
func setSeriesTime(d *series.Definition, name, text string, now time.Time) (err error) {
	switch name {
	case "every":
		d.Every, err = spanOf(name, text)
	case "jitter":
		d.Jitter, err = spanOf(name, text)
	case "max_behind":
		d.MaxBehind, err = spanOf(name, text)
	case "start":
		d.Start, err = momentOf(name, text, now)
	case "end":
		d.End, err = momentOf(name, text, now)
	default:
		known := SeriesKeys()
		err = &statemachine.FieldError{Field: "name", Value: name, Want: "an attribute of a series; " +
			Meant(name, known, "known are "+strings.Join(known, ", ")+", and task_NAME for a field of its task")}
	}
	return err
}

// setSeriesTask sets a field of the task; the empty text leaves it to the defaults.
func setSeriesTask(d *series.Definition, field, text string) error {
	if d.Task = maps.Clone(d.Task); d.Task == nil {
		d.Task = series.Task{}
	}
	return d.Task.Set(field, text)
}

// spanOf is [Span] as a series has it; inf is no span of one.
func spanOf(name, text string) (task.Seconds, error) {
	d, err := Span(name, text)
	if err == nil && d < 0 {
		err = &statemachine.FieldError{Field: name, Value: text, Want: "a duration such as 90 or 1h30m"}
	}
	return task.Seconds(d), err
}

// momentOf reads a moment as tasks have it, but for inf.
func momentOf(name, text string, now time.Time) (time.Time, error) {
	var spec task.Spec
	if err := spec.Set("start_after", text, now); err != nil {
		return time.Time{}, &statemachine.FieldError{Field: name, Value: text, Want: "a time such as 1795230670, 2026-11-21T08:00:00Z or +10m"}
	}
	return spec.StartAfter.UTC(), nil
}

// AddSeries makes a series of a task and attributes.
func AddSeries(
	ctx context.Context, m *manager.Manager, key string, of series.Task, set map[string]string, o manager.ChangeOptions,
) (*SeriesChanged, error) {
	now, err := m.Now(ctx)
	if err != nil {
		return nil, err
	}
	d := series.Definition{Key: key, Task: of}
	if err := setSeries(&d, set, now); err != nil {
		return nil, err
	}
	var made *series.Series
	err = m.Logged(ctx, "series add", named(set), o, func(ctx context.Context) error {
		made, err = series.Add(ctx, m, d, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &SeriesChanged{made.Masked(), o.DryRun}, nil
}

// SetSeries changes attributes of a series, all of them or none.
func SetSeries(ctx context.Context, m *manager.Manager, key string, set map[string]string, o manager.ChangeOptions) (*SeriesSet, error) {
	now, err := m.Now(ctx)
	if err != nil {
		return nil, err
	}
	var before []Attribute
	var after *series.Series
	err = m.Logged(ctx, "series set", named(set), o, func(ctx context.Context) error {
		after, err = series.Set(ctx, m, key, func(d *series.Definition) error {
			masked := (&series.Series{Definition: *d}).Masked()
			before = SeriesAttributes(&masked.Definition)
			return setSeries(d, set, now)
		}, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	masked := after.Masked()
	return &SeriesSet{masked, changesOf(before, SeriesAttributes(&masked.Definition), o.DryRun)}, nil
}

// PauseSeries pauses a series, or resumes it.
func PauseSeries(ctx context.Context, m *manager.Manager, key string, pause bool, o manager.ChangeOptions) (*SeriesChanged, error) {
	s, err := series.Pause(ctx, m, key, pause, o)
	if err != nil {
		return nil, err
	}
	return &SeriesChanged{s.Masked(), o.DryRun}, nil
}

// RunSeries begins an occurrence now.
func RunSeries(ctx context.Context, m *manager.Manager, key string, o manager.ChangeOptions) (*SeriesChanged, error) {
	s, err := series.RunNow(ctx, m, key, o)
	if err != nil {
		return nil, err
	}
	return &SeriesChanged{s.Masked(), o.DryRun}, nil
}

// OneSeries reads a series.
func OneSeries(ctx context.Context, m *manager.Manager, key string) (*series.Series, error) {
	s, err := series.Get(ctx, m, key)
	if err != nil {
		return nil, err
	}
	return s.Masked(), nil
}

// AllSeries reads up to most series in the order of their keys, from the one that follows after; 0 means all.
func AllSeries(ctx context.Context, m *manager.Manager, after string, most int) ([]*series.Series, error) {
	found := []*series.Series{}
	for s, err := range series.List(ctx, m, after) {
		if err != nil {
			return found, err
		}
		if found = append(found, s.Masked()); len(found) == most {
			break
		}
	}
	return found, nil
}
