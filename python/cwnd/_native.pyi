from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, final, overload

import numpy as np
import numpy.typing as npt

from cwnd.controller import Controller
from cwnd.emulation import EmulationRecord
from cwnd.records import (
    AlgorithmRecord,
    Compiled,
    KernelFlowRecord,
    KernelInstance,
    RealRecord,
    RunRecord,
    Series,
)
from cwnd.udt import SocketOptions

_T = TypeVar("_T")
_Given: TypeAlias = str | Callable[[], Controller]

__all__ = [
    "KERNEL_BOUND",
    "KERNEL_FORMS",
    "Emulation",
    "KernelError",
    "KernelTrace",
    "ScenarioError",
    "SpecError",
    "Transfer",
    "UdtListener",
    "UdtStream",
    "algorithms",
    "canonical",
    "check_real",
    "converge",
    "kernel_check",
    "kernel_find",
    "kernel_list",
    "kernel_load",
    "kernel_unload",
    "law_acks",
    "law_cut",
    "law_forgets",
    "law_rounds",
    "law_sawtooth",
    "load",
    "loss_chain",
    "run_real",
    "schema",
    "simulate",
    "synchronous",
    "transfer_advice",
    "transfer_receive",
    "transfer_send",
    "udt_check_code",
    "udt_check_key",
    "udt_check_network",
    "udt_check_pair",
    "udt_check_peer",
    "udt_connect",
    "udt_generate_code",
    "udt_generate_key",
    "udt_generate_pair",
    "udt_listen",
    "udt_parse_peers",
    "udt_read_secret",
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
@overload
def simulate(
    jobs: Sequence[tuple[str, int]],
    *,
    threads: int = 0,
    controllers: Mapping[str, Callable[[], Controller]] | None = None,
    progress: Callable[[float], None] | None = None,
    keep: None = None,
    pcap: tuple[str, str] | None = None,
) -> list[RunRecord]: ...
@overload
def simulate(
    jobs: Sequence[tuple[str, int]],
    *,
    threads: int = 0,
    controllers: Mapping[str, Callable[[], Controller]] | None = None,
    progress: Callable[[float], None] | None = None,
    keep: Callable[[int, RunRecord], _T],
    pcap: tuple[str, str] | None = None,
) -> list[_T]: ...
def law_acks(
    spec: _Given, window: float, acks: int, *, rtt: float, packet: int, at_loss: bool
) -> Series: ...
def law_rounds(
    spec: _Given,
    window: float,
    rounds: int,
    *,
    rtt: float,
    packet: int,
    capacity: float,
    whole: bool,
    at_loss: bool,
) -> Series: ...
def law_cut(spec: _Given, windows: Series, *, rtt: float, packet: int) -> Series: ...
def law_forgets(spec: _Given, *, rtt: float, packet: int) -> bool: ...
def law_sawtooth(
    spec: _Given, windows: Series, *, rtt: float, packet: int
) -> npt.NDArray[np.float64]: ...
def synchronous(
    specs: Sequence[_Given],
    windows: Sequence[float],
    capacity: float,
    rounds: int,
    *,
    rtt: float,
    packet: int,
    whole: bool,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
def converge(
    specs: tuple[_Given, _Given],
    first: Series,
    second: Series,
    capacity: float,
    epsilon: float,
    *,
    limit: int,
    rtt: float,
    packet: int,
    whole: bool,
) -> npt.NDArray[np.float64]: ...
def loss_chain(
    spec: _Given,
    grid: Series,
    p: float,
    *,
    tail: float,
    ideal: bool,
    rtt: float,
    packet: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

@final
class UdtStream:
    def peer(self) -> tuple[str, int]: ...
    def local(self) -> tuple[str, int]: ...
    def identity(self) -> str | None: ...
    def read(self, size: int, timeout: float | None) -> bytes: ...
    def write(self, data: bytes, timeout: float | None) -> None: ...
    def send_message(
        self, data: bytes, ttl: float | None, in_order: bool, timeout: float | None
    ) -> None: ...
    def recv_message(self, timeout: float | None) -> bytes | None: ...
    def stats(self, clear: bool) -> dict[str, float]: ...
    def finish(self) -> None: ...
    def abort(self) -> None: ...
    def close(self, timeout: float | None) -> None: ...

@final
class UdtListener:
    def local(self) -> tuple[str, int]: ...
    def accept(self, timeout: float | None) -> UdtStream: ...
    def spend_code(self) -> None: ...
    def close(self) -> None: ...

@final
class Emulation:
    def __new__(cls, scenario_json: str, seed: int, record: str | None) -> Emulation: ...
    def addresses(self) -> tuple[str, str]: ...
    def start(self, program: str, arguments: Sequence[str]) -> None: ...
    def signal(self, number: int) -> None: ...
    def wait(self) -> int: ...
    def stop(self) -> EmulationRecord: ...

def udt_check_code(text: str) -> str: ...
def udt_check_key(contents: bytes) -> None: ...
def udt_check_network(text: str) -> None: ...
def udt_check_pair(contents: bytes) -> str: ...
def udt_check_peer(text: str) -> None: ...
def udt_generate_code() -> str: ...
def udt_generate_key(path: str) -> None: ...
def udt_generate_pair(path: str) -> str: ...
def udt_parse_peers(text: str) -> list[tuple[str, str | None]]: ...
def udt_read_secret(path: str) -> bytes: ...

@final
class Transfer:
    def poll(self, timeout: float) -> str | None: ...
    def stop(self) -> None: ...
    def join(self) -> None: ...

def transfer_advice(shares: Mapping[str, float]) -> str | None: ...
def transfer_send(
    sources: list[str],
    host: str,
    port: int,
    socket: SocketOptions,
    options: dict[str, Any],
) -> Transfer: ...
def transfer_receive(listener: UdtListener, out: str, options: dict[str, Any]) -> Transfer: ...
def udt_connect(host: str, port: int, options: SocketOptions) -> UdtStream: ...
def udt_listen(host: str, port: int, options: SocketOptions) -> UdtListener: ...

# On Linux only.
class KernelError(ValueError): ...

KERNEL_FORMS: list[str]
KERNEL_BOUND: float

@final
class KernelTrace:
    def __new__(cls, what: str) -> KernelTrace: ...
    def read(self, seconds: float) -> list[tuple[int, int, str]]: ...
    def missed(self) -> int: ...
    def flows(self) -> list[KernelFlowRecord]: ...

def kernel_load(spec: str, name: str | None, default: bool) -> KernelInstance: ...
def kernel_list() -> list[KernelInstance]: ...
def kernel_find(what: str) -> KernelInstance: ...
def kernel_unload(what: str) -> KernelInstance: ...
def kernel_check() -> list[tuple[str, bool, str]]: ...
def check_real(scenario_json: str, on: str) -> None: ...
def run_real(
    scenario_json: str, seed: int, on: str, progress: Callable[[float], None] | None
) -> RealRecord: ...
