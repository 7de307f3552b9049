"""A worker that needs nothing but Python and HTTP, to start your own from. It runs one task at a time: a command of its host,
an upload, or a program from a web server, in a directory and a process group of its own, and not contained otherwise.
    tdf-manager token add py-1 --role work     # prints the token of the worker py-1
    TDF_TOKEN=... python3 worker.py http://HOST:7480 py-1
SIGTERM hands back what it runs, and ends it. Uploads need Python 3.14, which reads zstd; zip files are not unpacked."""
import base64, contextlib, hashlib, http.client, io, json, os, re, shutil, signal, subprocess, sys, tarfile, tempfile, threading
import time, types, uuid
from urllib import error, request
API, TOKEN = f"{sys.argv[1].rstrip('/')}/api/v1/workers/{sys.argv[2]}", os.environ["TDF_TOKEN"]
me = types.SimpleNamespace(task=None, idle=True, stopping=False, process=uuid.uuid4().hex, claims=iter(range(sys.maxsize)))

def ask(method, path, body=None, timeout=15):
    "Sends a request until it is answered: what is sent twice counts once. Answers of 4xx are an error.HTTPError."
    data, headers = body and json.dumps(body).encode(), {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
    for pause in (2 ** min(tries, 5) for tries in range(sys.maxsize)):
        try:
            with request.urlopen(request.Request(API + path, data, headers, method=method), timeout=timeout) as answer:
                return answer.read()
        except error.HTTPError as e:
            if e.code < 500 and e.code != 429: raise
            pause = int(re.match("[0-9]*", e.headers.get("Retry-After", ""))[0] or pause)
        except (OSError, http.client.HTTPException): pass  # no answer
        time.sleep(pause)

def prepare(source, directory):  # puts the program there, and returns the command that starts it
    place, sha256 = re.fullmatch("(blob:|[^#]*)#?(?:sha256=(.*))?", source).groups()
    kind, _, name = place.partition(":")
    command = "./run.sh" if kind != "command" else shutil.which(name) or name
    if kind == "command" and not sha256: return command
    if kind in ("http", "https"): data = request.urlopen(place, timeout=30).read()
    elif kind in ("blob", "command"): data = ask("GET", f"/blobs/{sha256.lower()}")
    else: raise ValueError(f"this worker runs nothing from '{kind}:'")
    if sha256 and hashlib.sha256(data).hexdigest() != sha256.lower():
        raise ValueError(f"the SHA-256 of what was fetched is not {sha256}")
    if re.search(r"^http.*[/=]run\.sh(\?|$)", place):
        with open(os.open(directory + "/run.sh", os.O_CREAT | os.O_WRONLY, 0o755), "wb") as script: script.write(data)
    else: tarfile.open(fileobj=io.BytesIO(data)).extractall(directory, **{"filter": "data"} if hasattr(tarfile, "data_filter") else {})
    return command

def run(task, asked):  # returns how it ended
    end, ended = time.monotonic() + (1e9 if task["left"] is None else task["left"]), ""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | task.get("variables", {})
    env |= {"TDF_TASK_ID": str(task["task"]), "TDF_ROUND": str(task["round"])}
    me.heard, me.told, me.task = asked - me.lease / 3, "", task["task"]
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            if "stdin" in task: raise ValueError("this worker has nothing for stdin")
            words, none = [prepare(task["source"], directory), *task["argv"]], subprocess.DEVNULL
            if time.monotonic() > asked + me.lease / 3 and beat() or me.told: return {"ended": me.told}  # others may have it by now
            me.idle = False
            program = subprocess.Popen(words, cwd=directory, env=env, stdin=none, stdout=out, stderr=err, start_new_session=True)
        except Exception as e: return {"why": f"{type(e).__name__}: {e}"[:5000], "class": "fetch"}
        while program.poll() is None and not ended:
            now = time.monotonic()  # after a lease without an answer, others get the task
            ended = me.told or "timed_out" * (now > end) or "handed_back" * (me.stopping or now > me.heard + me.lease * 0.9)
            with contextlib.suppress(subprocess.TimeoutExpired): program.wait(0.05)
        with contextlib.suppress(ProcessLookupError): os.killpg(program.pid, signal.SIGKILL)
        how = {"ended": ended, "exit_code" if program.wait() >= 0 else "signal": abs(program.returncode)}
        for name, file in (("output", out.fileno()), ("error", err.fileno())):
            how |= {name: base64.b64encode(os.pread(file, 1 << 20, 0)).decode(), name + "_bytes": os.fstat(file).st_size}
        return {key: said for key, said in how.items() if said != ""}

def beat():
    asked, task = time.monotonic(), me.task
    try: told = json.loads(ask("PUT", "/session", {"incarnation": me.incarnation, "busy": 1}))
    except error.HTTPError: told = {"order": "", "stops": [{"task": task, "ended": "handed_back"}]}  # the session is over
    me.heard, me.stopping = asked, me.stopping or told["order"] == "stop"
    me.told = "".join(stop["ended"] for stop in told["stops"] if stop["task"] == me.task)

def beats():
    while not time.sleep(me.lease / 3): me.task is None or beat()  # it is none while a turn waits

def stop(*_):
    me.stopping = True
    if me.idle: raise KeyboardInterrupt  # no program runs that has to be ended

def work():
    vars(me).update(json.loads(ask("POST", "/session", {"labels": "commands=on", "identity": me.process})))  # incarnation, lease
    threading.Thread(target=beats, daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, stop)
    turn, reports, name = {}, [], lambda task: {key: task[key] for key in ("task", "round", "claim")}
    with contextlib.suppress(KeyboardInterrupt):
        while not me.stopping:
            turn = {"incarnation": me.incarnation, "reports": reports, "slots": 1, "request": f"{me.process}-{next(me.claims)}", "wait": 60}
            asked, answer = time.monotonic(), json.loads(ask("POST", "/turn", turn, timeout=75))
            me.stopping |= answer["order"] == "stop"
            reports = [name(task) | run(task, asked) for task in answer["tasks"] if not me.stopping]
            me.task, me.idle = None, True
    me.idle = False
    while True:
        ask("POST", "/turn", {"incarnation": me.incarnation, "reports": reports})
        with contextlib.suppress(error.HTTPError): return ask("DELETE", f"/session?incarnation={me.incarnation}")
        held = json.loads(ask("POST", "/turn", turn | {"wait": 0}))["tasks"]  # a claim that was not answered got them
        reports = [name(task) | {"ended": "handed_back", "why": "the worker ends"} for task in held]

try: work()
except error.HTTPError as e:
    if e.code == 410 and not me.stopping: os.execv(sys.executable, [sys.executable, *sys.argv])  # the session is over: begin again
    sys.exit(e.code != 410 and f"{e}: {e.read(9999).decode(errors='replace')}")
