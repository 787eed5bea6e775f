"""Williams' test of two dependent correlations that share a variable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr


@dataclass(frozen=True, slots=True)
class WilliamsTest:
    """Whether the first correlation with the shared variable differs from the second."""

    t: float | None
    p: float | None  # two-sided
    p_greater: float | None  # one-sided: the first is the larger
    n: int
    reason: str | None = None


def williams(r_first: float, r_second: float, r_between: float, n: int) -> WilliamsTest:
    r"""Compare correlations of two variables with a third, all over the same ``n`` systems.

    .. math:: t_{n-3} = (r_1 - r_2) \sqrt{\frac{(n - 1)(1 + r_{12})}
        {2K\frac{n - 1}{n - 3} + \frac{(r_1 + r_2)^2}{4}(1 - r_{12})^3}},\quad
        K = 1 - r_1^2 - r_2^2 - r_{12}^2 + 2 r_1 r_2 r_{12}

    Williams (1959); Steiger (1980), eq. (7). Signed correlations: losses are oriented alike, so a
    negative one is bad and its sign is kept. Made for Pearson's coefficient of independent normal
    draws; it sees the systems as the sample and takes their scores as exact. Undefined with fewer
    than four systems, an undefined correlation or a perfect ``r_between``.
    """
    reason = None
    if np.isnan([r_first, r_second, r_between]).any():
        reason = "a correlation is undefined"
    elif n < 4:
        reason = "fewer than 4 systems"
    elif abs(r_between) >= 1 - 1e-12:
        reason = "the two metrics correlate perfectly"
    if reason:
        return WilliamsTest(None, None, None, n, reason)
    k = 1 - r_first**2 - r_second**2 - r_between**2 + 2 * r_first * r_second * r_between
    mean = (r_first + r_second) / 2
    # Rounding may make the determinant of a correlation matrix negative.
    spread = 2 * max(k, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - r_between) ** 3
    if spread == 0:
        return WilliamsTest(None, None, None, n, "the test's variance is 0")
    t = float((r_first - r_second) * np.sqrt((n - 1) * (1 + r_between) / spread))
    return WilliamsTest(t, 2 * float(stdtr(n - 3, -abs(t))), float(stdtr(n - 3, -t)), n)
