"""Counts, lists, numbers, durations and reasons in words."""

from __future__ import annotations

import math

import pytest

from evomeans import StopReason
from evomeans.wording import (
    advice_text,
    certainty_text,
    counted,
    duration_text,
    how_to_install,
    listed,
    number_text,
    offspring_text,
    parse_duration,
    percent_text,
    printable,
    probability_text,
    quoted,
    stop_text,
)


def test_counts():
    assert [counted(1, "column"), counted(1024, "column")] == ["1 column", "1,024 columns"]


def test_offspring():
    assert offspring_text(30) == "30 offspring"
    assert offspring_text(1000, given_up=400) == "1,000 offspring (400 abandoned early)"
    text = "5 offspring (1 abandoned early) and 3,000 on samples"
    assert offspring_text(5, given_up=1, on_samples=3000) == text


@pytest.mark.parametrize(
    ("items", "text"),
    [([], ""), ("a", "a"), ("abc", "a, b and c"), (range(8), "0, 1, 2, 3, 4 and 3 more")],
)
def test_lists(items, text):
    assert listed(items) == text


def test_quotes_hold_no_control_characters_and_no_novels():
    assert quoted("a\x1b[31m\n") == r"'a\x1b[31m\n'"
    assert len(quoted("x" * 1000)) == 40


def test_texts_for_a_terminal_cannot_control_it():
    """Lines and tabs stay, escapes and changes of direction are shown as such."""
    assert printable("a\tb\n – é") == "a\tb\n – é"
    assert printable("a\x1b[31m\u202e\r\x9b") == r"a\x1b[31m\u202e\r\x9b"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (78.851441, "78.85144"),
        (-0.5, "-0.5"),
        (27_090_238.4, "27,090,238"),
        (1234.5, "1,234.5"),
        (9.99999999, "10"),
        (0.000123456789, "0.0001234568"),
        (1.5e-7, "1.5 × 10⁻⁷"),
        (4.93e12, "4.93 × 10¹²"),
        (float("inf"), "inf"),
    ],
)
def test_numbers(value, text):
    assert number_text(value) == text


def test_numbers_of_a_column_are_padded():
    assert [number_text(v, 3, pad=True) for v in (39.0, 0.5)] == ["39.0", "0.500"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1, "100 %"), (0.333, "33.3 %"), (0.0472, "4.72 %"), (3e-5, "0.003 %")],
)
def test_percent(share, text):
    assert percent_text(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.123, "0.12 s"),
        (0.999, "1.0 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min"),
        (125, "2 min 5 s"),
        (3599.9, "1 h"),
        (7260, "2 h 1 min"),
        (1e7, "116 days"),
    ],
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5m", 90), ("1h30m", 5400), ("2 min", 120), ("250ms", 0.25)],
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5x", "1h 30", "-5s", "0", "1e3s", "5s5", "inf"])
def test_what_is_not_a_duration(text):
    with pytest.raises(ValueError, match=r"not a duration|longer than zero"):
        parse_duration(text)


@pytest.mark.parametrize("reason", list(StopReason))
@pytest.mark.parametrize("rediscoveries", [0, 1])
def test_every_reason_has_a_sentence_of_its_own(reason, rediscoveries):
    def text(reason):
        return stop_text(reason, 500, 50, rediscoveries)

    assert text(reason).endswith(".")
    assert "for this reason" not in text(reason)
    # Files of earlier versions give "no_improvement" for what is "agreement" now.
    twins = {StopReason.AGREEMENT, StopReason.NO_IMPROVEMENT} if rediscoveries else set()
    others = [other for other in StopReason if other is not reason and not {reason, other} <= twins]
    assert text(reason) not in [text(other) for other in others]


def test_reasons_tell_the_numbers():
    assert "last 50 offspring brought no improvement" in stop_text("no_improvement", 500, 50, 0)
    assert "all 500 offspring allowed" in stop_text("max_offspring", 500, 50, 0)
    assert stop_text("max_time", 500, 1, 0).endswith("It was still improving.")
    assert stop_text("max_time", 0, 0, 0).endswith("so no solutions were combined.")
    assert stop_text("boredom", 500, 50, 0) == "The search ended for this reason: boredom."


def test_agreement_of_populations_is_the_reason():
    """With the default strategy, what ends a search is that others agree."""
    for reason in ("agreement", "no_improvement"):
        text = stop_text(reason, 500, 50, 1)
        assert text.endswith("because two independent starts led to the same best solution.")
        assert "3 independent starts" in stop_text(reason, 500, 50, 2)


def test_what_was_found_again_is_said_for_every_reason():
    assert "found again once" in stop_text("max_time", 500, 50, 1)
    assert "found again 2 times" in stop_text("interrupted", 500, 50, 2)
    assert "again" not in stop_text("max_time", 500, 50, 0)


def test_advice_only_where_more_time_could_help():
    assert "probably" in advice_text("max_time", 500, 5, 0)
    assert "might" in advice_text("max_offspring", 500, 490, 0)
    assert advice_text("max_offspring", 500, 490, 1) == ""
    assert advice_text("no_improvement", 500, 490, 0) == ""
    assert advice_text("proven_optimal", 500, 5, 0) == ""


@pytest.mark.parametrize(
    ("reason", "rediscoveries", "text"),
    [
        ("proven_optimal", 0, "proven optimal"),
        ("agreement", 1, "found again once, from independent starts"),
        ("agreement", 2, "found again twice, from independent starts"),
        ("max_time", 3, "found again 3 times, from independent starts"),
        ("max_time", 0, "the search was cut short before its best solution was found again"),
        ("no_improvement", 0, "not found again"),
    ],
)
def test_certainty_in_a_few_words(reason, rediscoveries, text):
    assert certainty_text(reason, rediscoveries) == text


def test_certainty_is_said_in_percent_rounded_down():
    assert certainty_text("agreement", 1, 0.9999) == (
        "99 %; found again once, from independent starts"
    )
    assert probability_text(0.957).startswith("It is 95 % certain that ")
    assert probability_text(1.0).startswith("It is 100 % certain")
    assert probability_text(math.nan) == ""


def test_packages_can_be_installed_from_a_clone_and_from_an_index():
    """Both commands, because the package may be in no index."""
    text = how_to_install("plot")
    assert "pip install '.[plot]'" in text
    assert "pip install 'evomeans[plot]'" in text
