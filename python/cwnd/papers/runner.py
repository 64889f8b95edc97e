"""Run exhibits on all cores, and go on where an interrupted run stopped."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd.errors import ArgumentError
from cwnd.papers.exhibit import PAPERS, Exhibit, Known, Lab, exhibits
from cwnd.result import dumps, jsonable, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cwnd.records import JsonObject

VERDICTS = ("holds", "differs", "unclear")
_COMPUTED = "Nothing is simulated: formulas and models."
_PARTS = ".parts"
"""Folder of what an unfinished run has done so far."""


def reproduce(
    papers: Sequence[str] = (),
    *,
    exhibit: str | None = None,
    quick: bool = False,
    repeat: int | None = None,
    out: str | Path,
    progress: Callable[[float], None] | None = None,
) -> JsonObject:
    """Run the papers' exhibits and write a report.

    Exhibits run in processes of their own: a script has to call this under
    ``if __name__ == "__main__":``.

    Parameters
    ----------
    papers
        Short names; all by default.
    exhibit
        Only the exhibits of this name.
    quick
        Fewer seeds and shorter runs of the same exhibits.
    repeat
        Seeds of each case, whatever the exhibit would choose.
    out
        Directory of the report. What an interrupted run left there is used if the same run is
        asked for again.
    progress
        Called now and then with the fraction that is done.

    Returns
    -------
    dict
        ``papers``, each with its ``exhibits`` and their ``claims``, and a ``summary`` that counts
        the verdicts; docs/json.md describes it. The same is in ``results.json`` beside the report.

    Raises
    ------
    ArgumentError
        A paper or an exhibit is not known, or ``repeat`` is not positive.
    """
    from cwnd.papers.report import write_report

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
    if left:
        cores = len(os.sched_getaffinity(0))
        workers = min(cores, len(left))
        threads = cores // workers
        jobs = [
            ([(e.paper, e.id) for e in group], quick, repeat, threads, out, key) for group in left
        ]
        # Processes and not threads: much of an exhibit is Python, and figures are drawn in it.
        with multiprocessing.get_context("spawn").Pool(workers, _start) as pool:
            for parts_done in pool.imap_unordered(_work, jobs):
                for (paper, name), part in parts_done.items():
                    done[_find(chosen, paper, name)] = part
                if progress is not None:
                    progress(sum(e.cost for e in done) / total)
    document = _document([(e, done[e]) for e in chosen])
    write_text(out / "results.json", dumps(document) + "\n")
    write_report(document, out, quick=quick)
    shutil.rmtree(parts)
    return document


def choose(papers: Sequence[str], exhibit: str | None) -> list[Exhibit]:
    """Find the exhibits asked for.

    Parameters
    ----------
    papers
        Short names; all when empty.
    exhibit
        Only the exhibits of this name.

    Raises
    ------
    ArgumentError
        A paper or an exhibit is not known.

    Examples
    --------
    >>> [f"{e.paper} {e.id}" for e in choose(["simd"], "fig-5")]
    ['simd fig-5']
    """
    for paper in papers:
        if paper not in PAPERS:
            raise ArgumentError("papers", f"paper {paper!r} is none of {', '.join(PAPERS)}")
    known = [e for paper in PAPERS if not papers or paper in papers for e in exhibits(paper)]
    chosen = [e for e in known if exhibit in {None, e.id}]
    if not chosen:
        names = ", ".join(dict.fromkeys(e.id for e in known))
        raise ArgumentError("exhibit", f"{exhibit!r} is none of {names}")
    return chosen


def _groups(exhibits: Iterable[Exhibit]) -> list[list[Exhibit]]:
    """Put exhibits that need the same runs together; the costliest group first."""
    groups: dict[tuple[str, str], list[Exhibit]] = {}
    for e in exhibits:
        groups.setdefault((e.paper, e.beside), []).append(e)
    return sorted(groups.values(), key=lambda group: sum(e.cost for e in group), reverse=True)


def _find(known: list[Exhibit], paper: str, name: str) -> Exhibit:
    """Find an exhibit by its names."""
    return next(e for e in known if (e.paper, e.id) == (paper, name))


def _start() -> None:
    """Leave an interrupt to the parent, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(
    job: tuple[list[tuple[str, str]], bool, int | None, int, Path, str],
) -> dict[tuple[str, str], JsonObject]:
    """Run exhibits that need the same runs in a process of their own."""
    names, quick, repeat, threads, out, key = job
    known: Known = {}
    return {
        (paper, name): _run(
            _find(exhibits(paper), paper, name),
            Lab(quick=quick, repeat=repeat, threads=threads, known=known),
            out,
            key,
        )
        for paper, name in names
    }


def _run(exhibit: Exhibit, lab: Lab, out: Path, key: str) -> JsonObject:
    """Run one exhibit, draw its figures and keep what it found."""
    from cwnd.papers.draw import draw, write_table

    began = time.monotonic()
    found = exhibit.run(lab)
    for figure in found.figures:
        draw(figure, out / "figures" / f"{exhibit.paper}-{figure.name}")
    for table in found.tables:
        write_table(table, out / "figures" / f"{exhibit.paper}-{table.name}")
    part = jsonable(
        {
            "id": exhibit.id,
            "title": exhibit.title,
            "new": exhibit.new,
            "seconds": round(time.monotonic() - began, 3),
            "scenario": {
                "toml": lab.scenario.to_toml() if lab.scenario else None,
                "varied": found.varied or ("" if lab.scenario else _COMPUTED),
                "inferred": found.inferred,
            },
            "claims": [claim.to_json() for claim in found.claims],
            "figures": [{"name": f.name, "title": f.title} for f in found.figures],
            "tables": [
                {"name": t.name, "title": t.title, "columns": t.columns, "rows": t.rows}
                for t in found.tables
            ],
        }
    )
    path = _part_path(out / _PARTS, exhibit)
    # Whole or not at all: the run may be killed at any time.
    unfinished = path.with_suffix(".new")
    write_text(unfinished, json.dumps({"key": key, "part": part}))
    unfinished.replace(path)
    return part


def _document(parts: list[tuple[Exhibit, JsonObject]]) -> JsonObject:
    """Put the parts together and count the verdicts."""
    papers: dict[str, list[JsonObject]] = {}
    for exhibit, part in parts:
        papers.setdefault(exhibit.paper, []).append(part)
    verdicts = [claim["verdict"] for _, part in parts for claim in part["claims"]]
    return {
        "papers": [
            {"paper": paper, "title": PAPERS[paper], "exhibits": found}
            for paper, found in papers.items()
        ],
        "summary": {verdict: verdicts.count(verdict) for verdict in VERDICTS},
    }


def _part_path(parts: Path, exhibit: Exhibit) -> Path:
    """Say where an exhibit's part is kept."""
    return parts / f"{exhibit.paper}-{exhibit.id}.json"


def _read_part(parts: Path, exhibit: Exhibit, key: str) -> JsonObject | None:
    """Read what an interrupted run found, if it was this run."""
    try:
        kept = json.loads(_part_path(parts, exhibit).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    part: JsonObject = kept["part"]
    return part if kept["key"] == key else None


def _key(*, quick: bool, repeat: int | None) -> str:
    """Name a run by what its results depend on: the choices and the code."""
    digest = hashlib.sha256(f"{_native.version()} {quick} {repeat}".encode())
    digest.update(Path(_native.__file__).read_bytes())
    for folder in (files("cwnd.papers"), files("cwnd.model"), files("cwnd")):
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()
