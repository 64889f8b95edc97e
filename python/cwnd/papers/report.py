"""The report of a reproduction: a page to read and to print, and a summary in Markdown."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from cwnd.figures import figure_text, measured_text
from cwnd.papers.runner import VERDICTS
from cwnd.report.page import facts, frame
from cwnd.result import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.records import JsonObject

_SCRIPT = """
<script>
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
    title = "The papers, run again"
    page = frame(title, "cwnd reproduce", body, style=style, scripts=_SCRIPT)
    write_text(out / "index.html", page)
    write_text(out / "summary.md", markdown(document))


def _summary(document: JsonObject, *, quick: bool) -> str:
    """Count the verdicts and list the exhibits."""
    summary = document["summary"]
    exhibits = [e for paper in document["papers"] for e in paper["exhibits"]]
    claims = sum(summary.values())
    length = "quick: fewer seeds, shorter runs" if quick else "full"
    counts = facts(
        [
            ("Exhibits", str(len(exhibits)), f"of {len(document['papers'])} papers"),
            ("Claims", str(claims), length),
            ("Hold", str(summary["holds"]), f"{summary['holds'] / max(claims, 1):.0%}"),
            ("Differ", str(summary["differs"]), "the reason stands beside each"),
            ("Unclear", str(summary["unclear"]), "the seeds do not decide"),
        ]
    )
    sections = "".join(
        f'<section><h3><a href="#{paper["paper"]}">{escape(paper["paper"])}</a></h3><ul>'
        + "".join(
            f'<li><a href="#{paper["paper"]}-{e["id"]}"><code>{e["id"]}</code> '
            f"{escape(e['title'])}</a>{_tally(e)}</li>"
            for e in paper["exhibits"]
        )
        + "</ul></section>"
        for paper in document["papers"]
    )
    return f"""{counts}
<p class="note">Each claim of a paper is held against a measurement by a rule that was fixed before
the result was looked at; every verdict shows its rule when it is opened. Red diamonds in the
figures are what the papers print.</p>
<h2>Contents</h2>
<nav class="contents">{sections}</nav>
"""


def _tally(exhibit: JsonObject) -> str:
    """Count an exhibit's verdicts."""
    verdicts = [claim["verdict"] for claim in exhibit["claims"]]
    counts = " ".join(
        f'<span class="{verdict}" title="{verdict}">{verdicts.count(verdict)} {verdict}</span>'
        for verdict in VERDICTS
        if verdict in verdicts
    )
    return f'<span class="tally">{counts}</span>'


def _paper(paper: JsonObject, options: str) -> str:
    """Make the section of a paper."""
    name = paper["paper"]
    verdicts = [claim["verdict"] for e in paper["exhibits"] for claim in e["claims"]]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
    exhibits = "".join(_exhibit(name, e, options) for e in paper["exhibits"])
    return f"""<h2 class="paper" id="{name}">{escape(paper["title"])}</h2>
<p class="note">{len(paper["exhibits"])} exhibits; claims: {counts}.</p>
{exhibits}"""


def _exhibit(paper: str, exhibit: JsonObject, options: str) -> str:
    """Make the section of an exhibit."""
    new = '<span class="new">new</span>' if exhibit["new"] else ""
    pictures = "".join(_figure(paper, figure) for figure in exhibit["figures"])
    tables = "".join(_table(paper, table) for table in exhibit["tables"])
    title = f"<code>{exhibit['id']}</code> {escape(exhibit['title'])}"
    run = f"cwnd reproduce {paper} --exhibit {exhibit['id']}{options}"
    return f"""<section class="exhibit" id="{paper}-{exhibit["id"]}">
<h3>{title}{new}<small>{exhibit["seconds"]:.1f} s</small></h3>
{pictures}{_claims(exhibit["claims"])}{tables}
{_scenario(exhibit["scenario"])}
<div class="command"><pre><code>{escape(run)}</code></pre></div>
</section>
"""


def _figure(paper: str, figure: JsonObject) -> str:
    """Show a figure."""
    base = f"figures/{paper}-{figure['name']}"
    links = "".join(f'<a href="{base}.{kind}">{kind.upper()}</a>' for kind in ("png", "svg", "csv"))
    title = escape(figure["title"])
    return (
        f'<figure><img src="{base}.svg" alt="{title}" loading="lazy">'
        f"<figcaption>{title} {links}</figcaption></figure>"
    )


def _claims(claims: list[JsonObject]) -> str:
    """Tabulate claims, each with its verdict and what stands behind it."""
    rows = []
    for claim in claims:
        verdict = claim["verdict"]
        measured = escape(figure_text(claim["measured"]))
        if claim["interval"]:
            low, high = claim["interval"]
            measured += f"<small>{figure_text(low)} to {figure_text(high)}</small>"
        judged = ' class="judged"' if claim["why"] else ""
        rows.append(
            f'<tr{judged}><th scope="row">{escape(claim["text"])}</th>'
            f"<td>{escape(claim['published'] or '–')}</td><td>{measured}</td>"
            f'<td class="verdict {verdict}"><details><summary>{verdict}</summary>'
            f"<small>{escape(claim['rule'])}</small></details></td></tr>"
        )
        if claim["why"]:
            rows.append(f'<tr class="why"><td colspan="4">{escape(claim["why"])}</td></tr>')
    return (
        '<div class="scroll" tabindex="0"><table class="claims"><thead><tr>'
        '<th scope="col">Claim</th><th scope="col">Published</th><th scope="col">Measured</th>'
        f'<th scope="col">Verdict</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
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
        f'<div class="scroll" tabindex="0"><table><caption>{escape(table["title"])} {link}'
        f"</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _scenario(scenario: JsonObject) -> str:
    """Say what was run and what of it had to be inferred."""
    parts = ""
    if scenario["inferred"]:
        items = "".join(f"<li>{escape(text)}</li>" for text in scenario["inferred"])
        parts += f"<details><summary>What was inferred</summary><ul>{items}</ul></details>"
    if scenario["toml"]:
        varied = f"<p>{escape(scenario['varied'])}</p>" if scenario["varied"] else ""
        toml = f"<pre><code>{escape(scenario['toml'])}</code></pre>"
        parts += f"<details><summary>Scenario</summary>{varied}{toml}</details>"
    elif scenario["varied"]:
        parts += f'<p class="note">{escape(scenario["varied"])}</p>'
    return parts


def markdown(document: JsonObject) -> str:
    """Write the verdicts, and the reason of each that does not hold, in Markdown.

    Parameters
    ----------
    document
        What `cwnd.papers.runner.reproduce` returned.
    """
    summary = document["summary"]
    lines = [
        ", ".join(f"{verdict}: {summary[verdict]}" for verdict in VERDICTS),
        "",
        "| paper | exhibit | holds | differs | unclear |",
        "|---|---|---|---|---|",
    ]
    for paper in document["papers"]:
        for e in paper["exhibits"]:
            verdicts = [claim["verdict"] for claim in e["claims"]]
            counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
            new = " (new)" if e["new"] else ""
            lines.append(f"| {paper['paper']} | {e['title']}{new} | {counts} |")
    for paper in document["papers"]:
        if all(claim["verdict"] == "holds" for e in paper["exhibits"] for claim in e["claims"]):
            continue
        lines += ["", f"## {paper['paper']}: what does not hold"]
        for e in paper["exhibits"]:
            lines += _open_claims(e)
    return "\n".join(lines) + "\n"


def _open_claims(exhibit: JsonObject) -> list[str]:
    """List the claims of an exhibit that do not hold, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for claim in exhibit["claims"]:
        if claim["verdict"] != "holds":
            reasons.setdefault(claim["why"], []).append(
                f"{claim['text']}: {claim['published'] or '–'}, measured {measured_text(claim)}, "
                f"{claim['verdict']}"
            )
    lines = ["", f"**{exhibit['id']}**, {exhibit['title']}", ""] if reasons else []
    for why, claims in reasons.items():
        lines.append(f"* {why}")
        lines += [f"  * {claim}" for claim in claims]
    return lines
