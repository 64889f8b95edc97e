"""The simulator with the conventions of Linux beside recorded runs of the kernel's TCP."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"

AGREE = 12
"""Networks of which goodput, share, loss and mean queueing delay agree: at least this many."""


@pytest.fixture
def matrix(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("agreement_linux")


def test_the_recorded_networks_are_those_of_the_matrix(matrix):
    recorded = [each.cell for each in matrix.compare(matrix.CELLS[:1])]
    assert recorded == matrix.CELLS[:1]
    assert len(matrix.CELLS) == len({cell.name for cell in matrix.CELLS}) == 62
    cell = matrix.CELLS[0]
    assert cell.agrees("goodput_bps", 10e6, 10.4e6)
    assert not cell.agrees("goodput_bps", 10e6, 10.6e6)
    assert cell.agrees("loss_rate", 0.01, 0.0149)
    assert not cell.agrees("loss_rate", 0.01, 0.0151)
    assert cell.agrees("loss_rate", 1e-5, 9e-5)
    # The transmission time of a packet is 0.6 ms.
    assert cell.agrees("queue_delay_s", 2e-3, 2.5e-3)
    assert not cell.agrees("queue_delay_s", 2e-3, 2.7e-3)


@pytest.mark.slow
def test_the_simulator_agrees_with_the_kernel(matrix):
    compared = list(matrix.compare(matrix.MATRICES["Reno and CUBIC"]))
    assert len(compared) == 24
    agreed = [each.cell.name for each in compared if not each.disagreements]
    assert len(agreed) >= AGREE, agreed
    # The goodput agrees everywhere.
    assert all(each.agrees("goodput_bps") for each in compared)
