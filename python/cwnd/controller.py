"""Controllers written in Python: their kinds (``docs/controllers.md``), and how they are named."""

from __future__ import annotations

import ast
import copy
import difflib
import functools
import importlib.util
import inspect
import math
import re
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TextIO, TypeAlias

from cwnd import _native
from cwnd._base.law_files import LAW, known_laws, path_of_law, use_law
from cwnd.errors import ArgumentError, ControllerWarning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.metadata import EntryPoint
    from types import CodeType, FrameType, ModuleType

    from cwnd.events import (
        Acked,
        Context,
        Conventions,
        Event,
        Lost,
        Report,
        Round,
        Settings,
    )

Kind: TypeAlias = Literal["window", "rate", "whole"]
"""The kind of a controller: a window law, a rate law or a whole controller."""

Signal: TypeAlias = Literal["loss", "mark", "timeout", "persistent-congestion", "delay"]
"""A congestion signal."""

Need: TypeAlias = Literal["delivery_rate", "ecn", "reports", "capacity"]
"""What a whole controller needs from its driver beyond acknowledgements and losses."""


class WindowLaw(Protocol):
    """A law for the congestion window, clocked by acknowledgements.

    Windows are in packets and real-valued. Slow start, loss recovery, timers and clamps surround
    the law: its methods are called only where the law applies. Optional methods are those of
    `WindowHooks`.
    """

    def grow(self, w: float, acked: float, cx: Context, /) -> float:
        """Return the window after growth in congestion avoidance.

        Parameters
        ----------
        w
            The window in packets.
        acked
            Packets newly acknowledged.
        cx
            The state of the connection.
        """

    def cut(self, w: float, why: Signal, cx: Context, /) -> float:
        """Return the window after a congestion signal, at most one for each window of data.

        Parameters
        ----------
        w
            The window in packets.
        why
            The signal. After ``"timeout"`` the answer counts for the slow-start threshold alone;
            after ``"persistent-congestion"`` it is not used.
        cx
            The state of the connection.
        """


class WindowHooks:
    """The optional methods of a window law, with their defaults.

    A law that inherits from this class has the types of its methods checked. A method that a law
    does not override is not called.
    """

    uses_delivery_rate: bool = False
    """Whether the law uses ``Acked.delivery``. May be a method."""

    needs_ecn: bool = False
    """Whether all packets of the sender are ECN-capable, the SYN too. May be a method."""

    grows_after_mark: bool = False
    """Whether the window grows in the round after a mark too. May be a method."""

    timeout_ends_round: bool = True
    """Whether a timeout ends the round, as a loss does. May be a method."""

    def adopt(self, conventions: Conventions, /) -> None:
        """Adopt the rules of the driver's stack for this law, before the first event."""

    def answers_mark(self, cx: Context, /) -> bool:  # noqa: ARG002
        """Return whether the law answers a mark now; a mark without an answer is no reduction."""
        return True

    def threshold(self, cut: float, why: Signal, /) -> float | None:
        """Return the slow-start threshold in packets after a signal.

        Parameters
        ----------
        cut
            The answer of ``cut`` in packets.
        why
            The signal.

        Returns
        -------
        float or None
            None leaves the threshold to the conventions of the stack: by RFC 5681 at most half of
            the window in slow start and after a timeout.
        """

    def enter(self, w: float, cx: Context, /) -> None:
        """Begin congestion avoidance at window ``w``: after slow start and after each reduction."""

    def round(self, finished: Round, cx: Context, /) -> None:
        """Process a finished round, the packets between two reductions, after its recovery."""

    def observe(self, acked: Acked, cx: Context, /) -> None:
        """Process an acknowledgement, in every phase: for estimators."""

    def leave_slow_start(self, w: float, cx: Context, /) -> bool:  # noqa: ARG002
        """Return whether slow start ends at window ``w`` before a loss ends it."""
        return False

    def reduced(self, w: float, /) -> None:
        """Take note that the driver reduced the window to ``w`` by a rule of its own."""

    def rescale(self, factor: float, /) -> None:
        """Multiply state in packets by ``factor``: the packet size changed."""

    def gauges(self) -> Mapping[str, float]:
        """Return the law's variables for plots as a dict, with the same names each time."""
        return {}


class RateLaw(Protocol):
    """A law for the sending rate, run once in each control interval.

    Rates are in packets per second. The control interval, slow start and the clamps surround the
    law. Optional methods are those of `RateHooks`. ``interval`` and ``clock`` may be methods.
    """

    @property
    def interval(self) -> float:
        """The control interval in seconds. It may change with each call of the law."""

    @property
    def clock(self) -> Literal["timer", "reports"]:
        """The clock of the interval: a timer, or the first report after the interval."""

    def tick(self, rate: float, cx: Context, /) -> float:
        """Return the rate in packets per second after an interval.

        The interval had acknowledgements and no loss.
        """

    def cut(self, rate: float, fresh: bool, why: Signal, cx: Context, /) -> float:  # noqa: FBT001
        """Return the rate after a loss report or another signal.

        Parameters
        ----------
        rate
            The rate in packets per second.
        fresh
            Whether the most recently sent lost packet was sent after the last decrease.
        why
            The signal.
        cx
            The state of the connection.
        """

    def start(self, w: float, cx: Context, /) -> float:
        """Return the rate at the end of slow start, whose window was ``w`` packets."""


class RateHooks:
    """The optional methods of a rate law, with their defaults.

    A law that inherits from this class has the types of its methods checked. A method that a law
    does not override is not called.
    """

    starts_itself: bool = False
    """Whether the law has a slow start of its own: it begins at the rate of ``start``, and ``tick``
    runs after every interval. May be a method."""

    uses_capacity: bool = False
    """Whether the law uses ``Report.capacity``. May be a method."""

    least: float = 1.0
    """The least rate in packets per second. May be a method."""

    def observe(self, report: Report, cx: Context, /) -> None:
        """Process a report of the receiver: for estimators."""

    def delay_rises(self, cx: Context, /) -> bool:  # noqa: ARG002
        """Return whether the newest report is a congestion signal, ``"delay"``."""
        return False

    def losses(self, lost: Lost, rate: float, cx: Context, /) -> None:
        """Process packets lost or marked at ``rate`` packets per second, before any reduction."""

    def window(self, cx: Context, /) -> float | None:
        """Return the flow window in packets; None leaves the limit to the receiver."""

    def rescale(self, factor: float, /) -> None:
        """Multiply state in packets (per second) by ``factor``: the packet size changed."""

    def gauges(self) -> Mapping[str, float]:
        """Return the law's variables for plots as a dict, with the same names each time."""
        return {}


class Output(NamedTuple):
    """The answer of a whole controller.

    Attributes
    ----------
    window
        The largest number of packets in flight.
    pace
        The pacing rate in packets per second; None for a sender clocked by acknowledgements.
    wake
        The time in seconds at which the controller wants a ``Tick``; None for no timer.
    """

    window: float
    pace: float | None = None
    wake: float | None = None


class Cut(NamedTuple):
    """A reduction, for records.

    Attributes
    ----------
    why
        The signal that caused it.
    before, after
        The window in packets, or the rate in packets per second, before and after the signal.
    of
        The value that was reduced.
    """

    why: Signal
    before: float
    after: float
    of: Literal["window", "rate"] = "window"


class Controller(Protocol):
    """A whole controller: it owns all of its state, slow start and recovery included.

    Optional methods are those of `ControllerHooks`. `cwnd.parts` has filters and round counting.
    """

    def on(self, now: float, event: Event, /) -> None:
        """Process an event.

        Parameters
        ----------
        now
            The time in seconds, which never decreases.
        event
            An object of a class of `cwnd.events`.
        """

    def output(self) -> tuple[float, float | None, float | None]:
        """Return window, pacing rate and wake-up time: an `Output`, or a tuple of the same values.

        It is called at the start and after each event.
        """


class ControllerHooks:
    """The optional methods of a whole controller, with their defaults.

    A controller that inherits from this class has the types of its methods checked. A method that
    a controller does not override is not called.
    """

    needs: tuple[Need, ...] = ()
    """What the controller needs from its driver. May be a method."""

    def begin(self, settings: Settings, /) -> None:
        """Begin a connection with the driver's settings, before the first event."""

    def take_cut(self) -> tuple[Signal, float, float, Literal["window", "rate"]] | None:
        """Return the last reduction, a `Cut`, if there was one since the last call."""

    def gauges(self) -> Mapping[str, float]:
        """Return the controller's variables for plots as a dict, with the same names each time."""
        return {}


AnyController: TypeAlias = WindowLaw | RateLaw | Controller
"""A controller of any kind."""

Factory: TypeAlias = Callable[[], AnyController]
"""Makes the controller of one flow: a class, or any function without arguments."""

Spec: TypeAlias = str | PurePath | Factory | AnyController
"""What a controller is given as: a specification such as ``simd(beta=1/16)``, ``kernel:cubic`` (the
Linux kernel's own), ``own:cubic`` (a QUIC stack's own), ``mine.law(beta=1/8)`` or
``mine.py:Law(beta=1/8)``, the path of such a file, a factory, or an instance of which each flow
gets a copy."""

_PYTHON = "python:"
"""What precedes the name of a controller that a running program defines."""

_MARKS = {"grow", "tick", "on", "output"}
"""Methods that only controllers have."""

_FILE = re.compile(r"(?P<path>.*?\.py)(:(?P<law>.*))?", re.DOTALL)
"""A specification that names a Python file, with or without the class."""


def read_controller(controller: Spec) -> tuple[str, Factory | None]:
    """Return the name of a controller, and the factory of one written in Python.

    The name is the canonical specification, or ``python:`` with the name of the class and its
    arguments. A wrong specification or file is a SpecError, an object that is no controller a
    TypeError.

    Examples
    --------
    >>> read_controller("simd(beta=1/16)")
    ('simd', None)
    """
    controller = from_path(controller)
    if isinstance(controller, str):
        return _read_text(controller)
    factory: Any = controller
    if isinstance(controller, functools.partial):
        name = getattr(controller.func, "__name__", "")
        values = [repr(value) for value in controller.args]
        values += [f"{key}={value!r}" for key, value in controller.keywords.items()]
    elif callable(controller):
        name, values = getattr(controller, "__name__", ""), []
    elif _MARKS.intersection(dir(controller)):
        controller_kind(controller)
        name = type(controller).__name__
        values = [f"{key}={value!r}" for key, value in _settings(controller)]
        factory = _Copies(controller)
    else:
        name, values = "", []
    if isinstance(made := written_class(factory), type):
        # Attributes that __init__ sets are not there yet.
        with suppress(TypeError):
            _check_hooks(made, controller_kind(made))
    if not name.isidentifier():
        raise TypeError(f"{controller!r} is neither a specification nor a class of a controller")
    arguments = f"({', '.join(values)})" if values else ""
    return f"{_PYTHON}{name}{arguments}", factory


def names_file(spec: str) -> bool:
    """Test whether a specification names a law in a file, or a Python file.

    Examples
    --------
    >>> names_file("mine.law(beta=1/8)"), names_file("simd(beta=1/8)")
    (True, False)
    """
    return any(pattern.fullmatch(spec.strip()) for pattern in (_FILE, LAW))


def from_path(controller: Spec) -> str | Factory | AnyController:
    """Return the specification that a path is; other controllers as they are.

    Examples
    --------
    >>> from_path(Path("mine.law"))
    'mine.law'
    """
    if not isinstance(controller, PurePath):
        return controller
    if names_file(spec := str(controller)):
        return spec
    raise _native.SpecError(
        f"{spec}: the path of a controller is that of a law, or mine.py:Law in a Python file"
    )


def move_specification(spec: str, home: Path) -> str:
    """Make a specification that names a file relative to ``home`` relative to the work directory.

    Examples
    --------
    >>> move_specification("mine.py:Law(beta=1/8)", Path("runs"))
    'runs/mine.py:Law(beta=1/8)'
    """
    match = _FILE.fullmatch(spec.strip()) or LAW.fullmatch(spec.strip())
    return spec if match is None else f"{(home / match['path']).as_posix()}{match[2] or ''}"


def command_specification(name: str, factory: Factory | None) -> str | None:
    """Return the specification of a controller for the command line; None without one.

    There is none if the controller is not defined at the top of a file, or if the attributes of an
    instance are not the arguments that make it.
    """
    if not name.startswith(_PYTHON):
        return name
    made = written_class(factory)
    try:
        file = inspect.getsourcefile(made)
    except (TypeError, OSError):
        return None
    if file is None or not file.endswith(".py") or "." in getattr(made, "__qualname__", "."):
        return None
    path = Path(file)
    here = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    spec = f"{here}:{name.removeprefix(_PYTHON)}"
    try:
        _, args, kwargs = _read_call(spec, name.removeprefix(_PYTHON))
        if isinstance(factory, _Copies) and vars(made(*args, **kwargs)) != vars(factory.instance):
            return None
    except Exception:  # noqa: BLE001
        return None
    return spec


def written_class(factory: Factory | None) -> Any:  # noqa: ANN401
    """Return the class or function behind what makes a controller."""
    made: object = factory
    if isinstance(made, functools.partial):
        made = made.func
    return type(made.instance) if isinstance(made, _Copies) else made


def add_controller(known: dict[str, Factory], name: str, factory: Factory) -> None:
    """Add a controller written in Python; ArgumentError if another one has its name."""
    if known.setdefault(name, factory) != factory:
        raise ArgumentError("controllers", f"two different classes are called {name}")


def explain_failure(problem: BaseException) -> str | None:
    """Name the file and line of a controller that raised; None if none was running."""
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if frame.filename in _files:
            where = f"{_files[frame.filename]}:{frame.lineno}: in {frame.name}"
            return f"{where}: {type(problem).__name__}: {problem}"
    return None


def warn_answer(controller: object, hook: str, text: str) -> None:
    """Warn of the answer of a hook."""
    method = getattr(controller, hook, None)
    _warn(f"{hook}: {text}", getattr(method, "__code__", None), type(controller))


def _warn(text: str, code: CodeType | None, made: type) -> None:
    """Warn about code of a controller, or about its class; once for each text and line."""
    file, line = "", 1
    if code is not None:
        file, line = code.co_filename, code.co_firstlineno
    else:
        # A class that no file defines has neither.
        with suppress(OSError, TypeError):
            file = inspect.getsourcefile(made) or ""
            line = inspect.getsourcelines(made)[1]
    _warn_at(text, file or made.__name__, line)


def _warn_at(text: str, file: str, line: int) -> None:
    """Warn about a line of a file, which is named as the user wrote it."""
    place = _files.get(file, file)
    registry = _warned.setdefault(place, {})
    warnings.warn_explicit(text, ControllerWarning, place, line, registry=registry)


@functools.cache
def _check_hooks(made: type, kind: Kind) -> None:
    """Warn of members of a class that its file never uses, and that are named like hooks."""
    used = _names_in_file(made)
    if used is None:
        return
    titles = {name: title for name, title, *_ in _native.controller_hooks()}
    hooks = {name: {*must, *may} for name, _, must, may in _native.controller_hooks()}
    known = hooks.pop(kind)
    classes = [each for each in made.__mro__ if each.__module__ not in {"builtins", __name__}]
    members = {name: value for each in reversed(classes) for name, value in vars(each).items()}
    for name, value in members.items():
        if name.startswith("_") or name in known or name in used:
            continue
        others = [titles[other] for other, names in hooks.items() if name in names]
        like = difflib.get_close_matches(name, known - members.keys(), 1, NEAR)
        if others and callable(value):
            of = " or ".join(f"a {title}" for title in others)
            text = f"{name} is never called: it is a hook of {of}, and this is a {titles[kind]}"
        elif like:
            text = f"{name} is never used: a {titles[kind]} has {like[0]}"
        else:
            continue
        _warn(text, getattr(value, "__code__", None), made)


def _names_in_file(made: type) -> set[str] | None:
    """Return the attributes that the file of a class uses, and its words; None without a file."""
    try:
        tree = ast.parse(Path(inspect.getsourcefile(made) or "").read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def controller_kind(controller: object) -> Kind:
    """Return the kind of a controller; TypeError if its methods are not those of one kind."""
    return _native.controller_kind(controller)


PATIENCE = 10.0
"""Seconds after which a call that has not returned is reported."""

NEAR = 0.8
"""The similarity, as of `difflib`, from which a name is taken for a misspelt hook."""

_MODULE = "cwnd_controllers_"
"""What the names of the modules of files begin with."""

_warned: dict[str, dict[Any, Any]] = {}
"""What `warnings` has shown, by file."""

_files: dict[str, str] = {}
_modules: set[str] = set()
"""The files that controllers were read from: as they are run, and as they were written."""


class _FromFile(functools.partial[AnyController]):
    """Makes the controller that a specification names."""

    specification: str
    """The name in messages of the bridge."""


@dataclass(frozen=True)
class _Copies:
    """Makes copies of a controller."""

    instance: AnyController

    @property
    def __name__(self) -> str:
        return type(self.instance).__name__

    def __call__(self) -> AnyController:
        return copy.deepcopy(self.instance)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Copies) and other.instance is self.instance

    __hash__ = None  # type: ignore[assignment]


def _settings(instance: AnyController) -> list[tuple[str, object]]:
    """Return the public attributes of a controller that are numbers, words or switches."""
    values = getattr(instance, "__dict__", {})
    return [
        (key, value)
        for key, value in values.items()
        if not key.startswith("_") and isinstance(value, bool | int | float | str)
    ]


def _read_text(text: str) -> tuple[str, Factory | None]:
    """Read a specification."""
    text = text.strip()
    if text.startswith(_PYTHON):
        raise _native.SpecError(
            f"{text} names a class of a running program: "
            "write the file that defines it, such as mine.py:Law"
        )
    match = _FILE.fullmatch(text)
    if match is not None:
        file = str(Path(match["path"]).resolve())
        return text, _read_file(text, file, match["path"], match["law"] or "", _version(file))
    if names_python(text):
        return text, _read_installed(text)
    if (path := path_of_law(text)) is not None:
        with known_laws({path: use_law(path)}):
            return _native.canonical(text), None
    if ":" in text and not text.startswith(("kernel:", "own:")):
        raise _native.SpecError(
            f"{text}: unknown controller: no installed package has it; a file's is mine.py:Law"
        )
    return _native.canonical(text), None


def names_python(spec: str) -> bool:
    """Whether a specification names a class of a Python file or of an installed package."""
    return ".py:" in spec or (":" in spec and _name_of(spec) in installed_controllers())


def _name_of(spec: str) -> str:
    """Return what precedes the arguments in a specification."""
    return spec.partition("(")[0].strip()


@functools.cache
def installed_controllers() -> Mapping[str, EntryPoint]:
    """Return the controllers that installed packages add, by `PACKAGE:NAME`.

    The name of the package is normalised (PEP 503). Names have letters, digits, `-` and `_`.
    """
    from importlib.metadata import entry_points

    try:
        found = entry_points(group="cwnd.controllers")
    except UnicodeDecodeError as problem:
        raise _native.SpecError(f"entry points of an installed package: {problem}") from None
    return {
        f"{re.sub('[-_.]+', '-', each.dist.name).lower()}:{each.name}": each
        for each in found
        if each.dist is not None and re.fullmatch(r"[A-Za-z0-9_-]+", each.name)
    }


@functools.cache
def _read_installed(spec: str) -> Factory:
    """Return what makes a controller of an installed package."""
    name = _name_of(spec)
    # The name of an entry point need not be an identifier.
    _, args, kwargs = _read_call(spec, f"law{spec.strip().removeprefix(name)}")
    entry = installed_controllers()[name]
    try:
        # Standard output has the results of a command.
        with redirect_stdout(sys.stderr):
            made = entry.load()
    except (Exception, SystemExit) as problem:  # noqa: BLE001
        raise _native.SpecError(f"{name}: {entry.value} cannot be loaded: {problem!r}") from None
    if not callable(made):
        raise _native.SpecError(f"{name}: {entry.value} is no class of a controller")
    if file := getattr(inspect.getmodule(made), "__file__", None):
        _add_module(sys.modules[made.__module__], file, entry.module)
    return _make(spec, made, args, kwargs)


def _version(file: str) -> tuple[int, int] | None:
    """Return what differs when a file has been edited: its time and its size; None without it."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@functools.cache
def _read_file(
    spec: str, file: str, path: str, law: str, version: tuple[int, int] | None
) -> Factory:
    """Return what makes the controller ``law`` of a file; the same for the same specification."""
    name, args, kwargs = _read_call(spec, law)
    module = _run_file(file, path, version)
    made = getattr(module, name, None)
    if not callable(made):
        own = (value for value in vars(module).values() if isinstance(value, type))
        marked = (each for each in own if _MARKS.intersection(dir(each)))
        known = [each.__name__ for each in marked if each.__module__ == module.__name__]
        has = f"; it has {', '.join(known)}" if known else ""
        raise _native.SpecError(f"{spec}: {path} has no class {name}{has}")
    return _make(spec, made, args, kwargs)


def _make(
    spec: str, made: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> Factory:
    """Return what makes a controller, after a trial."""
    factory = _FromFile(made, *args, **kwargs)
    factory.specification = spec
    try:
        controller = factory()
    except (Exception, SystemExit) as problem:  # noqa: BLE001
        raise _native.SpecError(f"{spec}: {explain_failure(problem) or problem}") from None
    try:
        kind = controller_kind(controller)
    except TypeError as problem:
        raise _native.SpecError(f"{spec}: {problem}") from None
    _check_hooks(type(controller), kind)
    return factory


@functools.cache
def _run_file(file: str, path: str, version: tuple[int, int] | None) -> ModuleType:  # noqa: ARG001
    """Run a Python file as a module, once for each version of the file."""
    name = f"{_MODULE}{len(_modules)}_{Path(file).stem}"
    found = importlib.util.spec_from_file_location(name, file)
    if found is None or found.loader is None:
        raise _native.SpecError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(found)
    # Dataclasses look up the module that defines them.
    sys.modules[name] = module
    _add_module(module, file, path)
    try:
        found.loader.exec_module(module)
    except OSError as problem:
        raise _native.SpecError(f"{path}: {problem.strerror or problem}") from None
    except SyntaxError as problem:
        raise _native.SpecError(f"{path}:{problem.lineno or 1}: {problem.msg}") from None
    except (Exception, SystemExit) as problem:  # noqa: BLE001
        raise _native.SpecError(explain_failure(problem) or f"{path}: {problem}") from None
    return module


def _add_module(module: ModuleType, file: str, shown: str) -> None:
    """Watch the calls into a module of controllers, whose file messages call ``shown``."""
    if not _files:
        threading.Thread(target=_watch, daemon=True).start()
    _files[file] = shown
    _modules.add(module.__name__)
    vars(module).setdefault("print", _print)


def _print(*values: object, file: TextIO | None = None, **options: Any) -> None:  # noqa: ANN401
    """Print, on standard error by default: standard output has the results of a command."""
    print(*values, file=sys.stderr if file is None else file, **options)


def _watch() -> None:
    """Warn of each call into the files of controllers that takes longer than `PATIENCE`."""
    calls: dict[int, tuple[FrameType, float]] = {}
    while True:
        time.sleep(1.0)
        now, before, calls = time.monotonic(), calls, {}
        for thread, frame in sys._current_frames().items():  # noqa: SLF001
            own = [each for each, _ in traceback.walk_stack(frame) if _is_of_controller(each)]
            if not own:
                continue
            call, since = before.get(thread, (None, now))
            calls[thread] = own[-1], since if call is own[-1] else now
            if now - calls[thread][1] >= PATIENCE:
                calls[thread] = own[-1], math.inf
                text = f"this call has not returned for {PATIENCE:g} s"
                # `python -W error` cannot raise it in the thread of the call.
                with suppress(ControllerWarning):
                    _warn_at(text, own[0].f_code.co_filename, own[0].f_lineno)


def in_controller() -> bool:
    """Whether the caller runs in a call of a module of controllers."""
    frames = traceback.walk_stack(sys._getframe())  # noqa: SLF001
    return bool(_modules) and any(_is_of_controller(each) for each, _ in frames)


def _is_of_controller(frame: FrameType) -> bool:
    """Whether a frame is of a module that was read as that of controllers, not as a script."""
    return frame.f_globals.get("__name__") in _modules


def _read_call(spec: str, law: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Read a name, or a call of it with literal arguments."""
    law = law.strip()
    if not law or law.startswith("("):
        problem = "name a class of the file"
    else:
        problem = f"`{law}` is not a class with literal arguments"
    wrong = _native.SpecError(f"{spec}: {problem}, such as mine.py:Law or mine.py:Law(beta=1/8)")
    try:
        node = ast.parse(law, mode="eval").body
        if isinstance(node, ast.Name):
            return node.id, [], {}
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise wrong
        keywords = {word.arg: _read_value(word.value) for word in node.keywords if word.arg}
        if len(keywords) < len(node.keywords):
            raise wrong
        return node.func.id, [_read_value(value) for value in node.args], keywords
    except (SyntaxError, ValueError, ZeroDivisionError):
        raise wrong from None


def _read_value(node: ast.expr) -> Any:  # noqa: ANN401
    """Read a literal or a fraction such as 1/8."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _read_value(node.left) / _read_value(node.right)
    return ast.literal_eval(node)
