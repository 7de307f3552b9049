#!/usr/bin/env bash
# Runs go test in random order and with the race detector, prints what was skipped
# and why, and fails on a skip that scripts/allowed-skips.txt does not list.
# Arguments are packages and flags of go test: scripts/test.sh ./worker -run TestDrain
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# One package that hangs must not eat the time of all, and one on a busy machine must not seem to hang.
export TDF_TEST_TIMEOUT=${TDF_TEST_TIMEOUT:-20m}
# Packages that explore, and start no goroutine or only programs: the race detector
# would find nothing in them. Acceptance starts thousands of programs, raced ones as a test
# is raced itself, which takes three times as long; its long tests do that.
# make test-long names more, for their long tests.
export TDF_TEST_UNRACED=${TDF_TEST_UNRACED:-'statemachine|test/(acceptance|tour)'}
gotestsum=$(tool gotestsum gotest.tools/gotestsum v1.13.0)

# A program under the race detector sleeps for a second before it exits, to let
# others report: too long for test binaries that start themselves a hundred times.
export GORACE="atexit_sleep_ms=50 ${GORACE:-}"

# run FLAGS AND PACKAGES... prints the events of their tests. Most tests wait, for
# leases and for programs, so more of them run at once than there are processors;
# make lint has vetted them.
run() {
	local arg flags=(-parallel=6) packages=() raced unraced status=0
	for arg in "$@"; do
		case $arg in
		./*) packages+=("$arg") ;;
		*) flags+=("$arg") ;;
		esac
	done
	flags+=(-json -vet=off -shuffle=on "-timeout=$TDF_TEST_TIMEOUT")
	packages=($(go list "${packages[@]}")) || return 1
	unraced="^github.com/tdf-go/tdf/($TDF_TEST_UNRACED)\$"
	raced=$(printf '%s\n' "${packages[@]}" | grep -Ev "$unraced") || true
	unraced=$(printf '%s\n' "${packages[@]}" | grep -E "$unraced") || true
	# shellcheck disable=SC2086 # one word a package
	[ -z "$unraced" ] || go test "${flags[@]}" $unraced || status=1
	# shellcheck disable=SC2086
	[ -z "$raced" ] || go test -race "${flags[@]}" $raced || status=1
	return "$status"
}
export -f run

mkdir -p bin
events=${TDF_TEST_EVENTS:-bin/test-events.json}
status=0
"$gotestsum" --format pkgname --format-icons text --format-hide-empty-pkg --hide-summary skipped \
	--jsonfile "$events" --raw-command -- bash -c 'run "$@"' run "$@" || status=$?
scripts/report.sh "$events" || status=1
exit "$status"
