"""Options that authenticate the peer: keys, key pairs, one-time codes, or no authentication."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.core import ParameterSource

from cwnd._cli.peers import explain
from cwnd._cli.terminal import echo
from cwnd.errors import ArgumentError

SECURITY = (
    "Without credentials nothing is encrypted and no peer is authenticated. Credentials are "
    "--key FILE, a secret shared by both sides (`cwnd keygen FILE`); --pair FILE and --peers FILE, "
    "a key pair for each side (`cwnd keygen --pair FILE`); or --code, for one transfer."
)
"""Help text on credentials."""

_KINDS = {"key": "key", "pair": "key", "peers": "key", "code": "code", "insecure": "insecure"}
_NEAREST_FIRST = (
    ParameterSource.COMMANDLINE,
    ParameterSource.ENVIRONMENT,
    ParameterSource.DEFAULT_MAP,
)


def read_credentials(host: str | None = None) -> dict[str, Any]:
    """Read the credentials of the current command, as options of `cwnd.udt`.

    Options on the command line override environment variables, and these override the configuration
    file; so ``--insecure`` disables a ``key`` in the file. ``code`` is True for a listener, without
    ``host``, that has to generate one.
    """
    given = _nearest_credentials()
    kinds = {_KINDS[name] for name in given}
    if len(kinds) > 1:
        raise click.UsageError(
            f"{' and '.join(f'--{name}' for name in given)} are mutually exclusive"
        )
    if kinds == {"code"}:
        return {"code": given["code"]}
    return _read_keys(given, host) if kinds == {"key"} else {}


def _nearest_credentials() -> dict[str, Any]:
    """Return the credentials of the source with the highest priority, completed from others."""
    context = click.get_current_context()
    chosen: dict[str, Any] = {}
    for source in _NEAREST_FIRST:
        found = {
            name: context.params[name]
            for name in _KINDS
            if context.params.get(name) and context.get_parameter_source(name) is source
        }
        if not chosen:
            chosen = found
        elif {_KINDS[name] for name in chosen} == {"key"}:
            # A key pair and the file of its peers may come from different sources.
            wanted = {"pair", "peers"} - chosen.keys() if "key" not in chosen else set()
            chosen |= {name: value for name, value in found.items() if name in wanted}
    return chosen


def _read_keys(given: dict[str, Any], host: str | None) -> dict[str, Any]:
    """Read the files of --key, --pair and --peers."""
    from cwnd import _native, udt

    if ("pair" in given) != ("peers" in given):
        present, missing = ("pair", "peers") if "pair" in given else ("peers", "pair")
        raise click.UsageError(f"--{present} also needs --{missing}")
    found: dict[str, Any] = {}
    for name, check in (("key", _native.udt_check_key), ("pair", _native.udt_check_pair)):
        if name in given:
            try:
                found[name] = udt.read_secret(given[name])
                check(found[name])
            except OSError as problem:
                raise click.UsageError(f"--{name}: {explain(problem)}") from None
            except ValueError as problem:
                raise click.UsageError(f"--{name}: {given[name]}: {problem}") from None
    if "peers" in given:
        found["peers"] = _read_peers(given["peers"], host)
    return found


def _read_peers(path: str, host: str | None) -> list[str]:
    """Read the public keys of the authorised peers, or of the host to connect to."""
    from cwnd.udt import read_peers

    try:
        peers = read_peers(path)
    except OSError as problem:
        raise click.UsageError(f"--peers: cannot read {path}: {problem.strerror}") from None
    except ArgumentError as problem:
        raise click.UsageError(f"--peers: {problem.problem}") from None
    if host is None or len(peers) == 1:
        return list(peers)
    named = [key for key, name in peers.items() if name == host]
    if len(named) != 1:
        raise click.UsageError(
            f"--peers: {path} has {len(peers)} public keys, and not exactly one for {host}: "
            "write the host's name after its key"
        )
    return named


def ask_code(*, standard_input_is_taken: bool) -> str:
    """Ask for a one-time code, or read it from the first line of standard input."""
    if standard_input_is_taken:
        raise click.UsageError("--code -: standard input cannot carry both the code and the data")
    if sys.stdin.isatty():
        return str(click.prompt("One-time code", err=True))
    line = sys.stdin.readline().strip()
    if not line:
        raise click.UsageError("--code -: no code on standard input")
    return line


def check_code(code: str) -> str:
    """Validate a one-time code."""
    from cwnd import _native

    try:
        return _native.udt_check_code(code)
    except ValueError as problem:
        raise click.UsageError(f"--code: {problem}") from None


@click.command()
@click.argument("file", type=click.Path())
@click.option("--pair", is_flag=True, help="Generate a key pair: FILE and FILE.pub.")
def keygen(file: str, pair: bool) -> None:  # noqa: FBT001
    """Write a new key to FILE.

    The key is a secret for --key on both sides. With --pair FILE is a private key for --pair on
    this side, and FILE.pub is its public key for --peers on the other side. Only this user can
    read FILE. Existing files are not replaced.
    """
    from cwnd.udt import generate_key, generate_pair

    try:
        if not pair:
            generate_key(file)
            echo(f"{file}: copy it to the other host over a secure channel, and use --key on both")
            return
        public = generate_pair(file)
    except OSError as problem:
        raise click.UsageError(explain(problem)) from None
    echo(public)
    echo(
        f"{file}: keep it on this host, for --pair. {file}.pub: add its line to the --peers file "
        "of each host that is to accept this one",
        err=True,
    )
