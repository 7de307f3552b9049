package task_test

import (
	"testing"

	"github.com/tdf-go/tdf/task"
)

// endedRecord is what a task leaves that a handler has done.
func endedRecord() map[string]string {
	return map[string]string{
		"program": "noop", "source": "", "input": "17", "start_after": "0", "end_before": "inf", "timeout": "inf",
		"max_fails": "0", "max_timeouts": "0", "state": "succeeded", "round": "0", "rev": "3", "fails": "0", "timeouts": "0",
		"log":    "2026-11-25 21:15:48 - bench      open\n2026-11-25 21:15:49 - worker-1   running\n",
		"0:open": "1795230670.500000", "0:running": "1795230671.000001", "0:executed": "1795230671.100000",
		"0:succeeded": "1795230671.100000", "0:worker": "worker-1", "0:node": "worker-1", "0:incarnation": "1",
		"0:claim": "e1-7-abcdefgh", "0:output": "", "0:error": "", "0:exit_code": "0", "0:end": "report",
		"0:user_time": "0.000000", "0:system_time": "0.000000", "0:max_memory": "0",
	}
}

// Nothing that is missing or in order may cost an error, or a copy of its text.
func TestDecodeAllocatesLittle(t *testing.T) {
	fields := endedRecord()
	const most = 12
	if got := testing.AllocsPerRun(100, func() { task.Decode(1, fields) }); got > most {
		t.Errorf("Decode allocates %.0f times, want at most %d", got, most)
	}
}
