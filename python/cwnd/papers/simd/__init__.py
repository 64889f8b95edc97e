"""Jin, Guo, Matta and Bestavros: TCP-friendly SIMD congestion control and its convergence behavior."""

from cwnd.papers.simd import exhibits as exhibits
