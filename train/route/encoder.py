"""all-MiniLM-L6-v2 and what is cut out of it, in plain PyTorch; and the file
that the server reads (src/embed/transformer/minilm.h has its layout)."""
import hashlib
import json
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HEAD = 32
POSITIONS = 256


class Layer(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.query, self.key, self.value, self.out = (
            nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.out_norm = nn.LayerNorm(width, eps=1e-12)
        self.down_norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        b, n, width = x.shape
        q, k, v = (f(x).view(b, n, width // HEAD, HEAD).transpose(1, 2)
                   for f in (self.query, self.key, self.value))
        if hasattr(F, "scaled_dot_product_attention"):
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            s = (q @ k.transpose(2, 3)) / HEAD ** .5
            a = s.masked_fill(~mask, -1e9).softmax(-1) @ v
        a = a.transpose(1, 2).reshape(b, n, width)
        x = self.out_norm(x + self.out(a))
        return self.down_norm(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, n_words, n_layers, width=384, inner=1536, first=False):
        """first: a text is what its first piece says, not the mean of all."""
        super().__init__()
        self.first = first
        self.words = nn.Embedding(n_words, width, padding_idx=0)
        self.positions = nn.Embedding(POSITIONS, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, inner)
                                    for _ in range(n_layers))

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.positions.weight[:ids.shape[1]])
        wide = mask[:, None, None, :]
        for layer in self.layers:
            x = layer(x, wide)
        if self.first:
            return F.normalize(x[:, 0].float(), dim=-1)
        m = mask[..., None].to(x.dtype)
        return F.normalize(((x * m).sum(1) / m.sum(1)).float(), dim=-1)


NAMES = (("query", "attention.self.query"), ("key", "attention.self.key"),
         ("value", "attention.self.value"), ("out", "attention.output.dense"),
         ("out_norm", "attention.output.LayerNorm"),
         ("up", "intermediate.dense"), ("down", "output.dense"),
         ("down_norm", "output.LayerNorm"))


def safetensors(path):
    """A minimal reader: F32, F16, and I8 rows with a tensor NAME.scale."""
    with open(path, "rb") as f:
        raw = f.read()
    n, = struct.unpack("<Q", raw[:8])
    head, out = json.loads(raw[8:8 + n]), {}
    kinds = {"F32": np.float32, "F16": np.float16, "I8": np.int8}
    for name, t in head.items():
        if name == "__metadata__" or t["dtype"] not in kinds:
            continue
        a, b = t["data_offsets"]
        out[name] = np.frombuffer(raw[8 + n + a:8 + n + b], kinds[
            t["dtype"]]).reshape(t["shape"]).astype(np.float32)
    for name in [x for x in out if x.endswith(".scale")]:
        out[name[:-6]] = out[name[:-6]] * out.pop(name)[:, None]
    return out


def load_sbm(path):
    """A model out of the server's own file, to go on from."""
    with open(path, "rb") as f:
        raw = f.read()
    vocab_bytes, = struct.unpack("<Q", raw[24:32])
    n, width, _, inner, n_words, n_positions = struct.unpack("<6I", raw[32:56])
    at = 192 + vocab_bytes + -vocab_bytes % 64
    assert n_positions == POSITIONS

    def take(shape, kind):
        nonlocal at
        count = int(np.prod(shape))
        x = np.frombuffer(raw, kind, count, at).reshape(shape)
        at += x.nbytes + -x.nbytes % 64
        return x

    def put(module, weight, bias=None):
        module.weight.data = torch.from_numpy(np.array(weight, np.float32))
        if bias is not None:
            module.bias.data = torch.from_numpy(np.array(bias, np.float32))

    def matrix(modules, n_out, n_in, factors):
        q = take((n_out // 64, n_in // 4, 64, 4), np.int8)
        q = q.transpose(0, 2, 1, 3).reshape(n_out, n_in)
        scales, bias = take((n_out,), "<f4"), take((n_out,), "<f4")
        take((n_out,), "<i4")
        each = n_out // len(modules)
        for i, (module, by) in enumerate(zip(modules, factors)):
            a = slice(i * each, (i + 1) * each)
            put(module, q[a] * scales[a, None] / by, bias[a] / by)
    m = Encoder(n_words, n, width, inner)
    q = take((n_words, width), np.int8)
    put(m.words, q * take((n_words,), "<f4")[:, None])
    put(m.positions, take((n_positions, width), "<f4"))
    put(m.norm, take((width,), "<f4"), take((width,), "<f4"))
    for x in m.layers:
        matrix((x.query, x.key, x.value), 3 * width, width, (HEAD ** -.5, 1, 1))
        matrix((x.out,), width, width, (1,))
        put(x.out_norm, take((width,), "<f4"), take((width,), "<f4"))
        matrix((x.up,), inner, width, (1,))
        matrix((x.down,), width, inner, (1,))
        put(x.down_norm, take((width,), "<f4"), take((width,), "<f4"))
    assert at == len(raw)
    return m


def load(path, first=False):
    if path.endswith(".sbm"):
        return load_sbm(path)
    t = safetensors(path)
    n = 1 + max(int(k.split(".")[2]) for k in t if k.startswith("encoder."))
    m = Encoder(len(t["embeddings.word_embeddings.weight"]), n, first=first)

    def put(module, name):
        for kind in ("weight", "bias"):
            getattr(module, kind).data = torch.from_numpy(
                t[f"{name}.{kind}"].copy())
    m.words.weight.data = torch.from_numpy(
        t["embeddings.word_embeddings.weight"].copy())
    m.positions.weight.data = torch.from_numpy(
        t["embeddings.position_embeddings.weight"][:POSITIONS]
        + t["embeddings.token_type_embeddings.weight"][0])
    put(m.norm, "embeddings.LayerNorm")
    for i, layer in enumerate(m.layers):
        for ours, theirs in NAMES:
            put(getattr(layer, ours), f"encoder.layer.{i}.{theirs}")
    return m


def cut(m, layers, words=None):
    """Some layers of m, in a model of its own. words: for each of its words
    the numbers of those that m would read it as."""
    old = m.words.weight.data
    words = words or [[i] for i in range(len(old))]
    out = Encoder(len(words), len(layers))
    out.words.weight.data = torch.stack([old[p].mean(0) for p in words])
    out.positions.load_state_dict(m.positions.state_dict())
    out.norm.load_state_dict(m.norm.state_dict())
    for to, i in zip(out.layers, layers):
        to.load_state_dict(m.layers[i].state_dict())
    return out.to(old.device)


# ---- the server's file ----

def aligned(b):
    return b + bytes(-len(b) % 64)


def vocabulary(pieces):
    """vocab_make of src/embed/transformer/vocab.c."""
    magic, by = 0x316261636f567853, 0x9e3779b97f4a7c15
    all_bytes = [p.encode() for p in pieces]
    n_slots = 8
    while n_slots < 2 * len(pieces):
        n_slots *= 2
    slots = [0] * n_slots
    for i, p in enumerate(all_bytes):
        h = by
        for c in p:
            h = ((h ^ c) * by) & 0xffffffffffffffff
        at = h >> 32 & (n_slots - 1)
        while slots[at]:
            at = (at + 1) & (n_slots - 1)
        slots[at] = (h >> 52) << 20 | (i + 1)
    text = b"".join(all_bytes)
    ends = np.cumsum([len(p) for p in all_bytes]).astype("<u4").tobytes()
    out = struct.pack("<QIIII", magic, len(pieces), n_slots, len(text), 0)
    out += ends + np.array(slots, "<u4").tobytes() + text
    return out + bytes(-len(out) % 8)


def as_bytes(w):
    return rounded(w, np.abs(w).max(1) / np.float32(127))


def rounded(w, scale):
    scale = scale.astype(np.float32)
    safe = np.where(scale > 0, scale, 1)
    return np.clip(np.rint(w / safe[:, None]), -127, 127).astype(
        np.int8), scale


def as_fitting_bytes(w):
    """As pairs_fit of src/embed/transformer/minilm.h asks for: weights 0 and 1, 2 and 3
    and so on of a channel are at most 128 together where they have one sign.
    Scales become a quarter larger by it, and AVX2 a half faster. Rounding up
    both of a pair can exceed 128 by one, hence 127."""
    def most(sign):
        both = np.maximum(sign * w, 0)
        return (both[:, 0::2] + both[:, 1::2]).max(1)
    q, scale = rounded(w, np.maximum(most(1), most(-1)) / np.float32(127))
    pairs = q.astype(np.int32).reshape(len(q), -1, 2)
    assert np.maximum(pairs, 0).sum(2).max() <= 128
    assert np.minimum(pairs, 0).sum(2).min() >= -128
    return q, scale


def sbm(m, pieces, name="all-MiniLM-L6-v2"):
    """The bytes of a model file. The server knows it by its name."""
    width, inner = m.words.embedding_dim, m.layers[0].up.out_features
    vocab = vocabulary(pieces)

    def f32(x):
        return aligned(x.detach().float().cpu().numpy().astype(
            "<f4").tobytes())

    def matrix(modules, factors):
        weights, scales, biases = [], [], []
        for module, by in zip(modules, factors):
            q, s = as_fitting_bytes(
                module.weight.detach().float().cpu().numpy())
            weights.append(q)
            scales.append(s * np.float32(by))
            biases.append(module.bias.detach().float().cpu().numpy()
                          * np.float32(by))
        q = np.concatenate(weights)
        n_out, n_in = q.shape
        lay = q.reshape(n_out // 64, 64, n_in // 4, 4).transpose(0, 2, 1, 3)
        return b"".join(aligned(x) for x in (
            lay.tobytes(), np.concatenate(scales).astype("<f4").tobytes(),
            np.concatenate(biases).astype("<f4").tobytes(),
            q.astype(np.int32).sum(1).astype("<i4").tobytes()))

    q, s = as_bytes(m.words.weight.detach().float().cpu().numpy())
    body = aligned(vocab) + aligned(q.tobytes()) + aligned(
        s.astype("<f4").tobytes()) + f32(m.positions.weight)
    body += f32(m.norm.weight) + f32(m.norm.bias)
    root = np.float32(1) / np.sqrt(np.float32(HEAD))
    for x in m.layers:
        body += matrix((x.query, x.key, x.value), (root, 1, 1))
        body += matrix((x.out,), (1,))
        body += f32(x.out_norm.weight) + f32(x.out_norm.bias)
        body += matrix((x.up,), (1,)) + matrix((x.down,), (1,))
        body += f32(x.down_norm.weight) + f32(x.down_norm.bias)
    number = {p: i for i, p in enumerate(pieces)}
    head = struct.pack("<8sIIQQ", b"SBMINILM", 1, 192, 192 + len(body),
                       len(vocab))
    head += struct.pack("<9I", len(m.layers), width, width // HEAD, inner,
                        len(pieces), POSITIONS, number["[CLS]"],
                        number["[SEP]"], number["[UNK]"]) + bytes(28)
    head += name.encode().ljust(64, b"\0")
    assert len(head) == 160
    return head + hashlib.sha256(head + body).digest() + body
