package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// newProblem is a problem as of RFC 9457. Details name what is wrong of the request, part by part.
func newProblem(status int, detail string, details ...*huma.ErrorDetail) *huma.ErrorModel {
	return &huma.ErrorModel{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Errors: details}
}

// explain completes the problems that huma makes of requests that do not fit the description.
func explain(_ huma.Context, _ string, v any) (any, error) {
	p, ok := v.(*huma.ErrorModel)
	if ok && p.Type == "" {
		p.Type = "about:blank"
		for i, e := range p.Errors {
			if strings.HasPrefix(e.Location, "body") {
				e.Value = nil // it may be long, or a secret
			}
			if i == 0 {
				p.Detail += ": " + e.Location + ": " + e.Message
			}
		}
	}
	return v, nil
}

// problem writes a problem where no operation was found.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	if text, err := json.Marshal(newProblem(status, detail)); err == nil {
		_, _ = w.Write(append(text, '\n'))
	}
}

// retryAfter says when to ask again: in a second.
func retryAfter(err error) error {
	return huma.ErrorWithHeaders(err, http.Header{"Retry-After": {"1"}}) //nolint:wrapcheck // it is ours, with a header
}

// conflicts are what cannot be done because of what is there.
var conflicts = []error{
	task.ErrRequestKey, task.ErrKeyTaken, task.ErrNotEnded, task.ErrNeedsResults, task.ErrWaits, task.ErrPlanState, task.ErrQueueExists,
	task.ErrQueueInUse, task.ErrNodeInUse, task.ErrGone, task.ErrDamaged, task.ErrTokenExists, task.ErrRecordChanged, series.ErrExists,
	statemachine.ErrStale,
}

// failure is the answer to what a manager has refused. What nobody has foreseen is logged.
func failure(ctx context.Context, log *slog.Logger, err error) error {
	var status huma.StatusError
	var taken *worker.NameTakenError
	switch {
	case errors.As(err, &status):
		return err
	case errors.Is(err, task.ErrNotFound):
		return newProblem(http.StatusNotFound, err.Error())
	case errors.Is(err, task.ErrNoRoom):
		return newProblem(http.StatusInsufficientStorage, err.Error())
	case errors.As(err, &taken):
		w := &taken.Holder
		detail := fmt.Sprintf("a worker %s runs at %s, node %s, and was heard of %v ago: stop it, or, if it is "+
			"dead or this one itself, register with take_over", w.Name, w.Host, w.Node, timing.ToStd(taken.Silent).Round(time.Second))
		return newProblem(http.StatusConflict, detail, &huma.ErrorDetail{
			Location: "name", Message: "is taken", Value: worker.HolderOf(taken),
		})
	case errors.Is(err, worker.ErrLeaseLost):
		return newProblem(http.StatusGone, err.Error())
	case errors.Is(err, task.ErrUnreachable):
		return retryAfter(newProblem(http.StatusServiceUnavailable, err.Error()))
	case errors.Is(err, context.Canceled): // else the client is gone, and hears nothing
		return retryAfter(newProblem(http.StatusServiceUnavailable, "the server stops; ask again, it or another one"))
	case errors.Is(err, context.DeadlineExceeded):
		return retryAfter(newProblem(http.StatusServiceUnavailable, fmt.Sprintf("it was not done within %v", askTimeout)))
	}
	for _, conflict := range conflicts {
		if errors.Is(err, conflict) {
			return newProblem(http.StatusConflict, err.Error())
		}
	}
	if _, needs := errors.AsType[*manager.NeedError](err); needs {
		return newProblem(http.StatusConflict, err.Error())
	}
	if refused := badRequest(err); refused != nil {
		return refused
	}
	log.Error("cannot answer over HTTP", "request", requestOf(ctx), "error", err)
	return newProblem(http.StatusInternalServerError, "it cannot be done; the log of the server says why, at request "+requestOf(ctx))
}

// badField names the part of a request that cannot be, at a place such as "line 7.".
func badField(at string, field *statemachine.FieldError) *huma.ErrorDetail {
	return &huma.ErrorDetail{Location: at + field.Field, Value: field.Value, Message: "is not " + field.Want}
}

// badRequest is the answer to a value that cannot be, nil if err is about something else.
func badRequest(err error) error {
	if field, ok := errors.AsType[*statemachine.FieldError](err); ok {
		return newProblem(http.StatusUnprocessableEntity, err.Error(), badField("", field))
	}
	if filter, ok := errors.AsType[*bulk.FilterError](err); ok {
		return newProblem(http.StatusUnprocessableEntity, err.Error(), &huma.ErrorDetail{Location: filter.Field, Message: filter.Problem})
	}
	if _, ok := errors.AsType[*manager.SpecError](err); ok {
		return newProblem(http.StatusUnprocessableEntity, err.Error())
	}
	return nil
}
