"""Names for types that many rooms speak of: what JSON can write, what a cell can hold, a frame of any library."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
Label: TypeAlias = Hashable  # of a column or a target: text, a number, a truth value, a date
Frame: TypeAlias = "IntoDataFrame"  # of pandas, polars, pyarrow or another library
Kinds: TypeAlias = "Mapping[str, str | Sequence[Label]] | None"  # of columns by name: a kind, or labels in their order
