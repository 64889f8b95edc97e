"""Each paper's quick run, and what happens around it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path

import pytest

from cwnd._base import toml as tomllib
from cwnd._papers.exhibit import PAPERS, Exhibit, Lab, exhibits
from cwnd._papers.figure import Curve, Figure, Panel, Regions
from cwnd._papers.grades import RATINGS, RULES, at_least, less, number
from cwnd._papers.headlines import OURS
from cwnd._papers.runner import reproduce
from cwnd._papers.text import CAUSES, KINDS, ExhibitText, Reason, Wording, read_text
from cwnd._papers.trial import Trial
from cwnd._runs.scenario import Scenario
from cwnd.errors import ArgumentError

pytestmark = pytest.mark.slow

CLAIM = {
    *("name", "text", "kind", "published", "measured", "interval", "runs", "rule", "verdict"),
    *("cause", "why", "proof", "trials"),
}


def check_headlines(paper, found):
    headlines = read_text(paper).headlines
    assert 1 <= len(headlines) <= 6
    assert len(found["headlines"]) == len(headlines)
    named = {name for headline in found["headlines"] for name in headline["rests_on"]}
    for e in found["exhibits"]:
        for claim in e["claims"]:
            assert claim["kind"] != "headline" or f"{e['id']}/{claim['name']}" in named
    for pattern in (pattern for headline in headlines for pattern in headline.rests_on):
        assert any(fnmatchcase(name, pattern) for name in named), pattern


def check_claim(claim):
    assert set(claim) == CLAIM
    assert claim["text"]
    assert claim["rule"] in RULES
    assert (claim["cause"] is None) == (claim["why"] == "")
    if claim["verdict"] in {"differs", "depends"}:
        assert claim["cause"] in CAUSES, claim["text"]
    # A quantity is measured at least five times, or the seeds do not matter.
    if claim["interval"] and claim["verdict"] != "undecided":
        assert claim["runs"] >= 5, claim["text"]


def check_exhibits(paper, found, figures):
    assert [e["id"] for e in found["exhibits"]] == [e.id for e in exhibits(paper)]
    for e in found["exhibits"]:
        names = [claim["name"] for claim in e["claims"]]
        assert names, e["id"]
        assert len(set(names)) == len(names), e["id"]
        assert e["figures"] or e["tables"], e["id"]
        assert e["scenario"]["toml"] or e["scenario"]["varied"], e["id"]
        files = [f"{f['name']}.{kind}" for f in e["figures"] for kind in ("svg", "csv")]
        for file in files + [f"{t['name']}.csv" for t in e["tables"]]:
            assert (figures / f"{paper}-{file}").stat().st_size > 0


@pytest.mark.timeout(600)
def test_a_quick_run_of_all_papers(tmp_path):
    document = reproduce(quick=True, repeat=1, out=tmp_path)
    assert len(document["papers"]) == len(PAPERS)
    for paper, found in zip(PAPERS, document["papers"], strict=True):
        check_exhibits(paper, found, tmp_path / "figures")
        check_headlines(paper, found)
    claims = [c for found in document["papers"] for e in found["exhibits"] for c in e["claims"]]
    for claim in claims:
        check_claim(claim)
    papers_own = [claim for claim in claims if claim["kind"] not in OURS]
    for verdict, count in document["summary"].items():
        assert count == [claim["verdict"] for claim in papers_own].count(verdict)
    assert sum(document["checks"].values()) == len(claims) - len(papers_own)
    assert json.loads((tmp_path / "results.json").read_text()) == document
    page = (tmp_path / "index.html").read_text()
    headlines = [headline for found in document["papers"] for headline in found["headlines"]]
    for item in (*claims, *headlines):
        assert f'class="verdict {item["verdict"]}"' in page
    assert "http:" not in page.replace("http://www.w3.org", "")
    assert "https:" not in page
    assert not (tmp_path / ".parts").exists()


@pytest.mark.parametrize("paper", PAPERS)
def test_the_words_of_each_paper(paper):
    text = read_text(paper)
    document = tomllib.loads(files("cwnd._papers").joinpath(paper, "paper.toml").read_text())
    assert set(text.exhibits) == {e.id for e in exhibits(paper)}
    for name, exhibit in text.exhibits.items():
        assert exhibit.title, name
        for claim in exhibit.claims.values():
            assert claim.kind in KINDS
        for table in exhibit.printed.values():
            assert all(len(row) == len(table.columns) for row in table.rows.values())
        for reason in exhibit.why.values():
            assert reason.cause in CAUSES
            # A proof is a trial of the exhibit, or the claims whose key it begins with.
            key = reason.proof.partition(" ")[0]
            assert not key or key in exhibit.trials or key in exhibit.claims, (name, key)
            assert key not in document.get("trials", {}) or key in exhibit.trials, (name, key)
    used = {reason for e in document["exhibit"].values() for reason in e.get("why", {}).values()}
    assert used == set(document.get("reasons", {}))
    tried = {trial for e in document["exhibit"].values() for trial in e.get("trials", [])}
    assert tried == set(document.get("trials", {}))
    claims = Path(__file__).parents[2].joinpath("docs", "papers.md").read_text()
    for headline in text.headlines:
        assert headline.claim in claims


@pytest.mark.parametrize(
    ("paper", "equations"), [("simd", 9), ("gaimd", 4), ("aira", 25), ("daimd", 21), ("aiad", 7)]
)
def test_the_contents_name_every_part_of_a_paper(paper, equations):
    text = read_text(paper)
    named: dict[str, list[int]] = {"Eq.": [], "Fig.": [], "Table": []}
    for name, part in text.parts.items():
        assert part.exhibits or part.note, name
        assert "lost" not in part.note.lower() or re.search(r"\blines? \d+", part.note), name
        assert set(part.exhibits) <= set(text.exhibits), name
        kind, _, numbers = name.partition(" ")
        if kind in named:
            first, *rest = map(int, re.findall(r"\d+", numbers))
            named[kind] += range(first, (rest or [first])[-1] + 1)
    assert sorted(named["Eq."]) == [*range(1, equations + 1)]
    for kind in ("Fig.", "Table"):
        assert sorted(named[kind]) == [*range(1, len(named[kind]) + 1)], kind
    shown = {name for part in text.parts.values() for name in part.exhibits}
    assert {e.id for e in exhibits(paper) if not e.new} <= shown
    for where, says in text.ungraded:
        assert re.search(r", line \d+$", where)
        assert says


def test_names_are_unique():
    for paper in PAPERS:
        names = [e.id for e in exhibits(paper)]
        assert len(set(names)) == len(names)


def test_only_one_exhibit_in_one_json_document(command, tmp_path, check_json):
    done = command("reproduce", "simd", "--exhibit", "fig-1", "--json", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check_json(document, "## `cwnd reproduce --json`")
    assert [e["id"] for e in document["papers"][0]["exhibits"]] == ["fig-1"]
    assert set(document["summary"]) == set(document["checks"]) == set(RATINGS)
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
    with pytest.raises(ArgumentError, match="'smd' is not one of"):
        reproduce(["smd"], out=tmp_path)


@pytest.mark.timeout(600)
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, spawn):
    options = ["--quick", "--repeat", "1", "--out", str(tmp_path)]
    line = [sys.executable, "-m", "cwnd", "reproduce", "aira", *options]
    running = spawn(*line, stderr=subprocess.PIPE, text=True)
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
    document = reproduce(["aira"], quick=True, repeat=1, out=tmp_path)
    found = {f"aira-{e['id']}": e for e in document["papers"][0]["exhibits"]}
    assert len(found) > len(before)
    # The seconds are those of the run that was interrupted.
    for name, part in before.items():
        assert found[name] == part
    # A part of other code or other options is not used.
    assert not parts.exists()


def test_the_page_of_one_exhibit_repeats_the_options(tmp_path):
    """Its command had no --repeat, and a heading stood above no main claims."""
    reproduce(["simd"], exhibit="table-1", quick=True, repeat=2, out=tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "cwnd reproduce simd --exhibit table-1 --quick --repeat 2</code>" in page
    assert "<h2>Main claims</h2>" not in page


def used(result):
    SEEN.append((result.bottleneck["rate_bps"], result.seed))
    return result.metrics["utilization"]


SEEN: list[tuple[float, int]] = []
NETWORKS = {
    rate: Scenario.dumbbell(rate=f"{rate}bit", time="3s").add_flow("reno") for rate in (1e6, 2e6)
}


def exhibit_of(function, words, seeds, **texts):
    class Made(Exhibit):
        text = ExhibitText("", claims={key: Wording(text) for key, text in words.items()}, **texts)

    return Made(
        "simd", "made", new=False, cost=1, seeds=seeds, quick=seeds, beside="", function=function
    )


def test_seeds_are_added_while_a_claim_is_undecided():
    SEEN.clear()

    def function(lab):
        runs = lab.run({1e6: NETWORKS[1e6]}, used)[1e6]
        # Undecided until there are ten of them.
        lab.claim("made", at_least(1, [1.0] * len(runs) if len(runs) >= 10 else [0.5, 1.5] * 2))

    lab = Lab(threads=1)
    found = exhibit_of(function, {"made": "A claim."}, (3, 40)).run(lab)
    assert lab.seeds == 12
    assert found.claims[0].grade.verdict == "agrees"
    # No run is done twice.
    assert sorted(SEEN) == [(1e6, seed) for seed in range(1, 13)]
    assert found.scenario is NETWORKS[1e6]


def test_seeds_are_added_up_to_the_limit_of_the_exhibit():
    def function(lab):
        lab.run(NETWORKS, used)
        lab.claim("made", less([1.0], [2.0]))

    exhibit = exhibit_of(function, {"made": "A claim."}, (2, 5))
    for repeat, seeds in ((None, 5), (3, 3)):
        lab = Lab(threads=1, repeat=repeat)
        found = exhibit.run(lab)
        assert lab.seeds == seeds
        assert found.claims[0].grade.verdict == "undecided"


def controller(result):
    return result.record["flows"][0]["controller"], result.bottleneck["rate_bps"]


def test_trials_decide_what_a_deviation_depends_on():
    told = []

    def function(lab):
        ((law, rate), *_) = lab.run({1: NETWORKS[1e6]}, controller, seeds=1)[1]
        told.append((law, rate, lab.option("way", "old")))
        lab.claim("law", at_least(1, [1.0 if law == "simd" else 0.5] * 5))
        lab.claim("rate", at_least(1, [rate / 2e6] * 5))
        lab.claim("way", at_least(1, [float(told[-1][2] == "new")] * 5))
        lab.claim("unshown", at_least(1, [0.5] * 5))
        lab.claim("wrong", at_least(1, [0.5] * 5))
        lab.claim("derived", at_least(1, [1.5] * 5))
        lab.claim("near", number("1.0", 1.1 if lab.option("way", "old") == "old" else 1.0))
        lab.claim("nearby", number("1.0", 1.1))

    trials = {
        "simd": Trial("SIMD", permits="The law is not printed.", laws={"reno": "simd"}),
        "fast": Trial("2 Mb/s", values={"dumbbell.rate": 2e6, "link[0].rate": 1e6}),
        "new": Trial("the new way", options={"way": "new"}),
    }
    why = {
        "law": Reason("reading", "The law.", "simd"),
        "rate": Reason("setting", "The rate.", "fast"),
        "way": Reason("rule", "The way.", "new"),
        "unshown": Reason("setting", "The rate.", "fast"),
        "wrong": Reason("paper", "It is wrong.", "derive*"),
        "near": Reason("rule", "The way.", "new"),
        "nearby": Reason("rule", "The way.", "new"),
    }
    words = dict.fromkeys((*why, "derived"), "A claim.")
    made = exhibit_of(function, words, (5, 5), trials=trials, why=why)
    found = {claim.name: claim for claim in made.run(Lab(threads=1)).claims}
    assert told == [
        ("reno", 1e6, "old"),
        ("simd", 1e6, "old"),
        ("reno", 2e6, "old"),
        ("reno", 1e6, "new"),
    ]
    assert {name: (c.verdict, c.reason and c.reason.cause) for name, c in found.items()} == {
        "law": ("depends", "reading"),
        # Only a reading of the text changes the verdict.
        "rate": ("differs", "setting"),
        "way": ("differs", "rule"),
        # A cause that no run shows is not known.
        "unshown": ("differs", "unknown"),
        "wrong": ("differs", "paper"),
        # A number that is close keeps a cause that is shown.
        "near": ("close", "rule"),
        "nearby": ("close", None),
        "derived": ("agrees", None),
    }
    tried = {name: grade.verdict for name, grade in found["rate"].trials.items()}
    assert tried == {"simd": "differs", "fast": "agrees", "new": "differs"}
    # The quick run has no trials.
    quick = {claim.name: claim for claim in made.run(Lab(quick=True, threads=1)).claims}
    assert quick["law"].verdict == "differs"
    assert not quick["law"].trials


def test_a_trial_adds_parameters_to_a_law_or_replaces_it():
    network = Scenario.dumbbell(time="1s")
    for spec in ("gaimd(0.5, 3/4)", "gaimd", "reno"):
        network.add_flow(spec)
    changed = Trial("", laws={"gaimd": "gaimd(threshold=kept)", "reno": "cubic"}).change(network)
    assert [flow["controller"] for flow in changed.document["flow"]] == [
        "gaimd(alpha=0.5, kept=0.75, threshold=kept)",
        "gaimd(threshold=kept)",
        "cubic",
    ]
    assert Trial("", laws={"aiad": "udt"}).change(network) is network


def test_a_lab_keeps_the_order_and_knows_runs_of_another_exhibit():
    SEEN.clear()
    known = {}
    first = Lab(known=known, threads=1).run({1: NETWORKS[1e6]}, used, seeds=2)
    both = Lab(known=known, threads=1).run(NETWORKS, used, seeds=3)
    assert sorted(SEEN) == [(1e6, 1), (1e6, 2), (1e6, 3), (2e6, 1), (2e6, 2), (2e6, 3)]
    assert both[1e6][:2] == first[1]
    assert list(both) == [1e6, 2e6]


def test_the_words_of_a_claim_are_completed_and_its_reason_found():
    def function(lab):
        lab.claim("made", less([2.0] * 5, [1.0] * 5), flows=4)
        lab.claim("made", less([1.0] * 5, [2.0] * 5), flows=8)
        lab.number("printed", [1.0] * 5)
        lab.cells("table", {"row": {"a": [1.1] * 5, "b": [3.0] * 5}, "ours": {"a": 1.0}})
        lab.show(Figure("A figure.", []))

    text = {
        "title": "",
        "claims": {
            "made": "{flows} flows",
            "printed": {"text": "p", "printed": "9", "kind": "check"},
        },
        "printed": {"table": {"columns": ["a", "b"], "rows": {"row": ["1.0", "1.0"]}}},
        "why": {"made": "order", "row b": "b"},
    }
    reasons = {
        "order": Reason("paper", "It is wrong."),
        "b": Reason("setting", "It is not printed."),
    }
    lab = Lab()
    lab.begin(ExhibitText.read(text, reasons, {}), 5)
    function(lab)
    found = [
        (c.name, c.words.text, c.words.kind, c.verdict, c.reason and c.reason.cause)
        for c in lab.findings.claims
    ]
    assert found == [
        ("made 4", "4 flows", "cell", "differs", "paper"),
        ("made 8", "8 flows", "cell", "agrees", None),
        ("printed", "p", "check", "differs", "unknown"),
        ("row a", "row: a", "cell", "close", None),
        ("row b", "row: b", "cell", "differs", "setting"),
    ]
    (table,) = lab.findings.tables
    assert table.rows == [
        ["row", "1.0", "1.1 (1.1 to 1.1)", "1.0", "3 (3 to 3)"],
        ["ours", "", 1.0, "", ""],
    ]


def test_a_claim_of_one_law_among_several():
    text = {
        "title": "",
        "claims": {"made": "{law} at {ms} ms"},
        "printed": {"table": {"columns": ["a"], "rows": {"row": ["1.0"]}}},
        "why": {"made udt": "of-udt", "udt a": "of-udt"},
    }
    lab = Lab()
    lab.begin(ExhibitText.read(text, {"of-udt": Reason("reading", "UDT alone.")}, {}), 5)
    for law, kind in (("udt", "cell"), ("event", "check")):
        lab.claim("made", less([2.0] * 5, [1.0] * 5), kind, law=law, ms=10)
        lab.cells("table", {"row": {"a": [3.0] * 5}}, kind=kind, law=law)
    found = [
        (c.name, c.words.text, c.words.kind, c.reason and c.reason.cause)
        for c in lab.findings.claims
    ]
    assert found == [
        ("made udt 10", "udt at 10 ms", "cell", "reading"),
        ("udt row a", "udt, row: a", "cell", "reading"),
        ("made event 10", "event at 10 ms", "check", "unknown"),
        ("event row a", "event, row: a", "check", "unknown"),
    ]
    assert [table.name for table in lab.findings.tables] == ["table-udt", "table-event"]


def test_exhibits_beside_each_other_need_the_same_runs():
    together = {(e.paper, e.id): e.beside for p in PAPERS for e in exhibits(p) if e.beside != e.id}
    assert together[("simd", "fig-8")] == "fig-7"
    for (paper, name), other in together.items():
        order = [e.id for e in exhibits(paper)]
        assert order.index(other) < order.index(name)


def test_a_figure_becomes_two_files(tmp_path):
    from cwnd._papers.draw import draw

    areas = Regions([0, 1], [0, 1], [[0, 1], [1, float("nan")]], names=("below", "above"))
    panel = Panel(
        "p",
        "share",
        [
            Curve("measured", [1, 2], [3, 4], kind="points", low=[2, 3], high=[4, 5]),
            Curve("printed", [1], [3.5], kind="published"),
        ],
    )
    draw(Figure("A figure", [panel, Panel("x", "y", regions=areas)]), tmp_path / "f")
    rows = (tmp_path / "f.csv").read_text().splitlines()
    assert rows[1] == "1,measured,points,1.0,3.0,2.0,4.0"
    assert rows[3] == "1,printed,published,1.0,3.5,,"
    assert rows[4] == "2,below,map,0,0,0.0,"
    first = (tmp_path / "f.svg").read_bytes()
    draw(Figure("A figure", [panel, Panel("x", "y", regions=areas)]), tmp_path / "f")
    assert (tmp_path / "f.svg").read_bytes() == first
