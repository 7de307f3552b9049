package httpapi

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/worker"
)

// flock serves Flock's interface: functions are records, its tasks are series, and its workers are sessions of the gateway. All that
// lasts is in Redis, so any server of the site answers any request.
type flock struct {
	door

	m       *manager.Manager
	gateway *worker.Gateway
	// process and claims name what is claimed: the numbers rise.
	process string
	claims  atomic.Int64
	// turns let a worker claim one task at a time: Redis remembers its last claim only.
	turns [64]sync.Mutex
}

// flockPerSecond is how many requests one token may send: all workers may have the same.
const flockPerSecond = 2000

// mountFlock serves Flock's paths, at the root.
func mountFlock(mux *http.ServeMux, o *Options) {
	f := &flock{
		door: newDoor(o, flockPerSecond, "/func, /fun/FID, /task, /task/TID, /worker and /worker/WID"),
		m:    o.Manager, gateway: o.Gateway, process: "f" + rand.Text(),
	}
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	add := doorVerb{may: mayChange, do: f.addFunction}
	fn := map[string]doorVerb{get: {may: mayRead, do: f.getFunction}, http.MethodHead: {may: mayRead, do: f.getFunction}}
	addTask, addWorker := doorVerb{may: mayChange, do: f.addTask, work: true}, doorVerb{may: mayWork, do: f.addWorker, work: true}
	reserve := doorVerb{may: mayWork, do: f.reserve, work: true}
	for path, verbs := range map[string]map[string]doorVerb{
		"/{$}":  {get: {may: mayRead, do: f.page}, http.MethodHead: {may: mayRead, do: f.page}},
		"/func": {post: add}, "/func/{$}": {post: add}, "/func/{fid}": fn, "/fun/{fid}": fn,
		"/task": {post: addTask}, "/task/{$}": {post: addTask},
		"/task/{tid}": {
			get: {may: mayRead, do: f.getTask}, http.MethodHead: {may: mayRead, do: f.getTask},
			put: {may: mayChange, do: f.setTask}, del: {may: mayChange, do: f.removeTask},
		},
		"/worker": {post: addWorker}, "/worker/{$}": {post: addWorker}, "/worker/{wid}": {put: {may: mayWork, do: f.beat, work: true}},
		"/worker/{wid}/task":       {get: reserve, post: reserve}, // no HEAD, which would reserve as well
		"/worker/{wid}/task/{tid}": {put: {may: mayWork, do: f.complete, work: true}},
		"/func/":                   nil, "/fun/": nil, "/task/": nil, "/worker/": nil,
	} {
		mux.Handle(path, f.serve(verbs))
	}
}

// idOf is the number that texts have: at least 1, and small enough for JavaScript.
func idOf(texts ...string) int64 {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(text), text) // it cannot fail
	}
	return max(1, number53(h.Sum(nil)))
}

func number53(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) >> 11) }

// notHere is the refusal of something that is not there.
func notHere(what string, id int64, remedy string) error {
	return newProblem(http.StatusNotFound, what+" "+strconv.FormatInt(id, 10)+" is not there; "+remedy)
}
