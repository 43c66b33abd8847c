#!/usr/bin/python3
"""tools/unicode.py [> src/base/unicode.c]: what becomes of each character.

Follows BERT's normaliser through all of its steps, character by character:
what is no text goes, spaces of every kind are one, Chinese characters stand
alone, canonical decomposition, non-spacing marks go, lower case; and then says
whether what is left is punctuation. The facts are those of this Python's
unicodedata, whose version the file names. The result depends on nothing else.
"""
import unicodedata as ud

KEEP, DROP, SPACE, PUNCT, ALONE, GAP, HANGUL, MARK = range(8)
FIRST_SPELT = 8
LAST = 1 << 31
KIND_SHIFT = 24
BLOCK_SHIFT = 7

CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF),
           (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
           (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


def is_chinese(c):
    return any(low <= c <= high for low, high in CHINESE)


def is_punctuation(ch):
    if ch < "\x80":
        return ch.isprintable() and not ch.isalnum() and ch != " "
    return ud.category(ch).startswith("P")


def lower(ch):
    """Of the letter alone: a sigma does not know whether it is the last."""
    return ch.lower() if ch != "\u03a3" else "\u03c3"


def kind_of(ch):
    if is_punctuation(ch):
        return PUNCT
    return MARK if ud.combining(ch) else KEEP


def spelling(c):
    """What is left of a character: its kind alone, or a list of (kind, char).
    """
    ch = chr(c)
    category = ud.category(ch)
    if c in (0, 0xFFFD) or 0xD800 <= c < 0xE000:
        return DROP
    if ch in "\t\n\r":
        return SPACE
    if category in ("Cc", "Cf", "Co"):
        return DROP
    if category in ("Zs", "Zl", "Zp"):
        return SPACE
    if 0xAC00 <= c < 0xAC00 + 11172:
        return HANGUL
    parts = ud.normalize("NFD", ch)
    left = [p for p in parts if ud.category(p) != "Mn"]
    if not left:
        return GAP if any(not ud.combining(p) for p in parts) else DROP
    # Anyone who reads the table orders marks within what is left, and must not
    # be fooled by something that was between them.
    assert all(ud.combining(p) for p in parts[1:]
               if kind_of(left[-1]) == MARK) and (
                   kind_of(left[0]) != MARK or parts[0] == left[0])
    if is_chinese(c):
        assert len(left) == 1 and kind_of(left[0]) == KEEP
        return [(ALONE, lower(left[0]))]
    spelt = [(kind_of(s), s) for p in left for s in lower(p)]
    assert len(spelt) == 1 or all(k != PUNCT for k, _ in spelt)
    return spelt


class Spellings:
    """Those that are not the character itself, each only once."""

    def __init__(self):
        self.pool = []
        self.places = {}

    def number(self, c, spelt):
        if not isinstance(spelt, list):
            return spelt
        if [s for _, s in spelt] == [chr(c)]:
            return spelt[0][0]
        words = tuple((kind << KIND_SHIFT) | ord(s) for kind, s in spelt)
        if words not in self.places:
            self.places[words] = len(self.pool)
            self.pool += words[:-1] + (words[-1] | LAST,)
        return FIRST_SPELT + self.places[words]


def blocks(numbers, shift):
    """Two stages: which block a character lies in, and the blocks."""
    size = 1 << shift
    index, stage = [], []
    places = {}
    for start in range(0, len(numbers), size):
        block = tuple(numbers[start:start + size])
        if block not in places:
            places[block] = len(places)
            stage += block
        index.append(places[block])
    return index, stage


def c_array(kind, name, values, form="%d"):
    lines, line = [], "   "
    for v in values:
        word = " " + form % v + ","
        if len(line) + len(word) > 79:
            lines.append(line)
            line = "   "
        line += word
    return "%s %s[%d] = {\n%s\n};\n" % (kind, name, len(values),
                                        "\n".join(lines + [line]))


def ascii_kinds(numbers, pool):
    """Per byte: the letter that it becomes, or what else it is."""
    out = []
    for c in range(256):
        n = numbers[c] if c < 128 else None
        if n is None:
            out.append("ASCII_NOT")
        elif n >= FIRST_SPELT:
            out.append(str(pool[n - FIRST_SPELT] & 0x7F))
        else:
            out.append({KEEP: str(c), DROP: "ASCII_DROP",
                        SPACE: "ASCII_SPACE", PUNCT: "ASCII_PUNCT"}[n])
    return out


def main():
    spellings = Spellings()
    numbers = [spellings.number(c, spelling(c)) for c in range(0x110000)]
    index, stage = blocks(numbers, BLOCK_SHIFT)
    assert max(index) < 1 << 8 and max(stage) < 1 << 16
    marks = [c for c in range(0x110000)
             if ud.combining(chr(c)) and ud.category(chr(c)) != "Mn"]
    print("/* Made by tools/unicode.py from Unicode %s. */" %
          ud.unidata_version)
    print('#include "base/unicode.h"\n\n/* clang-format off */')
    print(c_array("const uint8_t", "unicode_ascii",
                  ascii_kinds(numbers, spellings.pool), "%s"))
    print(c_array("const uint8_t", "unicode_blocks", index))
    print(c_array("const uint16_t", "unicode_stage", stage))
    print(c_array("const uint32_t", "unicode_spelt", spellings.pool, "0x%x"))
    print(c_array("const uint32_t", "unicode_marks",
                  [ud.combining(chr(c)) << KIND_SHIFT | c for c in marks],
                  "0x%x"))
    print("const unsigned unicode_n_marks = %d;" % len(marks))


if __name__ == "__main__":
    main()
