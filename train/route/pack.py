"""A safetensors file made smaller to carry: the rows of words as bytes with a
scale each, everything else as it is, without what is not used.

    pack.py FROM TO
"""
import json
import struct
import sys

import numpy as np


def main(path, to):
    with open(path, "rb") as f:
        raw = f.read()
    n, = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8:8 + n])
    out, body = {}, b""

    def put(name, kind, a):
        nonlocal body
        out[name] = {"dtype": kind, "shape": list(a.shape),
                     "data_offsets": [len(body), len(body) + a.nbytes]}
        body += a.tobytes()
    for name, t in head.items():
        if name == "__metadata__" or name.startswith("pooler.") or (
                name.endswith("position_ids")):
            continue
        kind = {"F16": np.float16, "F32": np.float32}[t["dtype"]]
        a, b = t["data_offsets"]
        x = np.frombuffer(raw[8 + n + a:8 + n + b], kind).reshape(t["shape"])
        if name == "embeddings.word_embeddings.weight":
            x = x.astype(np.float32)
            scale = np.abs(x).max(1) / 127
            put(name, "I8", np.rint(x / np.where(scale > 0, scale, 1)[
                :, None]).astype(np.int8))
            put(name + ".scale", "F32", scale.astype(np.float32))
        else:
            put(name, "F16", x.astype(np.float16))
    with open(to, "wb") as f:
        head = json.dumps(out).encode()
        f.write(struct.pack("<Q", len(head)) + head + body)


if __name__ == "__main__":
    main(*sys.argv[1:])
