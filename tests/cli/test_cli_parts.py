"""Names: the small parts of the command line."""

from __future__ import annotations

import pytest

from evomeans.cli.app import app
from evomeans.cli.fit import _sizes


def test_sizes_shown():
    """From small to large, whether they are listed or not."""
    assert _sizes([2, 1]) == "1, 2"
    assert _sizes([1] * 20) == "1 row each"
    assert _sizes([1] * 10 + [5] * 10) == "1 to 5 rows, 3 on average"


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["a, b ,c"], ("a", "b", "c")),
        (['"a,b",größe'], ("a,b", "größe")),
        (["a,b", "c"], ("a", "b", "c")),
    ],
)
def test_names(texts, names):
    """Separated by commas; an option that comes twice names them all."""
    options = [word for text in texts for word in ("--columns", text)]
    _, bound, _ = app.parse_args(["predict", "m", "t.csv", *options])
    assert bound.arguments["read"].columns == names
