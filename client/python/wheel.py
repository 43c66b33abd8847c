#!/usr/bin/env python3
"""wheel.py VERSION LIBRARY WHEEL: the modules of this folder and the library
that message_router calls, as one wheel: `pip install` needs nothing else, and
no network.

The library lies beside the modules, where message_router looks for it first.
A wheel is a zip with a few files about itself (PEP 427); the same inputs make
the same bytes.
"""
import base64
import hashlib
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["message_router.py", "signalbox.py"]
LIBRARY = "libsignalbox-gate.so"
EPOCH = (1980, 1, 1, 0, 0, 0)

METADATA = """Metadata-Version: 2.1
Name: signalbox
Version: {version}
Summary: May a message go now, and agents for Signalbox
Requires-Python: >=3.9
"""
WHEEL = """Wheel-Version: 1.0
Generator: signalbox
Root-Is-Purelib: false
Tag: {tag}
"""


def read(path):
    with open(path, "rb") as f:
        return f.read()


def record_of(files):
    lines = []
    for name, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        lines.append(f"{name},sha256={digest.decode().rstrip('=')},{len(data)}")
    return lines


def main(version, library, wheel):
    # signalbox-0.1.0-py3-none-linux_x86_64.whl
    tag = os.path.basename(wheel)[:-len(".whl")].split("-", 2)[2]
    about = f"signalbox-{version}.dist-info/"
    files = [(m, read(os.path.join(HERE, m))) for m in MODULES]
    files += [
        (LIBRARY, read(library)),
        (about + "METADATA", METADATA.format(version=version).encode()),
        (about + "WHEEL", WHEEL.format(tag=tag).encode())]
    lines = record_of(files) + [about + "RECORD,,", ""]
    files.append((about + "RECORD", "\n".join(lines).encode()))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files:
            info = zipfile.ZipInfo(name, EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)


if __name__ == "__main__":
    main(*sys.argv[1:])
