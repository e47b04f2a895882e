"""The pictures of the page: W with its threshold, draws, columns beside knockoffs, lambda paths, verdict, classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.diagnostics.verdict import Verdict
from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.plots.layout import apart, largest, linear_width
from knockoffs.plots.margins import Margin
from knockoffs.report.formatting import number, short
from knockoffs.report.svg import bottom_axis, dot, drawing, label, left_axis, line, polyline, rect
from knockoffs.selection import Selection

MOST_BARS = 40  # features in the picture of W
MOST_PATHS = 8  # with a name
MOST_OTHERS = 150  # without one
WIDTH, NAMES = 440.0, 150.0  # of a picture, and of the names at its left
ROW = 16.0


def draw_W(selection: Selection, rank_of: NDArray[np.intp]) -> str:
    """W of the features with the largest |W|, the threshold, and which are selected: full bars, the others empty."""
    W = np.clip(selection.W, -1e300, 1e300)
    shown = largest(W, MOST_BARS)
    if not len(shown):
        return ""
    low, high = min(float(W[shown].min()), 0.0), max(float(W[shown].max()), 0.0)
    low, high = low - 0.03 * (high - low), high + 0.03 * (high - low)
    left, right, top = NAMES + 8, WIDTH - 8, 18.0
    bottom = top + ROW * len(shown) + 2

    def x_of(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    parts = []
    for i, j in enumerate(shown):
        y, name = top + ROW * i, selection.feature_names[j]
        start, end = sorted((x_of(0.0), x_of(W[j])))
        kind = "bar selected" if selection.selected[j] else "bar"
        told = f"{short(name)}: W = {number(float(selection.W[j]))}"
        more = f' data-rank="{rank_of[j]}"'
        parts.append(label(NAMES, y + 12, name, "bold" if selection.selected[j] else "", "end", most=19))
        parts.append(rect(start, y + 3, max(end - start, 0.5), ROW - 5, kind, more, told))
    parts.append(line(x_of(0.0), top, x_of(0.0), bottom, "axis"))
    t = selection.threshold
    if math.isfinite(t) and low <= t <= high:
        x = x_of(t)
        anchor = "start" if x < (left + right) / 2 else "end"
        words = f"threshold {number(t)} at level {selection.fdr:g}"
        parts += [line(x, top - 4, x, bottom, "threshold"), label(x, top - 7, words, "small", anchor)]
    parts += bottom_axis(low, high, left, right, bottom, "W, feature minus knockoff")
    title = f"W of {len(shown)} features, {int(selection.selected[shown].sum())} of them selected"
    return drawing(WIDTH, bottom + 36, parts, title, "wide")


def draw_stability(selection: Selection, order: NDArray[np.intp], most: int = 20) -> str:
    """How often each of the first features is selected over the draws, and its e-value."""
    evidence = selection.evidence
    if evidence is None:
        return ""
    shown = [j for j in order if evidence.frequencies[j] > 0 or evidence.e_values[j] > 0][:most]
    if not shown:
        return ""
    left, right, top = NAMES + 8, WIDTH - 80, 4.0
    bottom = top + ROW * len(shown) + 2
    parts = []
    for i, j in enumerate(shown):
        y, share = top + ROW * i, float(evidence.frequencies[j])
        kind = "bar selected" if selection.selected[j] else "bar"
        parts.append(label(NAMES, y + 12, selection.feature_names[j], "", "end", most=19))
        parts.append(rect(left, y + 3, max(share * (right - left), 0.5), ROW - 5, kind, "", f"{100 * share:.0f} %"))
        parts.append(label(WIDTH - 4, y + 12, f"e = {number(float(evidence.e_values[j]))}", "small", "end"))
    parts += bottom_axis(0.0, 1.0, left, right, bottom, "share of the draws that select it")
    return drawing(WIDTH, bottom + 36, parts, "Selection frequencies over the draws, with e-values", "wide")


def draw_margin(found: Margin, name: str) -> str:
    """Draw a column (full bars) beside its knockoff (a line, or empty bars where bars are values)."""
    width, height, left, bottom, top = 210.0, 118.0, 6.0, 92.0, 6.0
    n, right = found.shares.shape[1], width - 6.0
    most = max(float(found.shares.max()), 1e-9)
    step = (right - left) / n

    def y_of(share: float) -> float:
        return bottom - share / most * (bottom - top)

    parts = []
    if found.edges is not None:
        for i, share in enumerate(found.shares[0]):
            parts.append(rect(left + i * step, y_of(share), step, bottom - y_of(share), "mine"))
        points = [(left, bottom)]
        for i, share in enumerate(found.shares[1]):
            points += [(left + i * step, y_of(share)), (left + (i + 1) * step, y_of(share))]
        parts.append(polyline([*points, (right, bottom)], "other"))
        parts.append(label(left, bottom + 13, number(float(found.edges[0])), "small"))
        parts.append(label(right, bottom + 13, number(float(found.edges[-1])), "small", "end"))
    else:
        for i in range(n):
            mine, other = found.shares[:, i]
            parts.append(rect(left + step * (i + 0.1), y_of(mine), 0.38 * step, bottom - y_of(mine), "mine"))
            parts.append(rect(left + step * (i + 0.52), y_of(other), 0.38 * step, bottom - y_of(other), "empty"))
        most_letters = max(int(step / 6.0), 1)
        words = found.labels or ()
        if n <= 6:
            parts += [
                label(left + step * (i + 0.5), bottom + 13, word, "small", "middle", most=max(most_letters, 3))
                for i, word in enumerate(words)
            ]
        elif words:
            parts.append(label(left, bottom + 13, words[0], "small", most=14))
            parts.append(label(right, bottom + 13, words[-1], "small", "end", most=14))
    parts.append(line(left, bottom, right, bottom, "axis"))
    return drawing(width, height, parts, f"{short(name)} beside its knockoff: {found.nearness}")


def draw_paths(path: LambdaPath, order: Sequence[int], selected: NDArray[np.bool_]) -> str:
    """W along lambda: the first features with a name, the others thin."""
    firsts = [int(j) for j in order if selected[j]][:MOST_PATHS] or [int(j) for j in order[:MOST_PATHS]]
    others = [j for j in np.argsort(-np.abs(path.W).max(axis=1), kind="stable") if j not in firsts][:MOST_OTHERS]
    left, right, top, bottom = 50.0, WIDTH - 120.0, 10.0, 230.0
    lams, width = path.lams, linear_width(path.W[firsts, -1])
    W = path.W if width is None else np.arcsinh(path.W / width)
    seen = W[firsts]
    low, high = min(float(seen.min()), 0.0), max(float(seen.max()), 0.0)
    if others:
        reach = 0.5 * (high - low)
        low, high = (
            max(min(low, float(W[others].min())), low - reach),
            min(max(high, float(W[others].max())), high + reach),
        )
    if not low < high:
        low, high = low - 1.0, high + 1.0

    def place(j: int) -> list[tuple[float, float]]:
        x = left + (lams - lams[0]) / (lams[-1] - lams[0]) * (right - left)
        y = bottom - (np.clip(W[j], low, high) - low) / (high - low) * (bottom - top)
        return list(zip(x.tolist(), y.tolist(), strict=True))

    parts = [polyline(place(j), "thin") for j in others]
    heights = apart([place(j)[-1][1] + 4 for j in firsts], 13.0, top + 4, bottom)
    for i, (j, y) in enumerate(zip(firsts, heights, strict=True)):
        points = place(j)
        parts.append(polyline(points, f"path path{i % MOST_PATHS}", path.feature_names[j]))
        parts.append(line(points[-1][0], points[-1][1], right + 10, y - 4, "thin"))
        parts.append(label(right + 12, y, path.feature_names[j], "small", most=17))
    zero = bottom + low / (high - low) * (bottom - top)
    parts.append(line(left, zero, right, zero, "axis"))
    if lams[0] < 1 < lams[-1]:
        x = left + (1 - lams[0]) / (lams[-1] - lams[0]) * (right - left)
        parts.append(line(x, top, x, bottom, "marker"))
    parts += left_axis(low, high, top, bottom, left, marks=None if width is None else _powers(low, high, width))
    words = "lambda (0: as it is, 1: swapped with its knockoff)"
    parts += bottom_axis(float(lams[0]), float(lams[-1]), left, right, bottom, words)
    return drawing(
        WIDTH, bottom + 36, parts, f"Lambda paths of {len(firsts)} features and {len(others)} others", "wide"
    )


def _powers(low: float, high: float, width: float) -> dict[float, str]:
    """Ticks at 0 and at powers of ten, at their places on an axis that is logarithmic beyond ``width``.

    >>> {round(at, 1): words for at, words in _powers(-0.1, 4.0, 2.0).items()}
    {0.0: '0', 2.3: '10'}
    """
    first = math.floor(math.log10(width)) + 1
    values = [sign * 10.0**power for power in range(first, first + 12) for sign in (1, -1)]
    places = {math.asinh(value / width): number(value) for value in values}
    return {0.0: "0", **{at: words for at, words in places.items() if low <= at <= high}}


def draw_verdict(verdict: Verdict) -> str:
    """Each check's p-value on a logarithmic scale, and where it would speak against the knockoffs."""
    left, right, top = 148.0, WIDTH - 10.0, 18.0
    smallest, n = 1e-6, len(verdict.checks)
    bottom = top + ROW * n

    def x_of(p: float) -> float:
        return right + (math.log10(max(p, smallest)) / -math.log10(smallest)) * (right - left)

    limit = x_of(0.05 / n)
    parts = [line(limit, top - 4, limit, bottom, "threshold")]
    parts.append(label(limit, top - 7, f"0.05 / {n}: speaks against them", "small", "middle"))
    for i, check in enumerate(verdict.checks):
        y = top + ROW * i + 9
        failed = check in verdict.failed
        parts.append(label(left - 8, y + 4, check.name, "bold" if failed else "", "end", most=22))
        parts.append(line(left, y, right, y, "guide"))
        x = x_of(check.p_value)
        parts.append(rect(x - 4, y - 4, 8, 8, "mine") if failed else dot(x, y, "open", 4))
        if not failed and check.p_value < 0.05 / n:
            parts.append(label(x - 8, y + 4, "too small to matter", "small", "end"))
    parts.append(line(left, bottom + 2, right, bottom + 2, "axis"))
    for power in (-6, -4, -2, 0):
        x, words = x_of(10.0**power), "1" if power == 0 else f"{'≤ ' if power == -6 else ''}1e−{-power}"
        parts.append(label(x, bottom + 16, words, "small", "middle" if power != 0 else "end"))
    parts.append(label((left + right) / 2, bottom + 31, "p-value", "small", "middle"))
    return drawing(WIDTH, bottom + 38, parts, "p-values of the checks of the knockoffs", "wide")


def draw_criterion(values: Mapping[int, float], chosen: int | None) -> str:
    """Criterion for each number of classes that was tried, smaller is better."""
    known = {int(k): float(v) for k, v in values.items() if math.isfinite(v)}
    if len(known) < 2:
        return ""
    ks, vs = list(known), list(known.values())
    low, high = min(vs), max(vs)
    low, high = (low - 0.05 * (high - low), high + 0.05 * (high - low)) if low < high else (low - 1, high + 1)
    left, right, top, bottom = 70.0, WIDTH - 16.0, 10.0, 130.0
    span = max(ks) - min(ks)
    points = [
        (left + 10 + (k - min(ks)) / span * (right - left - 20), bottom - (v - low) / (high - low) * (bottom - top))
        for k, v in known.items()
    ]
    parts = [polyline(points, "path path0")]
    for k, (x, y) in zip(ks, points, strict=True):
        parts.append(rect(x - 5, y - 5, 10, 10, "mine") if k == chosen else dot(x, y, "open", 3.5))
        parts.append(label(x, bottom + 15, str(k), "small", "middle"))
    parts += [line(left, bottom, right, bottom, "axis"), *left_axis(low, high, top, bottom, left)]
    parts.append(label((left + right) / 2, bottom + 30, "classes (the square is the one chosen)", "small", "middle"))
    return drawing(WIDTH, bottom + 36, parts, "Criterion by the number of classes; smaller is better", "wide")
