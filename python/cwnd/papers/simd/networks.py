"""The networks of the SIMD paper and what is read off their runs.

Packets are of 1000 bytes without headers (500 in the convergence tests), as ns-2 had them in the
spring of 2001. ``beta`` is the fraction of the window given up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from cwnd.records import FlowRecord, LinkRecord, Series
    from cwnd.result import Result

QUEUES = {
    "RED with ECN": '{ kind = "red", ecn = true }',
    "RED": '"red"',
    "DropTail": '"1.5bdp"',
}
"""Bottleneck queues of section 5.2; what is not said is Table 2, which is the default here."""

_TRUNKS = ("left-right", "right-left")

EPSILON = 10.0
"""Packets between two windows that count as equal (section 5.3)."""


def growth(controller: str, background: str = "7mbit") -> Scenario:
    """Give one flow four times its bandwidth at once: traffic beside it ends at 30 s.

    Until then it has some 60 packets under way, afterwards there is room for 120 before a queue
    builds up; its round-trip time is then that of the link.

    Parameters
    ----------
    controller
        The flow's law.
    background
        Rate of the other traffic.
    """
    return Scenario.from_toml(f"""
name = "simd-growth"
title = "A window after its last loss"
duration = "60s"
sample = "20ms"

[[link]]
from = "source"
to = "sink"
rate = "10mbit"
delay = "50ms"
queue = "30p"

[tcp]
packet = 1000
delayed_acks = false
byte_counting = false

[[flow]]
controller = "{controller}"
from = "source"
to = "sink"
start = "0s..1s"

[[cbr]]
rate = "{background}"
from = "source"
to = "sink"
stop = "30s"
jitter = 0.5
""")


@dataclass(frozen=True, slots=True)
class Growth:
    """A window from its last loss on.

    Attributes
    ----------
    rtts, window
        Round-trip times since it began to grow, and its packets then.
    largest, smallest
        w_max and w_0: packets before and after the loss.
    alpha
        SIMD's α then; NaN for other laws.
    """

    rtts: Series
    window: Series
    largest: float
    smallest: float
    alpha: float

    def exponent(self) -> float:
        """Fit k in w - w_0 ∝ tᵏ, from the 10th round-trip time on."""
        late = self.rtts >= 10
        slope, _ = np.polyfit(np.log(self.rtts[late]), np.log(self.window[late] - self.smallest), 1)
        return float(slope)


def read_growth(result: Result, most: float = 115.0) -> Growth:
    """Read the growth of the flow after the last loss that the other traffic gave it.

    Parameters
    ----------
    result
        A run of `growth`.
    most
        Window in packets up to which no queue builds up.
    """
    flow = result.record["flows"][0]
    cuts = flow["cuts"]
    last = int(np.flatnonzero(cuts["time"] < 31.0)[-1])
    after = float(cuts["after"][last])
    time, window = result.time, flow["window"]
    grown = (time > cuts["time"][last]) & (window > after)
    if last + 1 < cuts["time"].size:
        grown &= time < cuts["time"][last + 1]
    over = np.flatnonzero(grown & (window > most))
    end = over[0] if over.size else time.size
    begin = int(np.flatnonzero(grown)[0])
    part = slice(begin, end)
    rtts = np.cumsum(np.diff(time[begin - 1 : end]) / flow["rtt"][part])
    alpha = float(flow["gauges"]["alpha"][begin]) if "alpha" in flow["gauges"] else math.nan
    return Growth(rtts, window[part], float(cuts["before"][last]), after, alpha)


def random_loss(controller: str, loss: float, rtts: int = 3000) -> Scenario:
    """Put one flow on a fat link that loses packets by chance (section 5.1).

    Parameters
    ----------
    controller
        Its law.
    loss
        Probability that a data packet is lost.
    rtts
        Length of the run in round-trip times of 0.1 s.
    """
    return Scenario.from_toml(f"""
name = "simd-random-loss"
title = "One flow under random loss"
duration = {0.1 * rtts}
sample = "10s"

[[link]]
from = "source"
to = "sink"
delay = "50ms"
loss = {loss}

[tcp]
conventions = "ns2-2001"
packet = 1000
window = 128

[[flow]]
controller = "{controller}"
from = "source"
to = "sink"
""")


def compatibility(
    rate: int,
    queue: str,
    n: int,
    *,
    controller: str = "simd(beta=1/16)",
    warmup: int = 30,
    measured: int = 60,
    sample: str = "1s",
) -> Scenario:
    """Let n flows of a law and n TCP flows share a bottleneck (section 5.2).

    Parameters
    ----------
    rate
        Of the bottleneck, in Mb/s.
    queue
        One of `QUEUES`.
    n
        Flows of each kind.
    controller
        The law.
    warmup, measured
        Seconds before and of the measurement.
    sample
        Time between two samples.
    """
    return Scenario.from_toml(f"""
name = "simd-compatibility"
title = "A law against TCP"
duration = {warmup + measured}
warmup = {warmup}
sample = "{sample}"

[dumbbell]
rate = "{rate}mbit"
delay = "20ms"
bdp_rtt = "60ms"
queue = {QUEUES[queue]}

[access]
rate = "{10 * rate}mbit"
delay = "0ms..10ms"

[tcp]
conventions = "ns2-2001"
packet = 1000
window = 1000
ecn = {str(queue.endswith("ECN")).lower()}

[[flow]]
controller = "{controller}"
name = "law"
count = {n}
start = "0s..5s"

[[flow]]
controller = "reno"
name = "tcp"
count = {n}
start = "0s..5s"

[[flow]]
controller = "reno"
name = "back"
count = 4
start = "0s..5s"
reverse = true
measured = false
""")


@dataclass(frozen=True, slots=True)
class Shares:
    """What flows of a law and of TCP got of a link.

    Attributes
    ----------
    law, tcp
        Throughput of each flow over its fair share, retransmissions included.
    loss, marks
        Fractions of the flows' data packets that were dropped and marked.
    rtt
        Mean round-trip time in seconds: 60 ms of propagation on average, and both queues.
    cuts
        Cuts of the window of a flow of the law while it was measured.
    """

    law: Series
    tcp: Series
    loss: float
    marks: float
    rtt: float
    cuts: float

    @property
    def ratio(self) -> float:
        """Mean throughput of the law over that of TCP."""
        return float(self.law.mean() / self.tcp.mean())

    @property
    def spread(self) -> float:
        """Deviation of the flows' throughput from their group's mean, over the fair share."""
        groups = (self.law, self.tcp)
        return math.sqrt(float(np.mean([np.mean((x - x.mean()) ** 2) for x in groups])))


def read_shares(result: Result) -> Shares:
    """Read what each flow got of the bottleneck.

    Parameters
    ----------
    result
        A run of `compatibility`.
    """
    flows = result.measured_flows
    rate = result.bottleneck["rate_bps"]
    fair = rate / len(flows) * result.measured_s
    sent = sum(flow["packets_sent"] for flow in flows)

    def group(name: str) -> list[FlowRecord]:
        return [flow for flow in flows if flow["name"].startswith(name)]

    def share(flow: FlowRecord) -> float:
        return 8 * flow["packets_sent"] * flow["packet_bytes"] / fair

    trunks = [link for link in result.record["links"] if link["name"] in _TRUNKS]
    law = group("law")
    cuts = [np.count_nonzero(flow["cuts"]["time"] >= result.warmup_s) for flow in law]
    return Shares(
        np.array([share(flow) for flow in law]),
        np.array([share(flow) for flow in group("tcp")]),
        sum(flow["packets_lost"] for flow in flows) / sent,
        sum(flow["packets_marked"] for flow in flows) / sent,
        0.06 + sum(link["delay"]["mean"] for link in trunks),
        float(np.mean(cuts)),
    )


def convergence(controller: str, experiment: int, switch: int, after: int) -> Scenario:
    """Leave two flows of one law alone on the middle of Figure 9's chain.

    Parameters
    ----------
    controller
        The law of all flows.
    experiment
        1: flow 1 was held down by 15 flows, flow 2 had its link to itself (section 5.3.1). 2: both
        were held down, by 11 and by 3 flows (section 5.3.2).
    switch
        When the other flows end, in seconds.
    after
        Seconds from then to the end.
    """
    c1, c2, y = {1: (15, 0, 6), 2: (11, 3, 10)}[experiment]
    trunks = "".join(
        f"""
[[link]]
from = "{a}"
to = "{b}"
rate = "{rate}mbit"
delay = "12ms"
bdp_rtt = "50ms"
queue = "red"
back = {{ queue = "2.5bdp" }}
"""
        for a, b, rate in (("b1", "b2", 6), ("b2", "b3", 6), ("b3", "b4", y))
    )
    groups = (("s1", 1, "b1", "b3"), ("s2", 1, "b2", "b4"), ("c1", c1, "b1", "b2"))
    flows = "".join(
        f"""
[[flow]]
controller = "{controller}"
name = "{name}"
count = {count}
from = "{a}"
to = "{b}"
start = "0s..2s"
{f"stop = {switch}" if name.startswith("c") else ""}
measured = {str(name.startswith("s")).lower()}
"""
        for name, count, a, b in (*groups, ("c2", c2, "b3", "b4"))
    )
    return Scenario.from_toml(f"""
name = "simd-convergence-{experiment}"
title = "Two flows converge"
duration = {switch + after}
sample = "50ms"

[access]
rate = "100mbit"
delay = "0.25ms..0.75ms"

[tcp]
conventions = "ns2-2001"
packet = 500
window = 128
{trunks}{flows}""")


@dataclass(frozen=True, slots=True)
class Convergence:
    """How two flows came together once they were alone.

    Attributes
    ----------
    w1, w2
        Their windows when the others ended, in packets.
    t1
        Round-trip times until one cut its window for a loss on the shared link.
    total, delta
        Sum and distance of the windows at that time, in packets; before the cut.
    t2, t2_s
        Until the windows were first less than `EPSILON` apart: in round-trip times, in seconds.
    roughness
        Mean change of a window within a second, over the window, from the end of the others on.
    time, windows
        For drawing, in steps of 0.2 s: seconds since the others ended, and both windows.
    """

    w1: float
    w2: float
    t1: float
    total: float
    delta: float
    t2: float
    t2_s: float
    roughness: float
    time: Series
    windows: Series


def read_convergence(result: Result, switch: float) -> Convergence:
    """Read how the flows s1 and s2 converge.

    A round-trip time is 50 ms and what the queue of the shared link adds at that moment.

    Parameters
    ----------
    result
        A run of `convergence`.
    switch
        When the other flows ended, in seconds.
    """
    record = result.record
    flows = [flow for flow in record["flows"] if flow["measured"]]
    (link,) = [link for link in record["links"] if link["name"] == "b2-b3"]
    time = result.time
    windows = np.array([flow["window"] for flow in flows])
    begin = int(np.searchsorted(time, switch - 1e-9))
    rtt = 0.05 + (link["queue"] + 1) * 8 * 500 / link["rate_bps"]
    rtts = np.concatenate(
        [np.zeros(begin + 1), np.cumsum(np.diff(time[begin:]) / rtt[begin + 1 :])]
    )

    apart = np.abs(windows[1] - windows[0])
    near = np.flatnonzero((apart < EPSILON) & (time >= time[begin]))
    cut = _first_cut(time, flows, link, begin)
    step = round(1.0 / (time[1] - time[0]))
    after = windows[:, begin::step]
    shown = slice(max(begin - 20 * step, 0), None, step // 5)
    return Convergence(
        float(windows[0, begin]),
        float(windows[1, begin]),
        float(rtts[cut]) if cut is not None else math.nan,
        float(windows[:, cut].sum()) if cut is not None else math.nan,
        float(apart[cut]) if cut is not None else math.nan,
        float(rtts[near[0]]) if near.size else math.nan,
        float(time[near[0]] - time[begin]) if near.size else math.nan,
        float(np.mean(np.abs(np.diff(after)) / after[:, :-1])),
        time[shown] - switch,
        windows[:, shown],
    )


def _first_cut(time: Series, flows: list[FlowRecord], link: LinkRecord, begin: int) -> int | None:
    """Find the last sample before a flow cut its window for a drop on a link after a sample.

    A cut just after the others ended can still answer a drop on another link.
    """
    drops = link["drops_series"]
    cuts = np.sort(np.concatenate([flow["cuts"]["time"] for flow in flows]))
    for cut in cuts[cuts > time[begin]]:
        before = int(np.searchsorted(time, cut)) - 1
        if drops[before] > drops[begin]:
            return before
    return None
