"""Controllers written in Python: what they are, and how they are found and named."""

from __future__ import annotations

import ast
import copy
import functools
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from cwnd import _native
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

Cause: TypeAlias = Literal["loss", "mark", "timeout"]
"""Why a window is cut."""


class Context(Protocol):
    """What a controller may look at besides its window; times in seconds."""

    @property
    def now(self) -> float:
        """The time of the event."""

    @property
    def rtt(self) -> float | None:
        """The smoothed round-trip time (RFC 6298); None before the first sample."""

    @property
    def min_rtt(self) -> float | None:
        """The smallest round-trip time so far; None before the first sample."""

    @property
    def last_cut(self) -> float:
        """When the last cut was, or when the connection began."""

    @property
    def packet(self) -> int:
        """Bytes in a packet."""


class Controller(Protocol):
    """A law for the congestion window, in packets.

    Slow start, loss recovery, timers and clamps are around it: ``grow`` and ``cut`` are called only
    where the law applies. The optional ``enter``, ``round`` and ``observe`` of the Rust trait
    ``WindowLaw`` may be there too, and ``own_threshold() -> bool``, called once for each flow. If
    True, the answer of ``cut`` is the slow-start threshold after every cause, also above the
    window. If not, the threshold is at most half of the window in slow start and after a timeout
    (RFC 5681).
    """

    def grow(self, w: float, acked: float, cx: Context, /) -> float:
        """Give the window after ``acked`` packets were acknowledged at window ``w``."""

    def cut(self, w: float, why: Cause, cx: Context, /) -> float:
        """Give the window after a congestion signal at window ``w``, at most once a window."""


Factory: TypeAlias = Callable[[], Controller]
"""Makes the controller of one flow: a class, or any function without arguments."""

Spec: TypeAlias = str | Factory | Controller
"""What a controller is given as: a specification such as ``simd(beta=1/16)`` or
``mine.py:Law(beta=1/8)``, a factory, or an instance of which each flow gets a copy."""

_PYTHON = "python:"
"""What precedes the name of a controller that a running program defines."""

_FILE = re.compile(r"(?P<path>.*?\.py)(:(?P<law>.*))?", re.DOTALL)
"""A specification that names a Python file, with or without the class."""


def read_controller(controller: Spec) -> tuple[str, Factory | None]:
    """Return the name by which scenarios and results know a controller, and what makes it.

    Parameters
    ----------
    controller
        As for `cwnd.compare`.

    Returns
    -------
    name : str
        The canonical specification; of a class, a ``functools.partial`` or an instance,
        ``python:`` with the name of the class and its arguments.
    factory : callable or None
        None for a controller of the registry.

    Raises
    ------
    SpecError
        The specification is wrong, or its file cannot be read or run.
    TypeError
        The object is no controller.

    Examples
    --------
    >>> read_controller("simd(beta=1/16)")
    ('simd', None)
    """
    if isinstance(controller, str):
        return _read_text(controller)
    factory: Any = controller
    if isinstance(controller, functools.partial):
        name = getattr(controller.func, "__name__", "")
        values = [repr(value) for value in controller.args]
        values += [f"{key}={value!r}" for key, value in controller.keywords.items()]
    elif callable(controller):
        name, values = getattr(controller, "__name__", ""), []
    elif hasattr(controller, "grow") and hasattr(controller, "cut"):
        name = type(controller).__name__
        values = [f"{key}={value!r}" for key, value in _settings(controller)]
        factory = _Copies(controller)
    else:
        name, values = "", []
    if not name.isidentifier():
        raise TypeError(f"{controller!r} is neither a specification nor a class with grow and cut")
    arguments = f"({', '.join(values)})" if values else ""
    return f"{_PYTHON}{name}{arguments}", factory


def move_specification(spec: str, home: Path) -> str:
    """Make a specification that names a file relative to ``home`` relative to the work directory.

    Parameters
    ----------
    spec
        Any specification; others are returned as they are.
    home
        The directory that the file is relative to.

    Examples
    --------
    >>> move_specification("mine.py:Law(beta=1/8)", Path("runs"))
    'runs/mine.py:Law(beta=1/8)'
    """
    match = _FILE.fullmatch(spec.strip())
    return spec if match is None else f"{home / match['path']}{match[2] or ''}"


def command_specification(name: str, factory: Factory | None) -> str | None:
    """Return the specification of a controller for the command line.

    Parameters
    ----------
    name, factory
        As `read_controller` returns them.

    Returns
    -------
    str or None
        None if the controller is not defined at the top of a file, or if the attributes of an
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
    """Return the class or function behind what makes a controller.

    Parameters
    ----------
    factory
        As `read_controller` returns it.
    """
    made: object = factory
    if isinstance(made, functools.partial):
        made = made.func
    return type(made.instance) if isinstance(made, _Copies) else made


def add_controller(known: dict[str, Factory], name: str, factory: Factory) -> None:
    """Note a controller written in Python under its name.

    Parameters
    ----------
    known
        Where to note it.
    name
        The name that scenarios use.
    factory
        What makes it.

    Raises
    ------
    ArgumentError
        Another one has that name.
    """
    if known.setdefault(name, factory) != factory:
        raise ArgumentError("controllers", f"two different classes are called {name}")


def explain_failure(problem: BaseException) -> str | None:
    """Say where in a controller's file an exception was raised.

    Parameters
    ----------
    problem
        The exception.

    Returns
    -------
    str or None
        One line with the file and the line; None if no such file was running.
    """
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if frame.filename in _files:
            where = f"{_files[frame.filename]}:{frame.lineno}: in {frame.name}"
            return f"{where}: {type(problem).__name__}: {problem}"
    return None


@contextmanager
def explain_answers(names: Iterable[str]) -> Iterator[None]:
    """Name the controllers where one of them cannot be called, or answers no finite number.

    Parameters
    ----------
    names
        The controllers written in Python that are called in the block.

    Raises
    ------
    SpecError
        In place of a TypeError or ValueError that the native module itself raised.
    """
    try:
        yield
    except (TypeError, ValueError) as problem:
        called = " or ".join(names)
        # Of this function and of the block: what other Python code raises has more frames.
        frames = list(traceback.walk_tb(problem.__traceback__))
        if not called or len(frames) > 2 or type(problem) not in {TypeError, ValueError}:
            raise
        raise _native.SpecError(f"{called}: {problem}") from problem


_files: dict[str, str] = {}
"""The files that controllers were read from: as they are run, and as they were written."""


@dataclass(frozen=True)
class _Copies:
    """Makes copies of a controller."""

    instance: Controller

    def __call__(self) -> Controller:
        return copy.deepcopy(self.instance)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Copies) and other.instance is self.instance

    __hash__ = None  # type: ignore[assignment]


def _settings(instance: Controller) -> list[tuple[str, object]]:
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
    if match is None:
        return _native.canonical(text), None
    file = str(Path(match["path"]).resolve())
    return text, _read_file(text, file, match["path"], match["law"] or "")


@functools.cache
def _read_file(spec: str, file: str, path: str, law: str) -> Factory:
    """Return what makes the controller ``law`` of a file; the same for the same specification."""
    name, args, kwargs = _read_call(spec, law)
    module = _run_file(file, path)
    made = getattr(module, name, None)
    if not callable(made):
        known = [key for key, value in vars(module).items() if hasattr(value, "grow")]
        has = f"; it has {', '.join(known)}" if known else ""
        raise _native.SpecError(f"{spec}: {path} has no class {name}{has}")
    factory = functools.partial(made, *args, **kwargs)
    try:
        controller = factory()
    except (Exception, SystemExit) as problem:  # noqa: BLE001
        raise _native.SpecError(f"{spec}: {explain_failure(problem) or problem}") from None
    missing = [name for name in ("grow", "cut") if not callable(getattr(controller, name, None))]
    if missing:
        raise _native.SpecError(f"{spec}: {name} has no method {' and no method '.join(missing)}")
    return factory


@functools.cache
def _run_file(file: str, path: str) -> ModuleType:
    """Run a Python file as a module, once."""
    name = f"cwnd_controllers_{len(_files)}_{Path(file).stem}"
    found = importlib.util.spec_from_file_location(name, file)
    if found is None or found.loader is None:
        raise _native.SpecError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(found)
    # Dataclasses look up the module that defines them.
    sys.modules[name] = module
    _files[file] = path
    try:
        found.loader.exec_module(module)
    except OSError as problem:
        raise _native.SpecError(f"{path}: {problem.strerror or problem}") from None
    except SyntaxError as problem:
        raise _native.SpecError(f"{path}:{problem.lineno or 1}: {problem.msg}") from None
    except (Exception, SystemExit) as problem:  # noqa: BLE001
        raise _native.SpecError(explain_failure(problem) or f"{path}: {problem}") from None
    return module


def _read_call(spec: str, law: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Read a name, or a call of it with literal arguments."""
    wrong = _native.SpecError(
        f"{spec}: name a class of the file, such as mine.py:Law or mine.py:Law(beta=1/8)"
    )
    try:
        node = ast.parse(law.strip(), mode="eval").body
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
