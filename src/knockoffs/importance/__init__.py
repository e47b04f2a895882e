"""Z: one file per importance score."""

from __future__ import annotations

# name -> "module:attribute", imported when first used
SCORES: dict[str, str] = {
    "swap": "knockoffs.importance.accuracy_drop:swap",
    "permutation": "knockoffs.importance.accuracy_drop:permutation",
    "swap_integral": "knockoffs.importance.accuracy_drop:swap_integral",
    "permutation_integral": "knockoffs.importance.accuracy_drop:permutation_integral",
    "coefficients": "knockoffs.importance.coefficients:coefficient_magnitude",
    "lasso_coefficient_difference": "knockoffs.importance.coefficients:coefficient_magnitude",
    "gradient": "knockoffs.importance.saliency:gradient_saliency",
    "integrated_gradients": "knockoffs.importance.saliency:integrated_gradients",
}
