"""The lists of files in CONTRIBUTING.md, each held against an extension of a copy of the tree."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
LEFT = {"dist", "out", "target"}
TESTS = re.compile(r".*/tests(/|\.rs$)")

pytestmark = pytest.mark.slow


class Tree:
    """A copy of the tree."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for each in ROOT.iterdir():
            if each.name not in LEFT and not each.name.startswith("."):
                copy = shutil.copytree if each.is_dir() else shutil.copy2
                copy(each, root / each.name)

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")

    def append(self, path: str, text: str) -> None:
        self.write(path, (self.root / path).read_text("utf-8") + text)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace the first place of a text."""
        text = (self.root / path).read_text("utf-8")
        assert old in text, f"{path} has no {old}"
        self.write(path, text.replace(old, new, 1))

    def insert(self, path: str, before: str, text: str) -> None:
        self.replace(path, before, text + before)

    def copy_lines(self, path: str, old: str, new: str) -> None:
        """Insert after each line that matches a pattern a copy of it with another text."""
        lines = (self.root / path).read_text("utf-8").splitlines(keepends=True)
        copies = [dict.fromkeys([line, re.sub(old, new, line)]) for line in lines]
        self.write(path, "".join("".join(pair) for pair in copies))

    def changed(self) -> set[str]:
        """Return the files that are new or differ from those of the tree."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        names = [path.relative_to(self.root) for path in files if path.suffix != ".pyc"]
        same, *_ = filecmp.cmpfiles(self.root, ROOT, names)
        return {name.as_posix() for name in {*names} - {*same}}

    def passes(self, *words: str, **variables: str) -> bool:
        """Run a command in the tree; return whether it succeeds."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "python"), **variables}
        done = subprocess.run(
            words, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        self.output = done.stdout + done.stderr
        return done.returncode == 0


@dataclass(frozen=True)
class Extension:
    """The smallest extension of a kind."""

    row: str
    """The first cell of the table in CONTRIBUTING.md."""
    extend: Callable[[Tree], None]
    check: tuple[str, ...]
    """The command that fails if one of the files is left out."""
    names: dict[str, str] = field(default_factory=dict)
    """What the words of the row are for this extension."""

    def listed(self, tree: Tree) -> set[str]:
        """Return the files and folders that the row names; a name alone is in the folder before."""
        text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
        (cell,) = re.findall(rf"^\| {re.escape(self.row)} \| (.*) \|$", text, re.MULTILINE)
        for word, name in self.names.items():
            assert word in cell, f"the row of {self.row!r} has no {word!r}"
            cell = cell.replace(word, name)
        found, folder = set(), Path()
        for name in re.findall(r"`([\w./-]*(?:/|\.(?:rs|py|toml|md|html)))`", cell):
            path = Path(name) if (tree.root / name).exists() or "/" in name[:-1] else folder / name
            folder = path if name.endswith("/") else path.parent
            found.add(path.as_posix())
        return found


def add_exhibit(tree: Tree) -> None:
    papers = "python/cwnd/_papers/simd"
    tree.append(
        f"{papers}/model.py",
        """

@exhibit("eq-9", cost=0.1)
def eq_9(lab: Lab) -> None:
    \"\"\"Show the TCP-friendly increase of SIMD.\"\"\"
    lab.claim("friendly", fact("0.375", holds=True))
""",
    )
    tree.append(
        f"{papers}/paper.toml",
        """
[exhibit.eq-9]
title = "The TCP-friendly increase"
[exhibit.eq-9.claims]
friendly = "SIMD is TCP-friendly"
""",
    )
    tree.append(f"{papers}/contents.toml", '"Appendix C" = { exhibits = ["eq-9"] }\n')


def add_report(tree: Tree) -> None:
    pages = "python/cwnd/_show/report"
    tree.write(
        f"{pages}/algorithm.py",
        """from cwnd._show.report.page import render


def algorithm_page(algorithm):
    return render("algorithm.html", title=algorithm.title)
""",
    )
    tree.write(
        f"{pages}/templates/algorithm.html",
        """{% extends "base.html" %}
{% block title %}{{ title }}{% endblock %}
{% block brand %}cwnd algorithms{% endblock %}
{% block body %}{% endblock %}
""",
    )
    tree.insert(f"{pages}/__init__.py", '"compare"', '"algorithm", ')
    tree.insert(
        "python/cwnd/_controllers/registry.py",
        "    def to_json(self)",
        """    def report(self, path):
        Path(path).write_text(_show.report.algorithm.algorithm_page(self))

""",
    )
    tree.insert("python/cwnd/_controllers/registry.py", "from typing", "from pathlib import Path\n")
    command = "python/cwnd/_cli/verbs.py"
    tree.insert(command, "@shared.json()\ndef algorithms", "@shared.report()\n")
    tree.insert(command, 'as_json: bool) -> None:  # noqa: FBT001\n    """List', "report: str, ")
    tree.insert(
        command,
        '    if as_json:\n        print_json({"algorithms"',
        "    if report:\n        known[0].report(report)\n",
    )


def add_metric(tree: Tree) -> None:
    tree.insert(
        "crates/cwnd-sim/src/metrics/catalog.rs",
        '    of("useful"',
        '    of("waste", Fraction, &[]).link(|link, _| 1.0 - link.utilization),\n',
    )
    tree.copy_lines("docs/scenario.md", r"\| `utilization`", "| `waste`")


def add_function(tree: Tree) -> None:
    tree.append(
        "python/cwnd/metrics/harm.py",
        '''

def waste(used: float) -> float:
    """Return what a controller leaves unused."""
    return 1 - used
''',
    )
    tree.insert("python/cwnd/metrics/__init__.py", "worst\n", "waste, ")
    tree.insert("python/cwnd/metrics/__init__.py", '    "worst"', '    "waste",\n')
    tree.copy_lines("docs/metrics.md", "`harm`", "`waste`")
    tree.insert("python/tests/test_public.py", "utilization worst", "waste ")


def add_text(tree: Tree) -> None:
    template = ROOT / "python/cwnd/_controllers/new_controller/window.law"
    law = Template(template.read_text("utf-8")).substitute(name="hybla")
    tree.write("crates/cwnd/src/laws/hybla.law", law)
    tree.insert("crates/cwnd/src/registry.rs", "    window::CUBIC,", "    window::HYBLA,\n")
    _publish(tree)


def add_controller(tree: Tree) -> None:
    assert tree.passes(*CWND, "new-controller", "hybla"), tree.output
    _publish(tree)


def _publish(tree: Tree) -> None:
    """Name the controller hybla in lists and documents, and write its digests."""
    tree.insert("crates/cwnd-sim/tests/invariants.rs", '    "reno",', '    "hybla",\n')
    tree.insert("README.md", "`binomial`", "`hybla`, ")
    tree.insert("crates/cwnd/README.md", "`binomial`", "`hybla`, ")
    tree.insert("CHANGELOG.md", "\n* ", "\n* The controller `hybla`.")
    command = ("cargo", "test", "-p", "cwnd-sim", "--locked", "--test", "all", "digests")
    assert tree.passes(*command, INSTA_UPDATE="always"), tree.output


def add_queue(tree: Tree) -> None:
    code = "crates/cwnd-sim/src/discipline"
    copy = (r"\b([Pp])ie", r"\1ix")
    pie, _, _ = (ROOT / code / "pie.rs").read_text("utf-8").partition("#[cfg(test)]")
    tree.write(f"{code}/pix.rs", re.sub(*copy, pie))
    tree.copy_lines(f"{code}/mod.rs", *copy)
    tree.replace(f"{code}/mod.rs", "&[&str]); 7]", "&[&str]); 8]")
    tree.copy_lines(f"{code}/table.rs", r"\bPie,", "Pix,")
    tree.copy_lines("docs/scenario.md", "`pie`", "`pix`")
    tree.replace("crates/cwnd-sim/src/scenario/tests/queues.rs", "(checked, 38)", "(checked, 46)")


CWND = (sys.executable, "-m", "cwnd")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
README = ("cargo", "test", "-p", "cwnd", "--locked", "--test", "all", "readmes")
EXHIBITS = "python/tests/test_reproduce.py::test_the"
EXTENSIONS = [
    Extension(
        "an exhibit or a claim of a paper",
        add_exhibit,
        (
            *PYTEST,
            f"{EXHIBITS}_words_of_each_paper",
            f"{EXHIBITS}_contents_name_every_part_of_a_paper",
        ),
        {"PAPER": "simd"},
    ),
    Extension(
        "a report page",
        add_report,
        (*CWND, "algorithms", "simd", "--report", "out.html"),
        {
            "the result's class": "`python/cwnd/_controllers/registry.py`",
            "its command": "`python/cwnd/_cli/verbs.py`",
        },
    ),
    Extension(
        "a function of `cwnd.metrics`",
        add_function,
        (
            *PYTEST,
            "python/tests/test_public.py::test_the_public_names_are_these",
            "python/tests/test_package.py::test_the_metrics_are_documented",
        ),
    ),
    Extension(
        "a metric of `[expect]`, evaluations and the `measures` of a plan",
        add_metric,
        ("cargo", "test", "-p", "cwnd-sim", "--locked", "--lib", "the_document_lists_the_metrics"),
    ),
    Extension("a law as a text", add_text, README),
    Extension(
        "a controller in Rust",
        add_controller,
        README,
        {" or `rate.rs`": ""},
    ),
    Extension(
        "a queue discipline",
        add_queue,
        ("cargo", "test", "-p", "cwnd-sim", "--locked", "--lib", "documents_have_the_defaults"),
    ),
]
UNCHECKED = {"CHANGELOG.md"}
"""Files that no test reads."""


@pytest.mark.parametrize("extension", EXTENSIONS, ids=lambda extension: extension.row)
def test_an_extension_touches_the_files_that_are_listed(tmp_path, extension):
    if extension.check[0] == "cargo" and "COMPILE" not in os.environ:
        pytest.skip("`make extensions` compiles it for minutes")
    tree = Tree(tmp_path)
    extension.extend(tree)
    listed, places = extension.listed(tree), {}
    for name in sorted(tree.changed()):
        folder = str(Path(name).parent)
        place = folder if folder in listed and name not in listed else name
        if place in listed or not TESTS.match(name):
            places[name] = place
    assert {*places.values()} == listed
    assert tree.passes(*extension.check), tree.output
    for name in places:
        if name not in UNCHECKED and not TESTS.match(name):
            text = (tmp_path / name).read_text("utf-8")
            if (ROOT / name).exists():
                # With a new time of modification, which Cargo compares.
                tree.write(name, (ROOT / name).read_text("utf-8"))
            else:
                (tmp_path / name).unlink()
            assert not tree.passes(*extension.check), f"nothing fails without {name}"
            tree.write(name, text)
