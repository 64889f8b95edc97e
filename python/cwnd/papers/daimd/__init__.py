"""Gu, Hong and Grossman: An analysis of AIMD algorithm with decreasing increases."""

from cwnd.papers.daimd import analysis as analysis
from cwnd.papers.daimd import sharing as sharing
from cwnd.papers.daimd import tables as tables
