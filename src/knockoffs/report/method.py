"""A paragraph for the methods of a paper, with what it cites: only what this selection has used."""

from __future__ import annotations

import re

from knockoffs.errors import count
from knockoffs.features.fixed import FixedDesign
from knockoffs.report.facts import Facts

CONFIDENCE = 0.95  # of the bound on the false discovery proportion

REFERENCES = {
    "model_x": (
        "Candès, E., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: 'model-X' knockoffs for high dimensional "
        "controlled variable selection. Journal of the Royal Statistical Society B 80(3), 551–577."
    ),
    "filter": (
        "Barber, R. F. and Candès, E. J. (2015). Controlling the false discovery rate via knockoffs. Annals of "
        "Statistics 43(5), 2055–2085."
    ),
    "mass": (
        "Gimenez, J. R., Ghorbani, A. and Zou, J. (2019). Knockoffs for the mass: new feature importance statistics "
        "with false discovery guarantees. AISTATS 2019, PMLR 89."
    ),
    "derandomised": (
        "Ren, Z. and Barber, R. F. (2024). Derandomised knockoffs: leveraging e-values for false discovery rate "
        "control. Journal of the Royal Statistical Society B 86(1), 122–154."
    ),
    "localised": (
        "Gablenz, P. and Sabatti, C. (2023). Catch me if you can: signal localization with knockoff e-values. "
        "arXiv:2306.09976."
    ),
    "e_bh": (
        "Wang, R. and Ramdas, A. (2022). False discovery rate control with e-values. Journal of the Royal Statistical "
        "Society B 84(3), 822–852."
    ),
    "post_hoc": "Fischer, L. and Sechidis, K. (2025). arXiv:2511.11166.",
    "bounds": (
        "Katsevich, E. and Ramdas, A. (2020). Simultaneous high-probability bounds on the false discovery proportion "
        "in structured, regression and online settings. Annals of Statistics 48(6), 3465–3487."
    ),
    "bh": (
        "Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical and powerful "
        "approach to multiple testing. Journal of the Royal Statistical Society B 57(1), 289–300."
    ),
    "sequential": (
        "Goeman, J. J. and Solari, A. (2010). The sequential rejection principle of familywise error control. Annals "
        "of Statistics 38(6), 3782–3810."
    ),
    "hierarchical": "Meinshausen, N. (2008). Hierarchical testing of variable importance. Biometrika 95(2), 265–278.",
    "several": (
        "Gimenez, J. R. and Zou, J. (2019). Improving the stability of the knockoff procedure: multiple simultaneous "
        "knockoffs and entropy maximization. AISTATS 2019, PMLR 89."
    ),
    "median": (
        "He, Z., Liu, L., Wang, C. et al. (2021). Identification of putative causal loci in whole-genome sequencing "
        "data via knockoff statistics. Nature Communications 12, 3152."
    ),
}


def method_paragraph(facts: Facts) -> tuple[str, list[str]]:
    """Paragraph of what was done, and the references that it cites."""
    selection, notes = facts.selection, facts.selection.notes
    d, n = len(selection.feature_names), len(selection.pair)
    cited = ["model_x"]
    parts = [
        f"We asked which of {count(d, 'feature')} matter for {facts.called or 'the target'} given all the others, "
        f"in {count(n, 'row')}."
    ]
    law = notes.get("feature_model", "").rstrip(".") or "The knockoffs were drawn elsewhere"
    if selection.p_values is not None:
        parts.append(
            "Each feature was tested by the conditional randomization test (Candès et al., 2018): it was resampled "
            "given the others, without using the target."
        )
        parts.append(f"{law}.")
        if selection.discoveries is not None:
            parts.append(
                "Groups of features, in a tree by their associations (without using the target), were tested in the "
                "same way from the top down; the finest groups and features that were rejected are the discoveries. "
                f"The probability of any false discovery was controlled at {selection.fdr:g} by sequential rejection "
                "(Goeman and Solari, 2010; Meinshausen, 2008)."
            )
            cited += ["sequential", "hierarchical"]
        else:
            parts.append(
                f"The false discovery rate was controlled at {selection.fdr:g} by the rule of Benjamini and Hochberg "
                "(1995) applied to the p-values."
            )
            cited += ["bh"]
    else:
        fixed = isinstance(selection.feature_model, FixedDesign)
        parts.append(
            "Fixed-X knockoffs of the features were constructed from their Gram matrix (Barber and Candès, 2015)."
            if fixed
            else "Model-X knockoffs of the features were drawn without using the target (Candès et al., 2018; Gimenez "
            "et al., 2019)."
        )
        parts.append(f"{law}.")
        parts += [f"{_plain(notes[key])}." for key in ("estimator", "importance", "rows") if notes.get(key)]
        cited = ["filter"] if fixed else [*cited, "mass"]
        if selection.discoveries is not None:
            parts.append(
                "Features, and groups of features that were formed without using the target, had knockoffs of their "
                "own; their e-values were joined to disjoint discoveries, the finest that the data allow (Gablenz and "
                f"Sabatti, 2023). {selection.evidence.promise.rstrip('.') if selection.evidence else ''}."
            )
            cited += ["derandomised", "localised"]
        elif selection.evidence is not None:
            n_draws = 1 if selection.draws is None else len(selection.draws)
            parts.append(
                f"{count(n_draws, 'draw')} of knockoffs were combined by their e-values (Ren and Barber, 2024), and "
                f"features selected by e-BH (Wang and Ramdas, 2022). {selection.evidence.promise.rstrip('.')}."
            )
            cited += ["derandomised", "e_bh"]
            if "after looking" in selection.evidence.promise:
                parts.append("The level is post hoc (Fischer and Sechidis, 2025).")
                cited.append("post_hoc")
        else:
            name = (
                "knockoff+ filter"
                if selection.offset == 1
                else "knockoff filter with offset 0 (a modified false discovery rate)"
            )
            parts.append(
                f"Features were selected by the {name} at level {selection.fdr:g} (Barber and Candès, 2015); bounds on "
                "the false discovery proportion that hold for all levels at once are in the sense of Katsevich and "
                f"Ramdas (2020), at {100 * CONFIDENCE:g} % confidence."
            )
            cited += ["filter", "bounds"]
        if selection.n_knockoffs > 1:
            parts.append(
                f"Each feature was compared with {selection.n_knockoffs} knockoffs at once (Gimenez and Zou, 2019) "
                "by the largest score less the median of the others (He et al., 2021)."
            )
            cited += ["several", "median"]
    if selection.verdict is not None:
        parts.append(f"Verdict: {selection.verdict.word}. {selection.verdict.headline}")
    version = facts.versions.get("knockoffs")
    parts.append(f"Software: knockoffs {version} for Python." if version else "Software: knockoffs for Python.")
    return facts.sentence(" ".join(parts)), [REFERENCES[key] for key in REFERENCES if key in cited]


def _plain(note: str) -> str:
    """Write a note of what was chosen as the half of a sentence.

    >>> _plain("estimator='lasso', because it predicts best")
    'Model of the target: lasso, because it predicts best'
    >>> _plain("rows='in_sample', the default for Lasso")
    'Rows scored: in sample, the default for Lasso'
    """
    words = {"estimator": "Model of the target", "importance": "Importance score", "rows": "Rows scored"}
    found = re.match(r"(\w+)='([^']*)'(.*)", note.rstrip("."), re.DOTALL)
    if found is None or found[1] not in words:
        return note.rstrip(".")
    return f"{words[found[1]]}: {found[2].replace('_', ' ')}{found[3]}"
