"""Normals held in an interval, and random numbers inside compiled loops: one stream a row."""

from __future__ import annotations

from math import cos, erfc, exp, inf, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from knockoffs.machine.compiled import njit

NARROW = 1.2  # an interval near zero is drawn from uniformly below this width; more than 0.7 of the draws are kept
FAR = 1e7  # beyond it the tail is narrower than rounding: its end is the draw
TAIL = 0.45  # lower end from which on the tail's own exponential is the better proposal


@njit(cache=True, nogil=True)
def draw_uniform(state: NDArray) -> float:
    """Draw one number in (0, 1), never an end of it."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    x = s0 + s3
    x = ((x << np.uint64(23)) | (x >> np.uint64(41))) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return (np.float64(x >> np.uint64(12)) + 0.5) * (1.0 / 4503599627370496.0)


@njit(cache=True, nogil=True)
def draw_normal(state: NDArray) -> float:
    """Draw a standard normal (Box and Muller)."""
    return sqrt(-2.0 * log(draw_uniform(state))) * cos(2.0 * pi * draw_uniform(state))


@njit(cache=True, nogil=True)
def draw_truncated(a: float, b: float, state: NDArray) -> float:
    """Draw a standard normal given a < z < b, exactly, by rejection; at least 0.3 of the proposals are kept."""
    if b < -a:  # the interval lies mostly below zero: mirror it
        return -_draw_upper(-b, -a, state)
    return _draw_upper(a, b, state)


@njit(cache=True, nogil=True)
def _draw_upper(a: float, b: float, state: NDArray) -> float:
    width = b - a
    if not (width > 0.0 and a < FAR):  # an interval of one point, or none (NaN): never a loop without end
        return a
    if a < TAIL:
        if width >= NARROW:
            while True:
                z = draw_normal(state)
                if a < z < b:
                    return z
        top = max(a, 0.0)
        while True:
            z = a + width * draw_uniform(state)
            if draw_uniform(state) < exp(0.5 * (top * top - z * z)):
                return z
    if a * width < 1.0:
        while True:
            z = a + width * draw_uniform(state)
            if draw_uniform(state) < exp(0.5 * (a * a - z * z)):
                return z
    rate = 0.5 * (a + sqrt(a * a + 4.0))  # Robert (1995)
    while True:
        z = a - log(draw_uniform(state)) / rate
        if z < b and draw_uniform(state) < exp(-0.5 * (z - rate) * (z - rate)):
            return z


@njit(cache=True, nogil=True)
def log_interval(a: float, b: float) -> float:
    """Log P(a < z < b) of a standard normal, without cancellation in either tail."""
    if a == -inf and b == inf:
        return 0.0
    if a > 0.0:
        a, b = -b, -a
    p = 0.5 * (erfc(-b / sqrt(2.0)) - erfc(-a / sqrt(2.0)))
    if p > 0.0:
        return log(p)
    if b < 0.0:
        return -0.5 * b * b - log(-b) - 0.9189385332046727  # Mills: far in the tail
    return -745.0


def interval_mean(low: NDArray, high: NDArray) -> NDArray:
    """Mean of a standard normal in (low, high)."""
    flip = low > 0  # probabilities of the far side lose no digits
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    mass = ndtr(b) - ndtr(a)
    density = (np.exp(-0.5 * a**2) - np.exp(-0.5 * b**2)) / np.sqrt(2 * np.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(mass > 0, density / mass, 0.5 * (a + b))
    mean = np.clip(mean, a, b)
    return np.where(flip, -mean, mean)
