"""Texts to try a tokeniser with, from a seeded generator: some that people
would write, most that they would not."""
import functools
import random
import unicodedata as ud

SPACES = [c for c in range(0x110000)
          if ud.category(chr(c)) in ("Zs", "Zl", "Zp")] + [9, 10, 11, 12, 13]
CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x180E, 0xFEFF,
            *range(0x200B, 0x2010), *range(0x202A, 0x202F),
            *range(0x2060, 0x2070), *range(0xFFF9, 0xFFFE), 0xE0001,
            *range(0xE0020, 0xE0030)]
EMOJI = ("\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f "
         "\U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea 1\ufe0f\u20e3 "
         "\U0001f3f4\U000e0067\U000e0062\U000e007f \u261d\U0001f3ff").split()
FIXED = [
    "", " ", "\0", "a\0b", "\ufffd", "\ufeffbom", "\u200b", "\u0301",
    "\u0130STANBUL I\u0307 \u0131 \u0049\u0328\u0307", "\u03a3 \u039f\u03a3 "
    "\u03a3\u0391\u03a3. \u03c2", "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06",
    "\u00df\u1e9e\u017f", "\u01c4\u01c5\u01c6 \u0132", "\u212b\u2126\u212a",
    "\u2260\u226e\u226f \u037e \u0387 \u1fef", "\ue000\uf8ff\U000f0000",
    "[CLS] [SEP] [MASK] [PAD] [UNK] [unused0]", "##ing ## #", "can't won't",
    "e\u0301\u0302\u0303\u0304 \u1ea4 \u01d5", "\u0e01\u0e33\u0e31 \u0e40",
    "\u0915\u094d\u0937\u093f", "\u1100\u1161\u11a8 \uac01 \u3131\u3163",
    "\u3042\u30ac\u304b\u3099\uff76\uff9e \u30fc\u3001\u3002", "\u2f00\u2e80",
    "\uf900\ufa0e\U0002f800\U00020000\U0002b81f\U0002b820\U0002cea1", "\u3005",
    "\u202eabc\u202c \u2066d\u2069 \u200f\u05d0", "\u05e9\u05bc\u05c1",
    "\u0627\u0644\u0639\u064e", "x\u302e\u1b44\u302f\u0301\u1b44 \U0001d15e",
    "https://example.org/?q=1&r=%20#top", "user@host.example", "C:\\dir\\f.txt",
    "{\"a\":[1,2.5e-3,null]}", "3.14 1,000 1/2 \u00bd \u00b2 \u2160 \u0664",
    "\U0001d400\U0001d4d0 \uff21\uff42\uff11", "\u20ac5 $5 \u00a35 5\u00b0",
    "a\u00a0b\u2003c\u3000d", "...\u2026!?\u00bf\u00a1\u2014\u2013-_", "\x7f",
]


@functools.cache
def by_category():
    """All that are assigned, by the first letter of their category."""
    by = {}
    for c in range(0x110000):
        category = ud.category(chr(c))
        if category not in ("Cn", "Cs"):
            by.setdefault(category[0], []).append(c)
    return by


class Texts:
    def __init__(self, seed, pieces, without=frozenset()):
        self.random = random.Random(seed)
        self.pieces = [p.removeprefix("##") for p in pieces]
        by = {category: [c for c in all_of if c not in without]
              for category, all_of in by_category().items()}
        self.letters, self.marks = by["L"], by["M"]
        self.latin = [c for c in by["L"] if c < 0x250 or 0x1E00 <= c < 0x2000]
        self.other = by["N"] + by["P"] + by["S"] + by["Z"] + by["C"]

    def chars(self, pool, low, high):
        n = self.random.randint(low, high)
        return "".join(chr(c) for c in self.random.choices(pool, k=n))

    def piece(self):
        return self.random.choice(self.pieces)

    def word(self):
        """One or more pieces of the vocabulary, in some writing."""
        word = "".join(self.piece() for _ in range(
            self.random.choice((1, 1, 1, 2, 2, 3, 5))))
        return self.random.choice((str, str, str.title, str.upper))(word)

    def sentence(self):
        words = (self.word() for _ in range(self.random.randint(1, 20)))
        return " ".join(words) + self.random.choice(("", ".", "?", "!\n"))

    def glued(self):
        """Without spaces, with what should and should not part."""
        between = ("", "", "-", "\u200d", "\u00ad", "\u0301", "\u4e00", "'")
        return "".join(self.piece() + self.random.choice(between)
                       for _ in range(self.random.randint(1, 12)))

    def accented(self):
        return "".join(chr(c) + self.chars(self.marks, 0, 3)
                       for c in self.random.choices(self.latin, k=20))

    def anything(self):
        pools = (self.letters, self.marks, self.other, self.latin, SPACES,
                 CONTROLS)
        return "".join(self.chars(self.random.choice(pools), 0, 6)
                       for _ in range(self.random.randint(1, 15)))

    def east(self):
        pools = (range(0x4E00, 0xA000), range(0xAC00, 0xD7A4),
                 range(0x3040, 0x3100), range(0x20, 0x7F), range(0xF900, 0xFA6E))
        return "".join(self.chars(self.random.choice(pools), 1, 5)
                       for _ in range(8))

    def emoji(self):
        return "".join(self.random.choice(EMOJI) +
                       self.random.choice(("", " ", "\u200d", self.piece()))
                       for _ in range(self.random.randint(1, 8)))

    def long(self):
        """Around the limit of a word, or far beyond."""
        unit = self.random.choice((
            "a", "A", "\u00e9", "\u00df", "\U0001f600", "\ud55c", "\uac00",
            "e\u0301", "\u302e", "x\u00ad", self.piece(), "\U0001d15e"))
        n = self.random.choice((33, 34, 49, 50, 51, 99, 100, 101, 102, 1000))
        return self.piece() + " " + unit * n + self.random.choice(
            ("", ".", " ", "\u0301")) + self.piece()

    def bytes(self):
        """Not only UTF-8: some bytes have been changed, or cut off."""
        raw = bytearray(self.random.choice((self.sentence, self.accented,
                                            self.east, self.emoji))().encode())
        for _ in range(self.random.randint(1, 5)):
            raw[self.random.randrange(len(raw))] = self.random.randrange(256)
        return bytes(raw[:self.random.randint(1, len(raw))])

    def some(self, n):
        kinds = (self.sentence, self.sentence, self.glued, self.accented,
                 self.anything, self.anything, self.east, self.emoji,
                 self.long)
        yield from FIXED[:n]
        for i in range(n - len(FIXED)):
            yield kinds[i % len(kinds)]()
