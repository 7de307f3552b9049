//go:build !race

package acceptance

var buildFlags, raceSettings []string
