#!/usr/bin/env bash
# Checks the model of docs/model with spin: every line of variants.txt, which says
# what it must find. Prints a table, and fails if it found anything else.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

model=$PWD/docs/model
command -v spin >/dev/null || die "spin is not installed: apt-get install spin, brew install spin, or https://spinroot.com"
compiler=$(command -v cc || command -v gcc) || die "spin needs a C compiler: install gcc"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build VARIANT makes the verifier of a variant, once.
build() {
	local dir=$work/$1
	[ -d "$dir" ] || {
		mkdir "$dir"
		# shellcheck disable=SC2046 # one word a part
		(cd "$dir" && spin $(printf -- '-D%s ' ${1//,/ }) -a "$model/task.pml" >spin.log 2>&1) || die "spin refuses $1: $(cat "$dir/spin.log")"
		"$compiler" -O1 -w -DNFAIR=3 -o "$dir/pan" "$dir/pan.c" || die "cannot compile the verifier of $1"
	}
}

# check VARIANT PROPERTY EXPECTED prints a row, and fails if it found otherwise.
check() {
	local fair='' out found states seconds
	[ "$2" != ends ] || fair=-f
	# shellcheck disable=SC2086 # a flag or none
	out=$(cd "$work/$1" && ./pan -a $fair -m500000 -N "$2" 2>&1) || true
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' <<<"$out" | awk 'NR == 1 { printf "%.0f", $1 }')
	seconds=$(sed -n 's/.*elapsed time \([0-9.]*\) seconds.*/\1/p' <<<"$out")
	case $out in
	*'search depth too small'* | *'out of memory'*) found=incomplete ;;
	*'errors: 0'*) found=ok ;;
	*'errors: '[1-9]*) found=violated ;;
	*) found=nothing ;;
	esac
	printf '| %s | %s | %s | %s | %s | %s |\n' "${1//,/ }" "$2" "$3" "$found" "${states:-?}" "${seconds:-?}"
	[ "$found" = "$3" ] || {
		wrong=$((wrong + 1))
		[ "$found" != nothing ] || printf '%s\n' "$out" >&2
	}
}

wrong=0
printf '| variant | property | expected | found | states | seconds |\n|---|---|---|---|---|---|\n'
while read -r variant properties expected _; do
	case $variant in '' | '#'*) continue ;; esac
	build "$variant"
	for property in ${properties//,/ }; do check "$variant" "$property" "$expected"; done
done <"$model/variants.txt"
[ "$wrong" = 0 ] || die "$wrong rows are not as expected"
