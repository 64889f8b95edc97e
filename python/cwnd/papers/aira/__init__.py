"""Psaras and Tsaoussidis: On the properties of an additive increase rate accelerator."""

from cwnd.papers.aira import bounds as bounds
from cwnd.papers.aira import framework as framework
from cwnd.papers.aira import reset as reset
from cwnd.papers.aira import rules as rules
from cwnd.papers.aira import sensitivity as sensitivity
