"""Beyond the papers: all controllers on one grid of networks."""

from cwnd._papers.beyond import exhibits as exhibits
