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

# as_root COMMAND... runs it as root.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "installing needs root, and there is no sudo: run as root: $*"
	fi
}

# install_with MANAGER PACKAGE... installs packages.
install_with() {
	local manager=$1
	shift
	case $manager in
	apt-get)
		as_root apt-get update -qq
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
		;;
	dnf) as_root dnf install -y "$@" ;;
	apk) as_root apk add "$@" ;;
	pacman) as_root pacman -S --noconfirm --needed "$@" ;;
	brew) brew install "$@" ;;
	esac
}
