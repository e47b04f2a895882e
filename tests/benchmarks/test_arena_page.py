"""Numbers on the page of the arena are those of its files, and what is behind is said."""

import numpy as np
from benchmarks.arena import checks, growth, page, quality


def line(row, who, seconds, **more):
    return {"row": row, "who": who, "seconds": seconds, "memory": "1.0", "note": "", "error": "", **more}


def test_the_best_is_bold_and_a_row_behind_is_listed():
    rows = [line("a", "ours", "2.0"), line("a", "ours, faster", "0.9"), line("a", "them", "1.0")]
    rows += [line("a", "bound: least", "0.1")]
    rows += [line("b", "ours", "1.0"), line("b", "them", "", error="does not install here")]
    text = page.speed_section(rows)
    assert "| a | ours, faster | **0.9** |" in text
    assert "| a | bound: least | 0.1 |" in text
    assert "| b | them | - | 1 | does not install here |" in text
    assert "- a: 2 s against 1 of them." in text  # our default, not our fastest
    assert "- b:" not in text


def test_of_two_runs_of_a_row_the_later_is_shown(tmp_path):
    fields = "date,part,row,who,seconds,memory,note,error\n"
    lines = "".join(f"2026-01-01,p,a,{who},{seconds},1,,\n" for who, seconds in (("ours", 3), ("them", 2), ("ours", 1)))
    (tmp_path / "speed.csv").write_text(fields + lines)
    text = page.speed_of(tmp_path / "speed.csv")
    assert "| a | ours | **1** |" in text and "| a | ours | 3 |" not in text and "No row is behind." in text


def of(design, method, fdp, power, repetition, level=0.1):
    more = {"selected": 1.0, "seconds": 1.0, "error": "", "repetition": repetition, "level": level}
    return {"design": design, "method": method, "fdp": fdp, "power": power, **more}


def test_an_fdr_above_its_level_is_bold_and_lost_power_is_said():
    rows = []
    for k in range(20):
        rows += [of("ar_linear", "default", 0.1, 0.5 + 0.02 * (k % 2), k)]
        rows += [of("ar_linear", "knockpy", 0.3 + 0.02 * (k % 2), 0.9, k)]  # finds more, but does not hold its level
        rows += [of("ar_linear", "hidimstat", 0.1, 0.7 + 0.02 * (k % 2), k)]
    text = page.quality_section(rows)
    assert "| ar_linear | 0.10 ± 0.00 / 0.51 | **0.31 ± 0.00** / 0.90 | 0.10 ± 0.00 / 0.71 |" in text
    assert "- ar_linear: 0.51 against 0.71 of hidimstat." in text
    assert "of knockpy." not in text


def test_the_default_is_set_beside_the_better_of_its_models_on_the_tables_of_all_three():
    rows = []
    for k in range(20):
        for method, power in (("default", 0.5 + 0.02 * (k % 2)), ("lasso", 0.5), ("boosting", 0.0)):
            rows += [of("ar_linear", method, 0.1, power, k)]
        for method, power in (("default", 0.3), ("lasso", 0.0), ("boosting", 0.4 + 0.02 * (k % 2))):
            rows += [of("ar_products", method, 0.0, power, k)]
    rows += [of("ar_linear", "default", 1.0, 0.0, 20)]  # a table that the two others did not have
    text = page.models_section(rows)
    assert "| ar_linear | 0.10 ± 0.00 / 0.51 | 0.10 ± 0.00 / 0.50 | 0.10 ± 0.00 / 0.00 | +0.01 ± 0.00, lasso |" in text
    assert "- ar_products: 0.30 against 0.41 of boosting." in text and "- ar_linear" not in text
    assert "Tables for each design: 20." in text
    assert "loses to neither" in page.models_section([row for row in rows if row["design"] == "ar_linear"])
    assert page.models_section([row for row in rows if row["method"] != "lasso"]) == ""


def test_means_and_errors_of_a_group():
    rows = [of("ar_linear", "default", fdp, power, k) for k, (fdp, power) in enumerate([(0.0, 0.2), (0.2, 0.6)])]
    (found,) = quality.means(rows)
    assert (found["fdr"], found["power"], found["runs"]) == (0.1, 0.4, 2)
    assert np.isclose(found["fdr_error"], 0.1) and np.isclose(found["power_error"], 0.2)


def test_a_fault_planted_in_a_sampler_or_a_filter_is_seen():
    # the noise multiplied by the lower factor from the wrong side, as in a peer
    def transposed(X, Sigma, Z):
        right = checks.ours_draw(X, Sigma, np.zeros_like(Z))
        factor = (checks.ours_draw(X, Sigma, Z) - right).T / np.sqrt(len(Sigma))
        return right + Z @ factor

    assert checks.implied_covariance(checks.ours_draw)[0]
    assert not checks.implied_covariance(transposed)[0]
    assert checks.swaps_of_a_chain(checks.ours_chain)[0]
    assert not checks.swaps_of_a_chain(lambda X, seed: checks.ours_chain(X[:, ::-1], seed)[:, ::-1])[0]
    assert checks.tied_threshold(checks.definition)[0]
    assert not checks.tied_threshold(lambda W, q: checks.definition(W, q) | (W == 0))[0]
    assert not checks.zeros_stay_out(lambda W, q: W >= 0)[0]
    assert checks.mixed_ties(checks.definition)[0]


def test_exponents_and_the_table_of_growth(tmp_path):
    rows = "work,against,size,n,d,seconds,memory\n" + "".join(f"x,n,{n},{n},4,{n**1.5},{n}\n" for n in (1, 2, 4, 8))
    (tmp_path / "growth.csv").write_text(rows)
    text = growth.section(tmp_path / "growth.csv")
    assert "| x | n | 1 | 8 | 1.00 to 22.63 | 1 to 8 | 1.50 | 1.00 |" in text


def test_who_finds_more_is_set_beside_the_oracle():
    rows = []
    for k in range(20):
        rows += [of("t_linear", "default", 0.1, 0.5, k), of("t_linear", "hidimstat", 0.1, 0.7 + 0.02 * (k % 2), k)]
        rows += [of("t_linear", "oracle", 0.1, 0.46 + 0.04 * (k % 2), k)]
    rows += [of("t_linear", "oracle", 0.1, 0.0, 20)]  # a table that ours did not have
    assert "- t_linear: 0.50 against 0.71 of hidimstat; the oracle finds 0.46." in page.quality_section(rows)
    text = page.oracle_section(rows)
    assert "| t_linear | 0.10 ± 0.00 / 0.50 | 0.10 ± 0.00 / 0.48 | +0.02 ± 0.00 |" in text
    assert "Tables for each design: 20." in text
    assert page.oracle_section(rows[:2]) == ""


def test_boruta_with_faster_forests_stands_for_boruta_and_the_difference_is_said(tmp_path):
    rows = [of("ar_linear", "boruta", 0.2, 0.5, k) for k in range(2)]
    rows += [of("ar_linear", "boruta_grown", 0.3 + 0.1 * (k % 2), 0.5, k) for k in range(10)]
    text = page.same_forests(rows)
    assert "On the 2 tables" in text and "FDR +0.150 ± 0.050, power +0.000 ± 0.000" in text
    with (tmp_path / "quality.csv").open("w") as file:
        file.write(",".join(quality.FIELDS) + "\n")
        file.writelines(",".join(str(row[name]) for name in quality.FIELDS) + "\n" for row in rows)
    said = page.quality_of(tmp_path / "quality.csv")
    assert "| ar_linear | 0.35 ± 0.02 / 0.50 |" in said and "Boruta 10." in said
