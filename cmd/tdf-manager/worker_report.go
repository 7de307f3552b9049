package main

import (
	"fmt"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// finish reports and makes the exit code.
func (o *ordering) finish(s *session, list []ordered, timedOut bool) error {
	var err error
	if *o.json {
		err = cli.WriteJSON(s.out, o.objects(list, timedOut))
	} else if o.wait == "" {
		err = o.report(s, list)
	}
	if err != nil {
		return err
	}
	if timedOut {
		return cli.Exit(cli.ExitTimeout)
	}
	for i := range list {
		if list[i].refused || list[i].after != nil && list[i].after.State == manager.WorkerLost {
			return cli.Exit(cli.ExitTaskFailed)
		}
	}
	return nil
}

// report says per worker what it was and what was ordered.
func (o *ordering) report(s *session, list []ordered) error {
	if *o.json {
		return nil
	}
	if len(list) == 0 {
		return printf(s.out, "there is no worker to %s\n", s.cmd.Name())
	}
	for i := range list {
		r := &list[i]
		text := r.note
		switch {
		case r.given && o.dryRun:
			text = fmt.Sprintf("would %s; it is %s", s.cmd.Name(), busyText(&r.was))
		case r.given:
			text = fmt.Sprintf("%s ordered; it was %s", s.cmd.Name(), busyText(&r.was))
		}
		if err := printf(s.out, "%s: %s\n", cli.Safe(r.was.Name), text); err != nil {
			return err
		}
	}
	return nil
}

func busyText(w *manager.Worker) string {
	text := string(w.State)
	if w.State.Alive() {
		text += fmt.Sprintf(", %d of %d slots busy", w.Busy, w.Slots)
	}
	if w.Stuck > 0 && w.State.Alive() {
		text += fmt.Sprintf(", %d stuck", w.Stuck)
	}
	return text
}

func (o *ordering) objects(list []ordered, timedOut bool) []map[string]any {
	objects := make([]map[string]any, len(list))
	for i := range list {
		r := &list[i]
		object := map[string]any{
			nameField: r.was.Name, "was": r.was.State, "busy": r.was.Busy, "slots": r.was.Slots, "order": o.order,
			"ordered": r.given && !o.dryRun, dryRunField: o.dryRun, "note": r.note,
		}
		if o.wait != "" {
			object["done"], object["timed_out"] = r.after != nil, timedOut && r.after == nil
		}
		if r.after != nil {
			object["is"] = r.after.State
		}
		objects[i] = object
	}
	return objects
}
