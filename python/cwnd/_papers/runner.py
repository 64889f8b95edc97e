"""Run exhibits on all cores or on a Dask cluster, and resume an interrupted run."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
import signal
import time
from functools import partial
from importlib.resources import as_file
from importlib.resources import files as resources
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cwnd import _native
from cwnd._base.extras import require
from cwnd._base.files import replacing, write_text
from cwnd._base.machine import count_cores
from cwnd._base.progress import with_notebook_bar
from cwnd._papers.exhibit import PAPERS, Exhibit, Known, Lab, exhibits
from cwnd._papers.grades import RATINGS
from cwnd._papers.headlines import OURS, headlines
from cwnd._papers.text import read_text
from cwnd._runs.result import dumps, jsonable
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from distributed import Client

    from cwnd._base.records import JsonObject

_COMPUTED = "Formulas and models, without a simulation."
_PARTS = ".parts"
"""Folder with the results of an unfinished run."""

_DRAWING = Lock()

Parts: TypeAlias = "dict[tuple[str, str], JsonObject]"
"""Results of exhibits by paper and ID."""


class _Job(NamedTuple):
    """Exhibits with runs in common, the options, and a key of options and code."""

    names: list[tuple[str, str]]
    quick: bool
    repeat: int | None
    key: str


@with_notebook_bar
def reproduce(
    papers: Sequence[str] = (),
    *,
    exhibit: str | None = None,
    quick: bool = False,
    repeat: int | None = None,
    out: str | Path,
    dask: str | Client | None = None,
    progress: Callable[[float], None] | None = None,
) -> JsonObject:
    """Run the papers' exhibits and write a report.

    Exhibits run in separate processes: a script has to call this under
    ``if __name__ == "__main__":``.

    Parameters
    ----------
    papers
        Short names; all by default.
    exhibit
        Only the exhibits with this ID.
    quick
        Fewer seeds and shorter runs of the same exhibits.
    repeat
        Seeds of each case; by default each exhibit adds seeds while a claim is undecided.
    out
        Directory of the report. The same call resumes an interrupted run with the results found
        there.
    dask
        Address of a Dask scheduler whose workers run the exhibits, or a ``distributed.Client``.
    progress
        Called periodically with the completed fraction.

    Returns
    -------
    dict
        ``papers``, each with its ``headlines`` and its ``exhibits`` with their ``claims``;
        ``summary`` and ``checks`` count the verdicts. See docs/json.md. The same document is
        written to ``results.json`` in ``out``.

    Raises
    ------
    ArgumentError
        A paper or an exhibit does not exist, ``repeat`` is not positive, or ``dask`` is invalid.
    MissingExtraError
        Jinja2, Matplotlib or, with ``dask``, Dask is not installed.
    """
    require("reproduce", "jinja2", "matplotlib")
    from cwnd._papers.report import write_report

    if repeat is not None and repeat < 1:
        raise ArgumentError("repeat", f"{repeat} is not positive")
    chosen = choose(papers, exhibit)
    out = Path(out)
    parts = out / _PARTS
    parts.mkdir(parents=True, exist_ok=True)
    (out / "figures").mkdir(exist_ok=True)
    key = _key(quick=quick, repeat=repeat)
    done = {e: part for e in chosen if (part := _read_part(parts, e, key)) is not None}
    left = _groups(e for e in chosen if e not in done)
    total = sum(e.cost for e in chosen)
    jobs = [_Job([(e.paper, e.id) for e in group], quick, repeat, key) for group in left]
    for parts_done in _on_cores(jobs, out) if dask is None else _on_cluster(jobs, out, dask):
        for (paper, name), part in parts_done.items():
            done[_find(chosen, paper, name)] = part
        if progress is not None:
            progress(sum(e.cost for e in done) / total)
    document = _document([(e, done[e]) for e in chosen])
    write_text(out / "results.json", dumps(document) + "\n")
    write_report(document, out, quick=quick, repeat=repeat)
    shutil.rmtree(parts)
    return document


def choose(papers: Sequence[str], exhibit: str | None) -> list[Exhibit]:
    """Return the exhibits of some papers, or of all if none is named; with an ID only those.

    Examples
    --------
    >>> [f"{e.paper} {e.id}" for e in choose(["simd"], "fig-5")]
    ['simd fig-5']
    """
    for paper in papers:
        if paper not in PAPERS:
            raise ArgumentError("papers", f"paper {paper!r} is not one of {', '.join(PAPERS)}")
    known = [e for paper in PAPERS if not papers or paper in papers for e in exhibits(paper)]
    chosen = [e for e in known if exhibit in {None, e.id}]
    if not chosen:
        names = ", ".join(dict.fromkeys(e.id for e in known))
        raise ArgumentError("exhibit", f"{exhibit!r} is not one of {names}")
    return chosen


def _groups(exhibits: Iterable[Exhibit]) -> list[list[Exhibit]]:
    """Group exhibits with runs in common; the most expensive group is first."""
    groups: dict[tuple[str, str], list[Exhibit]] = {}
    for e in exhibits:
        groups.setdefault((e.paper, e.beside), []).append(e)
    return sorted(groups.values(), key=lambda group: sum(e.cost for e in group), reverse=True)


def _find(known: list[Exhibit], paper: str, name: str) -> Exhibit:
    """Find an exhibit by paper and ID."""
    return next(e for e in known if (e.paper, e.id) == (paper, name))


def _on_cores(jobs: Sequence[_Job], out: Path) -> Iterator[Parts]:
    """Run jobs in processes of this machine."""
    if not jobs:
        return
    cores = count_cores()
    workers = min(cores, len(jobs))
    work = partial(_work, out, cores // workers)
    # Processes, not threads: exhibits spend much time in Python code and in drawing.
    with multiprocessing.get_context("spawn").Pool(workers, _start) as pool:
        yield from pool.imap_unordered(work, jobs)


def _on_cluster(jobs: Sequence[_Job], out: Path, dask: str | Client) -> Iterator[Parts]:
    """Run jobs on the workers of a Dask cluster, and write their files here."""
    from cwnd._sweeps.processes import Lost
    from cwnd._sweeps.workers import Cluster

    ended: SimpleQueue[Future[Any]] = SimpleQueue()
    with Cluster(dask, _work_remotely) as cluster:
        running = {cluster.submit(job): job for job in jobs}
        for future in running:
            future.add_done_callback(ended.put)
        while running:
            # Raises an error if all workers are gone.
            cluster.slots()
            try:
                future = ended.get(timeout=1.0)
                parts, files = future.result()
            except Empty:
                continue
            except Lost:
                names = ", ".join(f"{paper} {name}" for paper, name in running[future].names)
                problem = f"workers died repeatedly in {names}; the same command resumes"
                raise ArgumentError("dask", problem) from None
            del running[future]
            # The stored results are the last ones, as in `_run`.
            for name, content in sorted(files.items(), reverse=True):
                with replacing(out / name) as unfinished:
                    unfinished.write_bytes(content)
            yield parts


def _start() -> None:
    """Ignore interrupts in a worker; the parent process terminates its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(out: Path, threads: int, job: _Job) -> Parts:
    """Run exhibits with runs in common, in a worker process."""
    known: Known = {}
    return {
        (paper, name): _run(
            _find(exhibits(paper), paper, name),
            Lab(quick=job.quick, repeat=job.repeat, threads=threads, known=known),
            out,
            job.key,
        )
        for paper, name in job.names
    }


def _work_remotely(job: _Job) -> tuple[Parts, dict[str, bytes]]:
    """Run exhibits on a worker of a cluster; return their results and the written files."""
    require("reproduce", "matplotlib")
    if _key(quick=job.quick, repeat=job.repeat) != job.key:
        raise RuntimeError("a worker has another version of cwnd")
    with TemporaryDirectory() as folder:
        out = Path(folder)
        for name in ("figures", _PARTS):
            (out / name).mkdir()
        parts = _work(out, 1, job)
        files = [file for file in out.rglob("*") if file.is_file()]
        return parts, {str(file.relative_to(out)): file.read_bytes() for file in files}


def _run(exhibit: Exhibit, lab: Lab, out: Path, key: str) -> JsonObject:
    """Run one exhibit, draw its figures and store its results."""
    from cwnd._papers.draw import draw, write_table

    began = time.monotonic()
    found = exhibit.run(lab)
    files = out / "figures"
    figures = [(f"{exhibit.id}-{f.name}".removesuffix("-"), f) for f in found.figures]
    tables = [(f"{exhibit.id}-{t.name}", t) for t in found.tables]
    # Matplotlib is not safe for threads, of which a worker of a cluster may have several.
    with _DRAWING:
        for name, figure in figures:
            draw(figure, files / f"{exhibit.paper}-{name}")
    for name, table in tables:
        write_table(table, files / f"{exhibit.paper}-{name}")
    text = exhibit.text
    part = jsonable(
        {
            "id": exhibit.id,
            "title": text.title,
            "new": exhibit.new,
            "seconds": round(time.monotonic() - began, 3),
            "seeds": lab.seeds if lab.random else 0,
            "scenario": {
                "toml": found.scenario.to_toml() if found.scenario else None,
                "varied": text.varied or ("" if found.scenario else _COMPUTED),
                "inferred": text.inferred,
                "conventions": found.conventions,
            },
            "trials": [
                {"name": name, "text": trial.text, "permits": trial.permits or None}
                for name, trial in text.trials.items()
                if not lab.quick
            ],
            "claims": [claim.to_json() for claim in found.claims],
            "figures": [{"name": name, "title": f.title} for name, f in figures],
            "tables": [
                {"name": name, "title": t.title, "columns": t.columns, "rows": t.rows}
                for name, t in tables
            ],
        }
    )
    write_text(_part_path(out / _PARTS, exhibit), json.dumps({"key": key, "part": part}))
    return part


def _document(parts: list[tuple[Exhibit, JsonObject]]) -> JsonObject:
    """Build the document, and count the verdicts."""
    papers: dict[str, list[JsonObject]] = {}
    for exhibit, part in parts:
        papers.setdefault(exhibit.paper, []).append(part)
    claims = [claim for _, part in parts for claim in part["claims"]]
    return {
        "papers": [
            {
                "paper": paper,
                "title": read_text(paper).title,
                "citation": read_text(paper).citation,
                "headlines": headlines(read_text(paper).headlines, found),
                "exhibits": found,
                "parts": [
                    {"part": name, "exhibits": part.exhibits, "note": part.note or None}
                    for name, part in read_text(paper).parts.items()
                ],
                "ungraded": [sentence._asdict() for sentence in read_text(paper).ungraded],
            }
            for paper, found in papers.items()
        ],
        "summary": _count(claim for claim in claims if claim["kind"] not in OURS),
        "checks": _count(claim for claim in claims if claim["kind"] in OURS),
    }


def _count(claims: Iterable[JsonObject]) -> JsonObject:
    """Count verdicts."""
    found = [claim["verdict"] for claim in claims]
    return {verdict: found.count(verdict) for verdict in RATINGS}


def _part_path(parts: Path, exhibit: Exhibit) -> Path:
    """Return the file of an exhibit's stored results."""
    return parts / f"{exhibit.paper}-{exhibit.id}.json"


def _read_part(parts: Path, exhibit: Exhibit, key: str) -> JsonObject | None:
    """Read the stored results of an exhibit, if they belong to this run."""
    try:
        kept = json.loads(_part_path(parts, exhibit).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return kept["part"] if isinstance(kept, dict) and kept.get("key") == key else None


def _key(*, quick: bool, repeat: int | None) -> str:
    """Return a key of all inputs of a run: options and code."""
    digest = hashlib.sha256(f"{_native.version()} {_native.sources()} {quick} {repeat}".encode())
    with as_file(resources("cwnd")) as package:
        for file in sorted(package.rglob("*")):
            if file.suffix in {".py", ".toml"}:
                digest.update(file.read_bytes())
    return digest.hexdigest()
