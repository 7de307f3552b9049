//go:build race

package acceptance

// buildFlags make programs that find data races like the tests themselves.
var buildFlags = []string{"-race"}

// raceSettings spare each program the second it would wait at its end.
var raceSettings = []string{"GORACE=atexit_sleep_ms=0"}
