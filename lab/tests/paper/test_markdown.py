import math

import pytest

from lab.paper.markdown import number, p_value, seconds, table


def test_a_table_has_a_head_a_rule_and_its_rows():
    text = table(["name", "value"], [["a", 1], ["b", 2]])
    assert text == "| name | value |\n| :-- | --: |\n| a | 1 |\n| b | 2 |\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.234, "1.23"), (-0.001, "0.00"), (-0.2, "-0.20"), (None, "–"), (math.nan, "–")],
)
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.01234, "0.0123"), (12.34, "12.3"), (93444.5, "93,444")]
)
def test_seconds(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.04321, "0.043"), (2.2e-9, "2e-09"), (math.nan, "–")]
)
def test_p_values(value, text):
    assert p_value(value) == text
