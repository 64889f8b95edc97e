"""Every model at huge and tiny values of each number: a result or an ArgumentError, soon."""

from __future__ import annotations

import inspect
import math
import signal
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cwnd.errors import ArgumentError
from cwnd.model.behaviour import behaviour
from cwnd.model.catalog import Model, Parameter, models

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 10
"""Of the processor, for one call."""
NUMBERS = (1e308, 1e-308)
COUNTS = (1e12, 1e23, 1e308)
USUAL: dict[str, Any] = {
    "alpha": 1.0, "beta": 0.125, "gamma": 0.5, "delta": 16.0, "epsilon": 1.0, "error": 0.5,
    "p": 0.5, "p0": 0.5, "eta": 0.5, "slope": 0.1, "sharpness": 0.5, "b": 1.0, "c": 1.0,
    "k": 0.5, "l": 0.5, "rate": 10.0, "rtt": 0.1, "rto": 0.4, "delay": 0.5, "capacity": 100.0,
    "capacity_bps": 1e7, "wider_bps": 2e7, "rate_bps": 1e7, "w1": 10.0, "w2": 30.0,
    "window": 20.0, "x1": 0.1, "x2": 0.2, "stage": 1.0, "intervals": 10.0, "fraction": 0.5,
    "flows": 2.0, "rounds": 10.0, "queue": 20.0, "lost": 1.0, "low": 20.0, "high": 60.0,
    "name": "aimd", "spec": "reno", "specs": "reno", "law": "reno", "formula": "pftk",
    "first": "pftk", "second": "gaimd", "increase": 1.0, "limit": 50.0,
}  # fmt: skip
"""Values of required parameters by name."""

NEEDED = ("rtt", "rto")
"""Optional parameters that a formula of some model needs."""


@contextmanager
def ends_soon() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def usual(parameter: Parameter) -> Any:
    return USUAL.get(parameter.name, "reno" if parameter.kind == "text" else 1.0)


def extremes(model: Model) -> Iterator[dict[str, Any]]:
    base = {p.name: usual(p) for p in model.parameters.values() if p.required or p.name in NEEDED}
    yield base
    numbers = [p for p in model.parameters.values() if p.kind not in ("text", "flag")]
    for parameter in numbers:
        for value in COUNTS if parameter.kind == "whole" else NUMBERS:
            yield base | {parameter.name: value}
    required = [p for p in numbers if p.required and p.kind != "whole"]
    for value in NUMBERS:
        yield base | {p.name: value for p in required}


ENDLESS = """rate law t "T"
on clock:
    return timer
on interval:
    return -1 s
on tick:
    return -1 /s
on cut:
    return -1 /s
on start:
    return -1 /s
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cwnd.errors.ControllerWarning")
def test_a_law_with_the_shortest_intervals_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.law").write_text(ENDLESS, "utf-8")
    assert behaviour("t.law")["in_step"]["rounds_to_use_the_link"] == math.inf


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("daimd-stable-stage", "--p", "1e-308", "--capacity-bps", "1e300mbit"), "7\n"),
        (("gaimd", "--p", "0.5", "--rtt", "1ms", "--rto", "1ms", "--alpha", "1e308"), "packets/s"),
        (("synchronous-fairness-epochs", "--name", "aimd", "--delta", "16", "--capacity", "100",
          "--epsilon", "1e-308"), "infinite epochs"),
    ],
)  # fmt: skip
def test_a_result_of_extreme_values_is_printed_without_warnings(arguments, words, command):
    done = command("model", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("daimd-equilibrium", "--p", "0.5", "--capacity-bps", "10mbit", "--stage", "1000"),
         "--stage: must be a whole number from 0 to 100, not 1000"),
        (("daimd-trajectory", "--intervals", "9" * 23, "--capacity-bps", "10mbit"),
         "--intervals: must be a whole number from 0 to 100000"),
        (("stationary-aimd-moments", "--alpha", "1", "--beta", "1e-6", "--p", "0.001"),
         "--beta: must be between 0.0001 and 1, not 1e-06"),
        (("aiad-lemma1", "--b", "-1e308..1e308", "--c", "1"),
         "--b: '-1e308..1e308' must be finite"),
    ],
)  # fmt: skip
def test_a_value_beyond_a_bound_is_named(arguments, words, command):
    done = command("model", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_extreme_values_give_a_result_or_an_argument_error(model):
    wrong = []
    for arguments in extremes(model):
        try:
            with warnings.catch_warnings(), ends_soon():
                warnings.simplefilter("error")
                model.evaluate(arguments)
        except ArgumentError as problem:
            if "\n" in str(problem):
                wrong.append(f"{arguments}: {problem}")
        except Exception as problem:  # noqa: BLE001
            wrong.append(f"{arguments}: {problem!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_every_whole_number_has_an_upper_bound(model, count):
    required = {p.name: usual(p) for p in model.parameters.values() if p.required}
    # A model of any formula has those of the formula too, which is a model itself.
    own = inspect.signature(model.function).parameters
    for parameter in model.parameters.values():
        if parameter.kind == "whole" and parameter.name in own:
            with pytest.raises(ArgumentError, match=f"{parameter.name}: "):
                model.evaluate(required | {parameter.name: count})
