"""Each paper's quick run, and what happens around it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from cwnd.errors import ArgumentError
from cwnd.papers.exhibit import PAPERS, Lab, exhibits
from cwnd.papers.figure import Curve, Figure, Panel, Regions
from cwnd.papers.runner import reproduce
from cwnd.scenario import Scenario

CLAIM = {"text", "published", "measured", "interval", "rule", "verdict", "why"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("paper", PAPERS)
def test_a_quick_run_of_each_paper(paper, tmp_path):
    document = reproduce([paper], quick=True, out=tmp_path)
    (found,) = document["papers"]
    assert [e["id"] for e in found["exhibits"]] == [e.id for e in exhibits(paper)]
    claims = [claim for e in found["exhibits"] for claim in e["claims"]]
    for e in found["exhibits"]:
        assert e["claims"], e["id"]
        assert e["figures"] or e["tables"], e["id"]
        assert e["scenario"]["toml"] or e["scenario"]["varied"], e["id"]
        for figure in e["figures"]:
            for kind in ("png", "svg", "csv"):
                path = tmp_path / "figures" / f"{paper}-{figure['name']}.{kind}"
                assert path.stat().st_size > 0
    for claim in claims:
        assert set(claim) == CLAIM
        assert claim["text"]
        assert claim["rule"]
        assert bool(claim["why"]) == (claim["verdict"] != "holds"), claim["text"]
    counts = document["summary"]
    assert sum(counts.values()) == len(claims)
    # The seeds of a quick run leave much open; that most of it holds is what the papers are.
    assert counts["holds"] > counts["differs"]
    assert json.loads((tmp_path / "results.json").read_text()) == document
    page = (tmp_path / "index.html").read_text()
    for claim in claims:
        assert f'class="verdict {claim["verdict"]}"' in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert not (tmp_path / ".parts").exists()


def test_names_are_unique():
    for paper in PAPERS:
        names = [e.id for e in exhibits(paper)]
        assert len(set(names)) == len(names)


def test_only_one_exhibit_in_one_json_document(command, tmp_path):
    done = command("reproduce", "simd", "--exhibit", "fig-4a", "--json", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [e["id"] for e in document["papers"][0]["exhibits"]] == ["fig-4a"]
    assert set(document["summary"]) == {"holds", "differs", "unclear"}
    assert f"{tmp_path}/index.html" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "smd"), ("'smd'", "simd, gaimd, aira, daimd, aiad")),
        (("reproduce", "simd", "--exhibit", "fig-99"), ("--exhibit", "'fig-99'", "fig-4a")),
        (("reproduce", "--repeat", "0"), ("--repeat", "0 is not positive")),
        (("reproduce", "--out", "/proc/here"), ("--out", "/proc/here")),
    ],
)
def test_mistakes_are_one_line(command, tmp_path, arguments, words):
    out = () if "--out" in arguments else ("--out", tmp_path)
    done = command(*arguments, *out)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
    with pytest.raises(ArgumentError, match="'smd' is none of"):
        reproduce(["smd"], out=tmp_path)


@pytest.mark.timeout(600)
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    line = [sys.executable, "-m", "cwnd", "reproduce", "aira", "--quick", "--out", str(tmp_path)]
    running = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    parts = tmp_path / ".parts"
    deadline = time.monotonic() + 300
    while not (kept := sorted(parts.glob("*.json"))) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert told == "cwnd: interrupted\n"
    before = {path.stem: json.loads(path.read_text())["part"] for path in kept}
    assert before
    document = reproduce(["aira"], quick=True, out=tmp_path)
    found = {f"aira-{e['id']}": e for e in document["papers"][0]["exhibits"]}
    assert len(found) > len(before)
    # The seconds are those of the run that was interrupted.
    for name, part in before.items():
        assert found[name] == part
    # A part of other code or other options is not used.
    assert not parts.exists()


def test_a_lab_keeps_the_order_and_the_first_scenario():
    def network(rate: str) -> Scenario:
        return Scenario.dumbbell(rate=rate, rtt="20ms", time="2s").add_flow("reno")

    lab = Lab(quick=True, threads=2)
    cases = {rate: network(rate) for rate in ("1mbit", "2mbit")}
    got = lab.run(cases, lambda r: (r.bottleneck["rate_bps"], r.seed), lab.seeds(5, quick=2))
    assert got == {"1mbit": [(1e6, 1), (1e6, 2)], "2mbit": [(2e6, 1), (2e6, 2)]}
    assert lab.scenario is cases["1mbit"]
    assert list(Lab(repeat=7).seeds(5)) == [1, 2, 3, 4, 5, 6, 7]
    assert list(Lab().seeds(5)) == [1, 2, 3, 4, 5]


def test_runs_known_from_another_exhibit_are_not_done_again():
    cases = {rate: Scenario.dumbbell(rate=rate, time="3s").add_flow("reno") for rate in (1e6, 2e6)}
    seen, known = [], {}

    def used(result):
        seen.append((result.bottleneck["rate_bps"], result.seed))
        return result.metrics["utilization"]

    first = Lab(known=known).run({1: cases[1e6]}, used, [1, 2])
    both = Lab(known=known).run(cases, used, [2, 3])
    assert sorted(seen) == [(1e6, 1), (1e6, 2), (1e6, 3), (2e6, 2), (2e6, 3)]
    assert both[1e6][0] == first[1][1]
    assert both == Lab().run(cases, used, [2, 3])


def test_exhibits_beside_each_other_need_the_same_runs():
    together = {(e.paper, e.id): e.beside for p in PAPERS for e in exhibits(p) if e.beside != e.id}
    assert together == {("simd", "fig-8"): "fig-7", ("aiad", "buffers"): "fig-3"}
    for (paper, name), other in together.items():
        order = [e.id for e in exhibits(paper)]
        assert order.index(other) < order.index(name)


def test_a_figure_becomes_three_files(tmp_path):
    from cwnd.papers.draw import draw

    areas = Regions([0, 1], [0, 1], [[0, 1], [1, float("nan")]], names=("below", "above"))
    panel = Panel(
        "p",
        "share",
        [
            Curve("measured", [1, 2], [3, 4], kind="points", low=[2, 3], high=[4, 5]),
            Curve("printed", [1], [3.5], kind="published"),
        ],
    )
    draw(Figure("f", "A figure", [panel, Panel("x", "y", regions=areas)]), tmp_path / "f")
    rows = (tmp_path / "f.csv").read_text().splitlines()
    assert rows[1] == "1,measured,points,1.0,3.0,2.0,4.0"
    assert rows[3] == "1,printed,published,1.0,3.5,,"
    assert rows[4] == "2,below,map,0,0,0.0,"
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    first = (tmp_path / "f.svg").read_bytes()
    draw(Figure("f", "A figure", [panel, Panel("x", "y", regions=areas)]), tmp_path / "f")
    assert (tmp_path / "f.svg").read_bytes() == first
