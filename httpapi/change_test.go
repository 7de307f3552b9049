package httpapi

import (
	"net/http"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/task"
)

// Tasks that wait get other parameters; what belongs to another change is refused, and nothing changes.
func TestChangeParams(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	c.send(t, http.MethodPost, "/tasks", `{"source":"command:ls","params":{"n":1}}`)
	set := want[bulk.Report](t, c.send(t, http.MethodPost, "/tasks/params", `{"tasks":["1","9"],"params":{"n": 9007199254740993,"a":[null]},"reason":"a look"}`), http.StatusOK)
	const changed = `{"a":[null],"n":9007199254740993}`
	if is := c.task(t, 1).Params; !slices.Equal(set.Set, []int64{1}) || !slices.Equal(set.NotFound, []int64{9}) || string(is) != changed {
		t.Errorf("%+v, %s", set, is)
	}
	want[any](t, c.do(t, http.MethodGet, "/tasks/1", ""), http.StatusOK) // it is as described
	for _, refused := range []struct{ verb, body, detail string }{
		{"params", `{"tasks":["1"]}`, "give params"}, {"params", `{"tasks":["1"],"params":[1]}`, "params"},
		{"params", `{"tasks":["1"],"params":{},"again":true}`, "again belongs to POST /api/v1/tasks/retry"},
		{"params", `{"params":{}}`, "say which tasks"}, {"cancel", `{"tasks":["1"],"params":{}}`, "params belongs to POST /api/v1/tasks/params"},
		{"attr", `{"tasks":["1"],"set":{"a":"b"},"params":{}}`, "params belongs to"}, {"attr", `{"tasks":["1"]}`, "give set"},
		{"retry", `{"tasks":["1"],"set":{"a":"b"}}`, "set belongs to POST /api/v1/tasks/attr"},
	} {
		wantProblem(t, c.send(t, http.MethodPost, "/tasks/"+refused.verb, refused.body), http.StatusUnprocessableEntity, refused.detail)
	}
	if is := c.task(t, 1); string(is.Params) != changed || len(is.Meta) > 0 || is.State.Terminal() {
		t.Errorf("%+v", is)
	}
	want[bulk.Report](t, c.send(t, http.MethodPost, "/tasks/params", `{"tasks":["1"],"params":{}}`), http.StatusOK)
	if is := c.task(t, 1).Params; is != nil {
		t.Errorf("%s", is)
	}
}
