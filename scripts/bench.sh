#!/usr/bin/env bash
# TDF beside its peers, in one interleaved run, as Markdown tables; see bench/README.md.
# Arguments go on: scripts/bench.sh -tables latency -rounds 9
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

command -v redis-server >/dev/null || die "redis-server is missing: scripts/setup-bench.sh installs it"
[ -x bin/tdf-server ] && [ -x bin/tdf-worker ] || die "the programs are missing: run make build"
go build -o bin/tools/bench-compare ./bench/compare
exec bin/tools/bench-compare "$@"
