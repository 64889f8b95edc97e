"""The examples of the documents."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest

import cwnd
from cwnd import events
from cwnd._cli.verbs import cwnd as command
from cwnd._sweeps.reading import read_plan

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LAW = """class Law:
    def grow(self, w, acked, cx):
        return w + acked / w

    def cut(self, w, why, cx):
        return w / 2
"""


def blocks(path: Path, *languages: str) -> list[str]:
    """Return the code blocks of a document in some languages."""
    parts = re.split(r"^```", path.read_text("utf-8"), flags=re.MULTILINE)[1::2]
    found = (part.partition("\n") for part in parts)
    return [text for language, _, text in found if language in languages]


def commands(path: Path) -> list[list[str]]:
    """Return the words after ``cwnd`` of the commands in a document's blocks and sentences."""
    found = []
    sentences = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for text in (*blocks(path, "", "sh", "console"), *re.findall(r"`(cwnd [^`]*)`", sentences)):
        # A quoted argument may have several lines.
        whole = re.sub(r"'[^']*'", lambda quoted: quoted[0].replace("\n", " "), text)
        for line in whole.replace("\\\n", " ").splitlines():
            match = re.match(r"(?:\S*\$ +)?cwnd (.*)", line)
            if match:
                words = shlex.split(match[1], comments=True)
                ends = [i for i, word in enumerate(words) if word in {"|", "&&", "--", "&"}]
                found.append(words[: ends[0]] if ends else words)
    return found


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "docs/ci.md"], ids=lambda p: p.stem)
def test_scenarios_and_plans_of_the_documents_are_valid(path, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(LAW)
    monkeypatch.chdir(tmp_path)
    texts = blocks(path, "toml")
    assert texts
    # In a folder of the repository, as `networks/home.toml` of docs/ci.md.
    file = tmp_path / "networks/example.toml"
    file.parent.mkdir()
    (file.parent / "mine.py").write_text(LAW.replace("Law", "Delay"))
    for text in texts:
        file.write_text(text)
        if "[axes]" in text:
            assert read_plan(file).points > 1
            continue
        scenario = cwnd.Scenario.from_toml(file)
        assert scenario.validate()["flows"] > 0
        if "[expect]" in text:
            assert [each.text for each in cwnd.run(scenario).check() if not each.holds] == []


def test_the_way_of_the_readme_from_a_law_to_a_paper(command, tmp_path):
    """Its commands in their order, with shorter runs."""
    text = (ROOT / "README.md").read_text("utf-8").partition("## From a law to a paper\n")[2]
    page = tmp_path / "section.md"
    page.write_text(text.partition("\n## ")[0], "utf-8")
    (law,), (plan,) = blocks(page, "python"), blocks(page, "toml")
    (tmp_path / "mine.py").write_text(law)
    (tmp_path / "plan.toml").write_text(
        plan.replace("60s", "4s").replace("repeat = 5", "repeat = 1")
    )
    short = {"compare": ["--time", "4s", "--repeat", "2"], "evaluate": ["--test", "blackout"]}
    for words in commands(page):
        done = command(*words, *short.get(words[0], ()), cwd=tmp_path)
        assert (done.returncode, "cwnd:" in done.stderr) == (0, words[0] == "sweep"), done.stderr
    for file in ("grid.html", "delay.pdf", "shares.svg", "out/evaluate"):
        assert (tmp_path / file).exists()
    for file in re.findall(r'`pandas.read_parquet\("(.*?)"\)`', page.read_text("utf-8")):
        assert len(pd.read_parquet(tmp_path / file)) > 0
    # The law has an answer before there is a sample of the round-trip time.
    namespace: dict[str, Any] = {}
    exec(law, namespace)
    assert namespace["Delay"]().grow(10.0, 1.0, events.Context(rtt=0.1, latest_rtt=0.1)) == 10.1


def test_the_readme_has_the_output_of_its_check(command, tmp_path):
    readme = ROOT / "README.md"
    (scenario,) = (text for text in blocks(readme, "toml") if "[expect]" in text)
    (tmp_path / "home.toml").write_text(scenario)
    done = command("run", "home.toml", "--check", cwd=tmp_path)
    assert f"$ cwnd run home.toml --check\n{done.stdout}" in blocks(readme, "")


def test_the_documented_ways_to_set_a_trace(command, tmp_path, two):
    (tmp_path / "two.toml").write_text(two)
    for name in ("DOWN", "UP"):
        (tmp_path / name).write_text("1\n2\n3\n")
    text = (ROOT / "docs/scenario.md").read_text("utf-8").partition("\n### Traces\n")[2]
    compare, table = re.findall(r"`cwnd (compare [^`]* --set [^`]*)`|`(--set [^`]*)`", text)[:2]
    for words in (
        [*shlex.split(compare[0]), "--time", "2s", "--repeat", "2"],
        ["run", "two.toml", *shlex.split(table[1])],
    ):
        done = command(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_outputs_of_the_readme_need_no_folder():
    """The options that write one file do not create its directory."""
    words = [word for found in commands(ROOT / "README.md") for word in itertools.pairwise(found)]
    files = [file for option, file in words if option in {"--report", "--plot", "--pcap"}]
    assert len(files) >= 5
    assert [file for file in files if "/" in file] == []


def test_the_meanings_of_beta():
    """Laws whose `beta` is another quantity than a fraction of the window are named."""
    document = (ROOT / "docs/controllers.md").read_text("utf-8")
    section = document.partition("## `beta` and `kept`\n")[2].partition("\n## ")[0]
    others = {
        algorithm.name
        for algorithm in cwnd.algorithms()
        for each in algorithm.parameters
        if each.name == "beta" and not each.meaning.endswith("as a fraction of the window")
    }
    assert set(re.findall(r"^\* of `(\w+)`", section, re.MULTILINE)) == others


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_commands_of_the_documents_have_these_options(path):
    for words in commands(path):
        place: Any = command
        rest = list(words)
        while isinstance(place, click.Group) and rest and not rest[0].startswith("-"):
            name = rest.pop(0)
            if name.isupper():  # any model
                break
            found = place.get_command(click.Context(place), name)
            assert found is not None, words
            place = found
        known = {option for each in place.params for option in (*each.opts, *each.secondary_opts)}
        known |= {"--help", "-h", "--version"}
        for word in rest:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in known, words


def test_the_index_has_every_document_once():
    index = (ROOT / "docs/README.md").read_text("utf-8")
    linked = re.findall(r"^\* \[.*?\]\(([\w-]+\.md)\):", index, re.MULTILINE)
    documents = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(linked) == sorted(documents)


def test_the_readme_has_commands():
    assert {words[0] for words in commands(ROOT / "README.md")} >= {
        *("compare", "run", "sweep", "query", "reproduce", "model", "emulate", "kernel", "agree"),
    }


@pytest.mark.parametrize("algorithm", cwnd.algorithms(), ids=lambda algorithm: algorithm.name)
def test_a_card_has_every_deviation(algorithm):
    """`bench/cards.py --sources` writes them."""
    card = (ROOT / "docs/cards" / f"{algorithm.name}.md").read_text("utf-8")
    assert f"{algorithm.title}: {algorithm.source}." in card
    for deviation in algorithm.deviations:
        assert f"* {deviation}\n" in card


def test_the_table_of_the_papers_repeats_the_cards():
    rows = re.findall(
        r"^\| \[\w+\]\(cards/(\w+)\.md\).*?\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (.*?) ?\|$",
        (ROOT / "docs/papers.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == 7
    for name, *counts, sections in rows:
        card = (ROOT / "docs/cards" / f"{name}.md").read_text("utf-8")
        counted = {of: number for number, of in re.findall(r"(\d+) (\w+)", card.splitlines()[2])}
        grades = ("fails", "concern", "undecided", "meets")
        assert counts == [counted.get(grade, "0") for grade in grades], name
        assert sections == ", ".join(re.findall(r"^\| ([\d.]+) .*\| \*\*fails", card, re.MULTILINE))


def test_the_findings_of_the_suite_repeat_the_cards():
    rows = (ROOT / "docs/cards/README.md").read_text("utf-8").splitlines()
    sections = next(row for row in rows if row.startswith("| | 5")).split("|")
    grades = {row.split("]")[0][3:]: row.split("|") for row in rows if row.startswith("| [")}
    findings = (ROOT / "docs/evaluate.md").read_text("utf-8").partition("## What the suite")[2]
    found = re.findall(r"^\| `(\w+)` \|(.*)\|(.*)\|$", findings, re.MULTILINE)
    assert len(found) == 6
    for name, *columns in found:
        for mark, column in zip(("**F**", "c"), columns, strict=True):
            graded = zip(sections, grades[name], strict=True)
            known = {section.strip() for section, grade in graded if grade.strip() == mark}
            assert set(re.findall(r"\b[567]\.\d+(?:\.\d+)?\b", column)) == known, (name, mark)


def test_documents_name_sources_that_exist():
    sources = [*DOCUMENTS, ROOT / "CONTRIBUTING.md", *(ROOT / "crates").glob("*/src/**/*.rs")]
    for path in sources:
        for name in re.findall(r"python/cwnd/[\w./]*\w", path.read_text("utf-8")):
            assert (ROOT / name.replace("PAPER", "simd")).exists(), f"{path}: {name}"
