"""Xu and Ansari: Stability and fairness of rate estimation-based AIAD congestion control in TCP."""

from cwnd._papers.aiad import analysis as analysis
from cwnd._papers.aiad import exhibits as exhibits
