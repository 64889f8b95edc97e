"""The papers' analysis, callable: each function cites its equation and gives its units.

All take numbers or arrays, which are broadcast, and give a number for numbers and an array
otherwise. Rates are in packets per second, times in seconds, windows in packets, unless a function
says otherwise; `p` is the probability of a loss event; `beta` is the fraction GIVEN UP on a loss
(1/2 for TCP), also where a paper writes the fraction kept.

=================  ===============================================================================
`throughput`       sending rates and response functions against loss, and their inverse
`friendliness`     the increase that makes a law friendly to TCP
`law`              any law of the registry, alone, step by step
`synchronous`      flows in step: Chiu and Jain's model, and SIMD's Table 1
`stationary`       the stationary distribution of a window under random losses
`fluid`            flows of any window law through RED or DropTail, as a fluid
`daimd`            DAIMD and UDT: stages, equilibrium, time to fill a link, utility
`daimd_sharing`    DAIMD and UDT: against TCP, and the bounds of unfairness
`aiad`             AIAD: rate estimates, equilibrium, Lemma 1, the characteristic roots
`aiad_system`      AIAD: the nonlinear delayed system, integrated
`aira`             AIRA: rules, bounds, and one flow's rounds
`catalog`          all of them by name, for the command line
=================  ===============================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import attach

if TYPE_CHECKING:
    from cwnd.model import (
        aiad,
        aiad_system,
        aira,
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
