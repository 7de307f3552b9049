#!/usr/bin/env bash
# Generated files are what their generators write, go.mod is tidy, and all of it
# compiles and passes go vet. Works on uncommitted changes too.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# digests lists every file git would take, each with its checksum.
digests() {
	git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
		[ ! -f "$file" ] || printf '%s %s\n' "$(git hash-object "$file")" "$file"
	done | LC_ALL=C sort -k 2
}

before=$(digests)
go generate ./...
after=$(digests)
if [ "$before" != "$after" ]; then
	changed=$(diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u || true)
	git --no-pager diff >&2
	die "these generated files were out of date, and are rewritten now, commit them:" $changed
fi

go mod tidy -diff || die "go.mod or go.sum is not tidy: run go mod tidy"
go vet ./...

# The peers of the benchmarks have a module of their own.
cd bench/peers
go mod tidy -diff || die "bench/peers/go.mod or go.sum is not tidy: run go mod tidy there"
go vet ./...
