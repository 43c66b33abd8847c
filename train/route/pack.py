"""Weights made smaller to carry: matrices as bytes with a scale for each row,
everything else in half precision, without what is not used.

    pack.py FROM TO

FROM is a safetensors file, or an ONNX one of a BERT (needs the package onnx).
"""
import json
import struct
import sys

import numpy as np

import encoder


def from_onnx(path):
    """Matrices have no names in it; the nodes that use them do."""
    import onnx
    from onnx import numpy_helper
    graph = onnx.load(path).graph
    all_of = {x.name: numpy_helper.to_array(x) for x in graph.initializer}
    out = {k: v for k, v in all_of.items()
           if k.split(".")[0] in ("embeddings", "encoder")}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in all_of:
            name = node.name.strip("/").removesuffix("/MatMul")
            out[name.replace("/", ".") + ".weight"] = all_of[node.input[1]].T
    return out


def main(path, to):
    tensors = (from_onnx(path) if path.endswith(".onnx")
               else encoder.safetensors(path))
    head, body, at = {}, [], 0

    def put(name, kind, a):
        nonlocal at
        head[name] = {"dtype": kind, "shape": list(a.shape),
                      "data_offsets": [at, at + a.nbytes]}
        body.append(a.tobytes())
        at += a.nbytes
    for name, x in tensors.items():
        if name.startswith("pooler.") or name.endswith("position_ids"):
            continue
        x = np.asarray(x, np.float32)
        if x.ndim == 2 and x.shape[0] > 2 and "position" not in name:
            q, scale = encoder.as_bytes(x)
            put(name, "I8", q)
            put(name + ".scale", "F32", scale)
        else:
            put(name, "F16", x.astype(np.float16))
    with open(to, "wb") as f:
        listed = json.dumps(head).encode()
        f.write(struct.pack("<Q", len(listed)) + listed + b"".join(body))


if __name__ == "__main__":
    main(*sys.argv[1:])
