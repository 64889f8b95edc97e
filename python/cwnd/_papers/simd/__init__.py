"""Jin, Guo, Matta and Bestavros: TCP-friendly SIMD congestion control."""

from cwnd._papers.simd import convergence as convergence
from cwnd._papers.simd import loss as loss
from cwnd._papers.simd import model as model
from cwnd._papers.simd import sharing as sharing
