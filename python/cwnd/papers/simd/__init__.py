"""Jin, Guo, Matta and Bestavros: TCP-friendly SIMD congestion control."""

from cwnd.papers.simd import convergence as convergence
from cwnd.papers.simd import loss as loss
from cwnd.papers.simd import model as model
from cwnd.papers.simd import sharing as sharing
