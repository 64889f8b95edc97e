"""The report of a reproduction: a page to read and to print, and a summary in Markdown."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from cwnd.figures import figure_text, measured_text
from cwnd.papers import headlines
from cwnd.papers.grades import RULES, VERDICTS
from cwnd.papers.text import CAUSES
from cwnd.report.page import facts, frame, terms
from cwnd.result import write_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cwnd.records import JsonObject

_SCRIPT = """
<script>
document.getElementById("only").addEventListener("change", (event) => {
  document.body.dataset.only = event.target.value;
});
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
</script>"""


def write_report(document: JsonObject, out: Path, *, quick: bool) -> None:
    """Write ``index.html`` and ``summary.md``.

    Parameters
    ----------
    document
        What `cwnd.papers.runner.reproduce` returned.
    out
        Directory, in which ``figures`` has been filled.
    quick
        Whether it was a quick run.
    """
    options = " --quick" if quick else ""
    style = files("cwnd.papers").joinpath("report.css").read_text(encoding="utf-8")
    body = _summary(document, quick=quick) + "".join(
        _paper(paper, options) for paper in document["papers"]
    )
    title = "Reproduction of the papers"
    page = frame(title, "cwnd reproduce", body, style=style, scripts=_SCRIPT)
    write_text(out / "index.html", page)
    write_text(out / "summary.md", markdown(document))


def _summary(document: JsonObject, *, quick: bool) -> str:
    """Return the counts, the main claims of each paper, the rules and the contents."""
    summary, checks = document["summary"], document["checks"]
    total, length = sum(summary.values()), "quick run" if quick else "full run"
    counts = facts(
        [
            ("Claims of the papers", str(total), length),
            *(
                (v.capitalize(), str(summary[v]), f"{summary[v] / max(total, 1):.0%}")
                for v in VERDICTS
            ),
            ("Our checks", str(sum(checks.values())), f"{checks['differs']} differ"),
        ]
    )
    main = "".join(
        f'<section class="main"><h3><a href="#{paper["paper"]}">{escape(paper["title"])}</a></h3>'
        f"{_headlines(paper)}</section>"
        for paper in document["papers"]
        if paper["headlines"]
    )
    contents = "".join(
        f'<section><h3><a href="#{paper["paper"]}">{escape(paper["paper"])}</a></h3><ul>'
        + "".join(
            f'<li><a href="#{paper["paper"]}-{e["id"]}"><code>{e["id"]}</code> '
            f"{escape(e['title'])}</a>{_tally(e['claims'])}</li>"
            for e in paper["exhibits"]
        )
        + "</ul></section>"
        for paper in document["papers"]
    )
    rules = terms(
        [
            *((name, text) for name, text in RULES.items()),
            ("main claim", headlines.RULE),
            *((f"cause: {cause}", text) for cause, text in CAUSES.items()),
        ]
    )
    choices = "".join(f'<option value="{v}">only: {v}</option>' for v in VERDICTS)
    return f"""{counts}
<h2>Main claims</h2>
{main}
<details><summary>Rules of the verdicts</summary>{rules}</details>
<h2>Contents</h2>
<nav class="contents">{contents}</nav>
<p class="choose"><label for="only">Claims shown</label>
<select id="only"><option value="">all</option>{choices}</select></p>
"""


def _headlines(paper: JsonObject) -> str:
    """List the main claims of a paper with their verdicts."""
    items = []
    for headline in paper["headlines"]:
        exhibits = dict.fromkeys(name.partition("/")[0] for name in headline["rests_on"])
        links = ", ".join(f'<a href="#{paper["paper"]}-{e}">{e}</a>' for e in exhibits)
        items.append(
            f"<li>{_badge(headline['verdict'])}<div><p>{escape(headline['claim'])}</p>"
            f"<small>{escape(_because(headline))} ({links})</small>"
            "</div></li>"
        )
    return f'<ul class="headlines">{"".join(items)}</ul>'


def _because(headline: JsonObject) -> str:
    """Say what the verdict on a main claim rests on and what it depends on."""
    return f"{headline['reason']} Depends on: {headline['hangs_on']}"


def _badge(verdict: str) -> str:
    """Show a verdict."""
    return f'<span class="verdict {verdict}">{verdict}</span>'


def _tally(claims: Iterable[JsonObject]) -> str:
    """Count verdicts."""
    verdicts = [claim["verdict"] for claim in claims]
    counts = " ".join(
        f'<span class="{v}" title="{v}">{verdicts.count(v)}</span>'
        for v in VERDICTS
        if v in verdicts
    )
    return f'<span class="tally">{counts}</span>'


def _paper(paper: JsonObject, options: str) -> str:
    """Return the section of a paper."""
    name = paper["paper"]
    exhibits = "".join(_exhibit(name, e, options) for e in paper["exhibits"])
    return f"""<h2 class="paper" id="{name}">{escape(paper["title"])}</h2>
<p class="note">{escape(paper["citation"])}</p>
{exhibits}"""


def _exhibit(paper: str, exhibit: JsonObject, options: str) -> str:
    """Return the section of an exhibit."""
    new = '<span class="new">new</span>' if exhibit["new"] else ""
    pictures = "".join(_figure(paper, figure) for figure in exhibit["figures"])
    tables = "".join(_table(paper, table) for table in exhibit["tables"])
    run = f"cwnd reproduce {paper} --exhibit {exhibit['id']}{options}"
    runs = f"{exhibit['seeds']} seeds, " if exhibit["seeds"] else ""
    has = " ".join(sorted({f"has-{claim['verdict']}" for claim in exhibit["claims"]}))
    return f"""<section class="exhibit {has}" id="{paper}-{exhibit["id"]}">
<h3><code>{exhibit["id"]}</code> {escape(exhibit["title"])}{new}
<small>{runs}{exhibit["seconds"]:.1f} s</small></h3>
{pictures}{_claims(exhibit["claims"])}{tables}
{_scenario(exhibit["scenario"])}
<div class="command"><pre><code>{escape(run)}</code></pre></div>
</section>
"""


def _figure(paper: str, figure: JsonObject) -> str:
    """Show a figure."""
    base = f"figures/{paper}-{figure['name']}"
    title = escape(figure["title"])
    return (
        f'<figure><img src="{base}.svg" alt="{title}" loading="lazy"><figcaption>{title} '
        f'<a href="{base}.svg">SVG</a> <a href="{base}.csv">CSV</a></figcaption></figure>'
    )


def _claims(claims: list[JsonObject]) -> str:
    """Tabulate claims, the paper's first, and list each explanation once."""
    notes = list(dict.fromkeys((c["cause"], c["why"]) for c in claims if c["why"]))
    parts = (
        ("Claims of the paper", [c for c in claims if c["kind"] not in headlines.OURS]),
        ("Our checks", [c for c in claims if c["kind"] == "check"]),
        ("Comparison with ns-2", [c for c in claims if c["kind"] == "ns-2"]),
    )
    body = "".join(
        f'<tbody><tr class="part"><th colspan="4" scope="rowgroup">{title}</th></tr>'
        + "".join(_claim(claim, notes) for claim in kept)
        + "</tbody>"
        for title, kept in parts
        if kept
    )
    listed = "".join(
        f"<li><em>{escape(CAUSES[cause])}</em> {escape(why)}</li>" for cause, why in notes
    )
    return (
        '<table class="claims"><thead><tr><th scope="col">Claim</th><th scope="col">Published</th>'
        '<th scope="col">Measured</th><th scope="col">Verdict</th></tr></thead>'
        f"{body}</table>" + (f'<ol class="reasons">{listed}</ol>' if listed else "")
    )


def _claim(claim: JsonObject, notes: list[tuple[str, str]]) -> str:
    """Return the row of a claim."""
    measured = escape(figure_text(claim["measured"]))
    if claim["interval"]:
        low, high = claim["interval"]
        measured += f"<small>{figure_text(low)} to {figure_text(high)}</small>"
    note = f"<sup>{notes.index((claim['cause'], claim['why'])) + 1}</sup>" if claim["why"] else ""
    return (
        f'<tr class="{claim["verdict"]}"><th scope="row">{escape(claim["text"])}</th>'
        f'<td data-head="Published">{escape(claim["published"] or "–")}</td>'
        f'<td data-head="Measured">{measured}</td>'
        f'<td title="{escape(RULES[claim["rule"]])}">{_badge(claim["verdict"])}{note}</td></tr>'
    )


def _table(paper: str, table: JsonObject) -> str:
    """Show a table."""
    link = f'<a href="figures/{paper}-{table["name"]}.csv">CSV</a>'
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in table["columns"])
    rows = "".join(
        f'<tr><th scope="row">{escape(figure_text(row[0]))}</th>'
        + "".join(f"<td>{escape(figure_text(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in table["rows"]
    )
    return (
        f"<details><summary>{escape(table['title'])}</summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{link}</details>"
    )


def _scenario(scenario: JsonObject) -> str:
    """Say what was run and what the paper's text does not settle."""
    parts = ""
    if scenario["inferred"]:
        items = "".join(f"<li>{escape(text)}</li>" for text in scenario["inferred"])
        summary = "Choices that the text leaves open"
        parts += f"<details><summary>{summary}</summary><ul>{items}</ul></details>"
    if scenario["toml"]:
        varied = f"<p>Varied: {escape(scenario['varied'])}</p>" if scenario["varied"] else ""
        toml = f"<pre><code>{escape(scenario['toml'])}</code></pre>"
        parts += f"<details><summary>Scenario</summary>{varied}{toml}</details>"
    elif scenario["varied"]:
        parts += f'<p class="note">{escape(scenario["varied"])}</p>'
    return parts


def markdown(document: JsonObject) -> str:
    """Return the main claims, the counts and the reason of each claim that differs, in Markdown.

    Parameters
    ----------
    document
        What `cwnd.papers.runner.reproduce` returned.
    """
    lines = ["# Reproduction of the papers", ""]
    for paper in document["papers"]:
        if paper["headlines"]:
            lines += [f"## {paper['title']}", "", "| main claim | verdict | why |", "|---|---|---|"]
            lines += [
                f"| {h['claim']} | **{h['verdict']}** | {_because(h)} |" for h in paper["headlines"]
            ]
            lines.append("")
    heads = " | ".join(VERDICTS)
    lines += ["## Claims", "", f"| paper | exhibit | {heads} |", "|---|---|---|---|---|---|"]
    for paper in document["papers"]:
        for e in paper["exhibits"]:
            verdicts = [claim["verdict"] for claim in e["claims"]]
            counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
            new = " (new)" if e["new"] else ""
            lines.append(f"| {paper['paper']} | {e['title']}{new} | {counts} |")
    for title, counts in (("Claims of the papers", "summary"), ("Our checks", "checks")):
        found = document[counts]
        lines += ["", f"{title}: " + ", ".join(f"{found[v]} {v}" for v in VERDICTS) + "."]
    for paper in document["papers"]:
        open_ = [line for e in paper["exhibits"] for line in _open_claims(e)]
        if open_:
            lines += ["", f"## {paper['paper']}: claims that differ", *open_]
    return "\n".join(lines) + "\n"


def _open_claims(exhibit: JsonObject) -> list[str]:
    """List the claims of an exhibit that differ by their reasons."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for claim in exhibit["claims"]:
        if claim["verdict"] == "differs":
            reasons.setdefault((claim["cause"], claim["why"]), []).append(
                f"{claim['text']}: {claim['published'] or '–'}, measured {measured_text(claim)}"
            )
    lines = ["", f"**{exhibit['id']}**, {exhibit['title']}", ""] if reasons else []
    for (cause, why), claims in reasons.items():
        lines.append(f"* *{cause}*: {why}")
        lines += [f"  * {claim}" for claim in claims]
    return lines
