package main

import (
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// taskObject is the JSON form of a task: the fields as they stand in Redis, and
// for each round sizes and hashes also where the worker did not record them
// because nothing was cut. queue is always there, and status, the number Disbatch
// has for the state.
func taskObject(t *manager.Task) map[string]any {
	object := jsonFields(t.Fields)
	object["status"], object["queue"] = t.DisbatchStatus(), t.Queue
	for _, r := range t.Rounds() {
		add := func(name string, value any, known bool) {
			name = statemachine.RoundField(r.Number, name)
			if _, there := object[name]; known && !there {
				object[name] = value
			}
		}
		_, ran := r.Stamps[string(statemachine.Executed)]
		ran = (ran || r.Output != "" || r.Error != "") && !r.Dropped
		add("output_bytes", r.OutputBytes, ran)
		add("error_bytes", r.ErrorBytes, ran)
		add("output_sha256", r.OutputSHA256(), ran)
		add("error_sha256", r.ErrorSHA256(), ran)
	}
	return object
}
