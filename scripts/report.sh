#!/usr/bin/env bash
# Prints which tests were skipped and why, and how many passed in one or more runs;
# fails if one was skipped that scripts/allowed-skips.txt does not list. Arguments
# are files with the events of go test -json: scripts/report.sh bin/test-events.json
set -euo pipefail
cd "$(dirname "$0")/.."

allowed=scripts/allowed-skips.txt
[ -z "${TDF_NO_SKIPS:-}" ] || allowed=/dev/null # a machine that has all that tests need
go build -o bin/tools/testreport ./internal/tools/testreport # not go run: it would add a line after the last one
exec bin/tools/testreport -allow "$allowed" "$@"
