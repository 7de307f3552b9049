package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// When a program or a handler wants to run again stands with its round, also if that has failed, and with no other.
func TestETA(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	says := s.open(t, s.script(t, "says", `printf 'eta=1800000000.5' > $TDF_CONTROL`))
	bad := s.open(t, s.script(t, "bad", `echo eta=soon > $TDF_CONTROL`))
	fails := s.open(t, s.script(t, "fails", `[ $TDF_ROUND = 1 ] || { echo eta=5 > $TDF_CONTROL; exit 1; }`), func(sp *task.Definition) { storetest.Set(sp, "max_fails", "1") })
	handled := s.open(t, forHandler("h"))
	s.start(t, func(o *options) {
		o.Handlers = map[string]Handler{"h": func(_ context.Context, j *Job) error {
			if at := time.Unix(1900000000, 0); j.SetETA(time.Time{}) == nil || j.SetETA(at) != nil || !j.Said().ETA.Equal(at) {
				return errors.New("not as it should be")
			}
			return nil
		}}
	})
	for id, want := range map[int64]string{says: "1800000000.500000", bad: "-", handled: "1900000000.000000"} {
		checkFields(t, s.finish(t, id, sm.Succeeded), map[string]string{"0:eta": want})
	}
	checkContains(t, "log", s.finish(t, bad, sm.Succeeded).Fields["log"], "control file: eta=soon: want seconds since 1970")
	checkFields(t, s.finish(t, fails, sm.Succeeded), map[string]string{"0:eta": "5.000000", "1:eta": "-"})
}
