import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.report.facts import Facts
from knockoffs.report.write import check_report_place, is_report, write_report


def test_an_earlier_report_is_replaced_and_another_file_is_not(selection, tmp_path):
    place = tmp_path / "report.html"
    write_report(Facts(selection), place)
    assert is_report(place)
    write_report(Facts(selection), place)
    other = tmp_path / "mine.html"
    other.write_text("<p>mine</p>")
    with pytest.raises(InputError, match="--force"):
        write_report(Facts(selection), other)
    assert other.read_text() == "<p>mine</p>"
    write_report(Facts(selection), other, force=True)
    assert is_report(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.html", "report.html"]


def test_bad_places_are_refused(tmp_path):
    refuses("ends in .html", check_report_place, tmp_path / "report.pdf")
    refuses("no such folder", check_report_place, tmp_path / "nowhere" / "report.html")
    refuses("what is read", check_report_place, tmp_path / "t.html", (tmp_path / "t.html",))
