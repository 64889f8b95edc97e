from collections.abc import Callable, Mapping, Sequence

from cwnd.controller import Controller
from cwnd.records import AlgorithmRecord, Compiled, RunRecord

__all__ = [
    "ScenarioError",
    "SpecError",
    "algorithms",
    "canonical",
    "load",
    "schema",
    "simulate",
    "validate",
    "version",
]

class ScenarioError(ValueError): ...
class SpecError(ValueError): ...

def version() -> str: ...
def algorithms() -> list[AlgorithmRecord]: ...
def canonical(spec: str) -> str: ...
def schema() -> str: ...
def load(text: str, origin: str) -> str: ...
def validate(scenario_json: str, seed: int) -> Compiled: ...
def simulate(
    jobs: Sequence[tuple[str, int]],
    *,
    threads: int = 0,
    controllers: Mapping[str, Callable[[], Controller]] | None = None,
    progress: Callable[[float], None] | None = None,
    pcap: tuple[str, str] | None = None,
) -> list[RunRecord]: ...
