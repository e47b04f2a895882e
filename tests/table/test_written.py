"""Dates and amounts written as text: every format is read, written, read again, and nothing else is taken for one."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs import KnockoffSelector, read_table
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.cells import PlainFrame
from knockoffs.table.files import read_table_file
from knockoffs.table.stream import code_like
from knockoffs.table.target import as_target
from knockoffs.table.written import DATES, formats_of, is_date, read_text, write_text

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 5))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(N)
MOMENTS = [datetime.datetime(2012, 1, 1, 9, 30, 7) + i * datetime.timedelta(days=17, minutes=41) for i in range(N)]
PYTHON = {  # the same format in the words of Python's own library
    **{"YYYY": "%Y", "Month": "%B", "Mon": "%b", "YY": "%y", "MM": "%m", "DD": "%d", "hh": "%H", "mm": "%M"},
    **{"ss.s": "%S.%f", "ss": "%S", "AM": "%p", "zone": "+02:00"},
}


def in_python(word):
    made = word
    for part, code in PYTHON.items():
        made = made.replace(part, code)
    return made.replace("%H", "%I") if "%p" in made else made


def frame(values, kind=pd):
    if kind is pl:
        return pl.DataFrame(X, schema=[*"abcde"]).with_columns(pl.Series("m", values))
    return pd.DataFrame(X, columns=[*"abcde"]).assign(m=values)


@pytest.mark.parametrize("word", [word for word in DATES if "#" not in word])
def test_every_format_of_dates_is_that_of_the_standard_library(word):
    texts = [moment.strftime(in_python(word)) for moment in MOMENTS]
    days = read_text(texts, word)
    parsed = [datetime.datetime.strptime(text, in_python(word).replace("+02:00", "%z")) for text in texts]
    zones = [0.0 if moment.tzinfo is None else moment.utcoffset().total_seconds() for moment in parsed]
    naive = np.array([moment.replace(tzinfo=None) for moment in parsed], dtype="M8[us]")
    origin = np.datetime64("1900-01-01" if word.startswith("hh") else "1970-01-01", "us")
    expected = (naive - origin) / np.timedelta64(1, "D") - np.array(zones) / 86400
    np.testing.assert_allclose(days, expected, atol=1e-9)
    assert word in formats_of(sorted(set(texts)))
    np.testing.assert_allclose(read_text(write_text(days, word), word), days, atol=1e-9)


def test_quarters():
    for word, texts in {"YYYYQ#": ["2012Q1", "2011Q4"], "Q# YYYY": ["Q1 2012", "Q4 2011"]}.items():
        assert formats_of(texts) == [word]
        days = read_text(texts, word)
        np.testing.assert_array_equal(days.astype("M8[D]"), np.array(["2012-01-01", "2011-10-01"], dtype="M8[D]"))
        assert write_text(days + 80, word) == texts


AMOUNTS = {
    "0 %": (["12 %", "-7 %", "100 %"], [12, -7, 100]),
    "0.0%": (["12.5%", "7%", "0.1%"], [12.5, 7, 0.1]),
    "0,0 %": (["12,5 %", "7 %", "0,1 %"], [12.5, 7, 0.1]),
    "$#,##0.00": (["$1,234.50", "-$7", "$-8.25"], [1234.5, -7, -8.25]),
    "#.##0,00 €": (["1.234,50 €", "7,25 €"], [1234.5, 7.25]),
    "#,##0": (["1,234", "1,234,567", "999"], [1234, 1234567, 999]),
    "#'##0": (["1'234", "999"], [1234, 999]),
    "# ##0,0": (["1 234,5", "999,0"], [1234.5, 999]),
    "0.00 USD": (["1.25 USD", "3 USD"], [1.25, 3]),
}


@pytest.mark.parametrize("word", AMOUNTS)
def test_amounts(word):
    texts, values = AMOUNTS[word]
    assert formats_of(texts) == [word] and not is_date(word)
    np.testing.assert_allclose(read_text(texts, word), values)
    again = write_text(np.array(values, dtype=float), word)
    np.testing.assert_allclose(read_text(again, word), values)


@pytest.mark.parametrize(
    "texts",
    [
        *(["12", "7"], ["1.234", "5.678"], ["a", "b"], ["12 %", "7 €"], ["1,2", "3"], ["A1", "A2"], ["1.2.3", "1.2.4"]),
        *(["10.0.0.1"], ["31.02.2012"], ["2012-13-01"], ["2012-00-10"], ["25:00"], ["12:61"], ["2:1", "3:0"], ["1/2"]),
        *(["Mon", "Tue"], ["Jan", "Feb"], ["32 Jan 2012"], ["1,23,456"], ["$"], ["%"], [""], ["1-5", "6-9"], ["12 kg"]),
        *(["2012/13"], ["-"], ["1e5 %"], ["0x10"], ["12 % of"], ["13:00 PM"], ["٣ %" + "x"]),
    ],
)
def test_other_text_has_no_format(texts):
    assert formats_of(texts) == []


@pytest.mark.parametrize("kind", [pd, pl])
@pytest.mark.parametrize(
    ("code", "word"), [("%d.%m.%Y", "DD.MM.YYYY"), ("%m/%d/%Y %I:%M %p", "MM/DD/YYYY hh:mm AM"), ("%b %Y", "Mon YYYY")]
)
def test_knockoffs_of_dates_are_written_as_they_came(kind, code, word):
    texts = [moment.strftime(code) for moment in MOMENTS]
    table = read_table(frame(texts, kind))
    column = table.columns[-1]
    assert (column.dtype, column.written, column.levels) == ("date", word, None)
    assert f"written as {word}" in column.why
    back = table.decode(table.X)["m"].to_list()
    assert back == texts
    assert read_table(table.decode(table.X + 3)).columns[-1].written == word


def test_amounts_are_numbers_and_come_back_as_text():
    texts = [f"${1000 * abs(v):,.2f}" for v in RNG.standard_normal(N)]
    table = read_table(frame([*texts[:-1], None]))
    assert (table.columns[-1].dtype, table.columns[-1].kind) == ("number", "continuous")
    assert table.decode(table.X)["m"].tolist()[:-1] == texts[:-1]
    selector = KnockoffSelector(fdr=0.3, estimator="lasso", verdict=False, method="knockoffs", random_state=0)
    assert np.isfinite(selector.fit(frame(texts), Y).W_).all()


def test_days_and_months_that_no_cell_tells_apart_are_refused():
    texts = [f"{i % 12 + 1:02d}/{i % 11 + 1:02d}/2012" for i in range(N)]
    with pytest.raises(InputError, match=r"'01/01/2012': DD/MM/YYYY or MM/DD/YYYY, and no cell tells.*2012-01-31"):
        read_table(frame(texts))
    told = read_table(frame([*texts[:-1], "12/31/2012"]))
    assert told.columns[-1].written == "MM/DD/YYYY"
    two = read_table(
        frame([["01/02/2012", "03/01/2012"][i % 2] for i in range(N)])
    )  # which comes first does not matter
    assert (two.columns[-1].kind, two.columns[-1].written) == ("binary", "")


def test_a_stray_word_among_dates_is_pointed_at_and_dashes_are_missing():
    texts = [moment.strftime("%d.%m.%Y") for moment in MOMENTS]
    with pytest.raises(InputError, match="holds dates written as DD.MM.YYYY, but 'soon' in row 7: .* all others dates"):
        read_table(frame([*texts[:7], "soon", *texts[8:]]))
    with pytest.warns(KnockoffWarning, match="'m' holds '-', '[?]' in 2 cells among dates: taken as missing"):
        table = read_table(frame(["?", "-", *texts[2:]]))
    assert np.isnan(table.X[:2, -1]).all() and not np.isnan(table.X[2:]).any()


def test_a_batch_has_the_format_of_the_table():
    """A batch whose own cells cannot tell days from months."""
    texts = [moment.strftime("%m/%d/%Y") for moment in MOMENTS]
    table = read_table(PlainFrame({"m": np.array(texts, dtype=object), "x": X[:, 0]}))
    batch = PlainFrame({"m": np.array(["01/02/2012", "03/04/2012", "05/06/2012"], dtype=object), "x": X[:3, 1]})
    days = code_like(batch, table.columns, "X").X[:, 0].astype("M8[D]")
    assert days.tolist() == [datetime.date(2012, 1, 2), datetime.date(2012, 3, 4), datetime.date(2012, 5, 6)]


def test_targets_written_as_text():
    table = read_table(X)
    target = as_target([f"{v:.1f} %" for v in Y], table)
    assert target.kind == "number"
    np.testing.assert_allclose(target.values, np.round(Y, 1), atol=1e-9)
    assert as_target(np.array([f"{v:.1f} %" for v in Y]), table).kind == "number"
    with pytest.raises(
        InputError, match="y holds dates, DD.MM.YYYY, for instance .*: turn them into numbers or classes"
    ):
        as_target([moment.strftime("%d.%m.%Y") for moment in MOMENTS], table)
    assert as_target([["2012Q1", "2012Q2", "2012Q3"][i % 3] for i in range(N)], table).kind == "classes"
    with pytest.raises(InputError, match="y holds dates or durations"):
        as_target(pd.Series(pd.period_range("2012", periods=N, freq="M")), table)


def test_question_marks_and_dashes_in_a_file(tmp_path):
    rows = ["number,label,when,sign"]
    rows += ["1,a,01.02.2012,+", "?,?,-,-", "-,b,31.01.2012,+", "2.5,n/a,30.01.2012,-"] * 10
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    with pytest.warns(KnockoffWarning) as heard:
        read = read_table_file(tmp_path / "t.csv")
    said = " ".join(str(w.message) for w in heard)
    assert "'-', '?' taken as missing in 'number'" in said and "'?' taken as missing in 'label'" in said
    np.testing.assert_array_equal(read.data["number"][:4], [1, np.nan, np.nan, 2.5])
    assert read.data["label"].tolist()[:4] == ["a", None, "b", None]
    assert read.data["sign"].tolist()[:4] == ["+", "-", "+", "-"]  # among labels a dash is one
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        table = read_table(read)
    np.testing.assert_array_equal(
        np.isnan(table.X[:4]), np.array([[0, 0, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    )


def test_a_label_that_is_a_question_mark_survives_a_file(tmp_path):
    from knockoffs.table.files import write_table_file

    labels = np.array(["?", "-", "a", "'?", "n/a"], dtype=object)
    write_table_file({"m": labels}, tmp_path / "t.csv")
    assert read_table_file(tmp_path / "t.csv").data["m"].tolist() == labels.tolist()


def test_a_constant_column_that_lacks_cells_is_its_own_knockoff():
    """Its missing cells were handed on to the model of y, which refused them."""
    holes = np.where(HALF, np.nan, 1.0)
    for values in (holes, np.where(HALF, None, "a")):
        selector = KnockoffSelector(fdr=0.3, estimator="lasso", verdict=False, method="knockoffs", random_state=0)
        with pytest.warns(KnockoffWarning, match="columns 'm' are constant"):
            selector.fit(frame(values), Y)
        assert selector.W_[-1] == 0


HALF = np.arange(N) % 2 == 0


def test_a_number_that_stands_for_missing_is_told():
    values = np.where(HALF, -999, RNG.integers(0, 30, N))
    with pytest.warns(KnockoffWarning, match="-999 in 30 cells of column 'm', far from the other numbers"):
        read_table(frame(values))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(frame(np.where(HALF, 99, RNG.integers(0, 90, N))))


def test_a_number_that_stands_for_a_missing_target_is_told():
    table = read_table(RNG.standard_normal((N, 3)))
    for y, said in (
        (np.where(HALF, -999, RNG.standard_normal(N)), "y is -999 in 30 rows"),
        (np.where(np.arange(N) < 9, -9, 1 + HALF), "y is -9 in 9 rows"),
    ):
        with pytest.warns(KnockoffWarning, match=f"{said}, far from the other numbers: .* make these cells empty"):
            as_target(y, table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (np.where(HALF, 99, RNG.integers(0, 90, N)), np.where(HALF, -9, 9), np.where(HALF, "-9", "1")):
            as_target(y, table)
        as_target(np.r_[-999, RNG.standard_normal(N - 1)], table)


def test_nearly_all_zeros_and_a_few_small_whole_numbers_are_no_continuous_column():
    values = np.zeros(600)
    values[:9] = [1, 2, 3, 4, 5, 8, 1, 1, 2]
    assert read_table(np.c_[RNG.standard_normal(600), values]).columns[1].kind in ("count", "ordinal")
    values[:9] = [10, 210, 350, 421, 57, 800, 999, 123, 224]
    assert read_table(np.c_[RNG.standard_normal(600), values]).columns[1].kind == "continuous"
