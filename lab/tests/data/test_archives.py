"""Files inside downloaded ones."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import zipfile

import pytest

from lab.data import Dataset, MissingDataError, WrongContentsError
from lab.data.archives import find_member, read_parts
from lab.data.records import Member, Source

# Four letters a, as the program compress writes them.
AAAA_Z = b"\x1f\x9d\x90" + (97 | 257 << 9 | 97 << 18).to_bytes(4, "little")
needs_gzip = pytest.mark.skipif(not shutil.which("gzip"), reason="gzip is not installed")


def dataset(*members: Member) -> Dataset:
    source = Source("https://here", "https://here/file.zip", members)
    return Dataset("toy", "Toy", 1, 1, "A1", "nothing", source)


def archive(path, files):
    with zipfile.ZipFile(path, "w") as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return path


def test_members_in_the_order_of_the_registry(tmp_path):
    """Decompressed, from any folder of the archive."""
    files = {"b": b"B", "deep/a": b"A", "c.gz": gzip.compress(b"C")}
    path = archive(tmp_path / "file.zip", files)
    wanted = [Member("a"), Member("b"), Member("elsewhere/c.gz")]
    assert read_parts(path, dataset(*wanted)) == [b"A", b"B", b"C"]


@pytest.mark.parametrize("name", ["file.gz", "file.txt"])
def test_a_file_without_members(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"text") if name.endswith("gz") else b"text")
    assert read_parts(path, dataset()) == [b"text"]


@needs_gzip
def test_a_known_member_is_checked_after_decompression(tmp_path):
    path = archive(tmp_path / "file.zip", {"a.Z": AAAA_Z})
    right, wrong = (hashlib.sha256(text).hexdigest() for text in (b"aaaa", b"aaab"))
    assert read_parts(path, dataset(Member("a.Z", right))) == [b"aaaa"]
    with pytest.raises(WrongContentsError, match=f"a.Z in .*file.zip is not .* {wrong}"):
        read_parts(path, dataset(Member("a.Z", wrong)))


@pytest.mark.parametrize(
    ("content", "members"),
    [
        (b"<html>Moved</html>", [Member("a")]),
        (b"", [Member("a")]),
        (gzip.compress(b"text", mtime=0)[:-6], []),
        (b"plain", []),
    ],
    ids=["a page", "empty", "cut off", "plain"],
)
def test_damaged_archives_are_refused(tmp_path, content, members):
    """A page instead of an archive, half an archive: the error names the file and the address."""
    path = tmp_path / ("file.zip" if members else "file.gz")
    path.write_bytes(content)
    with pytest.raises(WrongContentsError, match=r"file\..* should give: .* downloaded again"):
        read_parts(path, dataset(*members))


@needs_gzip
@pytest.mark.parametrize("content", [b"", b"plain", b"\x1f\x9d\x94", AAAA_Z[:3] + b"\x2c\x01"])
def test_a_member_that_gzip_cannot_read(tmp_path, content):
    """Nothing, another format, and codes that are too wide or have no meaning yet."""
    path = archive(tmp_path / "file.zip", {"a.Z": content})
    with pytest.raises(
        WrongContentsError, match=r"file\.zip .* gzip cannot read a\.Z: .*downloaded"
    ):
        read_parts(path, dataset(Member("a.Z")))


def test_without_gzip_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = archive(tmp_path / "file.zip", {"a.Z": AAAA_Z})
    with pytest.raises(MissingDataError, match=r"a\.Z .* cannot be run here .* Install gzip"):
        read_parts(path, dataset(Member("a.Z")))


def test_damage_inside_an_archive(tmp_path):
    """Its own checksum tells."""
    path = archive(tmp_path / "file.zip", {"a": b"content"})
    path.write_bytes(path.read_bytes().replace(b"content", b"CONTENT"))
    with pytest.raises(WrongContentsError, match="Bad CRC-32"):
        read_parts(path, dataset(Member("a")))


@pytest.mark.parametrize(
    ("names", "wanted", "found"),
    [
        (["x/a", "a"], "a", "a"),
        (["x/a", "b"], "a", "x/a"),
        (["x/a", "b"], "y/a", "x/a"),
        (["a.Z"], "a", "a.Z"),
        (["a"], "a.Z", "a"),
    ],
)
def test_members_are_found_in_other_places(names, wanted, found):
    assert find_member(names, wanted) == found


@pytest.mark.parametrize("names", [[], ["b"], ["x/a", "y/a"]])
def test_members_that_are_not_there_or_not_clear(names):
    with pytest.raises(KeyError, match="no file a in the archive, which holds"):
        find_member(names, "a")
