#!/usr/bin/python3
"""Addresses, and what Python's ipaddress module thinks of each: a line
"ADDRESS public" or "ADDRESS inner", for src/base/guard_peer_test.c.

The edges of every block that ipaddress or the guard could know, a step to both
sides, and many at random, within the blocks and anywhere."""
import ipaddress
import random
import sys

rng = random.Random(int(sys.argv[1]))
N_RANDOM = int(sys.argv[2])

# Refused although Python calls them global: infrastructure that the nearest
# machine answers for, what a cloud answers from within, and blocks newer than
# this Python.
STRICTER = [ipaddress.ip_network(n) for n in (
    "168.63.129.16/32",
    "192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
    "192.175.48.0/24", "2001:1::/32", "2001:2::/31", "2001:4::/30",
    "2001:8::/29", "2001:10::/28", "2001:20::/27", "2001:40::/26",
    "2001:80::/25", "2001:100::/24", "2620:4f:8000::/48", "3fff::/20")]
UNICAST = ipaddress.ip_network("2000::/3")
NAT64 = ipaddress.ip_network("64:ff9b::/96")

BLOCKS = STRICTER + [UNICAST, NAT64] + [ipaddress.ip_network(n) for n in (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8",
    "169.254.0.0/16", "172.16.0.0/12", "192.0.2.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
    "240.0.0.0/4", "255.255.255.255/32", "::/96", "::1/128",
    "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64",
    "100:0:0:1::/64", "2001::/32", "2001::/23", "2001:db8::/32", "2002::/16",
    "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8")]


def v4_is_public(a):
    return (a.is_global and not a.is_multicast and not a.is_reserved
            and not any(a in n for n in STRICTER if n.version == 4))


def carried(a):
    """The v4 addresses in one of v6."""
    low = ipaddress.IPv4Address(int(a) & 0xffffffff)
    if a in NAT64:
        yield low
    if a.sixtofour:
        yield a.sixtofour
    if a.teredo:
        yield from a.teredo
    if (int(a) >> 32) & 0xfcffffff == 0x5efe:
        yield low


def v6_is_public(a):
    if a.ipv4_mapped:
        return v4_is_public(a.ipv4_mapped)
    if not all(v4_is_public(v) for v in carried(a)):
        return False
    if a in NAT64 or a.teredo:
        return True
    return (a in UNICAST and (a.is_global or bool(a.sixtofour))
            and not any(a in n for n in STRICTER if n.version == 6))


def candidates():
    for block in BLOCKS:
        kind = type(block[0])
        first, last = int(block[0]), int(block[-1])
        for n in (first - 1, first, first + 1, last - 1, last, last + 1):
            if 0 <= n < 2 ** block.max_prefixlen:
                yield kind(n)
        for _ in range(N_RANDOM // 10):
            yield kind(rng.randint(first, last))
    for _ in range(N_RANDOM):
        v4 = rng.getrandbits(32)
        iid = rng.choice((0, 0x2000000, 0x3000000)) << 32 | 0x5efe << 32 | v4
        yield ipaddress.IPv4Address(v4)
        yield ipaddress.IPv6Address(rng.getrandbits(128))
        yield ipaddress.IPv6Address(0x2a00 << 112 | rng.getrandbits(112))
        yield ipaddress.IPv6Address(0x2a00 << 112 | iid)
        yield ipaddress.IPv6Address(0x2002 << 112 | v4 << 80 | 1)
        yield ipaddress.IPv6Address(
            0x20010000 << 96 | v4 << 64 | rng.getrandbits(64))


for address in candidates():
    judge = v4_is_public if address.version == 4 else v6_is_public
    print(address, "public" if judge(address) else "inner")
