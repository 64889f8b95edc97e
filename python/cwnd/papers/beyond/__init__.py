"""Beyond the papers: all controllers on one grid of networks."""

from cwnd.papers.beyond import exhibits as exhibits
