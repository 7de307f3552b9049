"""Measures Celery with the same work that TDF's benchmarks do.

It sends a number of tasks, processes them in this process with a pool of threads, and prints one JSON object; with --rate
it measures instead how long each task takes from its sending to its start. Point it at a private Redis, by --socket: it
leaves Celery's bookkeeping keys behind.
"""

import argparse
import json
import os
import sys
import threading
import time

from celery import Celery


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("%s: must be at least 1" % text)
    return value


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True, help="unix socket of a Redis that nobody else uses")
    parser.add_argument("--tasks", type=positive, default=2000)
    parser.add_argument("--concurrency", type=positive, default=10)
    parser.add_argument("--warm", type=int, default=0)
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--limit", type=positive, default=120, help="seconds")
    return parser.parse_args()


def quit_with(report):
    """Ends the process: the worker's own end would wait for its poll of the broker."""
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()
    os._exit(0)


def give_up(seconds):
    sys.stderr.write("celery: --limit=%d is over\n" % seconds)
    os._exit(1)


class Bench:
    """One application whose only task notes that it has begun."""

    def __init__(self, o):
        self.o = o
        self.left = o.warm + o.tasks
        self.lock = threading.Lock()
        self.ready = threading.Event()
        self.took = []
        self.enqueued = 0.0
        self.began = 0.0
        self.app = Celery("bench", broker="redis+socket://" + o.socket)
        self.app.conf.update(
            task_ignore_result=True, task_default_queue="bench", worker_hijack_root_logger=False,
            worker_redirect_stdouts=False, worker_send_task_events=False,
        )

        def noop(at):
            self.begun(at)

        self.noop = self.app.task(name="noop")(noop)

    def begun(self, at):
        with self.lock:
            self.took.append((time.perf_counter() - at) * 1000)
            self.left -= 1
            if self.left == self.o.tasks:  # the last of those that are not measured
                self.began = time.perf_counter()
            if self.left > 0:
                return
        if self.o.rate > 0:
            quit_with({"latencies_ms": self.took[self.o.warm:]})
        quit_with({"enqueue_seconds": self.enqueued, "process_seconds": time.perf_counter() - self.began})

    def send(self, n):
        for _ in range(n):
            self.noop.delay(time.perf_counter())

    def send_steadily(self):
        self.ready.wait()
        began = time.perf_counter()
        for i in range(self.o.warm + self.o.tasks):
            time.sleep(max(0, began + i / self.o.rate - time.perf_counter()))
            self.noop.delay(time.perf_counter())

    def run(self):
        from celery.signals import worker_ready

        worker_ready.connect(lambda **_: self.ready.set(), weak=False)
        if self.o.rate > 0:
            threading.Thread(target=self.send_steadily, daemon=True).start()
        else:
            self.send(self.o.warm)
            began = time.perf_counter()
            self.send(self.o.tasks)
            self.began = time.perf_counter()
            self.enqueued = self.began - began
        worker = self.app.Worker(
            pool="threads", concurrency=self.o.concurrency, loglevel="CRITICAL", without_gossip=True, without_mingle=True,
            without_heartbeat=True, quiet=True,
        )
        worker.start()
        return worker.exitcode or 1  # its last task ends the process before


def main():
    o = options()
    timer = threading.Timer(o.limit, give_up, [o.limit])
    timer.daemon = True
    timer.start()
    return Bench(o).run()


sys.exit(main())
