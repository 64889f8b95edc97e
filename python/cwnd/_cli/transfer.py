"""The commands `send` and `recv`: files and folders over UDT."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import ExitStack, closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwnd._cli import shared
from cwnd._cli.credentials import SECURITY, ask_code, check_code, read_credentials
from cwnd._cli.outputs import FAILED, check_directory
from cwnd._cli.peers import (
    explain,
    fail,
    has_ipv6,
    is_loopback,
    open_listener,
    resolve,
    split_address,
)
from cwnd._cli.progress import Monitor
from cwnd._cli.terminal import say
from cwnd._cli.values import NETWORK, RATE, SHARE, SIZE
from cwnd._runs.defaults import RESERVE, RETRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.transfer import ReceiveOptions
    from cwnd.udt import Listener

PORT = 9000
LOOPBACK = ("127.0.0.1", "::1")
_TICK = 0.1
"""Interval of checks for Ctrl-C in seconds."""
_PER_ADDRESS = 8
"""Largest number of connections per address without authentication."""

_TO_SEND = (
    "--key FILE, --pair FILE or --code authenticates the receiver and encrypts; --insecure does "
    "without"
)
_TO_RECEIVE = (
    "--key FILE, --pair FILE or --code accepts other hosts that have the credential, "
    "--insecure accepts all"
)


@click.command(epilog=SECURITY)
@click.argument("sources", metavar="FILE|DIR|-...", nargs=-1, required=True)
@click.argument("address", metavar="HOST:PORT")
@shared.controller("--cc", help="Congestion controller.")
@click.option(
    "--rate-limit", metavar="RATE", type=RATE, help="Upper limit of the rate, such as 100mbit."
)
@click.option("--include", metavar="GLOB", multiple=True, help="Send only matching names.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Skip matching names.")
@click.option("--checksum", is_flag=True, help="Compare contents even if size and time are equal.")
@shared.dry_run(help="Print what would be sent, and send nothing.")
@click.option(
    "--retry",
    metavar="N",
    default=RETRY,
    type=click.IntRange(0, 1000),
    help="Connect again up to N times if there is no connection or it breaks.",
)
@shared.mtu()
@shared.keys
@click.option("--code", metavar="CODE", help="One-time code of the receiver; - prompts for it.")
@shared.insecure(help="Send unencrypted to an unauthenticated receiver.")
@shared.json_lines()
def send(sources: tuple[str, ...], address: str, as_json: bool, **options: Any) -> None:  # noqa: ANN401, FBT001
    """Send files, folders or standard input (-) to `cwnd recv`.

    Folders are sent with their contents. Files that the receiver already has are skipped, and an
    interrupted transfer continues where it stopped. Every block is verified.

    Exit status: 0 if everything was sent, 1 if something was not, 2 for an error on the command
    line, 130 if interrupted.
    """
    host, port = split_address(address, PORT)
    _check_sources(sources)
    credentials = read_credentials(host)
    if credentials.get("code") == "-":
        credentials["code"] = ask_code(standard_input_is_taken="-" in sources)
    if "code" in credentials:
        credentials["code"] = check_code(credentials["code"])
    found = resolve(host, port)
    if not credentials and not options["insecure"] and not all(map(is_loopback, found)):
        raise click.UsageError(f"{host} is another host: {_TO_SEND}")
    from cwnd.transfer import SendOptions, SourceError, TransferError
    from cwnd.transfer import send as send_sources

    with Monitor("sent", as_json=as_json, dry_run=options["dry_run"]) as monitor:
        try:
            outcome = send_sources(
                sources,
                host,
                port,
                options=SendOptions(
                    **{each.name: options[each.name] for each in fields(SendOptions)}
                ),
                observe=monitor.observe,
                controller=options["cc"],
                rate_limit=options["rate_limit"],
                mtu=options["mtu"],
                **credentials,
            )
        except BrokenPipeError:
            # The reader of the events is gone.
            raise
        except SourceError as problem:
            raise click.UsageError(str(problem)) from None
        except (TransferError, OSError) as problem:
            monitor.close()
            reason = explain(problem)
            if as_json and not monitor.total["transfers"]:
                monitor.print_document({"event": "end", "outcome": "failed", "reason": reason})
            fail(f"{host}, port {port}: {reason}")
    if outcome.not_sent:
        click.get_current_context().exit(FAILED)


@click.command(epilog=SECURITY)
@shared.port("--port", default=PORT)
@shared.bind("--bind", help="Local address to listen on.")
@shared.out(default=".", help="Folder to write to.")
@click.option("--once", is_flag=True, help="Exit after one complete transfer.")
@click.option("--overwrite", is_flag=True, help="Replace existing files that differ.")
@click.option(
    "--allow-dotfiles", is_flag=True, help="Accept .NAME, as .profile, at the top of the folder."
)
@click.option(
    "--max-bytes", metavar="SIZE", type=SIZE, help="Limit of all received bytes, such as 10GB."
)
@click.option(
    "--max-files",
    metavar="N",
    type=click.IntRange(1),
    help="Limit of all received files, folders and links.",
)
@click.option(
    "--reserve",
    metavar="SHARE",
    type=SHARE,
    default=RESERVE,
    help="Share of the disk to keep free, or a size such as 10GB.",
)
@click.option(
    "--allow",
    metavar="CIDR",
    type=NETWORK,
    multiple=True,
    help="Accept only hosts of this network, such as 192.0.2.0/24; may be repeated.",
)
@shared.mtu()
@shared.keys
@click.option("--code", is_flag=True, help="Print a one-time code, and receive one transfer.")
@shared.insecure(help="Receive unencrypted from unauthenticated senders.")
@shared.json_lines()
def recv(port: int, out: str, as_json: bool, **options: Any) -> None:  # noqa: ANN401, FBT001
    """Receive files from `cwnd send` into one folder.

    Nothing is written outside the folder. Without credentials only senders on this host are
    accepted. A file is named NAME.cwnd-part until it is complete, so that an interrupted transfer
    can continue. An existing file that differs is kept, and the new one is refused, as are names
    that begin with a dot at the top of the folder.

    Exit status: 0 after --once, 1 if receiving failed, 2 for an error on the command line, 130 if
    interrupted.
    """
    folder = Path(out)
    credentials = read_credentials()
    hosts = _hosts(options["bind"], port, is_open=bool(credentials) or options["insecure"])
    check_directory("out", folder)
    if not credentials and options["insecure"]:
        credentials["per_address"] = _PER_ADDRESS
    if "code" in credentials:
        from cwnd.udt import generate_code

        credentials["code"] = generate_code()
    credentials |= {"allow": options["allow"], "mtu": options["mtu"]}
    names = _peer_names(options) if "pair" in credentials else {}
    from cwnd.transfer import ReceiveOptions
    from cwnd.udt import listen

    options["once"] |= "code" in credentials
    chosen = ReceiveOptions(**{each.name: options[each.name] for each in fields(ReceiveOptions)})
    with ExitStack() as stack:
        listeners: list[Listener] = []
        for host in hosts:
            listener = open_listener(
                listen, listeners[0].address[1] if listeners else port, host, **credentials
            )
            listeners.append(stack.enter_context(closing(listener)))
        number = listeners[0].address[1]
        where = "all addresses" if hosts == [None] else " and ".join(map(str, hosts))
        reach = (
            ""
            if credentials.keys() & {"key", "pair", "code", "per_address"}
            else _describe_reach(hosts)
        )
        say(f"receiving into {folder} on {where}, port {number}{reach}")
        if "code" in credentials:
            say(f"one-time code {credentials['code']}: cwnd send FILE HOST:{number} --code -")
        monitor = stack.enter_context(Monitor("received", as_json=as_json, names=names))
        _receive(listeners, folder, chosen, monitor, as_json=as_json)


def _receive(
    listeners: Sequence[Listener],
    folder: Path,
    options: ReceiveOptions,
    monitor: Monitor,
    *,
    as_json: bool,
) -> None:
    """Receive until interrupted, or one transfer, in a thread: it ends transfers in order."""
    from cwnd.transfer import receive

    # An interrupted `Thread.join` may count the thread as ended.
    stop, done = threading.Event(), threading.Event()
    problems: list[Exception] = []

    def work() -> None:
        try:
            receive(listeners, folder, options=options, observe=monitor.observe, stop=stop)
        except Exception as problem:  # noqa: BLE001 (raised in the main thread)
            problems.append(problem)
        finally:
            done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        while not done.wait(_TICK):
            pass
    finally:
        stop.set()
        done.wait()
        monitor.close()
        if as_json:
            monitor.print_document(monitor.total)
    for problem in problems:
        if isinstance(problem, BrokenPipeError) or not isinstance(problem, OSError):
            raise problem
        fail(explain(problem))


def _hosts(bind: str | None, port: int, *, is_open: bool) -> list[str | None]:
    """Return the addresses to listen on; None for all."""
    if bind is not None:
        host = resolve(bind, port)[0]
        if not is_open and not is_loopback(host):
            raise click.UsageError(f"--bind {bind} is reachable from other hosts: {_TO_RECEIVE}")
        return [host]
    if is_open:
        return [None]
    return [host for host in LOOPBACK if ":" not in host or has_ipv6()]


def _describe_reach(hosts: Sequence[str | None]) -> str:
    """Describe which hosts are accepted without credentials."""
    return f", from this host only: {_TO_RECEIVE}" if hosts != [None] else ""


def _peer_names(options: dict[str, Any]) -> dict[str, str]:
    from cwnd.udt import read_peers

    return read_peers(options["peers"])


def _check_sources(sources: Sequence[str]) -> None:
    """Raise an error for sources that cannot be read, before asking for a code."""
    for source in sources:
        _check_source(source)
    if sources.count("-") > 1:
        raise click.UsageError("standard input (-) can be sent only once")


def _check_source(source: str) -> None:
    path = os.fsencode(source)
    if path == b"-":
        return
    # A `Path` has no slash at its end, which a file must not have either.
    mode = os.lstat(source).st_mode
    if stat.S_ISREG(mode):
        with Path(source).open("rb"):
            pass
    elif stat.S_ISDIR(mode):
        with os.scandir(path):
            pass
    elif not stat.S_ISLNK(mode):
        raise click.UsageError(f"{source} is neither a file nor a folder")
