# Sourced by the other scripts: what they share.

# die MESSAGE... ends the script with an error.
die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# tool NAME PACKAGE VERSION prints the path of a Go program, building it from
# source the first time. Each version has a directory of its own.
tool() {
	local dir="$PWD/bin/tools/$1-$3"
	if [ ! -x "$dir/$1" ]; then
		printf 'building %s %s (once)\n' "$1" "$3" >&2
		GOBIN="$dir" GOFLAGS=-trimpath go install "$2@$3" >&2 || die "cannot build $1 $3"
	fi
	printf '%s\n' "$dir/$1"
}
