#!/usr/bin/env bash
# Runs tests again and again while loops keep all processors busy, and says how many
# of the runs failed. Arguments are those of scripts/test.sh. RUNS says how often,
# LOOPS how many loops there are (twice the processors).
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${RUNS:-10}
loops=()
for ((i = 0; i < ${LOOPS:-2 * $(nproc)}; i++)); do
	timeout 6h sh -c 'while :; do :; done' & # bounded, should this script be killed
	loops+=($!)
done
trap 'kill "${loops[@]}" 2>/dev/null || true' EXIT

failed=0
for ((run = 1; run <= runs; run++)); do
	echo "run $run of $runs"
	TDF_TEST_EVENTS=bin/test-busy-events.json scripts/test.sh "$@" || failed=$((failed + 1))
done
echo "$failed of $runs runs failed: $*"
[ "$failed" = 0 ]
