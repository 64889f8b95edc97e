"""Command line: commands, and reporting of errors."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from cwnd._base import interrupts
from cwnd._base.extras import MissingExtraError
from cwnd._cli.outputs import echo_warnings
from cwnd._cli.terminal import results_only, say
from cwnd._cli.verbs import Interrupted, ReaderGone
from cwnd._cli.verbs import cwnd as command

if TYPE_CHECKING:
    from collections.abc import Sequence

MISTAKE = 2
BROKEN_PIPE = 141


def run(arguments: Sequence[str]) -> int:
    """Run the command line, and return the exit status, which ``cwnd --help`` describes.

    An error of the user is one line on standard error.
    """
    if sys.stdout is None:
        say("standard output is closed")
        return MISTAKE
    try:
        with echo_warnings(), results_only():
            status = command.main(list(arguments), prog_name="cwnd", standalone_mode=False)
        sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        # Avoid a second error when Python flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (Interrupted, KeyboardInterrupt, click.Abort):
        return interrupts.report()
    except (Exception, SystemExit) as problem:  # noqa: BLE001 (bugs are raised again)
        # Code that the interrupt came into, such as a lock of `threading`, may raise another error.
        if interrupts.received():
            return interrupts.report()
        notes = "".join(f" ({note})" for note in getattr(problem, "__notes__", ()))
        say(_explain(problem) + notes)
        return MISTAKE
    return status if isinstance(status, int) else 0


def _explain(problem: BaseException) -> str:
    """Return the message for an error of the user; raise any other exception again."""
    from cwnd._native import ScenarioError, SpecError
    from cwnd.controller import explain_failure
    from cwnd.errors import (
        ArgumentError,
        ControllerWarning,
        DataSetWarning,
        KernelError,
        PlanError,
    )

    in_controller = explain_failure(problem)
    if in_controller is not None:
        return in_controller

    if isinstance(problem, click.ClickException):
        return problem.format_message() + _variable(problem)
    if isinstance(problem, UnicodeEncodeError):
        # The name of a file that is not UTF-8; only transfers accept one.
        return f"{problem.object}: not text in UTF-8"
    if isinstance(problem, OSError):
        where = f"{problem.filename}: " if problem.filename else ""
        return f"{where}{problem.strerror or problem}"
    if isinstance(problem, ArgumentError):
        named = problem.argument in {"candidate", "controllers", "papers"}
        option = "" if named else f"--{problem.argument.replace('_', '-')}: "
        return option + problem.problem
    lines = ScenarioError | SpecError | KernelError | PlanError | MissingExtraError
    # `python -W error` raises warnings.
    if isinstance(problem, lines | ControllerWarning | DataSetWarning):
        return str(problem)
    raise problem


def _variable(problem: click.ClickException) -> str:
    """Name the environment variable that an invalid value comes from."""
    if not isinstance(problem, click.BadParameter) or problem.ctx is None or problem.param is None:
        return ""
    source = problem.ctx.get_parameter_source(str(problem.param.name))
    return f" (from {problem.param.envvar})" if source is ParameterSource.ENVIRONMENT else ""
