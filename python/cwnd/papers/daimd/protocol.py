"""UDT itself on networks of the DAIMD paper, beside the stand-in that the other exhibits run.

The stand-in has UDT's rate control, reports, packet pairs and loss reports in packets of its own;
the protocol is `cwnd-udt`, datagram by datagram.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cwnd.papers import daimd_measures as read
from cwnd.papers import daimd_networks as nets
from cwnd.papers.claims import alike
from cwnd.papers.daimd_notes import INFERRED, why
from cwnd.papers.exhibit import Findings
from cwnd.papers.figure import Table
from cwnd.stats import estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cwnd.papers.claims import Claim
    from cwnd.papers.exhibit import Lab
    from cwnd.result import Result
    from cwnd.scenario import Scenario

LAW = "udt"
"""The rule that both run: version 4's."""

CARRIERS = ("stand-in", "UDT")
"""What carries the flows."""

SHOWN = (0, 3, 6)
"""The stages of Table 1 that are shown, from 0."""

Figures: TypeAlias = "dict[str, float]"
"""What is kept of a run, by name and unit."""

COMPARED = (*(f"EI of stage {n + 1}, Mb/s" for n in SHOWN), "EI, Mb/s", "FI", "UDT over TCP")
"""Figures that the stand-in should have in common with the protocol."""


class Case(NamedTuple):
    """A network of the paper, what is kept of its runs, and what the paper prints of that."""

    scenario: Scenario
    measure: Callable[[Result], Figures]
    published: Mapping[str, str]


def of_shares(result: Result) -> Figures:
    """Give the indices of Tables 4 and 5, with rates as on the wire."""
    shares = read.read_shares(result)
    return {"EI, Mb/s": shares.ei * _headers(result), "FI": shares.fi, "SI": shares.si}


def of_stages(result: Result) -> Figures:
    """Give EI of stages of one, four and again one flow, and FI of the four: rates of payload."""
    stages = read.read_stages(result)
    figures = {f"EI of stage {n + 1}, Mb/s": stages[n].ei for n in SHOWN}
    return figures | {"FI of stage 4": stages[3].fi, "loss of stage 4": stages[3].loss}


def of_ratio(result: Result) -> Figures:
    """Give UDT's rate over TCP's, both as on the wire."""
    udt, tcp = read.read_shares(result).rates
    return {"UDT over TCP": float(udt / tcp) * _headers(result)}


def _headers(result: Result) -> float:
    """Give bytes on the wire over those counted: of UDT the payload, of all else the packet."""
    return nets.PACKET_BITS / 8 / float(result.measured_flows[0]["packet_bytes"])


def _cases(lab: Lab) -> dict[str, Case]:
    """Give the cases, each short enough to be run both ways in a few seconds."""
    stage = lab.pick(2.0, 1.5)
    near, far = lab.pick(((4.0, 1.0), (8.0, 5.0)), ((4.0, 1.0), (6.0, 3.0)))
    printed = {f"EI of stage {n + 1}, Mb/s": nets.TABLE_1["EI, Mb/s"][n] for n in SHOWN}
    printed |= {"FI of stage 4": nets.TABLE_1["FI"][3], "loss of stage 4": nets.TABLE_1["loss"][3]}
    cases = {"Table 1": Case(nets.staircase(LAW, stage), of_stages, printed)}
    for rtt, spans in ((1e-3, near), (1e-1, far)):
        column = nets.RTTS.index(rtt)
        names = {"EI": "EI, Mb/s", "FI": "FI", "SI": "SI"}
        cases[f"Table 4, {1e3 * rtt:g} ms"] = Case(
            nets.ten_flows(LAW, rtt, *spans),
            of_shares,
            {names[index]: texts[column] for index, texts in nets.TABLE_4.items()},
        )
    beside = nets.beside_tcp(LAW, 100.0, 0.1, lab.pick(40.0, 20.0))
    cases["Fig. 14, 100 Mb/s, 100 ms"] = Case(beside, of_ratio, {})
    return cases


def compare(lab: Lab) -> Findings:
    """Run cases of the paper with the protocol and with its stand-in.

    Parameters
    ----------
    lab
        Where they run.
    """
    claims: list[Claim] = []
    rows: list[list[str | float]] = []
    for name, case in _cases(lab).items():
        networks = dict(zip(CARRIERS, (case.scenario, nets.over_udt(case.scenario)), strict=True))
        runs = lab.run(networks, case.measure, lab.seeds(3))
        for figure in runs[CARRIERS[0]][0]:
            pairs = [
                (before[figure], after[figure])
                for before, after in zip(*(runs[carrier] for carrier in CARRIERS), strict=True)
            ]
            before, after = (estimate(values).mean for values in zip(*pairs, strict=True))
            rows.append([name, figure, case.published.get(figure, ""), before, after])
            if figure in COMPARED:
                claims.append(
                    alike(
                        f"{name}: {figure}, the protocol over the stand-in",
                        [b / a for a, b in pairs],
                        why=why("protocol", LAW, figure),
                    )
                )
    heads = ["network", "figure", "published", *CARRIERS]
    return Findings(
        claims,
        [],
        [Table("protocol", "UDT and its stand-in", heads, rows)],
        "What carries the flows: the stand-in, or UDT itself.",
        list(INFERRED["protocol"]),
    )
