"""Yang and Lam: General AIMD congestion control."""

from cwnd.papers.gaimd import formula as formula
from cwnd.papers.gaimd import friendliness as friendliness
from cwnd.papers.gaimd import rounds as rounds
