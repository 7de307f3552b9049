#!/usr/bin/env bash
# Runs the Go benchmarks of the path of a task once each (store, settling, archiving, leaving Redis, starting a program), so that they do not rot.
# What they measure that way means nothing, so it is shown only if one fails. With the race detector, as the tests: then
# both are compiled once.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

out=$(go test -race -short -run '^$' -bench . -benchtime 1x -timeout 10m ./internal/store ./server ./manager ./worker ./internal/sandbox/shim 2>&1) || {
	printf '%s\n' "$out" >&2
	die "a benchmark fails"
}
printf '%s benchmarks run once\n' "$(grep -c '^Benchmark' <<<"$out")"
