//go:build race

package daemontest

var raceFlags = []string{"-race"}
