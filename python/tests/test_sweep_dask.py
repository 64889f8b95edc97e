from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import click
import dask
import pandas as pd
import pytest
import yaml
from distributed import Client, LocalCluster, Security

import cwnd
from cwnd._cli.cluster import ClusterOptions, open_cluster
from cwnd._papers.runner import reproduce
from cwnd._sweeps import sweep as sweeping
from cwnd.errors import ArgumentError

pytestmark = pytest.mark.slow

PLAN = """
controllers = ["reno", "mine.py:Law(beta=1/8)", "mine.py:Weary"]
reference = "cubic"
repeat = 3
keep = ["flows", "links", "series"]

[base]
time = "4s"
flows = 2

[axes]
rate = ["1mbit", "4mbit"]
rtt = { from = "10ms", to = "100ms", log = true }

[latin]
points = 3
"""

LAWS = """
import os
import signal
import time
from dataclasses import dataclass

STEP = 1.0


@dataclass
class Law:
    beta: float = 0.5

    def grow(self, w, acked, cx):
        return w + STEP * acked / w

    def cut(self, w, why, cx):
        return w - self.beta * w


class Weary(Law):
    def grow(self, w, acked, cx):
        if w > 20:
            raise RuntimeError("no more than 20")
        return super().grow(w, acked, cx)


class Deadly(Law):
    def grow(self, w, acked, cx):
        if w > 35:
            # A nanny does not restart a worker that ends while it starts.
            time.sleep(0.5)
            # The parent of the run's process.
            os.kill(os.getppid(), signal.SIGKILL)
        return super().grow(w, acked, cx)
"""


@pytest.fixture(scope="module")
def cluster():
    """A scheduler with two worker processes, which do not have the files of the tests."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    home = tmp_path_factory.mktemp("plan")
    (home / "mine.py").write_text(LAWS)
    (home / "plan.toml").write_text(PLAN)
    return home / "plan.toml"


@pytest.fixture(scope="module")
def local(plan, tmp_path_factory):
    return cwnd.sweep(plan, out=tmp_path_factory.mktemp("local"))


def same(one: cwnd.Sweep, two: cwnd.Sweep) -> None:
    keys = {"runs": [], "flows": ["name"], "links": ["name"], "series": ["flow", "time_s"]}
    for name, more in keys.items():
        ours, theirs = (
            getattr(sweep, name)
            .sort_values(["key", *more], ignore_index=True)
            .drop(columns="wall_s", errors="ignore")
            for sweep in (one, two)
        )
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


def test_a_cluster_gives_what_the_cores_give(cluster, plan, local, tmp_path):
    sweep = cwnd.sweep(plan, out=tmp_path, dask=cluster.scheduler_address)
    assert sweep.made == 54
    assert local.failed > 0
    same(local, sweep)


def test_a_search_on_a_cluster_finds_the_same(cluster, tmp_path):
    axes = {"rate": {"from": "1mbit", "to": "2mbit"}, "loss": {"from": 0.1, "to": 0.2}}
    given = {"against": "capacity", "bounds": {"axes": axes}, "budget": "60runs", "findings": 1}
    one = cwnd.search("reno", out=tmp_path / "one", **given)
    two = cwnd.search("reno", out=tmp_path / "two", dask=cluster.scheduler_address, **given)
    assert one.explored == two.explored
    assert [found.to_json() for found in one.findings] == [
        found.to_json() for found in two.findings
    ]
    assert one.findings


def test_workers_get_the_text_of_a_law_in_a_file(cluster, tmp_path):
    (tmp_path / "plan.toml").write_text(
        'controllers = ["beside.law(kept=3/4)", "reno"]\nrepeat = 2\n'
        'keep = ["flows", "links", "series"]\n'
        '[base]\ntime = "4s"\n[axes]\nrate = ["1mbit", "4mbit"]\n'
    )
    (tmp_path / "beside.law").write_text(
        'law beside "a law"\nparameter kept = 1/2 in (0, 1) "what a loss leaves"\n'
        "on grow:\n    return w + acked / w\non cut:\n    return kept * w\n"
    )
    plan = tmp_path / "plan.toml"
    local = cwnd.sweep(plan, out=tmp_path / "local")
    there = cwnd.sweep(plan, out=tmp_path / "there", dask=cluster.scheduler_address)
    assert (local.made, local.failed, there.made) == (8, 0, 8)
    same(local, there)


def test_a_sweep_begun_here_goes_on_there(cluster, plan, local, tmp_path):
    few = plan.with_name("few.toml")
    few.write_text(PLAN.replace("repeat = 3", "repeat = 1"))
    assert cwnd.sweep(few, out=tmp_path).made == 18
    sweep = cwnd.sweep(plan, out=tmp_path, dask=cluster.scheduler_address)
    assert sweep.made == 36
    same(local, sweep)


def test_a_client_stays_open_without_tasks(cluster, plan, local, tmp_path):
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        sweep = cwnd.sweep(plan, out=tmp_path / "whole", dask=client)
        same(local, sweep)

        def stop(_: float) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            cwnd.sweep(plan, out=tmp_path / "part", dask=client, progress=stop)
        # A task that was running is forgotten when it ends.
        while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            time.sleep(0.05)
        assert client.submit(len, "open").result() == 4


def test_what_is_no_open_client_is_refused(cluster, plan, tmp_path):
    with pytest.raises(ArgumentError, match=r"8786 is neither an address nor a dist"):
        cwnd.sweep(plan, out=tmp_path, dask=8786)
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        pass
    with pytest.raises(ArgumentError, match="the client is closed: a sweep needs an open one"):
        cwnd.sweep(plan, out=tmp_path, dask=client)


def test_the_command_reads_the_schedulers_file(cluster, plan, local, tmp_path, command):
    file, out = tmp_path / "scheduler.json", tmp_path / "out"
    problem = f"cannot read {file}: No such file or directory"
    with (
        pytest.raises(ArgumentError, match=problem),
        open_cluster(ClusterOptions(None, str(file), None)),
    ):
        pass
    file.write_text("[]")
    problem = f"{file} is not a file of `dask scheduler --scheduler-file`"
    with (
        pytest.raises(ArgumentError, match=problem),
        open_cluster(ClusterOptions(None, str(file), None)),
    ):
        pass
    file.write_text(json.dumps({"address": cluster.scheduler_address}))
    done = command("sweep", plan, "--out", out, "--scheduler-file", file, "--wait-workers", 1)
    # Runs of a controller of this plan fail.
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    same(local, cwnd.Sweep(out))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"wait_workers": 2}, "--wait-workers needs --dask or --scheduler-file"),
        (
            {"dask": "tcp://x:1", "scheduler_file": "x"},
            "--dask and --scheduler-file are mutually exclusive",
        ),
    ],
)
def test_options_of_a_cluster_that_contradict_are_refused(options, text):
    given = ClusterOptions(None, None, None)._replace(**options)
    with pytest.raises(click.UsageError, match=text), open_cluster(given):
        pass


def test_workers_of_an_adaptive_cluster_are_called(plan, local, tmp_path, capsys, monkeypatch):
    with cluster_of(0) as scaling:
        address = scaling.scheduler_address
        with monkeypatch.context() as short:
            short.setattr("cwnd._cli.cluster.WAIT_MINUTES", 0)
            problem = f"0 of 2 workers at {address} after 0 minutes"
            with (
                pytest.raises(ArgumentError, match=problem),
                open_cluster(ClusterOptions(address, None, 2)),
            ):
                pass
        assert capsys.readouterr().err == ""
        scaling.adapt(minimum=0, maximum=2, interval="100ms", wait_count=100)
        with open_cluster(ClusterOptions(address, None, 2)) as client:
            assert len(client.nthreads()) == 2
            said = f"cwnd: waiting for 2 workers at {address}, at most 30 minutes\n"
            assert capsys.readouterr().err == said
            same(local, cwnd.sweep(plan, out=tmp_path, dask=client))


def test_a_cluster_reproduces_what_the_cores_do(cluster, tmp_path):
    made = {}
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        for name, dask in (("cores", None), ("cluster", client)):
            seen: list[float] = []
            out = tmp_path / name
            document = reproduce(
                ["simd"], quick=True, exhibit="fig-1", out=out, dask=dask, progress=seen.append
            )
            assert seen == [1.0]
            for paper in document["papers"]:
                for exhibit in paper["exhibits"]:
                    exhibit.pop("seconds")
            files = {file.name: file.read_bytes() for file in (out / "figures").iterdir()}
            made[name] = document, files
            assert not (out / ".parts").exists()
    assert made["cores"] == made["cluster"]
    assert made["cores"][1]


def test_a_killed_worker_loses_nothing(cluster, plan, local, tmp_path, monkeypatch):
    # Small batches: the worker has some in hand whenever it is killed.
    monkeypatch.setattr(sweeping, "MAX_BATCH", 2)
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        pids = list(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(fraction: float) -> None:
        if fraction > 0.2 and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    sweep = cwnd.sweep(plan, out=tmp_path, dask=cluster.scheduler_address, progress=kill)
    assert len(killed) == 1
    assert sweep.made == 54
    same(local, sweep)


def test_runs_that_end_their_worker_are_rows(cluster, plan, tmp_path):
    deadly = plan.with_name("deadly.toml")
    deadly.write_text(
        'controllers = ["reno", "mine.py:Deadly"]\n[base]\ntime = "4s"\nflows = 2\n'
        '[axes]\nrate = ["1mbit", "10mbit"]\n'
    )
    sweep = cwnd.sweep(deadly, out=tmp_path, dask=cluster.scheduler_address)
    runs = sweep.runs.set_index(["controller", "rate"]).sort_index()
    assert len(runs) == 4
    assert runs["error"].dropna().to_dict() == {
        ("mine.py:Deadly", "10mbit"): "lost: its worker died repeatedly"
    }


def test_workers_of_another_version_are_refused(cluster, plan, tmp_path, monkeypatch):
    monkeypatch.setattr("cwnd._sweeps.workers.own_code", lambda: "another")
    # The test before ended the workers; Dask starts others.
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
    with pytest.raises(ArgumentError, match=r"the worker at tcp://.* has another version"):
        cwnd.sweep(plan, out=tmp_path, dask=cluster.scheduler_address)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        # A worker that has Dask, but not cwnd.
        ("sys.modules['cwnd'] = None", "has no cwnd with sweeps"),
        (
            "import distributed.versions as of; of.get_system_info = lambda: {'python': '3.9.1'}",
            r"has Python 3\.9: it needs 3\.",
        ),
    ],
)
def test_workers_without_cwnd_or_with_another_python_are_refused(
    plan, tmp_path, spawn, change, problem
):
    code = (
        f"import sys, dask.__main__\n{change}\n"
        "sys.argv = ['dask', 'worker', sys.argv[1], '--no-nanny', '--no-dashboard']\n"
        "dask.__main__.main()\n"
    )
    with cluster_of(0) as empty:
        arguments = [sys.executable, "-c", code, empty.scheduler_address]
        worker = spawn(*arguments, stderr=subprocess.DEVNULL)
        with Client(empty.scheduler_address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=30)
        with pytest.raises(ArgumentError, match=problem) as caught:
            cwnd.sweep(plan, out=tmp_path, dask=empty.scheduler_address)
        assert "\n" not in str(caught.value)
        worker.terminate()
        worker.wait(timeout=60)


def test_addresses_without_a_scheduler_are_refused(plan, tmp_path, monkeypatch):
    monkeypatch.setattr("cwnd._sweeps.workers.CONNECT_SECONDS", 0.5)
    with pytest.raises(ArgumentError, match="no Dask scheduler answers at tcp://127") as caught:
        cwnd.sweep(plan, out=tmp_path, dask="tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)
    with pytest.raises(ArgumentError, match="no Dask scheduler answers at nonsense"):
        cwnd.sweep(plan, out=tmp_path, dask="nonsense")


def test_tls_without_certificates_is_refused(cluster, plan, tmp_path):
    address = cluster.scheduler_address.replace("tcp", "tls")
    with pytest.raises(ArgumentError, match=r"no Dask scheduler answers at tls://.*TLS") as caught:
        cwnd.sweep(plan, out=tmp_path, dask=address)
    assert "\n" not in str(caught.value)


def test_tls_with_certificates_of_ones_own(plan, local, tmp_path):
    """The recipe of docs/scale.md."""
    text = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    scripts = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (commands,) = (script for script in scripts if "x509" in script)
    subprocess.run(["sh", "-ec", commands], cwd=tmp_path, check=True, capture_output=True)
    (settings,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    found = yaml.safe_load(settings.replace("/home/me/tls", str(tmp_path)))
    merged = dask.config.merge(dask.config.config, found)
    with dask.config.set(merged), cluster_of(1, "tls://", Security()) as secure:
        assert secure.scheduler_address.startswith("tls://")
        same(local, cwnd.sweep(plan, out=tmp_path / "out", dask=secure.scheduler_address))


def test_a_scheduler_without_workers_is_refused(plan, tmp_path):
    with (
        cluster_of(0) as empty,
        pytest.raises(ArgumentError, match="has no workers: start some with `dask worker"),
    ):
        cwnd.sweep(plan, out=tmp_path, dask=empty.scheduler_address)


def cluster_of(workers, protocol="tcp://", security=None):
    """Start a scheduler and workers in this process."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol=protocol,
        security=security,
        dashboard_address=":0",
        silence_logs=50,
    )


def test_workers_that_go_are_said(plan, tmp_path, monkeypatch):
    monkeypatch.setattr("cwnd._sweeps.workers.SILENT_SECONDS", 0.5)
    monkeypatch.setattr("cwnd._sweeps.workers.CONNECT_SECONDS", 2.0)
    cluster = cluster_of(1)
    with cluster, pytest.raises(ArgumentError, match=r"every worker at .* is gone; the same"):
        cwnd.sweep(
            plan,
            out=tmp_path,
            dask=cluster.scheduler_address,
            progress=lambda fraction: cluster.scale(0) if fraction > 0 else None,
        )
    assert 0 < len(cwnd.Sweep(tmp_path)) < 54


def test_a_scheduler_that_goes_is_said(plan, local, tmp_path, monkeypatch):
    monkeypatch.setattr("cwnd._sweeps.workers.CONNECT_SECONDS", 2.0)
    cluster = cluster_of(1)
    gone = threading.Event()

    def close(fraction: float) -> None:
        if fraction > 0.1 and not gone.is_set():
            gone.set()
            cluster.close()

    with pytest.raises(ArgumentError, match=r"the scheduler at .* is gone"):
        cwnd.sweep(plan, out=tmp_path, dask=cluster.scheduler_address, progress=close)
    assert 0 < len(cwnd.Sweep(tmp_path)) < 54
    assert cwnd.sweep(plan, out=tmp_path).made < 54
    same(local, cwnd.Sweep(tmp_path))
