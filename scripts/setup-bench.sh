#!/usr/bin/env bash
# Installs what TDF is measured beside: GNU parallel, Node.js, BullMQ and Celery, the
# latter two into bin/peers unless the package manager has them. What cannot be had
# is said, and is absent from the tables: nothing here makes the benchmark fail.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/setup-test.sh

cache=$PWD/bin/peers
mkdir -p "$cache"

# try NAME COMMAND... runs a step of which nothing depends.
try() {
	local name=$1 log="$cache/$1.log"
	shift
	"$@" >"$log" 2>&1 || printf 'no %s: %s (%s)\n' "$name" "$(grep -v -i warn "$log" | tail -n 1)" "$log" >&2
}

# system PACKAGE... installs packages of the first package manager that is here.
system() {
	local manager
	for manager in apt-get dnf apk pacman brew; do
		command -v "$manager" >/dev/null || continue
		install_with "$manager" "$@"
		return
	done
	echo "no package manager (apt-get, dnf, apk, pacman, brew) to install $*"
	return 1
}

has_parallel() { parallel --version 2>/dev/null | grep -q 'GNU parallel'; }
has_celery() {
	local python
	for python in "$cache/celery/bin/python" /usr/bin/python3 python3; do
		"$python" -c 'import celery, redis' 2>/dev/null && return
	done
	return 1
}
has_node() { command -v node >/dev/null && command -v npm >/dev/null; }

# celery_venv brings it from Python's own registry.
celery_venv() { python3 -m venv "$cache/celery" && "$cache/celery/bin/pip" install --quiet 'celery[redis]==5.2.6'; }

# bullmq installs what package-lock.json says. Not npm ci: that refuses a lock without
# the packages for other systems, which a registry need not have.
bullmq() {
	mkdir -p "$cache/bullmq"
	cp bench/peers/bullmq/package.json bench/peers/bullmq/package-lock.json "$cache/bullmq/"
	(cd "$cache/bullmq" && npm install --no-audit --no-fund --ignore-scripts)
}
has_bullmq() { [ -d "$cache/bullmq/node_modules/bullmq" ] && cmp -s bench/peers/bullmq/package.json "$cache/bullmq/package.json"; }

has_parallel || try parallel system parallel
has_node || try node system nodejs npm
has_bullmq || ! has_node || try bullmq bullmq
has_celery || try python3-celery system python3-celery python3-redis
has_celery || try celery celery_venv
