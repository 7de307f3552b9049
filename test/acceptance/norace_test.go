//go:build !race

package acceptance

var raceSettings []string
