"""Counts, lists, numbers, durations and reasons in words."""

from __future__ import annotations

import math

import pytest

from evomeans import StopReason, wording

PLAIN = [
    ("counted", (1, "column"), "1 column"),
    ("counted", (1024, "column"), "1,024 columns"),
    ("offspring_text", (30,), "30 offspring"),
    ("offspring_text", (1000, 400), "1,000 offspring (400 abandoned early)"),
    ("offspring_text", (5, 1, 3000), "5 offspring (1 abandoned early) and 3,000 on samples"),
    ("listed", ([],), ""),
    ("listed", ("a",), "a"),
    ("listed", ("abc",), "a, b and c"),
    ("listed", (range(8),), "0, 1, 2, 3, 4 and 3 more"),
    ("quoted", ("a\x1b[31m\n",), r"'a\x1b[31m\n'"),
    ("quoted", ("x" * 1000,), f"'{'x' * 35}...'"),
    # Lines and tabs stay, escapes and changes of direction are shown as such.
    ("printable", ("a\tb\n – é",), "a\tb\n – é"),
    ("printable", ("a\x1b[31m\u202e\r\x9b",), r"a\x1b[31m\u202e\r\x9b"),
    ("number_text", (0,), "0"),
    ("number_text", (78.851441,), "78.85144"),
    ("number_text", (-0.5,), "-0.5"),
    ("number_text", (27_090_238.4,), "27,090,238"),
    ("number_text", (1234.5,), "1,234.5"),
    ("number_text", (9.99999999,), "10"),
    ("number_text", (0.000123456789,), "0.0001234568"),
    ("number_text", (1.5e-7,), "1.5 × 10⁻⁷"),
    ("number_text", (4.93e12,), "4.93 × 10¹²"),
    ("number_text", (float("inf"),), "inf"),
    ("number_text", (39.0, 3, True), "39.0"),
    ("number_text", (0.5, 3, True), "0.500"),
    ("percent_text", (0,), "0 %"),
    ("percent_text", (1,), "100 %"),
    ("percent_text", (0.333,), "33.3 %"),
    ("percent_text", (0.0472,), "4.72 %"),
    ("percent_text", (3e-5,), "0.003 %"),
    ("duration_text", (0.123,), "0.12 s"),
    ("duration_text", (0.999,), "1.0 s"),
    ("duration_text", (12.34,), "12.3 s"),
    ("duration_text", (59.96,), "1 min"),
    ("duration_text", (125,), "2 min 5 s"),
    ("duration_text", (3599.9,), "1 h"),
    ("duration_text", (7260,), "2 h 1 min"),
    ("duration_text", (1e7,), "116 days"),
    # Rounded down.
    ("certain_percent", (0.9999,), "99 %"),
    ("probability_text", (math.nan,), ""),
    ("advice_text", ("max_offspring", 500, 490, 1), ""),
    ("advice_text", ("no_improvement", 500, 490, 0), ""),
    ("advice_text", ("proven_optimal", 500, 5, 0), ""),
    ("parse_duration", ("90",), 90),
    ("parse_duration", ("90s",), 90),
    ("parse_duration", ("1.5m",), 90),
    ("parse_duration", ("1h30m",), 5400),
    ("parse_duration", ("2 min",), 120),
    ("parse_duration", ("250ms",), 0.25),
]


@pytest.mark.parametrize(("function", "arguments", "text"), PLAIN)
def test_plain_words(function, arguments, text):
    assert getattr(wording, function)(*arguments) == text


@pytest.mark.parametrize("text", ["", "soon", "5x", "1h 30", "-5s", "0", "1e3s", "5s5", "inf"])
def test_what_is_not_a_duration(text):
    with pytest.raises(ValueError, match=r"not a duration|longer than zero"):
        wording.parse_duration(text)


@pytest.mark.parametrize("reason", list(StopReason))
@pytest.mark.parametrize("rediscoveries", [0, 1])
def test_every_reason_has_a_sentence_of_its_own(reason, rediscoveries):
    def text(reason):
        return wording.stop_text(reason, 500, 50, rediscoveries)

    assert text(reason).endswith(".")
    assert "for this reason" not in text(reason)
    # Files of earlier versions give "no_improvement" for what is "agreement" now.
    twins = {StopReason.AGREEMENT, StopReason.NO_IMPROVEMENT} if rediscoveries else set()
    others = [other for other in StopReason if other is not reason and not {reason, other} <= twins]
    assert text(reason) not in [text(other) for other in others]


@pytest.mark.parametrize(
    ("function", "arguments", "part"),
    [
        ("stop_text", ("no_improvement", 500, 50, 0), "last 50 offspring brought no improvement"),
        ("stop_text", ("max_offspring", 500, 50, 0), "all 500 offspring allowed"),
        ("stop_text", ("max_time", 500, 1, 0), "It was still improving."),
        ("stop_text", ("max_time", 0, 0, 0), "so no solutions were combined."),
        ("stop_text", ("boredom", 500, 50, 0), "The search ended for this reason: boredom."),
        ("stop_text", ("agreement", 9, 5, 1), "because two independent starts led to the same"),
        ("stop_text", ("no_improvement", 9, 5, 2), "3 independent starts led to the same best"),
        ("stop_text", ("max_time", 500, 50, 1), "found again once"),
        ("stop_text", ("interrupted", 500, 50, 2), "found again 2 times"),
        ("advice_text", ("max_time", 500, 5, 0), "probably"),
        ("advice_text", ("max_offspring", 500, 490, 0), "might"),
        ("probability_text", (0.957,), "It is 95 % certain that "),
        ("probability_text", (1.0,), "It is 100 % certain"),
        # The package may be in no index.
        ("how_to_install", ("plot",), "pip install '.[plot]'"),
        ("how_to_install", ("plot",), "pip install 'evomeans[plot]'"),
    ],
)
def test_sentences_tell_the_numbers(function, arguments, part):
    assert part in getattr(wording, function)(*arguments)
