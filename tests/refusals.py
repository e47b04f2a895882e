"""Refusals, a line for each."""

import pytest

from knockoffs.errors import InputError


def refuses(words, call, /, *arguments, **options):
    """Check that a call is refused with these words, a regular expression."""
    __tracebackhide__ = True
    with pytest.raises(InputError, match=words):
        call(*arguments, **options)
