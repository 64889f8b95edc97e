"""Gu, Hong and Grossman: An analysis of AIMD algorithm with decreasing increases."""

from cwnd._papers.daimd import analysis as analysis
from cwnd._papers.daimd import sharing as sharing
from cwnd._papers.daimd import tables as tables
