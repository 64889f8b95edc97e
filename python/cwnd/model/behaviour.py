"""A controller's law in the models that need nothing else: alone, in step, from loss to loss."""

from __future__ import annotations

from typing import Annotated, TypedDict

from cwnd.controller import Spec
from cwnd.errors import ArgumentError
from cwnd.model.law import RTT_S, is_rate_law, sawtooth, specification
from cwnd.model.quantities import Unit
from cwnd.model.stationary import figures
from cwnd.model.synchronous import convergence

LOSS_RATES = (1e-4, 1e-3, 1e-2)
WINDOWS = (20.0, 100.0, 1000.0)
START = (10.0, 30.0)
CAPACITY = 100.0
MAX_ROUNDS = 10_000
"""Rounds of two flows in step; a rate law may have 10000 control intervals in each."""


class Alone(TypedDict):
    """The stationary distribution of the window under random losses."""

    p: Annotated[float, "Probability that a packet is lost"]
    mean_window: Annotated[float, "Mean of the window over time", Unit("packets")]
    cv: Annotated[float, "Coefficient of variation of the window"]
    rate_pps: Annotated[float, "Mean rate", Unit("packets/s")]


class Tooth(TypedDict):
    """A cycle between losses at one window."""

    at_loss: Annotated[float, "Window at the loss", Unit("packets")]
    after: Annotated[float, "Window after it", Unit("packets")]
    rounds: Annotated[float, "Round-trip times to the next loss"]
    packets: Annotated[float, "Packets sent until then"]


class InStep(TypedDict):
    """Two flows of the law that start apart, with synchronised losses."""

    rounds_to_use_the_link: Annotated[float, "Rounds until they use the link"]
    rounds_to_share_it: Annotated[float, "Rounds from then on until they share it"]
    epochs: Annotated[float, "Losses until they share it"]


class Behaviour(TypedDict):
    """The law of a controller in three models; a model that does not apply is None."""

    controller: Annotated[str, "The specification"]
    rtt_s: Annotated[float, "Round-trip time", Unit("s")]
    alone: Annotated[list[Alone] | None, "Rows by loss rate"]
    loss_to_loss: Annotated[list[Tooth] | None, "Rows by window at the loss"]
    in_step: Annotated[InStep, "From windows of 10 and 30 packets on a link of 100"]
    reasons: Annotated[list[str], "Why a model does not apply"]


def behaviour(spec: Annotated[Spec, "A controller; as for `cwnd.compare`"]) -> Behaviour:
    """Evaluate a law alone at some loss rates, between losses at some windows, and in step.

    The models are `cwnd.model.stationary.figures`, `cwnd.model.law.sawtooth` and
    `cwnd.model.synchronous.convergence`, from windows of 10 and 30 packets on a link of 100, for up
    to 10000 rounds.

    Raises
    ------
    SpecError
        An unknown controller, or a whole one.

    Examples
    --------
    >>> found = behaviour("reno")
    >>> round(found["alone"][1]["mean_window"], 1), found["loss_to_loss"][0]["after"]
    (40.6, 10.0)
    """
    reasons = []
    alone: list[Alone] | None = None
    teeth: list[Tooth] | None = None
    if is_rate_law(spec):
        reasons.append("alone and from loss to loss: the models are of laws for the window")
    else:
        try:
            found = [(p, figures(spec, p)) for p in LOSS_RATES]
            alone = [
                Alone(p=p, mean_window=float(f.mean), cv=float(f.cv), rate_pps=float(f.rate))
                for p, f in found
            ]
        except ArgumentError as problem:
            reasons.append(f"alone: {problem.problem}")
        try:
            tooth = sawtooth(spec, WINDOWS)
            rows = zip(WINDOWS, tooth.after, tooth.rounds, tooth.packets, strict=True)
            teeth = [
                Tooth(at_loss=w, after=float(after), rounds=float(took), packets=float(packets))
                for w, after, took, packets in rows
            ]
        except ArgumentError as problem:
            reasons.append(f"from loss to loss: {problem.problem}")
    pair = convergence(spec, *START, CAPACITY, 1.0, limit=MAX_ROUNDS)
    step = InStep(
        rounds_to_use_the_link=float(pair.t1),
        rounds_to_share_it=float(pair.t2),
        epochs=float(pair.epochs),
    )
    return Behaviour(
        controller=specification(spec),
        rtt_s=RTT_S,
        alone=alone,
        loss_to_loss=teeth,
        in_step=step,
        reasons=reasons,
    )
