"""Fig. 14 (UDT with TCP), Table 6 (responses to random loss), UDT compared with its law."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd._papers.daimd import measures as read
from cwnd._papers.daimd import networks as net
from cwnd._papers.daimd.networks import LAW
from cwnd._papers.exhibit import exhibit
from cwnd._papers.figure import Curve, Figure, Panel, sweep
from cwnd._papers.grades import CLOSE, alike, at_most, fact, less, number
from cwnd.model import daimd as model
from cwnd.model import daimd_sharing as shared
from cwnd.model.throughput import RESPONSES, udt_response
from cwnd.stats import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd._papers.exhibit import Lab
    from cwnd._runs.result import Result
    from cwnd._runs.scenario import Scenario

RATES, RTTS = (1.0, 10.0, 100.0, 1000.0), (0.001, 0.01, 0.1)
"""Grid of Fig. 14: capacities in Mb/s and RTTs in seconds."""


@exhibit("fig-14", cost=15, seeds=(5, 5), quick=(5, 5))
def fig_14(lab: Lab) -> None:
    """Run one UDT flow with one TCP flow on links of several capacities and RTTs."""
    friendly(lab)

    def seconds(mbps: float, rtt: float) -> float:
        # TCP has to fill and halve its window several times.
        if lab.quick:
            return 10.0 if mbps == 1000 else 40.0
        return 150.0 if mbps < 1000 or rtt == 0.1 else 40.0

    cases = {}
    for mbps, rtt in product(RATES, RTTS):
        queue = net.QUEUE
        if lab.option("queue", "ns-2") == "product":
            queue = f"{max(100, round(mbps * 1e6 * rtt / net.PACKET_BITS))}p"
        cases[mbps, rtt] = net.beside_tcp(LAW, mbps, rtt, seconds(mbps, rtt), queue)
    runs = lab.run(cases, read.read_shares)
    ratio = {case: [run.rates[0] / run.rates[1] for run in runs[case]] for case in cases}
    ms = [1e3 * rtt for rtt in RTTS]
    _beside(lab, ratio)
    curves = sweep({(f"{c:g} Mb/s", 1e3 * rtt): r for (c, rtt), r in ratio.items()})
    curves.append(Curve("published, 1 Gb/s", [100.0], [5.0], "published"))
    curves.append(Curve("TCP's rate", ms, [1.0, 1.0, 1.0], dashed=True))
    panel = Panel("RTT, ms", "UDT's rate over TCP's", curves, x_log=True, y_log=True)
    lab.show(Figure("Rate of a UDT flow over that of a TCP flow", [panel]))


def friendly(lab: Lab) -> None:
    """Check Eq. 20, and the increase for SYN = RTT."""
    rtts, capacities = np.logspace(-5, 0, 101), np.logspace(5, 10, 101)
    rtt, capacity = (grid.ravel() for grid in np.meshgrid(rtts, capacities))
    inside = np.asarray(shared.friendly_margin(rtt, capacity)) >= 1
    most = float(np.asarray(shared.friendliness_ratio(rtt, capacity))[inside].max())
    lab.claim("eq-20", fact(f"at most {most:.3f} times TCP's rate", holds=most <= 1 + 1e-9))
    below, above = (float(model.increase_per_syn(0.0, rate)) for rate in (1e8, 1.01e8))
    words = f"{below:g} packets at 100 Mb/s, {above:g} at 101 Mb/s"
    lab.claim("packet-per-rtt", fact(words, holds=below < 1 <= above))
    for key, span in (("frequency", (1.01, 100.0)), ("frequency-reversed", (0.01, 0.99))):
        # In units of SYN: UDT increases once in each SYN, TCP by α once in each RTT.
        words = f"{span[0]:g} to {span[1]:g} increases in an RTT of {span[0]:g} to {span[1]:g} SYN"
        lab.claim(key, fact(words, holds=max(span) < 1))


def _beside(lab: Lab, ratio: Mapping[tuple[float, float], Sequence[float]]) -> None:
    """Compare the ratio of UDT's rate to TCP's with the statements on Fig. 14."""
    lab.number("five", ratio[1000.0, 0.1])
    for mbps, (near, far) in product(RATES, pairwise(RTTS)):
        grade = less(ratio[mbps, near], ratio[mbps, far])
        lab.claim("rtt", grade, mbps=f"{mbps:g}", near=f"{1e3 * near:g}", far=f"{1e3 * far:g}")
    for (mbps, rtt), found in ratio.items():
        if float(shared.friendly_margin(rtt, mbps * 1e6)) >= 1:
            lab.claim("friendly", at_most(1.0, found), mbps=f"{mbps:g}", ms=f"{1e3 * rtt:g}")
    for rtt in RTTS:
        lab.claim("slow", less(ratio[10.0, rtt], ratio[1.0, rtt]), ms=f"{1e3 * rtt:g}")


KELLY = "Scalable, a = 0.01"
"""Scalable TCP with its author's increase, a tenth of the printed one."""

TCPS = {
    "Reno": ("reno", "reno"),
    "Scalable": ("scalable", "scalable(a=0.1)"),
    KELLY: ("scalable", "scalable"),
    "HighSpeed": ("highspeed", "highspeed"),
    "BIC": ("bic", "bic"),
}
"""Variants of TCP: row of Table 6, and controller."""

LOSSES = (1e-4, 3e-4, 1e-3)
"""Loss rates at which windows are above the range in which the TCP variants behave as Reno."""

RARE = 1e-5
"""Loss rate for BIC alone: its formula holds for windows much larger than its 32 packets."""

PACED = ((100.0, 3e-3), (100.0, 1e-3), (100.0, 3e-4), (100.0, 1e-4), (1000.0, 1e-3), (1000.0, 3e-4))
"""Capacities in Mb/s and loss rates in UDT's first stage, except 100 Mb/s at 10⁻⁴ by Eq. 14."""


@exhibit("table-6", cost=8, seeds=(5, 5), quick=(5, 5))
def table_6(lab: Lab) -> None:
    """Run single flows of five TCPs and UDT under random loss."""
    losses = lab.pick(150.0, 36.0)

    def printed(row: str, p: float) -> float:
        return float(np.asarray(RESPONSES[row](p)))

    def tcp_seconds(row: str, p: float) -> float:
        return max(30.0, (losses / 3 if p == RARE else losses) / p * 0.1 / printed(row, p))

    tcps = {
        (name, p): net.lossy(spec, p, tcp_seconds(row, p), 0.1)
        for name, (row, spec) in TCPS.items()
        for p in lab.pick((RARE, *LOSSES) if row == "bic" else LOSSES, LOSSES[1:])
    }
    tcp = lab.run(tcps, read.read_response)
    exponents = lab.text.printed["rows"].column("exponent of p")
    for name, (row, _) in TCPS.items():
        mine = {p: found for (law, p), found in tcp.items() if law == name}
        for p, found in mine.items():
            grade = alike([run.window for run in found], printed(row, p))
            lab.claim("kelly" if name == KELLY else "response", grade, law=name, p=p)
        if name == KELLY:
            continue
        windows = np.log([[run.window for run in found] for found in mine.values()])
        slopes = np.polyfit(np.log(list(mine)), windows, 1)[0]
        lab.claim("exponent", number(exponents[row], slopes.tolist(), ANY), law=name)
        rarest = mine[min(mine)]
        if row == "bic":
            lab.number("bic-increase", [run.largest for run in rarest])
        else:
            lab.claim("increase", alike([run.increase for run in rarest], 1), law=name)
        lab.claim("decrease", alike([run.decrease for run in rarest], 1), law=name)
    paced = {}
    for mbps, p in PACED:
        rate = min(stage_rate(mbps, p), mbps * 1e6 / model.BITS_PER_SYN)
        seconds = max(30.0, losses / p * model.SYN / rate)
        paced[mbps, p] = net.lossy(net.without_window(LAW, mbps), p, seconds, 0.01, mbps)
    udt = lab.run(paced, read.read_paced)
    for (mbps, p), found in udt.items():
        grade = alike([run.window for run in found], stage_rate(mbps, p))
        lab.claim("udt", grade, mbps=f"{mbps:g}", p=p)
    end = 0.9 * 100e6 / model.BITS_PER_SYN
    lab.claim("udt-edge", alike([run.window for run in udt[100.0, LOSSES[0]]], end))
    slope = np.sqrt(32 * (2 - 1 / 8) / (2 / 8))
    words = f"{slope:.2f} p^-0.5"
    lab.claim("bic-aimd", fact(words, holds=bool(abs(slope / 24.65 - 1) > CLOSE)))
    lab.claim("udt-increase", alike([run.increase for run in udt[100.0, 1e-3]], 1))
    lab.number("udt-decrease", [run.decrease for run in udt[100.0, 1e-3]])
    lab.show(_responses(tcp, udt))


def stage_rate(capacity_mbps: float, p: float) -> float:
    """Return the printed response in packets per SYN, in the stage by the corrected equations."""
    stage = model.stable_stage(p, capacity_mbps * 1e6)
    return float(np.asarray(udt_response(p, capacity_mbps * 1e6, stage)))


def _responses(
    tcp: Mapping[tuple[str, float], Sequence[read.Response]],
    udt: Mapping[tuple[float, float], Sequence[read.Response]],
) -> Figure:
    """Draw the response functions, printed and simulated."""
    p, q = np.logspace(-5.2, -2.8, 50), np.logspace(-4.2, -2.3, 200)
    windows = {case: [run.window for run in found] for case, found in tcp.items()}
    left = sweep(windows, kind="points")
    left += [
        Curve("", p, RESPONSES[row](p), color=color, dashed=True)
        for color, (row, _) in enumerate(TCPS.values())
    ]
    rates = {
        (f"{mbps:g} Mb/s", p): [run.window for run in found] for (mbps, p), found in udt.items()
    }
    right = sweep(rates, kind="points")
    right += [
        Curve(f"{mbps:g} Mb/s, printed", q, [stage_rate(mbps, x) for x in q.tolist()], dashed=True)
        for mbps in (100.0, 1000.0)
    ]
    axes = ("loss rate p", "mean window, packets")
    log: dict[str, Any] = {"x_log": True, "y_log": True}
    panels = [
        Panel(*axes, left, "dashed: printed", y_limits=(0.3, 2e5), **log),
        Panel("loss rate p", "mean rate, packets per SYN", right, **log),
    ]
    return Figure("Response functions of Table 6, printed and simulated", panels)


@exhibit("protocol", cost=7, seeds=(5, 5), quick=(5, 5), new=True)
def protocol(lab: Lab) -> None:
    """Compare the UDT protocol with the law that represents it in the other exhibits."""
    law = net.UDT
    cases: dict[str, tuple[Scenario, Callable[[Result], read.Quantities]]] = {
        "Table 1": (net.staircase(law, float(lab.option("stage", "2"))), of_stages),
        "Table 4, 1 ms": (net.ten_flows(law, 1e-3, 4.0, 1.0), of_shares),
        "Table 4, 100 ms": (net.ten_flows(law, 1e-1, 8.0, 5.0), of_shares),
        "Fig. 14": (net.beside_tcp(law, 100.0, 0.1, 40.0), of_ratio),
    }
    rows = {}
    for name in lab.pick(list(cases), ["Fig. 14"]):
        scenario, measure = cases[name]
        both = lab.run({"stand-in": scenario, "UDT": net.over_udt(scenario)}, measure)
        for quantity in both["UDT"][0]:
            stand_in, udt = ([run[quantity] for run in both[key]] for key in both)
            lab.claim("same", alike(udt, stand_in), network=name, quantity=quantity)
            rows[name, quantity] = [*zip(udt, stand_in, strict=True)]
    lab.means(["", "", "UDT", "stand-in"], rows)


def of_shares(result: Result) -> read.Quantities:
    """Return EI, on the wire, and FI of the flows."""
    indices = read.read_shares(result).indices
    return {"EI": indices["EI"] * _headers(result), "FI": indices["FI"]}


def of_stages(result: Result) -> read.Quantities:
    """Return EI of the payload in stages of one, four and again one flow."""
    stages = read.read_stages(result).stages
    return {f"EI of stage {n + 1}": stages[n]["EI"] for n in (0, 3, 6)}


def of_ratio(result: Result) -> read.Quantities:
    """Return the ratio of UDT's rate to TCP's, both on the wire."""
    udt, tcp = read.read_shares(result).rates
    return {"UDT over TCP": float(udt / tcp) * _headers(result)}


def _headers(result: Result) -> float:
    """Return the ratio of bytes on the wire to those counted: UDT's payload, others' packets."""
    return net.PACKET_BITS / 8 / float(result.measured_flows[0]["packet_bytes"])
