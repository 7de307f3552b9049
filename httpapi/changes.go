package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// changeLog serves the log of changes. It names all tokens and what administrators did, so it is for them.
func (a *api) changeLog() {
	add(a, operation{
		method: http.MethodGet, path: "/changes", id: "list-changes", tag: "changes", role: task.TokenAdmin,
		does:   "List who changed what, the newest change first",
		detail: "Changes over HTTP and by the command line. What workers and servers do to tasks is in their events.",
	}, a.listChanges)
}

type changesIn struct {
	By     string `query:"by" maxLength:"400" doc:"Only changes by this one: token NAME, or USER@HOST." example:"token ci"`
	On     string `query:"on" maxLength:"200" doc:"Only changes of the task, job, queue, node, worker, series or token of that name."`
	Since  string `query:"since" maxLength:"64" doc:"Only changes since a time, or that long ago, such as 12h or 7d." example:"12h"`
	Before int64  `query:"before" minimum:"0" doc:"Only entries before the one of this number."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"List at most this many."`
}

// changesListed has the way to the next page.
type changesListed struct {
	Link string `header:"Link" doc:"The next page, if there is one."`
	Body []task.ChangeEntry
}

func (a *api) listChanges(ctx context.Context, in *changesIn) (*changesListed, error) {
	found, more, err := answer.ChangeLog(ctx, a.m, &answer.ChangesWanted{
		By: in.By, On: in.On, Since: in.Since, Before: in.Before, Most: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	out := &changesListed{Body: found}
	if more {
		q := url.Values{"before": {strconv.FormatInt(found[len(found)-1].ID, 10)}, "limit": {strconv.Itoa(in.Limit)}}
		for name, text := range map[string]string{"by": in.By, "on": in.On, "since": in.Since} {
			if text != "" {
				q.Set(name, text)
			}
		}
		out.Link = "<" + root + "/changes?" + q.Encode() + `>; rel="next"`
	}
	return out, nil
}
