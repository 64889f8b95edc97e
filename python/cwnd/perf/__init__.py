"""Throughput tests over UDT with iperf3's options and reports: `measure` and `Server`.

The protocol is described in docs/transfer.md. The command line imports `protocol` at its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._base.lazy import attach

if TYPE_CHECKING:
    from cwnd.perf.client import measure
    from cwnd.perf.protocol import PerfError, PerfOptions
    from cwnd.perf.report import Report
    from cwnd.perf.server import Server

__all__ = ["PerfError", "PerfOptions", "Report", "Server", "measure"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "PerfError": "protocol",
            "PerfOptions": "protocol",
            "Report": "report",
            "Server": "server",
            "measure": "client",
        },
    )
