"""The 29 data sets of the paper (section 4.1), and where each of them comes from.

Addresses are those that the repositories have today, written down from what public projects use;
none of them has been tried. What arrives is checked instead: by the digest of the 21 data sets that
were available, by the shape and a published value of the others. Where the SHA-256 of a file is
given without further words, the file was written again from the available samples and classes, and
has it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lab.data.cleaning import arff, counted, libsvm, numbers, records, sized, tsplib
from lab.data.digests import DIGESTS
from lab.data.errors import MissingDataError
from lab.data.records import Dataset, Member, Source

UCI = "https://archive.ics.uci.edu"
TSPLIB = "https://comopt.ifi.uni-heidelberg.de/software/TSPLIB95"
# The data folder of the paper's authors, at the commit that filled it.
AUTHORS = "https://github.com/danielgribel/hg-means"
AUTHORS_RAW = "https://raw.githubusercontent.com/danielgribel/hg-means"
AUTHORS_COMMIT = "671e5e2abdf1a1fc9cf08aeea736673a1e837f5b"


def _uci(number: int, name: str, *members: str | Member, sha256: str | None = None) -> Source:
    """Return the archive that the UCI Machine Learning Repository offers of a data set."""
    listed = tuple(Member(m) if isinstance(m, str) else m for m in members)
    archive = f"{UCI}/static/public/{number}/{name}.zip"
    return Source(f"{UCI}/dataset/{number}/{name}", archive, listed, sha256)


def _tsplib(name: str) -> Source:
    return Source(f"{TSPLIB}/tsp.html", f"{TSPLIB}/tsp/{name}.tsp.gz")


def _authors(name: str) -> Source:
    return Source(AUTHORS, f"{AUTHORS_RAW}/{AUTHORS_COMMIT}/data/{name}.txt")


NOTHING = "nothing"
CLASS = "the class is dropped"
BOTH = "training and test rows; the class is dropped"
COORDINATES = "only the coordinates"
VOTES = {"n": 1.0, "y": 2.0, "?": 3.0}

_LIST = (
    Dataset(
        *("german_towns", "German Towns", 59, 2, "A1", NOTHING),
        _authors("german"),
        sized,
        shipped=True,
    ),
    Dataset(
        *("bavaria1", "Bavaria Postal 1", 89, 3, "A1", NOTHING),
        _authors("bavaria1"),
        sized,
        shipped=True,
    ),
    Dataset(
        *("bavaria2", "Bavaria Postal 2", 89, 4, "A1", NOTHING),
        _authors("bavaria2"),
        sized,
        shipped=True,
    ),
    # The copy at UCI differs from Fisher's in two samples; scikit-learn's does not.
    Dataset(
        *("iris", "Fisher's Iris Plant", 150, 4, "A1"),
        "scikit-learn's own copy; the class is dropped",
    ),
    Dataset(
        *("liver", "Liver Disorders", 345, 6, "A2"),
        "the selector, the last column, is dropped",
        _uci(60, "liver+disorders", "bupa.data"),
        partial(numbers, delimiter=",", drop=[-1]),
    ),
    Dataset(
        *("heart", "Heart Disease", 297, 13, "A2"),
        "Cleveland, processed; the class and 6 incomplete rows are dropped",
        _uci(45, "heart+disease", "processed.cleveland.data"),
        partial(records, width=14, label=-1),
    ),
    Dataset(
        *("breast_cancer", "Breast Cancer", 683, 9, "A2"),
        "Wisconsin, original; the id, the class and 16 incomplete rows are dropped",
        _uci(15, "breast+cancer+wisconsin+original", "breast-cancer-wisconsin.data"),
        partial(records, width=11, drop=[0], label=-1),
    ),
    # No longer at UCI.
    Dataset(
        *("pima", "Pima Indians Diabetes", 768, 8, "A2", NOTHING),
        _authors("pima"),
        sized,
    ),
    Dataset(
        *("congressional_voting", "Congressional Voting", 435, 16, "A2"),
        "votes are coded n = 1, y = 2, ? = 3 as the authors do; the class is dropped",
        _uci(105, "congressional+voting+records", "house-votes-84.data"),
        partial(records, width=17, label=0, codes=VOTES),
    ),
    Dataset(
        *("ionosphere", "Ionosphere", 351, 34, "A2", CLASS),
        _uci(52, "ionosphere", "ionosphere.data"),
        partial(records, width=35, label=-1),
    ),
    Dataset(
        *("tsplib1060", "TSPLib1060", 1060, 2, "B", COORDINATES),
        _tsplib("u1060"),
        tsplib,
    ),
    Dataset(
        *("tsplib3038", "TSPLib3038", 3038, 2, "B", COORDINATES),
        _tsplib("pcb3038"),
        tsplib,
    ),
    Dataset(
        *("image_segmentation", "Image Segmentation", 2310, 19, "B", BOTH),
        _uci(50, "image+segmentation", "segmentation.data", "segmentation.test"),
        partial(records, width=20, label=0),
    ),
    Dataset(
        *("page_blocks", "Page Blocks", 5473, 10, "B", CLASS),
        _uci(78, "page+blocks+classification", "page-blocks.data.Z"),
        partial(numbers, label=-1),
    ),
    Dataset(
        *("pendigit", "Pendigit", 10992, 16, "B", BOTH),
        _uci(81, "pen+based+recognition+of+handwritten+digits", "pendigits.tra", "pendigits.tes"),
        partial(numbers, delimiter=",", label=-1),
    ),
    Dataset(
        *("letters", "Letters", 20000, 16, "B", CLASS),
        _uci(
            59,
            "letter+recognition",
            Member(
                "letter-recognition.data",
                "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
            ),
        ),
        partial(records, width=17, label=0),
    ),
    Dataset(
        *("d15112", "D15112", 15112, 2, "C", COORDINATES),
        _tsplib("d15112"),
        tsplib,
    ),
    Dataset(
        *("pla85900", "Pla85900", 85900, 2, "C", COORDINATES),
        _tsplib("pla85900"),
        tsplib,
    ),
    Dataset(
        *("eeg_eye_state", "EEG Eye State", 14980, 14, "C"),
        "the class is dropped, the few huge outliers stay",
        _uci(264, "eeg+eye+state", "EEG Eye State.arff"),
        partial(arff, label=-1),
    ),
    Dataset(
        *("shuttle", "Shuttle Control", 58000, 9, "C", BOTH),
        _uci(
            148,
            "statlog+shuttle",
            Member(
                "shuttle.trn.Z",
                "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",
            ),
            Member(
                "shuttle.tst",
                "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
            ),
        ),
        partial(numbers, label=-1),
    ),
    Dataset(
        *("skin", "Skin Segmentation", 245057, 3, "C", CLASS),
        _uci(
            229,
            "skin+segmentation",
            Member(
                "Skin_NonSkin.txt",
                "e30c0a845385dcc95a45c45ed263465674a49638e98ef740afd520769c7714a4",
            ),
        ),
        partial(numbers, label=-1),
    ),
    Dataset(
        *("kegg", "KEGG Metabolic Relation", 53413, 20, "C", "not known"),
        _uci(
            220,
            "kegg+metabolic+relation+network+directed",
            "Relation Network (Directed).data",
        ),
        missing="nobody has written down which 20 of the 24 columns and 53,413 of the 53,414 rows "
        "at UCI the paper takes, and no objective is published to try with",
    ),
    Dataset(
        *("road3d", "3D Road Network", 434874, 3, "C"),
        "the id of the road is dropped; longitude, latitude and altitude stay",
        _uci(246, "3d+road+network+north+jutland+denmark", "3D_spatial_network.txt"),
        partial(numbers, delimiter=",", drop=[0]),
        value_of_2=4.913298e7,
    ),
    Dataset(
        *("gas_sensor", "Gas Sensor", 13910, 128, "C"),
        "batches 1 to 10; the class and the concentration are dropped",
        _uci(
            224,
            "gas+sensor+array+drift+dataset",
            *(f"Dataset/batch{batch}.dat" for batch in range(1, 11)),
        ),
        partial(libsvm, n_features=128),
        value_of_2=7.91186e13,
    ),
    Dataset(
        *("online_news", "Online News Popularity", 39644, 58, "C"),
        "url, timedelta and the number of shares are dropped",
        _uci(
            332,
            "online+news+popularity",
            "OnlineNewsPopularity/OnlineNewsPopularity.csv",
            # As two independent public projects have written it down.
            sha256="dba2ae526f62ccef6f2f8efb53b0268319f4d0d2719bb98d88958cfe31d58a22",
        ),
        partial(records, width=61, drop=[0, 1, 60]),
        value_of_2=9.53913e14,
    ),
    Dataset(
        *("sensorless", "Sensorless Drive Diagnosis", 58509, 48, "C", CLASS),
        _uci(325, "dataset+for+sensorless+drive+diagnosis", "Sensorless_drive_diagnosis.txt"),
        partial(numbers, label=-1),
        value_of_2=3.88116e7,
    ),
    Dataset(
        *("isolet", "Isolet", 7797, 617, "C"),
        "all five groups of speakers; the class is dropped",
        _uci(54, "isolet", "isolet1+2+3+4.data.Z", "isolet5.data.Z"),
        partial(numbers, delimiter=",", label=-1),
        value_of_2=7.2194e5,
    ),
    Dataset(
        *("miniboone", "MiniBooNE", 130064, 50, "C"),
        "the first line, with the sizes of the classes, is dropped",
        _uci(199, "miniboone+particle+identification", "MiniBooNE_PID.txt"),
        counted,
    ),
    Dataset(
        *("gisette", "Gisette", 13500, 5000, "C", "training, validation and test rows"),
        _uci(
            170,
            "gisette",
            "GISETTE/gisette_train.data",
            "GISETTE/gisette_valid.data",
            "GISETTE/gisette_test.data",
        ),
        numbers,
    ),
)

DATASETS: tuple[Dataset, ...] = tuple(
    replace(dataset, digest=DIGESTS.get(dataset.name)) for dataset in _LIST
)
"""All data sets, in the order of Table 1."""

PARTIAL: tuple[str, ...] = (
    "partial_gas_sensor",
    "partial_isolet",
    "partial_kegg",
    "partial_online_news",
)
"""Incomplete or altered copies of missing ones: workloads, never to be compared with the paper."""

_BY_NAME = {dataset.name: dataset for dataset in DATASETS}


def is_listed(name: str) -> bool:
    """Tell whether a name is that of a data set of the paper."""
    return name in _BY_NAME


def dataset_named(name: str) -> Dataset:
    """Return a data set of the paper by its name."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in PARTIAL:
        raise MissingDataError(
            f"{name} is an incomplete or altered copy: a workload, not a data set of the paper, "
            "and there is nothing to compare it with."
        )
    raise MissingDataError(
        f"There is no data set {name!r}; those of the paper are {', '.join(_BY_NAME)}."
    )
