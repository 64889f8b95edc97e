"""The documents that commands print with ``--json``, as types; docs/json.md has the meanings.

A float may be null: NaN and infinity are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from cwnd._base.json_schema import json_schema
from cwnd._base.records import LawRecord, Limited
from cwnd._cli.doctor import Finding
from cwnd._controllers.registry import Algorithm
from cwnd._runs.defaults import Stage
from cwnd._runs.kernel_sockets import KernelSocket
from cwnd._runs.networks import NetworkSummary
from cwnd._runs.scenario_keys import KeyTable, schema
from cwnd._tasks.conform import Connection, Replay
from cwnd.kernel import Finding as KernelFinding
from cwnd.kernel import Instance
from cwnd.model.behaviour import Behaviour

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject

Backend: TypeAlias = Literal["sim", "udt", "linux", "quic"]
Interval: TypeAlias = tuple[float, float]
Rating: TypeAlias = Literal["agrees", "close", "depends", "differs", "undecided"]


class DelayDocument(TypedDict):
    """Mean and percentiles of a queueing delay in seconds."""

    mean: float
    p50: float
    p95: float
    p99: float


class SmoothnessDocument(TypedDict):
    """Coefficient of variation of a throughput at a time scale."""

    scale_s: float
    cov: float


class ClosedDocument(TypedDict):
    """The end of a connection with an error."""

    at_s: float
    reason: str


class FlowDocument(TypedDict):
    """A traffic source of a run."""

    name: str
    controller: str
    kind: Literal["tcp", "udt", "quic", "cbr", "pareto"]
    measured: bool
    start_s: float
    stop_s: float
    completed_s: float
    acknowledged_s: float
    closed: ClosedDocument | None
    throughput_bps: float
    goodput_bps: float
    packets_sent: int
    bytes_sent: int
    packets_delivered: int
    bytes_delivered: int
    packets_received: int
    packets_lost: int
    packets_marked: int
    retransmissions: int
    timeouts: int
    cuts: int
    loss_rate: float
    mean_rtt_s: float
    min_rtt_s: float
    mean_window: float
    smoothness: list[SmoothnessDocument]
    limited: Limited
    application: dict[str, float]


class LinkDocument(TypedDict):
    """A direction of a link of a run."""

    name: str
    rate_bps: float
    token_rate_bps: float
    delay_s: float
    utilization: float
    arrivals: int
    offered: int
    departures: int
    drops: int
    marks: int
    losses: int
    loss_rate: float
    mark_rate: float
    mean_queue: float
    queue_limit: float
    queue_limit_unit: Literal["packets", "bytes"]
    queue_delay_s: DelayDocument


class SpreadDocument(TypedDict):
    """Mean, percentiles and maximum of a figure of transfers."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class SizeDocument(TypedDict):
    """Transfers of a decade of sizes."""

    low_bytes: float
    high_bytes: float
    number: int
    fct_s: SpreadDocument
    slowdown: SpreadDocument


class TransfersDocument(TypedDict):
    """Transfers of the measured flows."""

    number: int
    completed: float
    fct_s: SpreadDocument
    slowdown: SpreadDocument
    by_size: list[SizeDocument]


class KindDocument(TypedDict):
    """Jain's index of flows of one kind; ``name`` is null for those that always have data."""

    name: str | None
    number: int
    jain: float


class JainDocument(TypedDict):
    """Jain's index in windows of time."""

    window_s: float
    worst: float
    mean: float


class MetricsDocument(TypedDict):
    """Metrics of all measured flows of a run, and of its bottleneck."""

    jain: float
    jain_by_kind: list[KindDocument] | None
    goodput_bps: float
    efficiency_index: float
    fairness_index: float
    stability_index: float
    alpha_fairness: float
    retransmission_rate: float
    smoothness: list[SmoothnessDocument]
    convergence_time_s: float
    worst_goodput_bps: float
    jain_windows: JainDocument
    transfers: TransfersDocument | None
    bottleneck: str
    utilization: float
    loss_rate: float
    mark_rate: float
    queue_delay_s: DelayDocument


class EngineDocument(TypedDict):
    """Cost of a run."""

    packets: int
    events: int
    wall_s: float


class ExpectationDocument(TypedDict):
    """A bound of ``[expect]`` with the measured value."""

    metric: str
    bound: str
    operator: Literal[">=", "<=", ">", "<"]
    limit: float
    value: float
    holds: bool


class _RunDocument(TypedDict):
    scenario: str
    seed: int
    duration_s: float
    warmup_s: float
    flows: list[FlowDocument]
    conventions: list[str]
    links: list[LinkDocument]
    metrics: MetricsDocument
    engine: EngineDocument
    on: Backend
    limit: str | None
    notes: list[str]


class RunDocument(_RunDocument, total=False):
    """A run; ``expectations`` with ``--check``."""

    expectations: list[ExpectationDocument]


class ForkDocument(TypedDict):
    """Both futures of a run, and their differences: changed minus unchanged."""

    fork_at_s: float
    values: dict[str, Any]
    unchanged: RunDocument
    changed: RunDocument
    differences: dict[str, float | None]
    goodput_differences_bps: dict[str, float | None]
    rerun: str


class RepeatedRunDocument(TypedDict):
    """Runs with several seeds: the keys of a run, each figure with mean, interval and values."""

    scenario: str
    duration_s: float
    warmup_s: float
    flows: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    conventions: list[str]
    links: list[dict[str, Any]]
    metrics: dict[str, Any]
    on: Backend
    limit: str | None
    notes: list[str]
    seeds: list[int]
    rerun: str


class SingleRunDocument(_RunDocument):
    """A run of a test of an evaluation."""

    test: str
    network: str
    metric: str
    value: float


class FigureDocument(TypedDict):
    """Mean, 95 % interval and values of a figure."""

    mean: float
    interval: Interval | None
    values: list[float]


class _CompareRow(TypedDict):
    controller: str
    goodput_bps: FigureDocument
    jain: FigureDocument
    utilization: FigureDocument
    loss_rate: FigureDocument
    mark_rate: FigureDocument
    queue_delay_s: FigureDocument
    queue_delay_p95_s: FigureDocument
    queue_delay_p99_s: FigureDocument
    mean_queue: FigureDocument
    cov_2rtt: FigureDocument
    cov_10rtt: FigureDocument
    cov_50rtt: FigureDocument
    retransmission_rate: FigureDocument
    timeouts: FigureDocument
    cuts: FigureDocument
    mean_window: FigureDocument
    mean_rtt_s: FigureDocument
    limited_window: FigureDocument
    limited_pacing: FigureDocument
    limited_receiver: FigureDocument
    limited_application: FigureDocument


class AloneRow(_CompareRow, total=False):
    """A controller in all flows; completion times with transfers only, and each --measure."""

    fct_s: FigureDocument
    fct_p50_s: FigureDocument
    fct_p95_s: FigureDocument
    fct_p99_s: FigureDocument


class _AgainstRow(_CompareRow):
    share: FigureDocument
    reference_goodput_bps: FigureDocument
    harm_goodput: FigureDocument
    harm_delay: FigureDocument
    harm_loss: FigureDocument


class AgainstRow(_AgainstRow, total=False):
    """A controller in half of the flows; completion times as alone, and each --measure."""

    fct_s: FigureDocument
    fct_p50_s: FigureDocument
    fct_p95_s: FigureDocument
    fct_p99_s: FigureDocument
    reference_fct_s: FigureDocument
    reference_fct_p50_s: FigureDocument
    reference_fct_p95_s: FigureDocument
    reference_fct_p99_s: FigureDocument
    harm_fct: FigureDocument


class PairRow(AgainstRow):
    """A controller in half of the flows, and the other one of the pair."""

    against: str


class VerdictDocument(TypedDict):
    """Verdicts on a controller."""

    controller: str
    fairness: str
    smoothness: str
    queue: str
    sentence: str


class CompareDocument(TypedDict):
    """A comparison."""

    network: NetworkSummary
    reference: str
    alone: list[AloneRow]
    against: list[AgainstRow]
    pairs: list[PairRow]
    verdicts: list[VerdictDocument]
    rerun: str | None
    no_rerun: str | None


class EstimateDocument(TypedDict):
    """Mean and 95 % interval of a figure."""

    mean: float
    interval: Interval | None


class EquivalenceDocument(TypedDict):
    """A figure on a backend, compared with the first backend."""

    verdict: Literal["agrees", "differs", "undecided", "unknown"]
    ratio: float
    interval: Interval | None


class AgreeFigure(TypedDict):
    """A figure of the network or of a group of flows on all backends."""

    of: str
    figure: str
    values: dict[str, EstimateDocument]
    verdicts: dict[str, EquivalenceDocument]


class AgreeFlow(TypedDict):
    """A measured flow of a run on a backend."""

    on: Backend
    seed: int
    flow: str
    goodput_bps: float
    share: float
    retransmission_rate: float
    window_p10: float
    window_p50: float
    window_p90: float
    mean_rtt_s: float


class AgreeDocument(TypedDict):
    """One scenario on several backends."""

    scenario: str
    title: str
    duration_s: float
    warmup_s: float
    on: list[Backend]
    conventions: list[str]
    seeds: list[int]
    bottleneck: str
    groups: dict[str, list[str]]
    figures: list[AgreeFigure]
    counts: dict[str, dict[str, int]]
    flows: list[AgreeFlow]
    limited: dict[str, int]
    notes: list[str]
    rule: str
    rerun: str


class TestDocument(TypedDict):
    """A test of an evaluation."""

    id: str
    section: str
    title: str
    suites: list[str]
    metric: str
    baseline: str
    networks: list[str]
    quick: list[str]


class TestsDocument(TypedDict):
    """The tests of a suite."""

    tests: list[TestDocument]


class Headline(TypedDict):
    """A main claim of a paper."""

    claim: str
    verdict: Rating
    reason: str
    hangs_on: str
    rests_on: list[str]


class ExhibitScenario(TypedDict):
    """The scenarios of an exhibit."""

    toml: str | None
    varied: str
    inferred: list[str]
    conventions: list[str]


class ExhibitTrial(TypedDict):
    """A change that an exhibit tries."""

    name: str
    text: str
    permits: str | None


class ClaimTrial(TypedDict):
    """A claim under a trial."""

    name: str
    measured: float | str
    interval: Interval | None
    verdict: Rating


class ClaimDocument(TypedDict):
    """A claim of an exhibit."""

    name: str
    text: str
    kind: Literal["headline", "cell", "check", "ns-2"]
    published: str | None
    measured: float | str
    interval: Interval | None
    runs: int
    rule: str
    verdict: Rating
    cause: str | None
    why: str
    proof: str
    trials: list[ClaimTrial]


class FileDocument(TypedDict):
    """A figure of an exhibit."""

    name: str
    title: str


class TableDocument(TypedDict):
    """A table of an exhibit."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[float | str]]


class ExhibitDocument(TypedDict):
    """A table or figure of a paper."""

    id: str
    title: str
    new: bool
    seconds: float
    seeds: int
    scenario: ExhibitScenario
    trials: list[ExhibitTrial]
    claims: list[ClaimDocument]
    figures: list[FileDocument]
    tables: list[TableDocument]


class PartDocument(TypedDict):
    """A numbered part of a paper."""

    part: str
    exhibits: list[str]
    note: str | None


class SentenceDocument(TypedDict):
    """A quantitative sentence without a claim."""

    where: str
    says: str


class PaperDocument(TypedDict):
    """A reproduced paper."""

    paper: str
    title: str
    citation: str
    headlines: list[Headline]
    exhibits: list[ExhibitDocument]
    parts: list[PartDocument]
    ungraded: list[SentenceDocument]


class RatingCounts(TypedDict):
    """Number of claims with each verdict."""

    agrees: int
    close: int
    depends: int
    differs: int
    undecided: int


class ReproduceDocument(TypedDict):
    """Reproduced papers."""

    papers: list[PaperDocument]
    summary: RatingCounts
    checks: RatingCounts


class SweepError(TypedDict):
    """An error of the runs of a sweep."""

    error: str
    runs: int


class SweepDocument(TypedDict):
    """A data set of a sweep."""

    out: str
    conventions: list[str]
    runs: int
    made: int
    failed: int
    errors: list[SweepError]


class SensitivityDocument(TypedDict):
    """Size of a weakness with a number halved and doubled; null outside of the bounds."""

    parameter: str
    halved: float | None
    doubled: float | None


class ConfirmationDocument(TypedDict):
    """Runs of a finding in real time."""

    verdict: Literal["real", "not real", "undecided", "not run"]
    value: EstimateDocument | None
    reference: EstimateDocument | None
    note: str


class RejectedDocument(TypedDict):
    """A network whose weakness fresh seeds did not confirm."""

    objective: str
    metric: str
    test: str
    fails: list[str]
    verdict: Literal["confirmed", "not confirmed", "undecided"]
    sentence: str
    network: dict[str, str | int | float]
    reduced: bool
    size: EstimateDocument
    value: EstimateDocument
    reference: EstimateDocument
    seeds: list[int]
    errors: list[str]
    sensitivity: list[SensitivityDocument]
    confirmation: ConfirmationDocument | None


class FindingDocument(RejectedDocument):
    """A network with a confirmed weakness."""

    file: str


class SearchDocument(TypedDict):
    """Weaknesses of a controller."""

    controller: str
    against: str
    runs: int
    out: str
    findings: list[FindingDocument]
    rejected: list[RejectedDocument]
    front: list[dict[str, float]]


class EstimatedSweep(TypedDict):
    """Estimated time and size of a sweep; null if nothing could be measured."""

    out: str
    runs: int
    present: int
    missing: int
    sampled: int
    cores: int
    core_s: float
    time_s: float
    bytes: int | None


class DamagedPart(TypedDict):
    """A part of a data set with a missing or changed file."""

    part: str
    problem: str
    runs: int


class VerifiedDocument(TypedDict):
    """A data set compared with its manifest."""

    out: str
    parts: int
    runs: int
    damaged: list[DamagedPart]
    unlisted: list[str]


class ForgottenDocument(TypedDict):
    """Removed runs of a data set."""

    out: str
    forgotten: int


class ColumnDocument(TypedDict):
    """A column of a table of a data set."""

    name: str
    type: str


class DataTable(TypedDict):
    """A table of a data set."""

    name: str
    rows: int
    columns: list[ColumnDocument]


class TablesDocument(TypedDict):
    """The tables of a data set."""

    failed: int
    tables: list[DataTable]


class RowsDocument(TypedDict):
    """The rows of a statement."""

    rows: list[dict[str, Any]]


class ModelParameter(TypedDict):
    """A parameter of a model."""

    name: str
    kind: Literal["number", "whole", "time", "rate", "text", "flag"]
    required: bool
    default: float | str | bool
    text: str


class ModelSummary(TypedDict):
    """A model."""

    name: str
    summary: str
    units: dict[str, str]
    parameters: list[ModelParameter]


class ModelsDocument(TypedDict):
    """The models."""

    models: list[ModelSummary]


class _ModelDocument(TypedDict):
    model: str
    units: dict[str, str]
    parameters: dict[str, Any]


class ModelDocument(_ModelDocument, total=False):
    """Results of a model: ``result``, or ``rows`` over a parameter, or ``results`` by one."""

    by: str
    over: str
    result: dict[str, Any]
    results: list[dict[str, Any]]
    rows: list[dict[str, Any]]


class AlgorithmsDocument(TypedDict):
    """Controllers."""

    algorithms: list[Algorithm]


class ScenarioFile(TypedDict):
    """A packaged file."""

    name: str
    kind: Literal["scenario", "plan"]
    title: str
    path: str


class ScenariosDocument(TypedDict):
    """Packaged scenario files and plans."""

    scenarios: list[ScenarioFile]


class KeysDocument(TypedDict):
    """The tables of scenario files."""

    tables: list[KeyTable]


class DoctorDocument(TypedDict):
    """Optional dependencies."""

    findings: list[Finding]


class InstancesDocument(TypedDict):
    """Controllers in the kernel."""

    controllers: list[Instance]


class UsedInstance(TypedDict):
    """A controller in the kernel, with its connections."""

    name: str
    controller: str
    hash: str | None
    default: bool
    connections: list[KernelSocket]


class StatusDocument(TypedDict):
    """Controllers in the kernel, with their connections."""

    controllers: list[UsedInstance]


class TraceDocument(TypedDict):
    """Traced connections of the kernel."""

    flows: list[dict[str, Any]]
    missed: int


class KernelCheckDocument(TypedDict):
    """Requirements of the kernel's controllers."""

    findings: list[KernelFinding]


class LinkTraceDocument(TypedDict):
    """A recorded link: its rates in windows of about 1 s, and its delays if it has them."""

    format: str
    duration_s: float
    mean_rate_bps: float
    min_rate_bps: float
    max_rate_bps: float
    longest_outage_s: float
    min_delay_s: float | None
    mean_delay_s: float | None
    max_delay_s: float | None


class ConformDocument(TypedDict):
    """Connections that were checked against the rules of the RFCs.

    ``replay`` is None without --replay.
    """

    connections: list[Connection]
    replay: Replay | None


class CheckedFile(LawRecord):
    """A law in a file, as its reader finds it."""

    file: str


class LawDocument(TypedDict):
    """Laws in files."""

    files: list[CheckedFile]


class Connected(TypedDict):
    """There is a connection."""

    event: Literal["connected"]
    transfer: int
    peer: str
    identity: str | None
    attempt: int


class Planned(TypedDict):
    """The size of a transfer is known."""

    event: Literal["plan"]
    transfer: int
    files: int
    bytes: int


class FileSent(TypedDict):
    """A file is complete."""

    event: Literal["file"]
    transfer: int
    path: str
    outcome: Literal["sent", "present", "resumed"]
    bytes: int
    moved_bytes: int


class Remark(TypedDict):
    """An error, which may not concern one file, or a note."""

    event: Literal["error", "note"]
    transfer: int
    path: str | None
    reason: str


class Progress(TypedDict):
    """About once a second."""

    event: Literal["progress"]
    transfer: int
    name: str
    done_bytes: int
    moved_bytes: int
    total_bytes: int | None
    files: int
    rate_bps: float
    rtt_s: float
    loss_rate: float
    retransmissions: int
    limited: dict[str, float]


class Retry(TypedDict):
    """Another attempt follows."""

    event: Literal["retry"]
    transfer: int
    attempt: int
    of: int
    delay_s: float
    reason: str


class End(TypedDict):
    """A transfer ended."""

    event: Literal["end"]
    transfer: int
    peer: str
    outcome: Literal["complete", "incomplete", "failed"]
    files: int
    bytes: int
    present_bytes: int
    moved_bytes: int
    seconds: float
    rate_bps: float
    not_sent: int
    retransmissions: int
    rtt_s: float
    limited: dict[str, float]
    advice: str | None
    reason: str | None


class NoTransfer(TypedDict):
    """No transfer began."""

    event: Literal["end"]
    outcome: Literal["failed"]
    reason: str


class Total(TypedDict):
    """The sums of all transfers of a receiver."""

    event: Literal["total"]
    transfers: int
    complete: int
    incomplete: int
    failed: int
    files: int
    bytes: int
    moved_bytes: int


Event: TypeAlias = (
    Connected | Planned | FileSent | Remark | Progress | Retry | End | NoTransfer | Total
)


class PerfDocument(TypedDict):
    """A throughput test, as iperf3's JSON."""

    start: dict[str, Any]
    intervals: list[dict[str, Any]]
    end: dict[str, Any]


class ScoredNetwork(TypedDict, total=False):
    """A network of a score; without ``best`` in the kernel, without objectives after a fault."""

    part: Literal["training", "search", "held-out", "kernel"]
    label: str
    score: float
    goodput: float
    delay: float
    loss: float
    fairness: float
    best: str
    best_score: float
    error: str


class ScoreDocument(TypedDict):
    """The score of a candidate; ``metrics`` and ``artifacts`` have names that depend on it."""

    candidate: str
    suite: str
    seed: int
    stage: Stage
    metrics: dict[str, float]
    artifacts: dict[str, str]
    networks: list[ScoredNetwork]


class PerfError(TypedDict):
    """A client that fails."""

    error: str


DOCUMENTS: dict[str, tuple[str, Any]] = {
    "run": ("cwnd run --json", RunDocument),
    "run-repeat": ("cwnd run --repeat N --json", RepeatedRunDocument),
    "run-fork": ("cwnd run --fork-at TIME --json", ForkDocument),
    "compare": ("cwnd compare --json", CompareDocument),
    "agree": ("cwnd agree --json", AgreeDocument),
    "evaluate-list": ("cwnd evaluate --list --json", TestsDocument),
    "evaluate-run": ("cwnd evaluate --cell NETWORK --json", SingleRunDocument),
    "reproduce": ("cwnd reproduce --json", ReproduceDocument),
    "sweep": ("cwnd sweep --json", SweepDocument),
    "sweep-dry-run": ("cwnd sweep --dry-run --json", EstimatedSweep),
    "sweep-verify": ("cwnd sweep --verify OUT --json", VerifiedDocument),
    "sweep-forget": ("cwnd sweep --forget WHERE --json", ForgottenDocument),
    "search": ("cwnd search --json", SearchDocument),
    "query": ("cwnd query OUT SQL --json", RowsDocument),
    "query-tables": ("cwnd query OUT --json", TablesDocument),
    "models": ("cwnd model --json", ModelsDocument),
    "model-law": ("cwnd model CONTROLLER --json", Behaviour),
    "model": ("cwnd model NAME --json", ModelDocument),
    "algorithms": ("cwnd algorithms --json", AlgorithmsDocument),
    "keys": ("cwnd keys --json", KeysDocument),
    "scenarios": ("cwnd scenarios --json", ScenariosDocument),
    "doctor": ("cwnd doctor --json", DoctorDocument),
    "kernel-load": ("cwnd kernel load --json, cwnd kernel unload --json", Instance),
    "kernel-list": ("cwnd kernel list --json", InstancesDocument),
    "kernel-status": ("cwnd kernel status --json", StatusDocument),
    "kernel-trace": ("cwnd kernel trace --json", TraceDocument),
    "kernel-check": ("cwnd kernel check --json", KernelCheckDocument),
    "conform": ("cwnd conform FILE --json", ConformDocument),
    "law-check": ("cwnd law check FILE... --json", LawDocument),
    "score": ("cwnd score --json", ScoreDocument),
    "trace-info": ("cwnd trace info FILE --json", LinkTraceDocument),
    "send": ("a line of cwnd send --json or of cwnd recv --json", Event),
    "perf": ("cwnd perf --json", PerfDocument | PerfError),
}
"""Titles and types of the documents by name; `cwnd._tasks.evaluation.schema` has those of cards."""


def schema_names() -> list[str]:
    """Return the names of the documents with a JSON Schema."""
    return ["scenario", "card", "evaluate", *DOCUMENTS]


def document_schema(name: str) -> JsonObject:
    """Return the JSON Schema of a document, by one of `schema_names`."""
    if name in DOCUMENTS:
        found = json_schema(*DOCUMENTS[name])
        for row in {"AloneRow", "AgainstRow", "PairRow"} & found["$defs"].keys():
            # A metric of --measure has its name.
            found["$defs"][row]["additionalProperties"] = {"$ref": "#/$defs/FigureDocument"}
        return found
    if name == "scenario":
        return schema()
    # An evaluation needs an extra.
    from cwnd._tasks.evaluation.schema import card_schema, evaluation_schema

    return card_schema() if name == "card" else evaluation_schema()
