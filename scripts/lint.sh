#!/usr/bin/env bash
# gofmt and golangci-lint. Arguments go to golangci-lint run: scripts/lint.sh --fix
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || die "gofmt -w would change: $unformatted"

golangci_lint=$(tool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint v2.15.0)
"$golangci_lint" run --timeout 15m "$@"
