"""A data set knows its parts: damages, kills, several writers and strangers' links."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import parquet

import cwnd
from cwnd import _native
from cwnd._runs import measures
from cwnd._sweeps import code, manifest
from cwnd._sweeps.dataset import DataSet
from cwnd._sweeps.manifest import list_parts, verify
from cwnd._sweeps.reading import read_plan
from cwnd._sweeps.work import failed_batch, run_batch
from cwnd.errors import ArgumentError, DataSetWarning

pytestmark = pytest.mark.slow

PLAN = {
    "base": {"time": "1s", "flows": 1},
    "axes": {"rate": ["1mbit", "4mbit"]},
    "controllers": ["reno", "simd"],
    "repeat": 6,
    "keep": ["flows", "links"],
}
"""24 runs; 6 parts of 4 runs in the fixture."""

FOLDERS = ("runs", "flows", "links", "manifest")


def tables(out) -> dict[str, pd.DataFrame]:
    """All tables in one order, without what the clock says."""
    sweep = cwnd.Sweep(out)
    return {
        name: getattr(sweep, name)
        .drop(columns="wall_s", errors="ignore")
        .sort_values(keys, ignore_index=True)
        for name, keys in (
            ("runs", ["key"]),
            ("flows", ["key", "name"]),
            ("links", ["key", "name"]),
        )
    }


def same(one, two) -> None:
    ours, theirs = tables(one), tables(two)
    for name, frame in ours.items():
        pd.testing.assert_frame_equal(frame, theirs[name], check_exact=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A data set without damage, in six parts."""
    out = tmp_path_factory.mktemp("whole")
    plan = read_plan(PLAN)
    runs = list(plan.runs())
    with DataSet(out, plan) as data:
        for start in range(0, 24, 4):
            data.add(run_batch(plan, runs[start : start + 4]))
            data.flush()
    assert len(list_parts(out)) == 6
    return out


@pytest.fixture
def out(whole, tmp_path) -> Path:
    """A copy of the data set to damage."""
    return Path(shutil.copytree(whole, tmp_path / "out"))


def flip(file: Path, bit: int) -> None:
    """Flip a bit of a file."""
    content = bytearray(file.read_bytes())
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    file.write_bytes(content)


# The code's identity.


def test_the_hashed_modules_are_those_that_the_work_imports(tmp_path):
    plan = {**PLAN, "keep": ["flows", "links", "series"], "measures": ["goodput.min"]}
    plan["axes"] = {"rate": ["1mbit"], "rtt": {"from": "10ms", "to": "90ms"}}
    plan |= {"latin": {"points": 2}, "reference": "cubic", "repeat": 1}
    plan["base"] = {"time": "1s", "flows": 2}
    begin = f"""
import pickle, sys
import cwnd
def loaded():
    return {{name for name in sys.modules if name.split(".")[0] == "cwnd"}}
path = {str(tmp_path / "plan")!r}
"""
    make = f"""
from cwnd._sweeps.reading import read_plan
from cwnd._sweeps.code import own_modules
plan = read_plan({plan!r})
with open(path, "wb") as file:
    pickle.dump(plan, file)
print(*sorted(module.__name__ for module in own_modules()))
"""
    work = """
with open(path, "rb") as file:
    plan = pickle.load(file)
from cwnd._sweeps.work import run_batch
assert run_batch(plan, plan.runs())["runs"]["error"].null_count == 4
print(*sorted(loaded() - {"cwnd._native"}))
"""
    hashed, imported = (
        subprocess.check_output([sys.executable, "-c", begin + script], text=True).split()
        for script in (make, work)
    )
    assert hashed == imported


def test_the_code_is_the_sources_and_not_the_binary(tmp_path, monkeypatch):
    before = code.own_code()
    monkeypatch.setattr(_native, "__file__", str(tmp_path / "another.so"))
    assert code.own_code.__wrapped__() == before
    with monkeypatch.context() as changed:
        changed.setattr(_native, "sources", lambda: "0" * 32)
        assert code.own_code.__wrapped__() != before
    with monkeypatch.context() as changed:
        changed.setattr(code.metadata, "version", lambda _: "0.1")
        assert code.own_code.__wrapped__() != before
    file = tmp_path / "measures.py"
    file.write_text(Path(measures.__file__).read_text() + "# Changed.\n")
    monkeypatch.setattr(measures, "__file__", str(file))
    assert code.own_code.__wrapped__() != before


def test_files_that_a_controller_imports_are_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    helper = tmp_path / "helper_of_a_law.py"
    helper.write_text("STEP = 1.0\n")
    (tmp_path / "mine.py").write_text(
        "from helper_of_a_law import STEP\n"
        "class Law:\n"
        "    def grow(self, w, acked, cx):\n        return w + STEP * acked / w\n"
        "    def cut(self, w, why, cx):\n        return w / 2\n"
    )
    path = tmp_path / "plan.toml"
    path.write_text('controllers = ["mine.py:Law"]\n[base]\ntime = "1s"\nflows = 1\n')
    assert cwnd.sweep(path, out=tmp_path / "out").made == 1
    assert cwnd.sweep(path, out=tmp_path / "out").made == 0
    helper.write_text("STEP = 2.0\n")
    with pytest.raises(ArgumentError, match=r"runs of mine\.py:Law with different code"):
        cwnd.sweep(path, out=tmp_path / "out")


# Damages.


def test_a_flipped_bit_is_found(whole, out):
    draw = random.Random(1)
    for number in range(300):
        part = draw.choice(list_parts(out))
        folder = draw.choice(FOLDERS)
        file = next((out / folder).glob(f"{part.name}.*"))
        before = file.read_bytes()
        flip(file, draw.randrange(8 * len(before)))
        (damaged,) = verify(out)["damaged"]
        assert damaged["part"] == part.name, number
        assert damaged["problem"].startswith(f"{folder}: ")
        file.write_bytes(before)
    same(whole, out)


def test_pages_have_checksums(whole, out):
    (file,) = list((out / "flows").iterdir())[:1]
    column = parquet.read_metadata(file).row_group(0).column(8)
    # Behind the header of the page.
    flip(file, 8 * (column.data_page_offset + column.total_compressed_size - 3))
    with pytest.raises(ArgumentError, match=r"is damaged .*: the command of the sweep makes"):
        _ = cwnd.Sweep(out).flows
    with pytest.raises(ArgumentError, match="CRC checksum verification failed"):
        cwnd.Sweep(out).query("select * from flows")


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("damage", ["removed", "truncated", "flipped"])
def test_runs_of_a_damaged_part_are_made_again(whole, out, folder, damage):
    file = min((out / folder).iterdir())
    if damage == "removed":
        file.unlink()
    elif damage == "truncated":
        os.truncate(file, 100)
    else:
        flip(file, 4000)
    if (folder, damage) == ("manifest", "removed"):
        # The runs of this part count as not made.
        assert len(cwnd.Sweep(out)) == 20
        assert len(verify(out)["unlisted"]) == 3
        assert cwnd.sweep(PLAN, out=out).made == 4
    else:
        if damage != "flipped" or folder == "manifest":
            with pytest.raises(ArgumentError, match=f"is damaged .*{file.stem}: {folder}: "):
                cwnd.Sweep(out)
        again = 0 if folder == "manifest" else 4
        text = rf"1 damaged part removed \({file.stem}: {folder}: .*\): {again} runs to make again"
        with pytest.warns(DataSetWarning, match=text):
            assert cwnd.sweep(PLAN, out=out).made == 4
    same(whole, out)
    assert verify(out)["damaged"] == []


def test_a_whole_table_that_is_missing_is_made_again(whole, out):
    shutil.rmtree(out / "flows")
    with pytest.raises(ArgumentError, match="flows: No such file or directory"):
        cwnd.Sweep(out)
    with pytest.warns(DataSetWarning, match="6 damaged parts removed"):
        assert cwnd.sweep(PLAN, out=out).made == 24
    same(whole, out)


def test_a_copied_part_does_not_count(whole, out):
    for folder in FOLDERS:
        for file in [*(out / folder).iterdir()]:
            shutil.copy(file, file.with_name(f"{file.stem} (1){file.suffix}"))
    same(whole, out)
    assert len(cwnd.Sweep(out)) == 24
    assert cwnd.sweep(PLAN, out=out).made == 0
    assert len(verify(out)["unlisted"]) == 24


def test_a_data_set_of_an_older_version_is_refused(out):
    shutil.rmtree(out / "manifest")
    for attempt in (cwnd.Sweep, lambda home: cwnd.sweep(PLAN, out=home), verify):
        with pytest.raises(ArgumentError, match="no manifest: an older version of cwnd wrote it"):
            attempt(out)


def test_nothing_is_removed_for_a_plan_that_is_refused(out):
    (out / "flows" / f"{list_parts(out)[0].name}.parquet").unlink()
    files = sorted(out.rglob("*"))
    with pytest.raises(ArgumentError, match="a different `keep`"):
        cwnd.sweep({**PLAN, "keep": []}, out=out)
    assert sorted(out.rglob("*")) == files


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    calls = []
    sync, replace = os.fsync, Path.replace

    def note_sync(descriptor):
        calls.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    def note_replace(self, target):
        calls.append(("replace", self, target))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    cwnd.sweep({**PLAN, "repeat": 1}, out=tmp_path)
    renamed = [at for at, call in enumerate(calls) if call[0] == "replace"]
    assert [calls[at][2].parent.name for at in renamed[1:]] == [
        "links",
        "flows",
        "runs",
        "manifest",
    ]
    for at in renamed:
        _, temporary, target = calls[at]
        assert calls[at - 1] == ("sync", temporary)
        assert calls[at + 1] == ("sync", target.parent)
    assert ("sync", tmp_path) in calls


def test_a_full_disk_is_named_and_the_same_command_resumes(isolated, tmp_path):
    plan, out = tmp_path / "plan.toml", tmp_path / "disk/out"
    plan.write_text('controllers = ["reno"]\nrepeat = 3\n[base]\ntime = "1s"\n')
    sweep = f'"{sys.executable}" -m cwnd sweep {plan} --out {out}'
    done = isolated(f"""
    mkdir {out.parent} && mount -t tmpfs -o size=64k none {out.parent}
    head -c 57344 /dev/zero > {out.parent}/ballast
    {sweep}
    echo "status $?"
    rm {out.parent}/ballast
    {sweep}
    """)
    assert "status 2\n3 runs in" in done.stdout, done.stderr
    assert re.search(rf"cwnd: {out}/[a-z]+/\S+\.parquet: No space left on device\n", done.stderr)


def test_a_full_disk_leaves_no_part(tmp_path, monkeypatch):
    plan, write = read_plan(PLAN), manifest.write_file

    def fill(path, content):
        if path.parent.name == "runs":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    data = DataSet(tmp_path, plan)
    data.add(run_batch(plan, list(plan.runs())[:4]))
    with monkeypatch.context() as full:
        full.setattr(manifest, "write_file", fill)
        with pytest.raises(OSError, match="No space left"):
            data.flush()
    assert not list(tmp_path.glob("*/*"))
    with data:
        data.flush()
    assert len(cwnd.Sweep(tmp_path)) == 4


# Several writers.


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    text = rf"cannot be locked \({os.strerror(number)}\): do not start a second sweep there"
    with pytest.warns(DataSetWarning, match=text):
        assert cwnd.sweep({**PLAN, "repeat": 1}, out=tmp_path).made == 4


def test_runs_of_two_writers_count_once(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    plan = read_plan(PLAN)
    runs = list(plan.runs())
    with DataSet(tmp_path, plan) as one, DataSet(tmp_path, plan) as two:
        one.add(run_batch(plan, runs[:16]))
        one.flush()
        two.add(run_batch(plan, runs[8:20]))
        two.add(failed_batch(plan, runs[20:22], "lost: its worker died"))
        two.flush()
        one.add(run_batch(plan, runs[16:]))
    sizes = [part.runs for part in list_parts(tmp_path)]
    assert sorted(sizes) == [8, 14, 16]
    same(whole, tmp_path)
    sweep = cwnd.Sweep(tmp_path)
    assert (len(sweep), sweep.failed) == (24, 0)
    counts = sweep.query("select count(*) n, count(distinct key) k from links")
    assert counts.to_dict("records") == [{"n": len(sweep.links), "k": 24}]
    assert cwnd.sweep(PLAN, out=tmp_path).made == 0


# Links of strangers.


def test_no_link_is_followed(out, tmp_path, monkeypatch):
    victim, home = tmp_path / "victim", tmp_path / "home"
    victim.write_text("precious")
    home.mkdir()
    (home / "precious").write_text("precious")
    lock, plan = out / ".lock", out / "plan.toml"

    lock.unlink()
    lock.symlink_to(victim)
    with pytest.raises(ArgumentError, match=r"\.lock is a symbolic link"):
        cwnd.sweep(PLAN, out=out)
    lock.unlink()

    plan.unlink()
    plan.symlink_to(victim)
    (out / ".plan.toml.tmp").symlink_to(victim)
    assert cwnd.sweep(PLAN, out=out).made == 0
    assert not plan.is_symlink()

    part = min((out / "runs").iterdir())
    moved = part.rename(home / part.name)
    part.symlink_to(moved)
    with pytest.raises(ArgumentError, match="runs: not a regular file"):
        cwnd.Sweep(out)
    with pytest.warns(DataSetWarning, match="runs: not a regular file"):
        assert cwnd.sweep(PLAN, out=out).made == 4
    assert moved.exists()

    for name in FOLDERS:
        folder = out / name
        kept = folder.rename(tmp_path / "kept")
        folder.symlink_to(home)
        with pytest.raises(ArgumentError, match=f"{name} is a symbolic link"):
            cwnd.sweep(PLAN, out=out)
        folder.unlink()
        kept.rename(folder)

    monkeypatch.setattr(manifest.secrets, "token_hex", lambda count: "0" * 2 * count)
    (out / f".{'0' * 32}.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        cwnd.sweep(PLAN, out=out)
    assert victim.read_text() == (home / "precious").read_text() == "precious"


# The command.


def test_the_command_verifies(command, out, check_json):
    done = command("sweep", "--verify", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"24 runs in 6 parts in {out} match their checksums\n"
    first, second = list_parts(out)[:2]
    first.file("links").unlink()
    os.truncate(second.file("runs"), 100)
    done = command("sweep", "--verify", out)
    assert (done.returncode, done.stderr) == (1, "")
    problems = [
        "links: No such file or directory",
        f"runs: 100 bytes instead of {second.files['runs'][0]}",
    ]
    assert done.stdout.splitlines() == [
        f"16 runs in 4 parts in {out} match their checksums",
        "2 damaged parts: the sweep's command makes 8 runs again",
        f"  {first.name}: {problems[0]}",
        f"  {second.name}: {problems[1]}",
    ]
    document = json.loads(command("sweep", "--verify", out, "--json").stdout)
    check_json(document, "`cwnd sweep --verify OUT --json`")
    assert document == {
        "out": str(out),
        "parts": 4,
        "runs": 16,
        "damaged": [
            {"part": part.name, "problem": problem, "runs": 4}
            for part, problem in zip((first, second), problems, strict=True)
        ],
        "unlisted": [],
    }
    done = command("sweep", out / "plan.toml", "--out", out)
    assert done.returncode == 0
    assert " ".join(done.stdout.split()) == (
        f"24 runs in {out}, 16 of them before; TCP conventions: linux"
    )
    found = f"{first.name}: {problems[0]}; {second.name}: {problems[1]}"
    assert done.stderr.splitlines()[1] == (
        f"cwnd: {out}: 2 damaged parts removed ({found}): 8 runs to make again"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "needs PLAN and --out OUT, or --verify OUT"),
        (("plan.toml",), "needs PLAN and --out OUT, or --verify OUT"),
        (("plan.toml", "--verify", "x"), "PLAN: not with --verify"),
        (("--verify", "/nowhere"), "/nowhere has no runs of a sweep"),
    ],
)
def test_the_command_refuses_in_a_line(command, arguments, text):
    done = command("sweep", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"cwnd: {text}\n")


# Random sequences.

SERVER = """
import json, os, signal, sys, warnings
import cwnd
from cwnd._base import machine
from cwnd._sweeps import code, dataset, sweep

warnings.simplefilter("ignore")
dataset.PART_RUNS = 3
sweep.MAX_BATCH = 2
# The locks of a file system that has one for each node.
machine.lock = lambda *_, **__: None
code.own_code()

def child(plan, out, syncs):
    # A process that ends at its n-th call of fsync.
    real, left = os.fsync, [syncs]
    def fsync(descriptor):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        real(descriptor)
    os.fsync = fsync
    cwnd.sweep(plan, out=out)

for line in sys.stdin:
    plan, out, writers = json.loads(line)
    pids = []
    for syncs in writers:
        pids.append(os.fork())
        if not pids[-1]:
            try:
                child(plan, out, syncs)
            except BaseException as problem:
                print(repr(problem), file=sys.stderr)
                os._exit(1)
            os._exit(0)
    print(json.dumps([os.waitpid(pid, 0)[1] for pid in pids]), flush=True)
"""
"""Makes sweeps in forks, which neither import modules nor hash them."""


def test_kills_damages_and_second_writers_end_in_the_same_rows(whole, tmp_path, spawn):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = spawn(sys.executable, "-c", SERVER, **pipes)

    def sweep(out, *syncs) -> list[int]:
        """Start a writer for each number of file synchronisations before its end; 0 for none."""
        server.stdin.write(json.dumps([PLAN, str(out), syncs]) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    for seed in range(7):
        draw, out = random.Random(seed), tmp_path / str(seed)
        steps = []
        for _ in range(draw.randint(2, 5)):
            step = draw.choice(["kill", "kill", "two", "remove", "truncate", "flip", "flip"])
            files = sorted(file for folder in FOLDERS for file in (out / folder).glob("part-*"))
            if step == "kill":
                steps.append((step, sweep(out, draw.randint(1, 60))))
            elif step == "two":
                writers = (
                    draw.choice([0, draw.randint(1, 60)]),
                    draw.choice([0, draw.randint(1, 60)]),
                )
                steps.append((step, sweep(out, *writers)))
            elif files:
                file = draw.choice(files)
                steps.append((step, file.relative_to(out)))
                if step == "remove":
                    file.unlink()
                elif step == "truncate":
                    os.truncate(file, draw.randrange(file.stat().st_size))
                else:
                    flip(file, draw.randrange(8 * file.stat().st_size))
        assert sweep(out, 0) == [0], steps
        assert verify(out)["damaged"] == [], steps
        try:
            same(whole, out)
        except AssertionError:
            pytest.fail(f"seed {seed}: other rows after {steps}")
    server.stdin.close()
    server.wait(timeout=60)
