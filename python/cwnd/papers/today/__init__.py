"""Published results of the controllers of today: BBR, CUBIC, Copa and C4."""

from cwnd.papers.today import bbr as bbr
from cwnd.papers.today import c4 as c4
from cwnd.papers.today import cao as cao
from cwnd.papers.today import copa as copa
from cwnd.papers.today import ware as ware
