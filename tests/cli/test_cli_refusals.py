"""What cannot be done: an exit code, a text that says why, nothing written, nothing printed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

FIT = "fit blobs.csv -k 3 --exclude name,w"
PATH = "path blobs.csv --exclude name,w"
USAGE = [
    ("frobnicate", "Unknown command"),
    ("fit", "evomeans: evomeans fit needs TABLE"),
    ("fit blobs.csv", "How many clusters? Add -k 8, or let `evomeans path TABLE -k 2:20` suggest"),
    ("path blobs.csv", "evomeans: How many clusters? Add a range: -k 2:20."),
    ("fit blobs.csv -k 0", "Must be >= 1"),
    ("fit blobs.csv -k two", "'two' is not a whole number"),
    ("fit --bogus -k 3", "unknown option --bogus"),
    (f"{FIT} --seed 2.0", "'2.0' is not a whole number"),
    (f"{FIT} --colums b", "Did you mean --columns"),
    (f"{FIT} --engine dask", 'Invalid value "dask" for --engine'),
    (f"{FIT} --jobs 0", "--jobs. Must be positive, or -1"),
    ("predict out blobs.csv --jobs 0", "--jobs. Must be positive, or -1"),
    (f"{FIT} --max-time soon", "is not a duration"),
    (f"{FIT} --min-population 30", "at least min_population=30"),
    (f"{FIT} --subsample some", "is neither a number of rows, nor auto, nor all"),
    (f"{FIT} --columns b", "cannot be given together"),
    (f"{FIT} --separator ::", "a single character"),
    (f"{FIT} --format xml", 'Invalid value "xml" for --format'),
    (f"{FIT} --resume", "--resume needs"),
    ("fit blobs.csv -k 3 --columns c", "It has 'name', 'größe (m)', 'b'"),
    ("fit blobs.csv -k 3 --columns '\"b'", "cannot be split into names"),
    (f"{PATH} -k 5:2", "is empty"),
    (f"{PATH} -k two", "must be like 2:20"),
    (f"{PATH} -k 0:3", "at least 1"),
    (f"{PATH} -k 2:4 --criteria elbow", "criterion 'elbow' is unknown"),
    (f"{PATH} -k 2:4 --select best", "criterion 'best' is unknown"),
    (f"{PATH} -k 1:1", "is not defined for k=1"),
    (f"{FIT} --metric cosine --outliers 3", "--outliers and --metric cannot be given"),
    (f"{FIT} --size-max ten", "is not a whole number, nor 'balanced'"),
    (f"{FIT} --outliers most", "is neither a number of rows nor a share"),
    (f"{FIT} --penalty 2", "--penalty is for pairs"),
    (f"{FIT} --size-max 30 --engine reference", "--engine reference is for plain k-means"),
    ("predict out blobs.csv --columns b,w", "names 'b' and 'w', and the model has 'größe (m)' and"),
    ("predict out blobs.csv --columns b", "names 'b', and the model"),
    ("predict out blobs.csv --exclude b", "--exclude names columns of the model: 'b'."),
    ("certify out blobs.csv --gap=2", "Must be < 1"),
    ("certify out blobs.csv --method=magic", 'Invalid value "magic" for --method'),
]
DATA = [
    ("fit none.csv -k 3", "There is no file none.csv"),
    ("fit out -k 3", "out is a folder; the command line reads single files"),
    ("fit blobs.csv -k 3", "'name': text in all rows"),
    ("fit huge.csv -k 1", "value of size 1e+301"),
    ("fit zero.csv -k 1 --weights w", "must not be all zero"),
    ("fit blobs.csv -k 61 --id name", "60 rows, too few for 61 clusters"),
    (f"{PATH} -k 2:1000000000000", "60 rows, too few for 1,000,000,000,000 clusters"),
    (f"{FIT} -o blobs.csv", "is a file"),
    (f"{FIT} -o blobs.csv/new", "be created in"),
    (f"{FIT} --checkpoint no/c", "no folder for"),
    (f"{FIT} --size-max 10", "3 clusters of size_max hold 30 samples, and X has 60"),
    (f"{FIT} --size-min -1", "size_min=-1 must not be negative"),
    (f"{FIT} --outliers 1.5", "n_outliers=1.5 must be a share"),
    (f"{FIT} --must-link nowhere.csv", "There is no file nowhere.csv"),
    ("predict nothing blobs.csv", "There is no model nothing"),
    ("predict blobs.csv blobs.csv", "not a valid model file"),
    ("predict . blobs.csv", "is not a run of evomeans"),
    ("predict out renamed.csv", "The model names a column that renamed.csv does not have"),
    ("predict out wide.npy", "3 columns and the model 2"),
    ("predict out blobs.csv -o blobs.csv", "replace it with --force"),
    ("certify nowhere blobs.csv", "There is no folder nowhere"),
    ("certify out renamed.csv", "does not have: 'größe (m)'"),
    ("verify out blobs.csv", "There is no certificate out/certificate.evomeans"),
    ("verify nowhere blobs.csv", "There is no certificate nowhere"),
]
if sys.platform == "linux":
    DATA += [(f"{FIT} -o /proc/x", "/proc/x cannot be written: no file can be created in /proc")]


@pytest.mark.parametrize(
    ("code", "command", "text"),
    [(2, *one) for one in USAGE] + [(1, *one) for one in DATA],
    ids=[command for command, _ in USAGE + DATA],
)
def test_refusals(evomeans, run, code, command, text):
    Path("huge.csv").write_text("a\n1e301\n1\n")
    Path("zero.csv").write_text("a,w\n1,0\n2,0\n")
    Path("renamed.csv").write_text("größe,b\n1,2\n", encoding="utf-8")
    np.save("wide.npy", np.zeros((60, 3)))
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    result = evomeans(*shlex.split(command))
    told = " ".join(result.err.split())
    assert (result.code, result.out) == (code, ""), told
    assert told.startswith("evomeans: ")
    assert text in told
    assert "Errno" not in told
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
