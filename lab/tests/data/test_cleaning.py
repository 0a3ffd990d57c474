"""Cleaners, each on a small excerpt in the format of the true file."""

from __future__ import annotations

import numpy as np
import pytest

from lab.data import WrongContentsError
from lab.data.cleaning import arff, counted, libsvm, numbers, records, sized, tsplib
from lab.data.registry import dataset_named


def clean(name: str, *parts: bytes):
    """Clean as the registry says."""
    cleaner = dataset_named(name).clean
    assert cleaner is not None
    return cleaner(parts)


def widened(row: str, width: int, delimiter: str) -> bytes:
    """Repeat the first field, so that an excerpt has the true number of columns."""
    fields = row.split(delimiter)
    return delimiter.join([fields[0]] * (width - len(fields)) + fields).encode() + b"\n"


# (data set, files, samples, classes)
EXCERPTS = [
    (
        "liver",
        [b"85,92,45,27,31,0.5,1\r\n86,54,33,16,54,10.0,2\r\n\r\n"],
        [[85, 92, 45, 27, 31, 0.5], [86, 54, 33, 16, 54, 10]],
        None,
    ),
    (
        "heart",
        [
            b"63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n"
            b"43.0,1.0,4.0,132.0,247.0,1.0,2.0,143.0,1.0,0.1,2.0,?,7.0,1\n"
            b"67.0,1.0,4.0,160.0,286.0,0.0,2.0,108.0,1.0,1.5,2.0,3.0,3.0,2\n"
        ],
        [
            [63, 1, 1, 145, 233, 1, 2, 150, 0, 2.3, 3, 0, 6],
            [67, 1, 4, 160, 286, 0, 2, 108, 1, 1.5, 2, 3, 3],
        ],
        [0, 1],
    ),
    (
        "breast_cancer",
        [
            b"1000025,5,1,1,1,2,1,3,1,1,2\n1057013,8,4,5,1,2,?,7,3,1,4\n1002945,5,4,4,5,7,10,3,2,1,4\n"
        ],
        [[5, 1, 1, 1, 2, 1, 3, 1, 1], [5, 4, 4, 5, 7, 10, 3, 2, 1]],
        [0, 1],
    ),
    (
        "pima",
        [b"2 8\n6 148 72 35 0 33.6 0.627 50\n1 85 66 29 0 26.6 0.351 31\n"],
        [[6, 148, 72, 35, 0, 33.6, 0.627, 50], [1, 85, 66, 29, 0, 26.6, 0.351, 31]],
        None,
    ),
    (
        "congressional_voting",
        [b"republican,n,y,n,y,y,y,n,n,n,y,?,y,y,y,n,y\ndemocrat,?,y,y,?,y,y,n,n,n,n,y,n,y,y,n,n\n"],
        [
            [1, 2, 1, 2, 2, 2, 1, 1, 1, 2, 3, 2, 2, 2, 1, 2],
            [3, 2, 2, 3, 2, 2, 1, 1, 1, 1, 2, 1, 2, 2, 1, 1],
        ],
        [1, 0],
    ),
    (
        "ionosphere",
        [widened("1,0,0.99539,-0.05889,g", 35, ",") + widened("0,0,-1,0.00000,b", 35, ",")],
        [[1] * 30 + [1, 0, 0.99539, -0.05889], [0] * 30 + [0, 0, -1, 0]],
        [1, 0],
    ),
    (
        "tsplib1060",
        [
            b"NAME : u1060\nCOMMENT : Drilling problem (Reinelt)\nTYPE : TSP\nDIMENSION : 2\n"
            b"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
            b"1 4.00320e+03 2.99790e+03\n2 3.60288e+03 2.49825e+03\nEOF\n"
        ],
        [[4003.2, 2997.9], [3602.88, 2498.25]],
        None,
    ),
    (
        "image_segmentation",
        [
            b"BRICKFACE,SKY,FOLIAGE\n\nREGION-CENTROID-COL,REGION-CENTROID-ROW\n\n\n"
            b"SKY,140.0,125.0,9,0.0,0.0,0.27,0.06,0.6,0.3,6.1,7,8,3.5,3.4,4.4,-7.8,7.7,0.5,-1.1\n",
            b"PATH\n\nGRASS,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19.5\n",
        ],
        [
            [
                140,
                125,
                9,
                0,
                0,
                0.27,
                0.06,
                0.6,
                0.3,
                6.1,
                7,
                8,
                3.5,
                3.4,
                4.4,
                -7.8,
                7.7,
                0.5,
                -1.1,
            ],
            [*range(1, 19), 19.5],
        ],
        [1, 0],
    ),
    (
        "page_blocks",
        [
            b"   5    7    35  1.400  .400  .657  2.33   14    23     6 1\n"
            b"   6    7    42  1.167  .429  .881  3.60   18    37     5 2\n"
        ],
        [
            [5, 7, 35, 1.4, 0.4, 0.657, 2.33, 14, 23, 6],
            [6, 7, 42, 1.167, 0.429, 0.881, 3.6, 18, 37, 5],
        ],
        [0, 1],
    ),
    (
        "pendigit",
        [
            b" 47,100, 27, 81, 57, 37, 26,  0,  0, 23, 56, 53,100, 90, 40, 98, 8\n",
            b"  0, 89, 27,100, 42, 75, 29, 45, 15, 15, 37,  0, 69,  2,100,  6, 2\n",
        ],
        [
            [47, 100, 27, 81, 57, 37, 26, 0, 0, 23, 56, 53, 100, 90, 40, 98],
            [0, 89, 27, 100, 42, 75, 29, 45, 15, 15, 37, 0, 69, 2, 100, 6],
        ],
        [1, 0],
    ),
    (
        "letters",
        [b"T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\nI,5,12,3,7,2,10,5,5,4,13,3,9,2,8,4,10\n"],
        [
            [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8],
            [5, 12, 3, 7, 2, 10, 5, 5, 4, 13, 3, 9, 2, 8, 4, 10],
        ],
        [1, 0],
    ),
    (
        "eeg_eye_state",
        [
            b"@RELATION EEG_DATA\n\n@ATTRIBUTE AF3 NUMERIC\n@ATTRIBUTE eye {0,1}\n\n@DATA\n"
            + widened("4329.23,4393.85,0", 15, ",")
            + widened("4324.62,4384.10,1", 15, ",")
        ],
        [[4329.23] * 13 + [4393.85], [4324.62] * 13 + [4384.1]],
        [0, 1],
    ),
    (
        "shuttle",
        [
            b"50 21 77 0 28 0 27 48 22 2\n55 0 92 0 0 26 36 92 56 4\n",
            b"53 0 82 0 52 -5 29 30 2 1\n",
        ],
        [
            [50, 21, 77, 0, 28, 0, 27, 48, 22],
            [55, 0, 92, 0, 0, 26, 36, 92, 56],
            [53, 0, 82, 0, 52, -5, 29, 30, 2],
        ],
        [1, 2, 0],
    ),
    (
        "skin",
        [b"74\t85\t123\t1\r\n73\t84\t122\t2\r\n"],
        [[74, 85, 123], [73, 84, 122]],
        [0, 1],
    ),
    (
        "road3d",
        [b"144552912,9.3498486,56.7408757,17.0527715677876\n144552912,9.35,56.74,17.61\n"],
        [[9.3498486, 56.7408757, 17.0527715677876], [9.35, 56.74, 17.61]],
        None,
    ),
    (
        "gas_sensor",
        [
            ("2;10.5 " + " ".join(f"{i}:{i / 8}" for i in range(1, 129)) + " \n").encode(),
            *[("1 " + " ".join(f"{i}:1e3" for i in range(1, 129)) + "\n").encode()],
        ],
        [[i / 8 for i in range(1, 129)], [1000.0] * 128],
        [1, 0],
    ),
    (
        "online_news",
        [
            ("url, timedelta, " + ", ".join(f"name_{i}" for i in range(58)) + ", shares\n").encode()
            + ("http://a.com/x/, 731.0, " + ", ".join(f"{i}.5" for i in range(58))).encode()
            + b", 593\n"
        ],
        [[i + 0.5 for i in range(58)]],
        None,
    ),
    (
        "sensorless",
        [widened("-3.0146e-07 8.2603e-06 11", 49, " ") + widened("2.9132e-06 -1.5 2", 49, " ")],
        [[-3.0146e-07] * 47 + [8.2603e-06], [2.9132e-06] * 47 + [-1.5]],
        [1, 0],
    ),
    (
        "isolet",
        [widened("-0.4394, 0.0930, 1.", 618, ", "), widened("0.0000, -1.0000, 26.", 618, ", ")],
        [[-0.4394] * 616 + [0.093], [0.0] * 616 + [-1.0]],
        [0, 1],
    ),
    (
        "miniboone",
        [
            b"     2     1\n"
            + widened("2.59413e+00 -0.999000E+03", 50, " ")
            + widened("3.86388e+00 0.5", 50, " ")
            + widened("1 2", 50, " ")
        ],
        [[2.59413] * 49 + [-999.0], [3.86388] * 49 + [0.5], [1] * 49 + [2]],
        [0, 0, 1],
    ),
    (
        "gisette",
        [widened("0 495 ", 5001, " "), widened("976 0 ", 5001, " "), widened("1 2 ", 5001, " ")],
        [[0] * 4999 + [495], [976] * 4999 + [0], [1] * 4999 + [2]],
        None,
    ),
]


@pytest.mark.parametrize(
    ("name", "parts", "samples", "classes"), EXCERPTS, ids=[e[0] for e in EXCERPTS]
)
def test_excerpts(name, parts, samples, classes):
    """Ids, classes and incomplete rows are dropped, words are coded, files are put together."""
    cleaned = clean(name, *parts)
    assert cleaned.X.dtype == np.float64
    assert cleaned.X.shape[1] == dataset_named(name).d
    np.testing.assert_array_equal(cleaned.X, np.array(samples, dtype=float))
    if classes is None:
        assert cleaned.y is None
    else:
        assert cleaned.y.tolist() == classes


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: numbers([b"1 2\n3 x\n"]), "Not a table of numbers"),
        (lambda: numbers([b"1 2\n3\n"]), "Not a table of numbers"),
        (lambda: numbers([b" \n"]), "it is empty"),
        (lambda: numbers([b"1 2\n", b"1 2 3\n"]), r"different numbers of columns: \[2, 3\]"),
        (lambda: records([b"1,2\n1,2,3\n"], width=2), "Line 2 .* 3 fields instead of 2"),
        (lambda: records([b"head\n1,2\n1,x\n"], width=2), "Line 3 .* could not convert"),
        (lambda: records([b"y,n\ny,z\n"], width=2, codes={"n": 1, "y": 2}), "'z' is none of n, y"),
        (lambda: arff([b"@relation x\n1,2\n"]), "No line @DATA"),
        (lambda: libsvm([b"1 1:2 2:x\n"], n_features=2), "Line 1 is no row of data"),
        (lambda: libsvm([b"1 1:2 3:1\n"], n_features=2), "feature 3 of 2"),
        (lambda: libsvm([b"1 1:2 2:3\n\n1 1:2\n"], n_features=2), "Line 3 has 1 features instead"),
        (lambda: tsplib([b"DIMENSION: 1\n"]), "No NODE_COORD_SECTION"),
        (
            lambda: tsplib([b"DIMENSION: 3\nNODE_COORD_SECTION\n1 2 3\n2 3 4\nEOF\n"]),
            "2 nodes in a TSPLIB file of DIMENSION 3",
        ),
        (lambda: counted([b"2 2\n1 2\n3 4\n"]), r"2 rows, and the first line speaks of \[2, 2\]"),
        (lambda: sized([b"2 3\n1 2\n3 4\n"]), r"\(2, 2\), and the first line says \(2, 3\)"),
    ],
)
def test_damaged_files_are_refused(attempt, message):
    """With the line or the numbers that do not fit."""
    with pytest.raises(WrongContentsError, match=message):
        attempt()


def test_a_table_without_rows_has_its_columns():
    """All rows incomplete: shape (0, d), which no data set has."""
    assert records([b"?,1\n"], width=2).X.shape == (0, 2)


def test_a_missing_vote_without_a_code_drops_the_row():
    cleaned = records([b"y,n\ny,?\n"], width=2, codes={"n": 1, "y": 2})
    assert cleaned.X.tolist() == [[2, 1]]
