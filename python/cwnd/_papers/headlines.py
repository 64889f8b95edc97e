"""Verdicts on the main claims of a paper."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from cwnd._papers.grades import RATINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd._base.records import JsonObject
    from cwnd._papers.grades import Rating
    from cwnd._papers.text import Headline

OURS = frozenset({"check", "ns-2"})
"""Kinds of claims that are not in the paper."""

MAJORITY = 0.75
"""Fraction of the claims that decides the verdict."""

RULE = (
    "A main claim agrees if at least three quarters of the claims that it rests on agree, is close "
    "if at least three quarters agree or are close, depends if at least three quarters agree, are "
    "close or depend, is undecided if the undecided ones could still reach that share, and differs "
    "otherwise."
)


def headlines(main: Iterable[Headline], exhibits: Iterable[JsonObject]) -> list[JsonObject]:
    """Judge the main claims of a paper from its exhibits, both as plain data.

    Main claims none of whose claims was run are omitted. ``rests_on`` lists the claims.
    """
    named = {f"{e['id']}/{claim['name']}": claim for e in exhibits for claim in e["claims"]}
    found = []
    for headline in main:
        under = [name for name in named if any(fnmatchcase(name, p) for p in headline.rests_on)]
        if under:
            verdicts: list[Rating] = [named[name]["verdict"] for name in under]
            found.append(
                {
                    "claim": headline.claim,
                    "verdict": judge(verdicts),
                    "reason": _reason(verdicts),
                    "hangs_on": headline.hangs_on,
                    "rests_on": under,
                }
            )
    return found


def judge(verdicts: list[Rating]) -> Rating:
    """Judge a main claim from the verdicts on its claims, by `RULE`."""
    ratings: tuple[Rating, ...] = ("agrees", "close", "depends", "undecided")
    agree, near, depend, open_ = (verdicts.count(v) for v in ratings)
    enough = MAJORITY * len(verdicts)
    if agree >= enough:
        return "agrees"
    if agree + near >= enough:
        return "close"
    if agree + near + depend >= enough:
        return "depends"
    return "undecided" if agree + near + depend + open_ >= enough else "differs"


def _reason(verdicts: list[Rating]) -> str:
    """Count the claims with each verdict."""
    words = {"agrees": "agree", "depends": "depend", "differs": "differ"}
    counts = ", ".join(f"{verdicts.count(v)} {words.get(v, v)}" for v in RATINGS if v in verdicts)
    return f"Of {len(verdicts)} claims: {counts}." if len(verdicts) > 1 else f"1 claim: {counts}."
