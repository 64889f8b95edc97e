from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, TypeAlias, TypeVar, final, overload

import numpy as np
import numpy.typing as npt

from cwnd._base.records import (
    AlgorithmRecord,
    Compiled,
    FlowRecord,
    JsonObject,
    KernelFlowRecord,
    KernelInstance,
    LawRecord,
    RealRecord,
    RunRecord,
    Series,
)
from cwnd._runs.result import Result
from cwnd._tasks.conform import Connection, Recording
from cwnd.controller import Factory, Kind
from cwnd.emulation import EmulationRecord
from cwnd.metrics.catalog import Dimension
from cwnd.perf import protocol
from cwnd.udt import SocketOptions

_T = TypeVar("_T")
_Given: TypeAlias = str | Factory
_Rows: TypeAlias = Sequence[npt.ArrayLike] | npt.NDArray[np.float64]
_Operator: TypeAlias = Literal[">=", "<=", ">", "<"]
_Expectation: TypeAlias = tuple[str, str, str, _Operator, float]
_Spread: TypeAlias = tuple[int, float, float, float, float, float]

__all__ = [
    "LARGEST_FILE",
    "SCALES",
    "Acked",
    "Context",
    "Conventions",
    "Emulation",
    "Handshake",
    "KernelError",
    "KernelTrace",
    "LossSample",
    "Lost",
    "Marked",
    "Mtu",
    "PersistentCongestion",
    "RateSample",
    "Recovered",
    "Reduced",
    "Report",
    "Round",
    "RoundCounter",
    "ScenarioError",
    "Settings",
    "Simulation",
    "SpecError",
    "Tick",
    "Timeout",
    "Transfer",
    "UdtListener",
    "UdtStream",
    "Undo",
    "WindowedMax",
    "WindowedMin",
    "algorithm",
    "algorithms",
    "binned_rate",
    "by_size",
    "canonical",
    "catalogue",
    "check_expectations",
    "check_law",
    "check_real",
    "check_simulated",
    "coefficient_of_variation",
    "conform_recording",
    "conform_scenario",
    "controller_hooks",
    "controller_kind",
    "converge",
    "convergence_time",
    "declare_law",
    "extreme",
    "flow_group",
    "flow_kinds",
    "format_law",
    "format_rate",
    "format_time",
    "format_value",
    "friendliness",
    "harm",
    "hash_law",
    "ideal_completion_time",
    "jain",
    "jain_over_time",
    "kernel_check",
    "kernel_find",
    "kernel_implemented",
    "kernel_law",
    "kernel_list",
    "kernel_load",
    "kernel_unload",
    "kind_label",
    "law_acks",
    "law_cut",
    "law_forgets",
    "law_rounds",
    "law_sawtooth",
    "link_rates",
    "load",
    "loss_chain",
    "mean_of_finite",
    "named_metrics",
    "offered_rate",
    "packet_rates",
    "parse_quantity",
    "queue_delay",
    "quic_connect",
    "quic_listen",
    "rate",
    "ratio",
    "read_bound",
    "read_expectations",
    "read_limit",
    "read_metric",
    "read_trace",
    "record_schema",
    "recording_series",
    "resolve",
    "responsiveness",
    "run_figures",
    "run_goodputs",
    "run_jain",
    "run_metrics",
    "run_real",
    "run_seconds",
    "run_smoothness",
    "run_total_goodput",
    "run_transfers",
    "scenario_groups",
    "schema",
    "simulate",
    "slowdown",
    "smoothness",
    "sources",
    "spread",
    "stability_index",
    "synchronous",
    "time_scales",
    "total",
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

_Limit: TypeAlias = Literal["window", "pacing", "receiver", "application"]

@final
class Context:
    def __new__(
        cls,
        *,
        now: float = ...,
        rtt: float | None = ...,
        min_rtt: float | None = ...,
        latest_rtt: float | None = ...,
        last_cut: float = ...,
        packet: int = ...,
        slow_start: bool = ...,
    ) -> Context: ...
    @property
    def now(self) -> float: ...
    @property
    def rtt(self) -> float | None: ...
    @property
    def min_rtt(self) -> float | None: ...
    @property
    def latest_rtt(self) -> float | None: ...
    @property
    def last_cut(self) -> float: ...
    @property
    def packet(self) -> int: ...
    @property
    def slow_start(self) -> bool: ...

@final
class Conventions:
    def __new__(
        cls,
        *,
        least_window: float = ...,
        infers_recovery: bool = ...,
        marks_reduce_in_recovery: bool = ...,
        threshold_from_max_window: bool = ...,
        overshoots_threshold: bool = ...,
        grows_unused: bool = ...,
        grows_past_max_window: bool = ...,
        whole_packets: bool = ...,
        undo_keeps_law: bool = ...,
        restart_raises_threshold: bool = ...,
    ) -> Conventions: ...
    @property
    def least_window(self) -> float: ...
    @property
    def infers_recovery(self) -> bool: ...
    @property
    def marks_reduce_in_recovery(self) -> bool: ...
    @property
    def threshold_from_max_window(self) -> bool: ...
    @property
    def overshoots_threshold(self) -> bool: ...
    @property
    def grows_unused(self) -> bool: ...
    @property
    def grows_past_max_window(self) -> bool: ...
    @property
    def whole_packets(self) -> bool: ...
    @property
    def undo_keeps_law(self) -> bool: ...
    @property
    def restart_raises_threshold(self) -> bool: ...

@final
class Round:
    def __new__(
        cls,
        *,
        sent: int = ...,
        lost: int = ...,
        marked: int = ...,
        took: float = ...,
    ) -> Round: ...
    @property
    def sent(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def marked(self) -> int: ...
    @property
    def took(self) -> float: ...

@final
class RateSample:
    def __new__(
        cls,
        *,
        delivered: int = ...,
        prior_delivered: int = ...,
        send_elapsed: float = ...,
        ack_elapsed: float = ...,
        interval: float = ...,
        rate: float | None = ...,
        lost: int = ...,
        in_flight: int = ...,
        application_limited: bool = ...,
        reliable: bool = ...,
    ) -> RateSample: ...
    @property
    def delivered(self) -> int: ...
    @property
    def prior_delivered(self) -> int: ...
    @property
    def send_elapsed(self) -> float: ...
    @property
    def ack_elapsed(self) -> float: ...
    @property
    def interval(self) -> float: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def lost(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def application_limited(self) -> bool: ...
    @property
    def reliable(self) -> bool: ...

@final
class Acked:
    def __new__(
        cls,
        *,
        packets: int = ...,
        credit: int = ...,
        in_flight: int = ...,
        sent: int = ...,
        sent_at: float = ...,
        rtt: float | None = ...,
        received_at: float | None = ...,
        echo: bool = ...,
        marked: int = ...,
        limit: _Limit = ...,
        delivery: RateSample | None = ...,
        departure: float | None = ...,
    ) -> Acked: ...
    @property
    def packets(self) -> int: ...
    @property
    def credit(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def sent_at(self) -> float: ...
    @property
    def rtt(self) -> float | None: ...
    @property
    def received_at(self) -> float | None: ...
    @property
    def echo(self) -> bool: ...
    @property
    def marked(self) -> int: ...
    @property
    def limit(self) -> _Limit: ...
    @property
    def delivery(self) -> RateSample | None: ...
    @property
    def departure(self) -> float | None: ...

@final
class LossSample:
    def __new__(
        cls,
        *,
        lost: int = ...,
        in_flight: int = ...,
        application_limited: bool = ...,
    ) -> LossSample: ...
    @property
    def lost(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def application_limited(self) -> bool: ...

@final
class Lost:
    def __new__(
        cls,
        *,
        packets: int = ...,
        sent_at: float = ...,
        sent: int = ...,
        delivery: LossSample | None = ...,
    ) -> Lost: ...
    @property
    def delivery(self) -> LossSample | None: ...
    @property
    def packets(self) -> int: ...
    @property
    def sent_at(self) -> float: ...
    @property
    def sent(self) -> int: ...

@final
class Marked:
    def __new__(
        cls,
        *,
        packets: int = ...,
        sent_at: float = ...,
        sent: int = ...,
    ) -> Marked: ...
    @property
    def packets(self) -> int: ...
    @property
    def sent_at(self) -> float: ...
    @property
    def sent(self) -> int: ...

@final
class Report:
    def __new__(
        cls,
        *,
        packets: int = ...,
        sent: int = ...,
        arrival: float | None = ...,
        capacity: float | None = ...,
        rtt: float = ...,
    ) -> Report: ...
    @property
    def packets(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def arrival(self) -> float | None: ...
    @property
    def capacity(self) -> float | None: ...
    @property
    def rtt(self) -> float: ...

@final
class Handshake:
    def __new__(
        cls,
        *,
        rtt: float = ...,
    ) -> Handshake: ...
    @property
    def rtt(self) -> float: ...

@final
class Timeout:
    def __new__(
        cls,
        *,
        packets: int = ...,
        sent_at: float = ...,
        sent: int = ...,
        delivery: LossSample | None = ...,
    ) -> Timeout: ...
    @property
    def packets(self) -> int: ...
    @property
    def sent_at(self) -> float: ...
    @property
    def sent(self) -> int: ...
    @property
    def delivery(self) -> LossSample | None: ...

@final
class Reduced:
    def __new__(
        cls,
        *,
        window: float = ...,
    ) -> Reduced: ...
    @property
    def window(self) -> float: ...

@final
class Mtu:
    def __new__(
        cls,
        *,
        packet: int = ...,
    ) -> Mtu: ...
    @property
    def packet(self) -> int: ...

@final
class Settings:
    def __new__(
        cls,
        *,
        packet: int = ...,
        initial_window: float = ...,
        max_window: float = ...,
        slow_start_limit: float = ...,
        seed: int = ...,
    ) -> Settings: ...
    @property
    def packet(self) -> int: ...
    @property
    def initial_window(self) -> float: ...
    @property
    def max_window(self) -> float: ...
    @property
    def slow_start_limit(self) -> float: ...
    @property
    def seed(self) -> int: ...

@final
class Recovered:
    def __new__(cls) -> Recovered: ...

@final
class PersistentCongestion:
    def __new__(cls) -> PersistentCongestion: ...

@final
class Undo:
    def __new__(cls) -> Undo: ...

@final
class Tick:
    def __new__(cls) -> Tick: ...

@final
class WindowedMax:
    def __new__(cls, length: float) -> WindowedMax: ...
    def add(self, at: float, value: float) -> float: ...
    def get(self) -> float | None: ...
    def clear(self) -> None: ...
    def __copy__(self) -> WindowedMax: ...
    def __deepcopy__(self, _memo: object) -> WindowedMax: ...

@final
class WindowedMin:
    def __new__(cls, length: float) -> WindowedMin: ...
    def add(self, at: float, value: float) -> float: ...
    def get(self) -> float | None: ...
    def clear(self) -> None: ...
    def __copy__(self) -> WindowedMin: ...
    def __deepcopy__(self, _memo: object) -> WindowedMin: ...

@final
class RoundCounter:
    def __new__(cls) -> RoundCounter: ...
    def acked(self, sample: RateSample) -> bool: ...
    def count(self) -> int: ...
    def __copy__(self) -> RoundCounter: ...
    def __deepcopy__(self, _memo: object) -> RoundCounter: ...

def version() -> str: ...
def sources() -> str: ...
def algorithms() -> list[AlgorithmRecord]: ...
def algorithm(name: str) -> AlgorithmRecord: ...
def canonical(spec: str) -> str: ...
def declare_law(name: str, text: str) -> list[str]: ...
def hash_law(name: str, text: str) -> str: ...
def format_law(name: str, text: str) -> str: ...
def check_law(name: str, text: str) -> tuple[LawRecord, list[str]]: ...
def catalogue() -> list[JsonObject]: ...
def controller_hooks() -> list[tuple[Kind, str, list[str], list[str]]]: ...
def ratio(part: float, whole: float) -> float: ...
def rate(size: float, seconds: float) -> float: ...
def harm(alone: float, beside: float, more_is_better: bool) -> float: ...
def extreme(values: npt.ArrayLike, highest: bool) -> float: ...
def total(values: npt.ArrayLike) -> float: ...
def mean_of_finite(values: npt.ArrayLike) -> float: ...
def jain(rates: npt.ArrayLike) -> float: ...
def friendliness(controller: npt.ArrayLike, reference: npt.ArrayLike) -> float: ...
def coefficient_of_variation(rates: npt.ArrayLike) -> float: ...
def stability_index(rates: _Rows) -> float: ...
def smoothness(
    time: npt.ArrayLike, counted: npt.ArrayLike, scale: float, start: float | None
) -> float: ...
def convergence_time(time: npt.ArrayLike, rates: _Rows, epsilon: float, hold: float) -> float: ...
def responsiveness(
    time: npt.ArrayLike, rate: npt.ArrayLike, congestion: float, rtt: float, factor: float
) -> float: ...
def queue_delay(delays: npt.ArrayLike, weights: npt.ArrayLike | None) -> list[float]: ...
def spread(values: npt.ArrayLike) -> _Spread: ...
def by_size(sizes: npt.ArrayLike, values: npt.ArrayLike) -> list[tuple[float, float, _Spread]]: ...
def binned_rate(
    time: npt.ArrayLike,
    counted: npt.ArrayLike,
    packet_bytes: float,
    scale: float,
    start: float | None,
) -> tuple[Series, Series]: ...
def ideal_completion_time(
    wire_bytes: npt.ArrayLike, rate_bps: npt.ArrayLike, rtt_s: npt.ArrayLike
) -> Series: ...
def slowdown(times: npt.ArrayLike, ideal: npt.ArrayLike) -> Series: ...
def offered_rate(
    time: npt.ArrayLike,
    capacity_bps: npt.ArrayLike,
    begin: npt.ArrayLike,
    wire_bytes: npt.ArrayLike,
) -> Series: ...
def jain_over_time(
    time: npt.ArrayLike,
    delivered: _Rows,
    window: float,
    start: float,
    active: Sequence[tuple[float, float]],
) -> tuple[Series, Series, float, float]: ...
def time_scales(min_rtts: npt.ArrayLike, sample_s: float) -> list[float]: ...
def run_seconds(result: Result, flows: Sequence[FlowRecord]) -> list[float]: ...
def run_goodputs(result: Result, flows: Sequence[FlowRecord]) -> list[float]: ...
def run_total_goodput(result: Result, flows: Sequence[FlowRecord]) -> float: ...
def run_smoothness(result: Result, flow: FlowRecord, scales: Sequence[float]) -> list[float]: ...
def run_jain(
    result: Result, flows: Sequence[FlowRecord], window: float
) -> tuple[Series, Series, float, float]: ...
def run_transfers(result: Result, flows: Sequence[FlowRecord]) -> list[Series]: ...
def run_figures(result: Result) -> tuple[JsonObject, list[JsonObject]]: ...
def packet_rates(flows: Sequence[FlowRecord]) -> list[float]: ...
def link_rates(offered: float, drops: float, losses: float, marks: float) -> list[float]: ...
def named_metrics() -> list[str]: ...
def read_metric(name: str, groups: AbstractSet[str], links: AbstractSet[str]) -> str: ...
def run_metrics(result: Result, names: Sequence[str]) -> list[float]: ...
def read_bound(bound: str) -> tuple[_Operator, str]: ...
def read_limit(dimension: Dimension, text: str) -> float: ...
def parse_quantity(
    kind: Literal["rate", "time", "size"], value: str | float, zero: bool
) -> float: ...
def format_rate(bps: float, digits: int) -> str: ...
def format_time(seconds: float, digits: int) -> str: ...
def flow_group(name: str) -> str: ...
def flow_kinds(
    names: Sequence[str], endless: Sequence[bool]
) -> list[tuple[str | None, list[int]]]: ...
def kind_label(name: str | None, number: int) -> str: ...
def format_value(dimension: Dimension, value: float) -> str: ...
def read_expectations(
    table: Mapping[str, object],
    groups: AbstractSet[str],
    links: AbstractSet[str],
    duration_s: float,
    file: tuple[str, str] | None,
) -> list[_Expectation]: ...
def check_expectations(
    result: Result, table: Mapping[str, object]
) -> list[tuple[_Expectation, float, bool, str]]: ...
def controller_kind(controller: object) -> Kind: ...
def scenario_groups(scenario_json: str) -> set[str]: ...
def schema() -> str: ...
def record_schema() -> str: ...
def load(text: str, origin: str) -> str: ...
def read_trace(path: str) -> str: ...
def resolve(scenario_json: str, home: str) -> tuple[str, list[str]]: ...
def validate(scenario_json: str, seed: int) -> Compiled: ...
@overload
def simulate(
    jobs: Sequence[tuple[str, int]],
    *,
    threads: int = 0,
    controllers: Mapping[str, Factory] | None = None,
    progress: Callable[[float], None] | None = None,
    keep: None = None,
    pcap: tuple[str, str] | None = None,
    lookahead: bool = True,
    acks: bool = False,
    qlog: str | None = None,
) -> list[RunRecord]: ...
@overload
def simulate(
    jobs: Sequence[tuple[str, int]],
    *,
    threads: int = 0,
    controllers: Mapping[str, Factory] | None = None,
    progress: Callable[[float], None] | None = None,
    keep: Callable[[int, RunRecord], _T],
    pcap: tuple[str, str] | None = None,
    lookahead: bool = True,
    acks: bool = False,
    qlog: str | None = None,
) -> list[_T]: ...

@final
class Simulation:
    def __new__(
        cls,
        scenario_json: str,
        seed: int,
        *,
        controllers: Mapping[str, Factory] | None = None,
        lookahead: bool = True,
    ) -> Simulation: ...
    def run_until(self, at_s: float) -> None: ...
    def fork(self) -> Simulation: ...
    def change(self, scenario_json: str, at_s: float) -> None: ...
    def record(self, progress: Callable[[float], None] | None = None) -> RunRecord: ...

def conform_recording(
    text: str, is_qlog: bool, name: str, law: str, quic: bool | None
) -> Connection: ...
def recording_series(
    text: str, is_qlog: bool, quic: bool | None, controller: str | None = None
) -> Recording: ...
def conform_scenario(scenario_json: str, seed: int, law: str | None = None) -> list[Connection]: ...
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
    def __new__(
        cls, scenario_json: str, seed: int, record: str | None, mtu: int | None = None
    ) -> Emulation: ...
    def addresses(self) -> tuple[str, str]: ...
    def start(self, program: str, arguments: Sequence[str]) -> None: ...
    def signal(self, number: int) -> None: ...
    def wait(self) -> int: ...
    def stop(self, *, series: bool) -> EmulationRecord: ...

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

def transfer_send(
    sources: list[str],
    host: str,
    port: int,
    socket: SocketOptions,
    options: dict[str, Any],
) -> Transfer: ...
def transfer_receive(
    listeners: list[UdtListener], out: str, options: dict[str, Any]
) -> Transfer: ...
def quic_connect(
    host: str, port: int, options: SocketOptions, stack: str
) -> protocol.Connection: ...
def quic_listen(host: str, port: int, options: SocketOptions, stack: str) -> protocol.Listener: ...
def udt_connect(host: str, port: int, options: SocketOptions) -> UdtStream: ...
def udt_listen(host: str, port: int, options: SocketOptions) -> UdtListener: ...

# On Linux only.
class KernelError(ValueError): ...

LARGEST_FILE: int
SCALES: list[int]

@final
class KernelTrace:
    def __new__(cls, what: str) -> KernelTrace: ...
    def read(self, seconds: float) -> list[tuple[int, int, str]]: ...
    def missed(self) -> int: ...
    def flows(self) -> list[KernelFlowRecord]: ...

def kernel_load(spec: str, name: str | None, default: bool) -> KernelInstance: ...
def kernel_list() -> list[KernelInstance]: ...
def kernel_find(what: str) -> KernelInstance: ...
def kernel_law(what: str) -> tuple[str, str] | None: ...
def kernel_unload(what: str) -> KernelInstance: ...
def kernel_implemented() -> list[str]: ...
def kernel_check() -> list[tuple[str, bool, str]]: ...
def check_real(scenario_json: str, on: str) -> None: ...
def check_simulated(scenario_json: str) -> None: ...
def run_real(
    scenario_json: str, seed: int, on: str, progress: Callable[[float], None] | None
) -> RealRecord: ...
