"""What the report and the page say first besides the selected features: the verdict in one line, and one next step."""

from __future__ import annotations

from collections.abc import Sequence

from knockoffs.report.formatting import number


def error_rate(level: float, *, grouped: bool = False) -> str:
    """Error rate that is controlled: of single features, or of discoveries that may be groups.

    >>> error_rate(0.1), error_rate(0.1, grouped=True)
    ('false discovery rate 0.1', 'any of them is false with probability 0.1 at most')
    """
    return f"any of them is false with probability {level:g} at most" if grouped else f"false discovery rate {level:g}"


def verdict_line(word: str | None, sentence: str = "") -> str:
    """Verdict in one line, with what it rests on.

    >>> verdict_line("good", "On this table, columns that do not matter were called in 9 % of 120 trials.")
    'Verdict: good. On this table, columns that do not matter were called in 9 % of 120 trials.'
    """
    return "There is no verdict on this selection." if word is None else f"Verdict: {word}. {sentence}".strip()


def next_step(
    *,
    n_selected: int,
    method: str,
    one_draw: bool,
    smallest_q: float,
    verdict: str | None,
    remedies: Sequence[str],
) -> str:
    """One thing to do next.

    Parameters
    ----------
    n_selected : int
    method : {"knockoffs", "conditional_test", "ghost"}
    one_draw : bool
    smallest_q : float
        Smallest level that selects a feature.
    verdict : {"good", "doubtful", "broken"} or None
    remedies : sequence of str
        Advice of the verdict, the most useful first.

    >>> next_step(n_selected=0, method="knockoffs", one_draw=True, smallest_q=0.2, verdict="good", remedies=())
    'Nothing is selected at this level; the smallest level that selects a feature is 0.2. Set that level for new rows.'
    """
    if verdict in ("doubtful", "broken"):
        return _sentence(remedies[0]) if remedies else "Try another feature model, and compare the verdicts."
    if n_selected == 0 and smallest_q < 1:
        return (
            "Nothing is selected at this level; the smallest level that selects a feature is "
            f"{number(smallest_q)}. Set that level for new rows."
        )
    if n_selected == 0:
        return "Nothing is selected at any level. Use more rows, or group columns that measure the same thing."
    if method == "knockoffs" and one_draw:
        return (
            "Another draw of knockoffs may select slightly different features: combine five by n_draws=5 (--draws 5)."
        )
    return "Confirm the answer on new rows, with the level fixed beforehand."


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
