#!/bin/sh
# A worker of one class, to start your own from: for each task of the class it runs the command, with the arguments of the task
# behind its own, and reports exit code, stdout and stderr. It needs curl, jq, base64 and setsid, and runs one task at a time.
#     tdf-manager token add enc-1 --role work     # prints the token of the worker enc-1
#     TDF_TOKEN=... sh worker.sh http://HOST:7480 enc-1 encode flac --best
# SIGTERM hands back what it runs, and ends it. A program that a signal has ended is reported with the exit code 128 + its number.
set -u
umask 077 # the token is for this user alone, and not for the command
api=${1%/}/api/v1/workers/$2 class=$3 stop='' job='' turns=0
shift 3
id=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
dir=$(mktemp -d) || exit
trap 'rm -rf "$dir"' EXIT
trap 'stop=1; end' TERM INT
printf '%s\n' silent show-error "header = \"Authorization: Bearer $TDF_TOKEN\"" 'header = "Content-Type: application/json"' \
	'write-out = "%{http_code}"' 'retry = 1000000' retry-all-errors 'retry-delay = 2' >"$dir/curl" # or the Retry-After of the answer
unset TDF_TOKEN

# launch COMMAND... starts a job in a process group of its own; end kills it, also if it is about to begin the group.
launch() {
	setsid "$@" </dev/null &
	job=$!
	[ -z "$stop" ] || end # the signal came just now
}
end() { [ -z "$job" ] || kill -s KILL -- "-$job" 2>/dev/null || kill -s KILL "$job" 2>/dev/null; }

# ask METHOD PATH BODY SECONDS [OPTION...] sends a request until it is answered, in $dir/METHOD: what is sent twice counts once.
ask() {
	method=$1 url=$api$2 body=$3 seconds=$4
	shift 4
	launch curl -K "$dir/curl" -X "$method" --data-binary "@$body" -m "$seconds" "$@" -o "$dir/$method" "$url" >"$dir/status.$method"
	wait "$job"
	job='' status=$(cat "$dir/status.$method")
	case $status in 2*) return 0 ;; esac
	[ -n "$stop" ] || jq -r '"\(.status): \(.detail)"' "$dir/$method" >&2
	return 1
}

begin() {
	jq -n --arg c "$class" --arg i "$id" '{classes: $c, handlers_only: true, identity: $i}' >"$dir/session"
	ask POST /session "$dir/session" 15 || exit
	incarnation=$(jq .incarnation "$dir/POST") third=$(jq '[.lease / 3 | floor, 1] | max' "$dir/POST")
	echo "{\"incarnation\": $incarnation, \"busy\": 1}" >"$dir/beat"
	echo '[]' >"$dir/reports"
}

# watch sends heartbeats, and kills the job when it is to end: $dir/ended says why.
watch() {
	program=$job seconds=0 ended=''
	while [ -z "$ended" ] && sleep 1; do
		seconds=$((seconds + 1))
		[ $((seconds % third)) = 0 ] || continue
		ended=handed_back # without an answer others get the task
		ask PUT /session "$dir/beat" "$third" --retry-max-time "$third" && ended=$(jq -r --slurpfile t "$dir/task" \
			'if .order == "stop" then "handed_back" else .stops[] | select(.task == $t[0].task).ended end' "$dir/PUT")
	done
	echo "$ended" >"$dir/ended"
	job=$program
	end
}

# run COMMAND... runs the task, and leaves its report in $dir/reports.
run() {
	eval "set -- $(jq -r '[(.variables // {} | to_entries[] | "\(.key)=\(.value)"), "TDF_TASK_ID=\(.task)", "TDF_ROUND=\(.round)"] | @sh' \
		"$dir/task") \"\$@\" $(jq -r '.argv | @sh' "$dir/task")"
	jq -e .stdin "$dir/task" >/dev/null && set -- sh -c 'echo "this worker has nothing for stdin" >&2; exit 1'
	: >"$dir/ended"
	launch env "$@" >"$dir/out" 2>"$dir/err"
	watch &
	watcher=$! code=0
	wait "$job" || code=$?
	kill "$watcher"
	kill -s KILL -- "-$job" 2>/dev/null # what it has left behind
	job=''
	[ -z "$stop" ] || echo handed_back >"$dir/ended"
	for stream in out err; do head -c 1048576 "$dir/$stream" | base64 | tr -d '\n' >"$dir/$stream.64"; done
	jq --arg ended "$(cat "$dir/ended")" --argjson code "$code" --rawfile out "$dir/out.64" --rawfile err "$dir/err.64" \
		--argjson outs "$(wc -c <"$dir/out")" --argjson errs "$(wc -c <"$dir/err")" '[{task, round, claim, ended: $ended,
		exit_code: $code, output: $out, output_bytes: $outs, error: $err, error_bytes: $errs} | with_entries(select(.value != ""))]' "$dir/task" >"$dir/reports"
}

# body MEMBERS prints a turn.
body() { jq -n --argjson i "$incarnation" --slurpfile r "$dir/reports" "{incarnation: \$i, reports: \$r[0], $1}"; }

begin
while [ -z "$stop" ]; do
	body "slots: 1, wait: 60, request: \"$id-$((turns += 1))\"" >"$dir/turn"
	ask POST /turn "$dir/turn" 75 || { [ "$status" = 410 ] && begin && continue; } || break # 410: the session is over
	[ "$(jq -r .order "$dir/POST")" != stop ] || break
	echo '[]' >"$dir/reports"
	jq -e '.tasks[0]' "$dir/POST" >"$dir/task" && run "$@"
done
stop='' && trap '' TERM INT
while body 'slots: 0' >"$dir/body"; do
	ask POST /turn "$dir/body" 15
	ask DELETE "/session?incarnation=$incarnation" /dev/null 15 && exit
	[ "$status" = 409 ] && jq '.wait = 0' "$dir/turn" >"$dir/body" && ask POST /turn "$dir/body" 15 || exit
	jq '[.tasks[] | {task, round, claim, ended: "handed_back"}]' "$dir/POST" >"$dir/reports" # the last claim got them
done
