"""Files of the program compress."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.data.lzw import decompress


class Compressor:
    """The encoder, as Welch (1984) describes it, with the groups of eight codes of compress."""

    def __init__(self, largest: int, clear_after: int | None) -> None:
        self.largest, self.clear_after = largest, clear_after
        self.output = bytearray(b"\x1f\x9d" + bytes([0x80 | largest]))
        self.codes: list[int] = []
        self.width = 9
        self.reset()

    def reset(self) -> None:
        self.table = {bytes([value]): value for value in range(256)}
        self.free = 257

    def flush(self, padded: bool) -> None:
        """Write the codes of a group, lowest bits first."""
        bits = sum(code << place * self.width for place, code in enumerate(self.codes))
        size = self.width if padded else -(-len(self.codes) * self.width // 8)
        if self.codes:
            self.output += bits.to_bytes(size, "little")
        self.codes = []

    def put(self, code: int) -> None:
        self.codes.append(code)
        if len(self.codes) == 8:
            self.flush(padded=True)

    def compress(self, content: bytes) -> bytes:
        word = b""
        for begin in range(len(content)):
            byte = content[begin : begin + 1]
            if word + byte in self.table:
                word += byte
                continue
            self.put(self.table[word])
            self.grow(word + byte)
            word = byte
        if word:
            self.put(self.table[word])
        self.flush(padded=False)
        return bytes(self.output)

    def grow(self, word: bytes) -> None:
        if self.free < 1 << self.largest:
            self.table[word] = self.free
            self.free += 1
            # The reader is one entry behind: it makes the codes wider after the next code.
            if self.free > 1 << self.width and self.width < self.largest:
                self.flush(padded=True)
                self.width += 1
        elif self.clear_after is not None:
            self.put(256)
            self.flush(padded=True)
            self.width = 9
            self.reset()


def compress(content: bytes, largest: int = 16, clear: bool = False) -> bytes:
    return Compressor(largest, 0 if clear else None).compress(content)


def varied(size: int) -> bytes:
    """Text with repetitions, as tables of numbers have them."""
    return b" ".join(b"%d" % (number * number % 977) for number in range(size))


def test_by_hand():
    """Four letters a are the codes 97, 257 (just being made when it is read) and 97."""
    bits = 97 | 257 << 9 | 97 << 18
    assert decompress(b"\x1f\x9d\x90" + bits.to_bytes(4, "little")) == b"aaaa"
    assert decompress(b"\x1f\x9d\x90") == b""


@given(st.binary(max_size=400), st.integers(10, 16), st.booleans())
@example(b"a" * 400, 10, True)
@example(varied(3000), 10, True)
@example(varied(3000), 10, False)
@example(varied(20_000), 12, True)
@example(varied(20_000), 16, False)
def test_what_was_compressed_comes_back(content, largest, clear):
    """All widths of codes, the table full or begun again."""
    assert decompress(compress(content, largest, clear)) == content


@pytest.mark.skipif(not shutil.which("gzip"), reason="gzip reads .Z files, and is not installed")
@pytest.mark.parametrize(("largest", "clear"), [(10, True), (12, False), (12, True), (16, False)])
def test_the_compressor_of_these_tests_makes_true_files(tmp_path, largest, clear):
    """The program gzip reads them, and gets the same."""
    content = varied(30_000)
    path = tmp_path / "file.Z"
    path.write_bytes(compress(content, largest, clear))
    command = ["gzip", "-dc", str(path)]
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).stdout == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no file of the program compress"),
        (b"PK\x03\x04", "no file of the program compress"),
        (b"\x1f\x9d\x94", "codes of 20 bits"),
        (b"\x1f\x9d\x90" + (300).to_bytes(2, "little"), "code 300 has no meaning"),
    ],
)
def test_what_is_no_such_file_is_refused(content, message):
    with pytest.raises(ValueError, match=message):
        decompress(content)
