"""Yang and Lam: General AIMD congestion control."""

from cwnd.papers.gaimd import exhibits as exhibits
