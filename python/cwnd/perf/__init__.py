"""Tests of speed over UDT, as iperf3 makes them over TCP: `measure` and `Server`.

The protocol is described in docs/transfer.md.
"""

from cwnd.perf.client import measure
from cwnd.perf.protocol import PerfError, PerfOptions
from cwnd.perf.report import Report
from cwnd.perf.server import Server

__all__ = ["PerfError", "PerfOptions", "Report", "Server", "measure"]
