"""Published results of the controllers of today: BBR, CUBIC, Copa and C4."""

from cwnd._papers.today import bbr as bbr
from cwnd._papers.today import c4 as c4
from cwnd._papers.today import cao as cao
from cwnd._papers.today import copa as copa
from cwnd._papers.today import ware as ware
