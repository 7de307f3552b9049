//go:build race

package acceptance

// raceSettings spare each program the second it would wait at its end.
var raceSettings = []string{"GORACE=atexit_sleep_ms=0"}
