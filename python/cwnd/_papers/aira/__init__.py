"""Psaras and Tsaoussidis: On the properties of an additive increase rate accelerator."""

from cwnd._papers.aira import bounds as bounds
from cwnd._papers.aira import framework as framework
from cwnd._papers.aira import reset as reset
from cwnd._papers.aira import rules as rules
from cwnd._papers.aira import sensitivity as sensitivity
