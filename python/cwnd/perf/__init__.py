"""Throughput tests over UDT with iperf3's options and reports: `measure` and `Server`.

The protocol is described in docs/transfer.md.
"""

from cwnd.perf.client import measure
from cwnd.perf.protocol import PerfError, PerfOptions
from cwnd.perf.report import Report
from cwnd.perf.server import Server

__all__ = ["PerfError", "PerfOptions", "Report", "Server", "measure"]
