"""The static table: its file (src/embed/table.c), which rows a text has
(src/embed/builtin.c), and its vocabulary with words of other languages."""
import hashlib
import struct

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import encoder

DIMS = 256
BYTES_MAX = 16_000_000


class Table:
    def __init__(self, pieces, phrases, rows, unknown_scale):
        self.pieces, self.phrases = pieces, phrases
        self.rows, self.unknown_scale = rows, unknown_scale


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    _, _, n_words, n_phrases, n_sections = struct.unpack("<5I", raw[40:60])
    unknown_scale, = struct.unpack("<f", raw[60:64])
    parts = {}
    for i in range(n_sections):
        tag, at, n, _ = struct.unpack("<4sIII", raw[64 + 16 * i:80 + 16 * i])
        parts[tag] = raw[at:at + n]
    words = parts[b"WORD"]
    _, n, n_slots, n_text, _ = struct.unpack("<QIIII", words[:24])
    ends = np.frombuffer(words, "<u4", n, 24)
    text = words[24 + 4 * (n + n_slots):][:n_text]
    starts = np.concatenate(([0], ends[:-1]))
    pieces = [text[a:b].decode() for a, b in zip(starts, ends)]
    phrases = np.frombuffer(parts[b"PHRS"], "<u4", 2 * n_phrases).reshape(-1, 2)
    rows = np.frombuffer(parts[b"ROWS"], np.int8).reshape(-1, DIMS)
    scales = np.frombuffer(parts[b"SCAL"], "<f4")
    assert len(pieces) == n_words
    return Table(pieces, phrases.copy(),
                 rows.astype(np.float32) * scales[:, None], unknown_scale)


def phrase_slots(phrases):
    n_slots = 2 if len(phrases) else 0
    while n_slots < 2 * len(phrases):
        n_slots *= 2
    slots = [0] * n_slots
    for i, (a, b) in enumerate(phrases.tolist()):
        x = ((a << 32 | b) * 0x9e3779b97f4a7c15) & 0xffffffffffffffff
        x = ((x ^ x >> 32) * 0xd6e8feb86659fd93) & 0xffffffffffffffff
        h = x >> 32
        at = h & (n_slots - 1)
        while slots[at]:
            at = (at + 1) & (n_slots - 1)
        slots[at] = (h & 0xffff0000) | (i + 1)
    return np.array(slots, "<u4")


def sbt(table):
    """The bytes of a table file."""
    q, scales = encoder.as_bytes(table.rows)
    sections = ((b"WORD", encoder.vocabulary(table.pieces)),
                (b"PHRS", table.phrases.astype("<u4").tobytes()
                 + phrase_slots(table.phrases).tobytes()),
                (b"ROWS", q.tobytes()),
                (b"SCAL", scales.astype("<f4").tobytes()))
    body, at, listed = b"", 128, b""
    for tag, part in sections:
        pad = -(at + len(body)) % 64
        body += bytes(pad)
        listed += struct.pack("<4sIII", tag, at + len(body), len(part), 0)
        body += part
    rest = struct.pack("<5If", 1, DIMS, len(table.pieces), len(table.phrases),
                       4, table.unknown_scale) + listed + body
    out = b"SBTABLE\n" + hashlib.sha256(rest).digest() + rest
    assert len(out) <= BYTES_MAX, len(out)
    return out


def cutter(pieces):
    """Cuts texts as the server does; a word with a character that no piece
    has is one unknown here, and its characters are unknown there."""
    t = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)},
                                   unk_token="[UNK]",
                                   max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return t


class Finder:
    """Texts -> flat numbers of rows, and where each text begins."""

    def __init__(self, table):
        self.pieces = list(table.pieces)
        if "[UNK]" not in self.pieces:
            self.pieces.append("[UNK]")  # never a row
        self.cut = cutter(self.pieces)
        self.unknown = self.pieces.index("[UNK]")
        self.n_words = len(table.pieces)
        self.inside = np.array([p.startswith("##") and len(p) > 2
                                for p in self.pieces])
        keys = (table.phrases[:, 0].astype(np.int64) << 32
                | table.phrases[:, 1].astype(np.int64))
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def rows(self, texts):
        out, starts, at = [], [0], 0
        for e in self.cut.encode_batch(texts, add_special_tokens=False):
            ids = np.array(e.ids[:400], np.int64)
            if len(ids):
                is_in = self.inside[ids]
                single = ~is_in & ~np.append(is_in[1:], False) & (
                    ids != self.unknown)
                both = single[:-1] & single[1:]
                keys = (ids[:-1] << 32 | ids[1:])[both]
                ids = ids[ids != self.unknown]
                if len(keys) and len(self.keys):
                    p = np.searchsorted(self.keys, keys)
                    p[p == len(self.keys)] = 0
                    hit = self.keys[p] == keys
                    ids = np.concatenate(
                        (ids, self.n_words + self.order[p[hit]]))
            ids = ids[:512]
            out.append(ids.astype(np.int32))
            at += len(ids)
            starts.append(at)
        return (np.concatenate(out) if out else np.zeros(0, np.int32),
                np.array(starts, np.int64))
