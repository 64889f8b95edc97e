"""Arun and Balakrishnan 2018: Copa."""

from __future__ import annotations

from typing import Any

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.grades import alike, at_least, less
from cwnd._papers.today.measures import course, each, share, shared, wave
from cwnd._papers.today.networks import alone, beside_cubic, copa
from cwnd.stats import UNIT

NAMES = {"copa": "Copa", "cubic": "CUBIC", "bbr": "BBR"}
PATHS = {(1, 50, 50): 4, (1, 100, 20): 4, (4, 100, 40): 4, (4, 100, 100): 4}
"""Buffer in bandwidth-delay products by number of flows, rate in Mb/s and RTT in ms."""


@exhibit("copa-queue", cost=6, seeds=(5, 10), quick=(5, 5))
def copa_queue(lab: Lab) -> None:
    """Measure the oscillation of the queue of flows in the default mode."""
    cases = {place: copa(*place, size, 60.0) for place, size in PATHS.items()}
    found = lab.run(cases, wave)
    lowest = lab.option("lowest", "low")
    for (count, rate, rtt), runs in found.items():
        of: dict[str, Any] = {"flows": count, "rate": rate, "rtt": rtt}
        lab.number("empty", [getattr(run, lowest) for run in runs], **of)
        lab.number(f"most-{count}", [run.high for run in runs], **of)
        lab.number("period", [1e3 * run.period / rtt for run in runs], **of)
        lab.claim("used", at_least(0.95, [run.used for run in runs], UNIT), **of)
    panels = []
    for count, rate, rtt in ((1, 50, 50), (4, 100, 40)):
        (run,) = lab.run({0: cases[count, rate, rtt]}, course, seeds=1)[0]
        end = 40.0 + 10 * rtt / 1e3
        here = (run.time >= 40.0) & (run.time < end)
        time = 1e3 * (run.time[here] - 40.0)
        queue = Curve("queue", time, run.queue[here])
        most = Curve("2.5 n/δ", [0.0, 10.0 * rtt], [5.0 * count] * 2, dashed=True)
        title = f"{count} of Copa, {rate} Mb/s, {rtt} ms"
        panels.append(
            Panel("time, ms", "packets", [queue, most], title, y_limits=(0.0, 7.0 * count))
        )
    lab.show(Figure("Queue of flows in the default mode, ten round-trip times", panels))


RTTS = (20.0, 40.0, 80.0, 160.0)
SIZES = (0.5, 1.0, 2.0, 4.0)


@exhibit("copa-others", cost=20, seeds=(8, 16), quick=(5, 5))
def copa_others(lab: Lab) -> None:
    """Compare flows of Copa with flows of CUBIC and of BBR."""
    long = lab.pick(120.0, 60.0)
    same = lab.run({law: alone(law, long) for law in NAMES}, shared)
    rtts = lab.run({law: alone(law, long, rtts=RTTS) for law in NAMES}, shared)
    far = lab.run({law: alone(law, long, rtts=(600.0,)) for law in NAMES}, each)
    lossy = lab.run({law: alone(law, long, rtts=(40.0,), loss=0.01) for law in NAMES}, each)
    sizes = lab.pick(SIZES, (1.0, 4.0))
    beside = {
        (law, size): beside_cubic(law, size, long) for law in ("copa", "bbr") for size in sizes
    }
    shares = lab.run(beside, share)
    used, delay, jain, uneven = (
        {law: [getattr(run, key) for run in runs[law]] for law in NAMES}
        for runs, key in ((same, "used"), (same, "delay"), (same, "jain"), (rtts, "jain"))
    )
    lab.claim("throughput", alike(used["copa"], used["cubic"]))
    for law in ("cubic", "bbr"):
        lab.claim("delay", less(delay["copa"], delay[law]), law=NAMES[law])
        lab.claim("diverse", less(uneven[law], uneven["copa"]), law=NAMES[law])
        rates = {name: [f.goodput for (f,) in far[name]] for name in (law, "copa")}
        lab.claim("far", less(rates[law], rates["copa"]), law=NAMES[law])
    lab.claim("fair", less(jain["bbr"], jain["copa"]))
    rates = {law: [f.goodput for (f,) in lossy[law]] for law in NAMES}
    lab.claim("robust", less(rates["cubic"], rates["copa"]))
    off = {case: [abs(value - 0.5) for value in runs] for case, runs in shares.items()}
    for size in sizes:
        grade = less(off["copa", size], off["bbr", size])
        lab.claim("coexists", grade, size=f"{size:g}")
    lab.means(
        ["law", "utilisation", "queueing delay, ms", "Jain, 40 ms", "Jain, 20 to 160 ms"],
        {
            (name,): [
                (run.used, 1e3 * run.delay, run.jain, other.jain)
                for run, other in zip(same[law], rtts[law], strict=True)
            ]
            for law, name in NAMES.items()
        },
    )
    laws = range(len(NAMES))
    waits = [[1e3 * value for value in delay[law]] for law in NAMES]
    x = range(len(sizes))
    beside_curves = [
        Curve.of_means(NAMES[law], x, [shares[law, s] for s in sizes], within=UNIT)
        for law in ("copa", "bbr")
    ]
    panels = [
        Panel(
            "",
            "queueing delay, ms",
            [Curve.of_means("four flows, 40 ms", laws, waits, "points")],
            ticks=list(NAMES.values()),
        ),
        Panel(
            "",
            "Jain's index",
            [
                Curve.of_means(label, laws, [by[law] for law in NAMES], "points", within=UNIT)
                for label, by in (("40 ms", jain), ("20 to 160 ms", uneven))
            ],
            ticks=list(NAMES.values()),
            y_limits=(0.0, 1.05),
        ),
        Panel(
            "buffer / BDP",
            "share beside CUBIC",
            [*beside_curves, Curve("even", [0, x[-1]], [0.5, 0.5], dashed=True)],
            "two flows beside two of CUBIC",
            ticks=[f"{size:g}" for size in sizes],
            y_limits=(0.0, 1.0),
        ),
    ]
    lab.show(Figure("Copa, CUBIC and BBR on 24 Mb/s", panels))
