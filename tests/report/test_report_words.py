"""Numbers and reasons in words."""

from __future__ import annotations

import pytest

from evomeans import StopReason
from evomeans.report.words import (
    advice_text,
    counted,
    duration_text,
    number_text,
    percent_text,
    stop_text,
)


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (78.85144, "78.8514"),
        (-0.5, "-0.5"),
        (27_090_238.4, "27,090,238"),
        (1234.5, "1,234.5"),
        (0.000123456789, "0.000123457"),
        (1.5e-7, "1.5 × 10⁻⁷"),
        (4.93e12, "4.93 × 10¹²"),
    ],
)
def test_numbers(value, text):
    assert plain(number_text(value)) == text


def test_numbers_of_a_column_are_padded():
    assert [number_text(v, 3, pad=True) for v in (39.0, 0.5)] == ["39.0", "0.500"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1, "100 %"), (0.333, "33.3 %"), (0.0472, "4.72 %"), (3e-5, "0.003 %")],
)
def test_percent(share, text):
    assert plain(percent_text(share)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.123, "0.12 s"),
        (12.34, "12.3 s"),
        (59.99, "1 min"),
        (200, "3 min 20 s"),
        (3900, "1 h 5 min"),
        (7200, "2 h"),
    ],
)
def test_durations(seconds, text):
    assert plain(duration_text(seconds)) == text


def test_counts():
    assert [counted(1, "column"), counted(1024, "column")] == ["1 column", "1,024 columns"]


RUN = {"n_offspring": 500, "last_improvement": 450}


@pytest.mark.parametrize("reason", list(StopReason))
def test_every_reason_has_a_sentence_of_its_own(reason):
    text = stop_text(reason, RUN)
    assert text.endswith(".")
    assert "for this reason" not in text
    assert text not in [stop_text(other, RUN) for other in StopReason if other is not reason]


def test_reasons_tell_the_numbers():
    assert "the last 50 offspring brought no improvement" in stop_text("no_improvement", RUN)
    assert "made the 500 offspring" in stop_text("max_iter", RUN)
    assert stop_text("boredom", RUN) == "The search ended for this reason: boredom."


def test_advice_only_where_more_time_could_help():
    late = {"n_offspring": 500, "last_improvement": 495}
    early = {"n_offspring": 500, "last_improvement": 10}
    assert "still improving" in advice_text("max_time", late)
    assert "might" in advice_text("max_iter", early)
    assert advice_text("no_improvement", early) == ""
    assert advice_text("proven_optimal", late) == ""
