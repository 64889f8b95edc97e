"""Report of a reproduction: an HTML page, and a summary in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._base.files import write_text
from cwnd._papers import headlines
from cwnd._papers.grades import DEPENDS, RATINGS, RULES
from cwnd._papers.text import CAUSES
from cwnd._runs.conventions import conventions_text
from cwnd._show.report.page import render
from cwnd._show.sheets import figure_text, measured_text

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd._base.records import JsonObject


def write_report(
    document: JsonObject, out: Path, *, quick: bool, repeat: int | None = None
) -> None:
    """Write ``index.html`` and ``summary.md`` of a reproduction beside its ``figures``."""
    page = render(
        "reproduce.html",
        counts=_counts(document, quick=quick),
        papers=[_paper(paper) for paper in document["papers"]],
        glossary=[
            *RULES.items(),
            ("depends", DEPENDS),
            ("main claim", headlines.RULE),
            *((f"cause: {cause}", text) for cause, text in CAUSES.items()),
        ],
        verdicts=RATINGS,
        rules=RULES,
        causes=CAUSES,
        options=(" --quick" if quick else "") + (f" --repeat {repeat}" if repeat else ""),
        text=figure_text,
        because=_explain_verdict,
        conventions_text=conventions_text,
    )
    write_text(out / "index.html", page)
    write_text(out / "summary.md", markdown(document))


def _counts(document: JsonObject, *, quick: bool) -> list[tuple[str, str, str]]:
    """Count the verdicts on the papers' claims, and on our checks."""
    summary, checks = document["summary"], document["checks"]
    total, length = sum(summary.values()), "quick run" if quick else "full run"
    return [
        ("Claims of the papers", str(total), length),
        *((v.capitalize(), str(summary[v]), f"{summary[v] / max(total, 1):.0%}") for v in RATINGS),
        ("Our checks", str(sum(checks.values())), f"{checks['differs']} differ"),
    ]


def _paper(paper: JsonObject) -> JsonObject:
    """Add the exhibits of each main claim, and the contents of the exhibits, to a paper."""
    main = [
        headline
        | {"exhibits": list(dict.fromkeys(n.partition("/")[0] for n in headline["rests_on"]))}
        for headline in paper["headlines"]
    ]
    return paper | {"headlines": main, "exhibits": [_exhibit(e) for e in paper["exhibits"]]}


def _exhibit(exhibit: JsonObject) -> JsonObject:
    """Add counts of the verdicts, claims by kind, distinct explanations and trials."""
    claims = exhibit["claims"]
    trials = [trial["name"] for trial in exhibit["trials"]]
    readings = {trial["name"] for trial in exhibit["trials"] if trial["permits"]}
    verdicts = [claim["verdict"] for claim in claims]
    parts = (
        ("Claims of the paper", [c for c in claims if c["kind"] not in headlines.OURS]),
        ("Our checks", [c for c in claims if c["kind"] == "check"]),
        ("Comparison with ns-2", [c for c in claims if c["kind"] == "ns-2"]),
    )
    return exhibit | {
        "tally": {verdict: verdicts.count(verdict) for verdict in RATINGS},
        "parts": parts,
        "reasons": list(dict.fromkeys((c["cause"], c["why"]) for c in claims if c["why"])),
        "tried": [row for c in claims if (row := _tried(c, trials, readings))],
    }


def _tried(claim: JsonObject, trials: list[str], readings: set[str]) -> JsonObject | None:
    """Return the grades of a claim under each trial; None if all are equal and a cause is known.

    The default is a reading, too.
    """
    own = {"measured": claim["measured"], "interval": claim["interval"]}
    own["verdict"] = "differs" if claim["verdict"] == "depends" else claim["verdict"]
    found = {trial["name"]: trial for trial in claim["trials"]}
    equal = {trial["verdict"] for trial in found.values()} <= {own["verdict"]}
    if equal and not (found and claim["cause"] == "unknown"):
        return None
    among = [own, *(trial for name, trial in found.items() if name in readings)]
    agree = sum(grade["verdict"] == "agrees" for grade in among)
    return {
        "text": claim["text"],
        "grades": [own, *(found.get(name) for name in trials)],
        "holds": f"agrees under {agree} of {len(among)} readings" if len(among) > 1 else "",
    }


def _explain_verdict(headline: JsonObject) -> str:
    """Explain the verdict on a main claim, and what it depends on."""
    return f"{headline['reason']} Depends on: {headline['hangs_on']}"


def markdown(document: JsonObject) -> str:
    """Format the main claims, the counts and the reasons of differing claims as Markdown."""
    lines = ["# Reproduction of the papers", ""]
    for paper in document["papers"]:
        if paper["headlines"]:
            lines += [f"## {paper['title']}", "", "| main claim | verdict | why |", "|---|---|---|"]
            lines += [
                f"| {h['claim']} | **{h['verdict']}** | {_explain_verdict(h)} |"
                for h in paper["headlines"]
            ]
            lines.append("")
    heads = " | ".join(RATINGS)
    lines += ["## Claims", "", f"| paper | exhibit | TCP conventions | {heads} |"]
    lines.append("|---|---|---|" + "---|" * len(RATINGS))
    for paper in document["papers"]:
        for e in paper["exhibits"]:
            verdicts = [claim["verdict"] for claim in e["claims"]]
            counts = " | ".join(str(verdicts.count(verdict)) for verdict in RATINGS)
            new = " (new)" if e["new"] else ""
            names = ", ".join(e["scenario"]["conventions"])
            lines.append(f"| {paper['paper']} | {e['title']}{new} | {names} | {counts} |")
    for title, counts in (("Claims of the papers", "summary"), ("Our checks", "checks")):
        found = document[counts]
        lines += ["", f"{title}: " + ", ".join(f"{found[v]} {v}" for v in RATINGS) + "."]
    for paper in document["papers"]:
        open_ = [line for e in paper["exhibits"] for line in _open_claims(e)]
        if open_:
            lines += ["", f"## {paper['paper']}: claims that differ or depend", *open_]
    return "\n".join(lines) + "\n"


def _open_claims(exhibit: JsonObject) -> list[str]:
    """List the claims of an exhibit that differ or depend, by reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for claim in exhibit["claims"]:
        if claim["verdict"] in {"differs", "depends"}:
            reasons.setdefault((claim["cause"], claim["why"]), []).append(
                f"{claim['text']}: {claim['published'] or '–'}, measured {measured_text(claim)}"
            )
    lines = ["", f"**{exhibit['id']}**, {exhibit['title']}", ""] if reasons else []
    for (cause, why), claims in reasons.items():
        lines.append(f"* *{cause}*: {why}")
        lines += [f"  * {claim}" for claim in claims]
    return lines
