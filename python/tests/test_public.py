"""The public names, and the sections of docstrings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import types
from pathlib import Path
from typing import TYPE_CHECKING

import cwnd

if TYPE_CHECKING:
    from collections.abc import Iterator

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

ROOT = Path(cwnd.__file__).parent
SECTION = re.compile(r"^(Parameters|Attributes|Returns|Yields|Raises|Warns)\n-+$", re.MULTILINE)

PUBLIC = {
    "": "Agreement Algorithm Card Comparison Controller MissingExtraError RateLaw Repeated Result "
    "Scenario ScenarioError Score Search Simulation SpecError Sweep WindowLaw __version__ agree "
    "algorithms canonical compare evaluate reproduce run run_repeated score search sweep",
    "controller": "Controller ControllerHooks Cut Output RateHooks RateLaw WindowHooks WindowLaw",
    "emulation": "EmulationRecord LatenessRecord TcpRecord ToolRecord read_links summarise to_json",
    "errors": "ArgumentError ControllerWarning DataSetWarning KernelError PlanError",
    "events": "Acked Context Conventions Event Handshake LossSample Lost Marked Mtu "
    "PersistentCongestion RateSample Recovered Reduced Report Round Settings Tick Timeout Undo",
    "kernel": "Instance Trace check find implemented listing load trace unload",
    "metrics": "Array Delay JainSeries SizeClass Spread alpha_fairness binned_rate by_size "
    "coefficient_of_variation completion_time convergence_time efficiency_index fairness_index "
    "friendliness goodput harm ideal_completion_time jain jain_over_time loss_rate mark_rate "
    "offered_rate queue_delay range_of responsiveness retransmission_rate slowdown smoothness "
    "spread stability_index throughput utilization worst",
    "model": "aiad aiad_system aira behaviour catalog daimd daimd_sharing fluid friendliness law "
    "stationary synchronous throughput",
    "parts": "RoundCounter WindowedMax WindowedMin",
    "perf": "PerfError PerfOptions Report Server measure",
    "stats": "Estimate Range estimate estimate_difference estimate_ratio",
    "tables": "acks cuts queues samples transfers write_comparison write_trace",
    "transfer": "Event Outcome ReceiveOptions SendOptions SourceError TransferError receive send",
    "udt": "Connection Listener connect generate_code generate_key generate_pair listen read_peers "
    "read_secret",
    "units": "format_rate format_size format_time parse_rate parse_size parse_time tc_rate tc_time",
}
# Functions of public modules without `__all__` that only other modules of cwnd use.
HELPERS = {
    "controller": "add_controller command_specification controller_kind explain_failure from_path "
    "in_controller installed_controllers move_specification names_file names_python "
    "read_controller warn_answer written_class",
    "errors": "naming read_argument read_list",
    "units": "check_unit counted scenario_time",
}


def exported(name: str, module: types.ModuleType) -> set[str]:
    """Return ``__all__`` or, without it, the functions and classes of a module but its helpers."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    found = {
        key
        for key, each in vars(module).items()
        if (inspect.isfunction(each) or inspect.isclass(each))
        and each.__module__ == module.__name__
        and not key.startswith("_")
    }
    return found - set(HELPERS.get(name, "").split())


def test_the_public_names_are_these():
    found = {name: getattr(cwnd, name) for name in cwnd.__all__}
    modules = {name: each for name, each in found.items() if inspect.ismodule(each)}
    public = {name: exported(name, module) for name, module in modules.items()}
    public[""] = set(found) - set(modules)
    assert public == {name: set(names.split()) for name, names in PUBLIC.items()}


# Models have their own form, which their catalog reads.
OBJECTS = [
    getattr(getattr(cwnd, module) if module else cwnd, name)
    for module, names in PUBLIC.items()
    for name in names.split()
    if module != "model"
]
CLASSES = [each for each in OBJECTS if inspect.isclass(each)]
FUNCTIONS = [each for each in OBJECTS if inspect.isfunction(each)]


def test_public_functions_and_classes_describe_their_parameters():
    for function in FUNCTIONS:
        takes = bool(inspect.signature(function).parameters)
        assert ("Parameters" in sections(function.__doc__)) == takes, function
    for each in CLASSES:
        assert each.__doc__, each
        own = getattr(vars(each).get("__init__"), "__module__", None) == each.__module__
        if dataclasses.is_dataclass(each) or own:
            described = sections(each.__doc__) + sections(each.__init__.__doc__)
            assert {"Parameters", "Attributes"} & set(described), each


def sections(docstring: str | None) -> list[str]:
    return SECTION.findall(inspect.cleandoc(docstring or ""))


def test_only_public_docstrings_have_sections():
    public = {(each.__module__, each.__qualname__) for each in CLASSES + FUNCTIONS}
    for path in ROOT.rglob("*.py"):
        home = path.relative_to(ROOT.parent).with_suffix("").parts
        if home[:2] == ("cwnd", "model"):
            continue
        module = ".".join(home).removesuffix(".__init__")
        for name, node in documented(ast.parse(path.read_text("utf-8"))):
            outer, _, method = name.rpartition(".")
            is_method = (module, outer) in public and not re.match("_(?!_init__$)", method)
            if (module, name) not in public and not is_method:
                found = sections(ast.get_docstring(node))
                assert not found, f"{module}.{name} is not public: its docstring has {found}"


def documented(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, Documented]]:
    """Generate the functions and classes in a tree, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        name = outer
        if isinstance(node, Documented):
            name = f"{outer}.{node.name}".lstrip(".")
            yield name, node
        yield from documented(node, name)


def test_modules_import_from_the_root_only_modules():
    """A name that the root exports would hide from import-linter where it is defined."""
    modules = {"_native", *(path.stem for path in ROOT.iterdir())}
    for path in ROOT.rglob("*.py"):
        if path == ROOT / "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "cwnd":
                # The type of a public signature, which `cwnd.tables` may not import from a task.
                allowed = {"Comparison"} if path == ROOT / "tables.py" else set()
                found = {alias.name for alias in node.names}
                assert found <= modules | allowed, f"{path}: {found - modules}"
