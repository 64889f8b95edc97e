"""Stopped and silent machines of a Dask cluster, and the end of a sweep on it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Client

import cwnd
from cwnd._cli.cluster import ClusterOptions, open_cluster
from cwnd.errors import ArgumentError

PLAN = """
controllers = ["reno", "mine.py:Endless"]
repeat = 2
time_limit = "2s"
[base]
time = "20s"
flows = 1
"""

LAWS = """
import sys, time

class Endless:
    def grow(self, w, acked, cx):
        sys.stderr.write("MARK\\n")
        sys.stderr.flush()
        while True:
            time.sleep(1)

    def cut(self, w, why, cx):
        return w / 2
"""

QUICK = {"base": {"time": "1s", "flows": 1}, "controllers": ["reno"]}


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "mine.py").write_text(LAWS.replace("MARK", f"at work for {tmp_path}"))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def starter(spawn):
    """Return a function that starts a scheduler or a worker.

    It returns the process and the address that the process prints.
    """

    def start(*words, **variables):
        process = spawn(
            *[sys.executable, "-m", "dask.__main__", *words, "--no-dashboard"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=os.environ | variables,
        )
        said = re.compile(r"(?:Scheduler at|Start worker at): +(tcp://\S+)")
        return process, next(found for found in map(said.search, process.stderr) if found)[1]

    return start


def start_scheduler(dask):
    # Dask gives a silent worker at least five seconds.
    ttl = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1s"}
    return dask("scheduler", "--host", "127.0.0.1", "--port", "0", **ttl)


def start_cluster(dask):
    """Start a scheduler and a worker; return both processes with their addresses."""
    scheduler, address = start_scheduler(dask)
    return scheduler, address, *add_worker(dask, address)


@pytest.fixture
def dask(spawn):
    return starter(spawn)


@pytest.fixture
def cluster(dask):
    return start_cluster(dask)


@pytest.fixture(scope="module")
def running(module_spawn):
    """A cluster whose processes are not stopped."""
    return start_cluster(starter(module_spawn))


def add_worker(dask, address):
    """Start a worker without a nanny; return it with its address when the scheduler knows it."""
    worker, at = dask("worker", address, "--nthreads", "1", "--no-nanny")
    with Client(address, set_as_default=False) as client:
        while at not in client.nthreads():
            time.sleep(0.02)
    return worker, at


def children(process) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == process.pid:
                found.append(int(status.parent.name))
    return found


def wait_until(condition, seconds=30):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def one_line(caught, *words):
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text


@pytest.fixture
def _soon(monkeypatch):
    monkeypatch.setattr("cwnd._sweeps.workers.CONNECT_SECONDS", 1.0)
    monkeypatch.setattr("cwnd._sweeps.workers.SILENT_SECONDS", 1.0)


@pytest.mark.usefixtures("_soon")
def test_a_port_that_accepts_and_says_nothing_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        begin = time.monotonic()
        with pytest.raises(ArgumentError) as caught:
            cwnd.sweep(QUICK, out=tmp_path, dask=address)
    one_line(caught, "no Dask scheduler answers at", address)
    assert time.monotonic() - begin < 10


@pytest.mark.usefixtures("_soon")
def test_stopped_nodes_are_named_at_the_start(cluster, tmp_path):
    scheduler, address, worker, at = cluster
    worker.send_signal(signal.SIGSTOP)
    with pytest.raises(ArgumentError) as caught:
        cwnd.sweep(QUICK, out=tmp_path, dask=address)
    one_line(caught, f"the worker at {at} has not answered for 1 s")
    scheduler.send_signal(signal.SIGSTOP)
    with pytest.raises(ArgumentError) as caught:
        cwnd.sweep(QUICK, out=tmp_path, dask=address)
    one_line(caught, "no Dask scheduler answers at", address)


def test_a_scheduler_that_stops_during_a_sweep_is_named(cluster, tmp_path, monkeypatch):
    scheduler, address, *_ = cluster

    def stop(done: float) -> None:
        if done > 0.01:
            monkeypatch.setattr("cwnd._sweeps.workers.SILENT_SECONDS", 1.0)
            scheduler.send_signal(signal.SIGSTOP)

    plan = QUICK | {"repeat": 1000}
    with pytest.raises(ArgumentError) as caught:
        cwnd.sweep(plan, out=tmp_path, dask=address, progress=stop)
    one_line(caught, f"the scheduler at {address} has not answered for 1 s")
    assert 0 < len(cwnd.Sweep(tmp_path)) < 1000


@pytest.mark.usefixtures("_soon")
def test_a_scheduler_that_stops_while_the_command_waits_for_workers_is_named(dask, monkeypatch):
    scheduler, address = start_scheduler(dask)
    monkeypatch.setattr("cwnd._cli.cluster.say", lambda _: scheduler.send_signal(signal.SIGSTOP))
    with pytest.raises(ArgumentError) as caught, open_cluster(ClusterOptions(address, None, 2)):
        pass
    one_line(caught, f"the scheduler at {address} has not answered for 1 s")


def test_runs_of_a_worker_that_stops_are_given_to_others(cluster, dask, tmp_path):
    _, address, worker, _ = cluster
    add_worker(dask, address)
    plan = QUICK | {"repeat": 300}
    sweep = cwnd.sweep(
        plan,
        out=tmp_path,
        dask=address,
        progress=lambda done: done > 0.1 and worker.send_signal(signal.SIGSTOP),
    )
    assert (len(sweep), sweep.failed) == (300, 0)


def test_a_run_without_end_is_a_failed_row_on_a_cluster(running, plan, tmp_path):
    sweep = cwnd.sweep(plan, out=tmp_path / "out", dask=running[1])
    assert sweep.errors == {"the run took more than 2 s": 2}
    assert len(sweep) == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_stop_with_the_command(running, plan, tmp_path, spawn, number):
    _, address, worker, _ = running
    plan.write_text(PLAN.replace('"2s"', '"1h"', 1))
    command = [sys.executable, "-m", "cwnd", "sweep", plan, "--out", tmp_path / "out"]
    process = spawn(*command, "--dask", address, stderr=subprocess.PIPE, text=True)
    # The law writes to the standard error of its worker.
    assert f"at work for {tmp_path}\n" in iter(worker.stderr.readline, "")
    begin = time.monotonic()
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number
    assert time.monotonic() - begin < 4
    assert process.stderr.read().endswith("cwnd: interrupted\n")
    wait_until(lambda: not children(worker), 5)
    assert cwnd.sweep(QUICK, out=tmp_path / "next", dask=address).made == 1
