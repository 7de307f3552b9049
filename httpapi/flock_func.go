package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// function is a function of Flock: what its record holds, under its number.
type function struct {
	FID  int64  `json:"fid"`
	Name string `json:"name"`
	Env  string `json:"env"`
}

// class is what function and workers of an environment share: no other worker gets the tasks, and those get no others.
func class(env string) string { return "flock:" + env }

// mostFunctionName is how many bytes a name may have.
const mostFunctionName = 1000

// addFunction makes a function, or finds the one that there is: its number follows from name and environment.
func (f *flock) addFunction(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	name, err := q.text("name", mostFunctionName)
	if err != nil {
		return nil, err
	}
	env, err := q.env("env")
	if err != nil {
		return nil, err
	}
	fn := &function{FID: idOf("func", env, name), Name: name, Env: env}
	status := http.StatusOK
	there, err := f.function(ctx, fn.FID)
	if errors.Is(err, task.ErrNoRecord) {
		if err = f.write(ctx, fn); err == nil {
			status, there = http.StatusCreated, fn
		} else if errors.Is(err, task.ErrRecordChanged) { // the same request came twice
			there, err = f.function(ctx, fn.FID)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case *there != *fn:
		why := fmt.Sprintf("function %q of %s has the number of this one; use another name", there.Name, there.Env)
		return nil, newProblem(http.StatusConflict, why)
	}
	return &doorAnswer{status: status, location: "/func/" + strconv.FormatInt(fn.FID, 10), body: fn}, nil
}

func (f *flock) write(ctx context.Context, fn *function) error {
	text, err := json.Marshal(fn)
	if err != nil {
		return fmt.Errorf("function %q: %w", fn.Name, err)
	}
	record := task.Record{Kind: task.KindFlock, Name: strconv.FormatInt(fn.FID, 10), Value: string(text)}
	_, err = f.m.WriteRecord(ctx, record, manager.RecordTasks{})
	return err
}

func (f *flock) getFunction(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	fid := q.number("fid")
	fn, err := f.function(ctx, fid)
	return &doorAnswer{status: http.StatusOK, body: fn}, noFunction(fid, err)
}

// noFunction is the answer where a function is not there, and else err.
func noFunction(fid int64, err error) error {
	if errors.Is(err, task.ErrNoRecord) {
		return notHere("function", fid, "POST /func makes one")
	}
	return err
}

// function reads a function. The error matches [task.ErrNoRecord] if it does not exist.
func (f *flock) function(ctx context.Context, fid int64) (*function, error) {
	r, err := f.m.Record(ctx, task.KindFlock, strconv.FormatInt(fid, 10))
	if err != nil {
		return nil, err
	}
	return parseFunction(&r)
}

func parseFunction(r *task.Record) (*function, error) {
	fn := &function{}
	if err := json.Unmarshal([]byte(r.Value), fn); err != nil {
		return nil, fmt.Errorf("function %s: its record is damaged: %w", r.Name, err)
	}
	return fn, nil
}
