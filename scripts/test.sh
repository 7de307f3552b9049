#!/usr/bin/env bash
# Runs go test with the race detector and in random order, prints what was
# skipped and why, and fails on a skip that scripts/allowed-skips.txt does not
# list. Arguments are those of go test: scripts/test.sh ./worker -run TestDrain
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# One package that hangs must not eat the time of all.
timeout=${TDF_TEST_TIMEOUT:-10m}
gotestsum=$(tool gotestsum gotest.tools/gotestsum v1.13.0)

# How often a test that failed is run again, see docs/decisions/0027-tests-run-again.md;
# packages are the first argument then.
again=()
if [ "${TDF_TEST_RERUNS:-0}" != 0 ]; then
	again=(--rerun-fails="$TDF_TEST_RERUNS" --rerun-fails-max-failures=3 --rerun-fails-run-root-test
		--rerun-fails-abort-on-data-race --packages="$1")
	shift
fi

mkdir -p bin
events=bin/test-events.json
status=0
"$gotestsum" --format pkgname --format-icons text --format-hide-empty-pkg --hide-summary skipped \
	--jsonfile "$events" ${again[@]+"${again[@]}"} -- \
	-race -shuffle=on -timeout="$timeout" "$@" || status=$?
go build -o bin/tools/testreport ./internal/tools/testreport # not go run: it would add a line after the last one
allowed=scripts/allowed-skips.txt
[ -z "${TDF_NO_SKIPS:-}" ] || allowed=/dev/null # a machine that has all that tests need
bin/tools/testreport -allow "$allowed" "$events" || status=1
exit "$status"
