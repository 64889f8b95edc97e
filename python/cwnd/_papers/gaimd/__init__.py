"""Yang and Lam: General AIMD congestion control."""

from cwnd._papers.gaimd import formula as formula
from cwnd._papers.gaimd import friendliness as friendliness
from cwnd._papers.gaimd import rounds as rounds
