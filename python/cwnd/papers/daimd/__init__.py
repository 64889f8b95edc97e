"""Gu, Hong and Grossman: An analysis of AIMD algorithm with decreasing increases."""

from cwnd.papers.daimd import exhibits as exhibits
