"""Files of the Unix program ``compress`` (``.Z``), in which some old data sets are kept.

The standard library cannot read them. The format is that of T. A. Welch, "A technique for
high-performance data compression", IEEE Computer 17(6), 8-19, 1984, with codes of 9 bits that
grow to at most 16.
"""

from __future__ import annotations

MAGIC = b"\x1f\x9d"
CLEAR = 256


def decompress(content: bytes) -> bytes:
    """Return what was compressed.

    Raises
    ------
    ValueError
        If the content is not of this format, or damaged.
    """
    if content[:2] != MAGIC or len(content) < 3:
        raise ValueError("This is no file of the program compress (.Z).")
    largest_width, with_clear = content[2] & 0x1F, bool(content[2] & 0x80)
    if not 9 <= largest_width <= 16:
        raise ValueError(f"This .Z file has codes of {largest_width} bits; expected 9 to 16.")
    table: list[bytes] = []
    _reset(table, with_clear)
    pieces: list[bytes] = []
    previous = b""
    width, begin = 9, 3
    while begin < len(content):
        # Codes come in groups of eight. The width changes between groups only: what is left of a
        # group when it changes is padding.
        codes = _group(content[begin : begin + width], width)
        begin += width
        for code in codes:
            if with_clear and code == CLEAR:
                _reset(table, with_clear)
                previous, width = b"", 9
                break
            if previous and len(table) < 1 << largest_width:
                # The code may be the one that is just being made: previous + its own first byte.
                entry = table[code] if code < len(table) else previous
                table.append(previous + entry[:1])
            if code >= len(table) or not (piece := table[code]):
                raise ValueError(f"The .Z file is damaged: code {code} has no meaning yet.")
            pieces.append(piece)
            previous = piece
            if len(table) >= 1 << width and width < largest_width:
                width += 1
                break
    return b"".join(pieces)


def _reset(table: list[bytes], with_clear: bool) -> None:
    table[:] = [bytes([value]) for value in range(256)]
    if with_clear:
        table.append(b"")


def _group(block: bytes, width: int) -> list[int]:
    """Cut up to ``width`` bytes into codes of ``width`` bits, lowest bits first."""
    bits = int.from_bytes(block, "little")
    mask = (1 << width) - 1
    return [bits >> shift & mask for shift in range(0, len(block) * 8 - width + 1, width)]
