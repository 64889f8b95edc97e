"""Transfers a gigabyte through an emulated link with each law in the kernel, and replays it.

    python bench/kernel.py [--megabytes 1000] [--rate 500mbit] [--loss 1e-5] [SPEC ...]

For each law, one connection from behind the link: hashes at both ends, cuts, retransmissions, and
the replay of every event through the law or controller of crate `cwnd`: steps compared and the
largest difference relative to the window. Needs root, BTF and /dev/net/tun.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import socket
import subprocess
import sys
import threading
import time

from tables import table

from cwnd import kernel

PORT = 9118
SPECS = (
    "aimd(0.31, 1/8)",
    "reno",
    "iiad",
    "sqrt",
    "simd(beta=1/16)",
    "scalable",
    "highspeed",
    "bic",
    "vegas",
    "dctcp",
    "aira",
    "aiad",
    "aiad(rate=receiver)",
    "cubic",
    "daimd(capacity=500mbit, delay=off)",
    "bbr3",
)
NAME = "cwnd_bench"
LINK = ("rate", "delay", "queue", "loss")
# Runs behind the link: sends varying bytes over TCP with the controller.
SENDER = """
import hashlib, os, socket, sys
port, size, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
end = socket.socket()
end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
end.connect((os.environ["CWND_PEER"], port))
block, digest, sent = bytearray(os.urandom(1 << 16)), hashlib.sha256(), 0
while sent < size:
    block[:8] = sent.to_bytes(8, "big")
    piece = block[: min(len(block), size - sent)]
    end.sendall(piece)
    digest.update(piece)
    sent += len(piece)
end.shutdown(socket.SHUT_WR)
end.recv(1)
print(digest.hexdigest())
"""


def received(listener: socket.socket, into: list[str]) -> None:
    """Receive one connection, and store the hash and the rate in Mb/s."""
    end, _ = listener.accept()
    digest, count, began = hashlib.sha256(), 0, time.perf_counter()
    with end:
        while piece := end.recv(1 << 20):
            digest.update(piece)
            count += len(piece)
    into += [digest.hexdigest(), f"{8e-6 * count / (time.perf_counter() - began):.0f}"]


def row(spec: str, options: argparse.Namespace) -> list[str]:
    """Transfer the bytes with one law."""
    kernel.load(spec, name=NAME)
    try:
        trace = kernel.trace(NAME)
        found: list[str] = []
        with socket.create_server(("", PORT)) as listener:
            receiver = threading.Thread(target=received, args=(listener, found))
            receiver.start()
            link = [f"--{key}={getattr(options, key)}" for key in LINK]
            sender = [sys.executable, "-c", SENDER, str(PORT), str(options.megabytes * 10**6), NAME]
            emulate = [sys.executable, "-m", "cwnd", "emulate", *link, "--", *sender]
            with subprocess.Popen(emulate, stdout=subprocess.PIPE, text=True) as process:
                while process.poll() is None:
                    trace.read(0.1)
                sent, _ = process.communicate()
            receiver.join()
        trace.read(0.1)
        flow = max(trace.flows(), key=lambda flow: flow["packets_sent"])
        steps, cuts, worst = flow["agreement"] or (0, 0, float("nan"))
        same = "equal" if sent.strip() == found[0] else "NOT EQUAL"
        retransmissions, missed = str(flow["retransmissions"]), str(trace.missed())
        return [
            spec,
            found[1],
            same,
            retransmissions,
            f"{steps:,}",
            str(cuts),
            f"{worst:.1e}" if worst else "0",
            missed,
        ]
    finally:
        kernel.unload(NAME)


def main() -> None:
    """Print a row for each law."""
    parser = argparse.ArgumentParser(description="A gigabyte with each law in the kernel.")
    parser.add_argument("specs", nargs="*", metavar="SPEC", default=SPECS)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rate", default="500mbit")
    parser.add_argument("--delay", default="5ms")
    parser.add_argument("--queue", default="400p")
    parser.add_argument("--loss", default="1e-5")
    options = parser.parse_args()
    heads = (
        "",
        "Mb/s",
        "hashes",
        "retransmissions",
        "steps compared",
        "cuts",
        "difference",
        "missed",
    )
    rows = [row(spec, options) for spec in options.specs]
    link = {key: getattr(options, key) for key in LINK}
    table(f"{options.megabytes} MB through {json.dumps(link)}", heads, rows)


if __name__ == "__main__":
    main()
