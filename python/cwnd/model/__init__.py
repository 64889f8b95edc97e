"""Models of the papers: each function cites its equation and states its units.

Functions accept numbers and arrays, which are broadcast, and return a number for numbers and an
array otherwise. An argument outside its domain is an `ArgumentError`, which names the argument; an
unknown law or one of the wrong kind is a `SpecError`. Unless a function says otherwise, rates are
in packets per second, times in seconds, windows in packets. `p` is the probability of a loss event.
`beta` is the fraction of the window GIVEN UP on a loss (1/2 for TCP), even if a paper writes the
fraction kept.

=================  ===============================================================================
`throughput`       sending rates and response functions of the loss probability; inverses
`friendliness`     the increase that makes a law TCP-friendly
`law`              any registered law, alone, step by step
`synchronous`      synchronised losses: Chiu and Jain's model, and SIMD's Table 1
`stationary`       the stationary distribution of a window under random losses
`fluid`            fluid model of any window law through RED or DropTail
`daimd`            DAIMD and UDT: stages, equilibrium, time to fill a link, utility
`daimd_sharing`    DAIMD and UDT: sharing with TCP, and bounds of unfairness
`aiad`             AIAD: rate estimates, equilibrium, Lemma 1, the characteristic roots
`aiad_system`      AIAD: numerical integration of the nonlinear delayed system
`aira`             AIRA: rules, bounds, and one flow's rounds
`behaviour`        a law alone, in step and from loss to loss: what `cwnd model simd` prints
`catalog`          all models by name, for the command line
=================  ===============================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._base.lazy import attach

if TYPE_CHECKING:
    from cwnd.model import (
        aiad,
        aiad_system,
        aira,
        behaviour,
        catalog,
        daimd,
        daimd_sharing,
        fluid,
        friendliness,
        law,
        stationary,
        synchronous,
        throughput,
    )

__all__ = [
    "aiad",
    "aiad_system",
    "aira",
    "behaviour",
    "catalog",
    "daimd",
    "daimd_sharing",
    "fluid",
    "friendliness",
    "law",
    "stationary",
    "synchronous",
    "throughput",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, ""))
