"""Psaras and Tsaoussidis: On the properties of an additive increase rate accelerator."""

from cwnd.papers.aira import exhibits as exhibits
