#!/usr/bin/env bash
# Tasks a second of TDF, xargs and asynq, and of each layer of containment beside
# xargs, measured in turns, as Markdown tables; see bench/README.md. Arguments go
# on: scripts/bench-quick.sh -table containment -strict
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

command -v redis-server >/dev/null || die "redis-server is missing: scripts/setup-test.sh installs it"
[ -x bin/tdf-server ] && [ -x bin/tdf-worker ] || die "the programs are missing: run make build"
go build -o bin/tools/bench-quick ./bench/quick
exec bin/tools/bench-quick "$@"
