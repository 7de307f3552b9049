#!/usr/bin/env bash
# Installs what the tests need beside Go: redis-server, rsync, a C compiler (for
# the race detector), ip, nsenter and unshare (for hosts that are cut off), curl and jq
# (to ask over HTTP), python3 (for a worker in it), strace (to count system calls), and spin (for the model) where the package manager has it.
# Does nothing when all are there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# compiles tells whether the C compiler of Go works, headers included.
compiles() {
	printf '#include <stdlib.h>\n' | $(go env CC) -x c -fsyntax-only - 2>/dev/null
}

# missing prints what is not there: redis, rsync, cc, iproute2, util-linux, curl, jq, python3, strace, spin.
missing() {
	command -v redis-server >/dev/null || echo redis
	command -v rsync >/dev/null || echo rsync
	compiles || echo cc
	command -v ip >/dev/null || echo iproute2
	command -v nsenter >/dev/null && command -v unshare >/dev/null || echo util-linux
	command -v curl >/dev/null || echo curl
	command -v jq >/dev/null || echo jq
	command -v python3 >/dev/null || echo python3
	command -v strace >/dev/null || [ "$(uname)" != Linux ] || echo strace
	command -v spin >/dev/null || ! has_spin || echo spin
}

# has_spin tells whether a package manager that has spin is here.
has_spin() { command -v apt-get >/dev/null || command -v brew >/dev/null; }

# packages MANAGER NEED... prints how that package manager calls each need.
packages() {
	local manager=$1 need
	shift
	for need in "$@"; do
		case $manager:$need in
		apt-get:redis) echo redis-server ;;
		pacman:redis) echo valkey ;;
		dnf:iproute2) echo iproute ;;
		pacman:python3) echo python ;;
		apt-get:cc) echo gcc libc6-dev ;;
		dnf:cc) echo gcc glibc-devel ;;
		apk:cc) echo gcc musl-dev ;;
		pacman:cc | brew:cc) echo gcc ;;
		*) echo "$need" ;;
		esac
	done
}

needs=$(missing)
[ -n "$needs" ] || exit 0

for manager in apt-get dnf apk pacman brew; do
	command -v "$manager" >/dev/null || continue
	# shellcheck disable=SC2086 # one word a need
	wanted=$(echo $(packages "$manager" $needs))
	echo "the tests need $(echo $needs): $manager installs $wanted"
	# shellcheck disable=SC2086 # one word a package
	install_with "$manager" $wanted || die "$manager could not install $wanted: install it by hand and repeat"
	needs=$(missing)
	[ -z "$needs" ] || die "still missing after the installation: $(echo $needs)"
	exit 0
done
die "found no package manager (apt-get, dnf, apk, pacman, brew): install $(echo $needs) by hand and repeat"
