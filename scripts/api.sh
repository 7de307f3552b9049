#!/usr/bin/env bash
# A change of the public API has a line in CHANGELOG.md, and apidiff says what it breaks.
# Needs no more of the history than the clone has.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

api=docs/api.txt
if git diff --quiet HEAD -- $api; then
	change=$(git log -1 --format=%H -- $api)
	before=$(git rev-parse --quiet --verify "$change^") || { echo "api: this clone knows no commit before the last change of $api"; exit 0; }
	files=$(git diff --name-only "$before" "$change")
else # not committed yet
	before=HEAD
	files=$(git diff --name-only HEAD)
fi
grep -qx CHANGELOG.md <<<"$files" || die "$api has changed without CHANGELOG.md: say there what is new, and what breaks"

release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
before=${release:-$before}
apidiff=$(tool apidiff golang.org/x/exp/cmd/apidiff v0.0.0-20261014143641-f0251eb4aa3e)
module=$(go list -m)
old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
git archive "$before" | tar -x -C "$old"
(cd "$old" && "$apidiff" -m -w api.export "$module") 2>"$old/log" || die "apidiff: $(tail -n 3 "$old/log")"
"$apidiff" -m "$old/api.export" "$module" >"$old/diff" 2>"$old/log" || die "apidiff: $(tail -n 3 "$old/log")"
echo "api: since $(git describe --tags --always "$before"):"
grep -v -E '^(!|  (first|second):|Ignoring )|^- \./(bench|cmd|examples|test)\b' "$old/diff" || true
