"""Parts that whole controllers written in Python share: windowed extrema and round counting.

>>> from cwnd.parts import WindowedMax
>>> bandwidth = WindowedMax(10)
>>> bandwidth.add(1, 40.0), bandwidth.add(4, 30.0), bandwidth.add(12, 20.0)
(40.0, 40.0, 30.0)
"""

from cwnd._native import RoundCounter, WindowedMax, WindowedMin

__all__ = ["RoundCounter", "WindowedMax", "WindowedMin"]
