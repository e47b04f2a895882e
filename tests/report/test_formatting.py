import pytest

from knockoffs.plots.style import short
from knockoffs.report.formatting import number, shorten_names


@pytest.mark.parametrize("most", [5, 19, 60])
def test_short_names_are_short_and_keep_both_ends(hostile, most):
    for name in hostile:
        assert len(short(name, most)) <= most + 2
    assert short("a" * 50 + "z" * 50, 20).strip("az") == "…"
    assert short("") == "“”"


def test_names_in_sentences_are_shortened_also_as_python_writes_them():
    name = "it's" + "\t" * 100
    said = shorten_names(f"columns {name!r} and 'age'", [name])
    assert len(said) < 200 and "'age'" in said


def test_numbers():
    assert [number(v) for v in (0.0, 1234.5, 1e-9, None)] == ["0", "1.23e+03", "1e−09", "–"]
