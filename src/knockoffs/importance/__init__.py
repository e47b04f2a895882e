"""Z: one file per importance score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knockoffs.importance.scores import Scores


@dataclass(frozen=True)
class Score:
    """An importance score and what it requires.

    Parameters
    ----------
    function : str or callable
        "module:function", imported when first used; or the function, an ``Importance``.
    needs : str, optional
        What the model of y must offer: "coefficients" or "gradient"; nothing if left out.
    loss : bool
        Whether it follows a loss, and takes it as ``loss=``.
    rows : bool
        Whether it looks at rows; a score that is read off the model does not.
    """

    function: str | Callable[..., Scores]
    needs: str | None = None
    loss: bool = False
    rows: bool = True


_FAKED, _READ, _SALIENCY = (f"knockoffs.importance.{name}:" for name in ("accuracy_drop", "coefficients", "saliency"))

SCORES: dict[str, Score] = {
    "swap": Score(_FAKED + "swap_score", loss=True),
    "permutation": Score(_FAKED + "permutation_score", loss=True),
    "swap_integral": Score(_FAKED + "swap_integral", loss=True),
    "permutation_integral": Score(_FAKED + "permutation_integral", loss=True),
    "coefficients": Score(_READ + "coefficient_magnitude", needs="coefficients", rows=False),
    "lasso_coefficient_difference": Score(_READ + "coefficient_magnitude", needs="coefficients", rows=False),
    "contribution": Score(_READ + "contribution", needs="coefficients"),
    "gradient": Score(_SALIENCY + "gradient_saliency", needs="gradient"),
    "integrated_gradients": Score(_SALIENCY + "integrated_gradients", needs="gradient"),
}
