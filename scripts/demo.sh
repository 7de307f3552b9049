#!/bin/sh
# Shows TDF at work: a server with a Redis of its own, two workers, and the
# example that adds the numbers from 10 to 100. Everything runs on this machine,
# in a temporary directory, and is stopped and removed at the end.
#
#     scripts/demo.sh [DIRECTORY OF THE BUILT PROGRAMS]
set -eu
cd "$(dirname "$0")/.."
root=$PWD
bin=$(cd "${1:-bin}" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/tdf-demo.XXXXXX")
workers='' server='' sum='' log='' # log is of what was started last
# The demo ignores the settings in the environment of its user.
# shellcheck disable=SC2046 # one word a variable
unset TDF_ $(env | sed -n 's/^\(TDF_[A-Z0-9_]*\)=.*/\1/p')

# alive PID... tells whether one of the processes still runs.
alive() {
	for pid; do
		! kill -0 "$pid" 2>/dev/null || return 0
	done
	return 1
}

# stop PID... ends processes, in good order if they let it happen in 10 s.
stop() {
	kill "$@" 2>/dev/null || :
	tries=100
	while [ $tries -gt 0 ] && alive "$@"; do
		sleep 0.1
		tries=$((tries - 1))
	done
	! alive "$@" || kill -9 "$@" 2>/dev/null || :
}

# shellcheck disable=SC2086 # one word a process
cleanup() {
	status=$? last=${!-}
	trap '' INT TERM HUP
	trap - EXIT
	# A signal may come before the number of what was just started is noted.
	# Until it has become its program, which says so, a signal is lost on it.
	[ -z "$last" ] || await 5 "$last" test -s "$log" || :
	case " $server $sum $workers " in *" $last "*) last='' ;; esac
	[ -z "$sum$workers$last" ] || stop $sum $workers $last
	[ -z "$server" ] || stop $server # last, because the Redis is in it
	rm -rf "$dir"
	exit $status
}

heading() { printf '\n== %s\n' "$*"; }
indent() { sed 's/^/   /'; }

# fail MESSAGE shows what the programs said, and ends the demo.
fail() {
	printf '\ndemo: %s\n' "$1" >&2
	for log in "$dir"/*.log; do
		printf '\n%s ends with:\n' "${log##*/}" >&2
		tail -n 5 "$log" >&2
	done
	exit 1
}

# await SECONDS PID COMMAND... waits until the command is true; the process must
# stay alive meanwhile.
await() {
	tries=$(($1 * 10)) process=$2
	shift 2
	until "$@"; do
		[ $tries -gt 0 ] && alive "$process" || return 1
		sleep 0.1
		tries=$((tries - 1))
	done
}

# logged FILE TEXT tells whether the text stands in a log.
logged() { grep -q "$2" "$dir/$1.log" 2>/dev/null; }

trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

go build -o "$dir/sum" ./examples/sum
cp examples/sum/*.cfg "$dir"

heading 'A server, which keeps the tasks in order. It brings its own Redis, for trials.'
echo '   tdf-server server.cfg'
cd "$dir"
log=$dir/server.log
TDF_REDIS_PORT=0 "$bin/tdf-server" server.cfg --log-format json >server.log 2>&1 &
server=$!
await 10 $server logged server '"port":' || fail 'the server has not started'
TDF_REDIS_PORT=$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' server.log | head -n 1)
export TDF_REDIS_PORT
echo "   (process $server, Redis on port $TDF_REDIS_PORT)"

heading 'Two workers, which run the tasks. Each has a directory of its own, as on two machines.'
for name in worker-A worker-B; do
	mkdir $name
	cp "$root/examples/sum/run.sh" $name
	echo "   tdf-worker $name worker.cfg --set worker.slots=2"
	log=$dir/$name.log
	(cd $name && exec "$bin/tdf-worker" $name ../worker.cfg --set worker.slots=2 --log-format console) >$name.log 2>&1 &
	workers="$workers $!"
	await 10 $! logged $name 'no open task' || fail "$name has not started"
	echo "   (process $!)"
done

heading 'The manager, a program of its own: it opens tasks and uses their results.'
echo '   sum 10 100 3 manager.cfg'
echo
log=$dir/sum.out
./sum 10 100 3 manager.cfg >sum.out 2>sum.log &
sum=$!
finished() { ! alive $sum; }
await 40 $server finished || fail 'sum does not come to an end'
wait $sum || fail 'sum has failed'
sum=''
sed -n '1,3p' sum.out | indent
echo '   ...'
grep 'ending round' sum.out | sed -n '1,2p' | indent
echo "   ... ($(wc -l <sum.out | tr -d ' ') lines in all)"
tail -n 2 sum.out | indent
grep -qx 'FINAL RESULT: 5005' sum.out || fail 'the result is wrong: 5005 is right'

for name in worker-A worker-B; do
	heading "$name has run $(grep -c 'executing task' $name.log || :) tasks. How its log begins:"
	# To the first program that was fetched; each slot has something to say.
	sed -n '/moving task/,$p' $name.log | sed '/fetched program/q' | sed -n 's/ round=.*//; s/^[^ ]* //; 1,12p' | indent
done

heading 'One of the tasks, as it is kept in Redis:'
echo '   tdf-manager --config manager.cfg show 1'
echo
"$bin/tdf-manager" --config manager.cfg show 1 >show.out || fail 'tdf-manager cannot show task 1'
indent <show.out

heading 'All this is stopped and removed now. To look further, do the same by hand:'
cat <<'END'
   cd examples/sum                                      in each of four terminals
   ../../bin/tdf-server server.cfg                      stop it with Ctrl-C
   ../../bin/tdf-worker worker-A worker.cfg             as many as you like, each with another name
   go run . 10 100 3 manager.cfg                        the manager
   ../../bin/tdf-manager --config manager.cfg ls        lists the tasks; try also stats, show 1, logs 1

   examples/sum/main.go     the manager's program, which uses the package manager
   examples/sum/run.sh      what the workers run
   examples/sources         the same program from all kinds of archives, over HTTP and from files
END
