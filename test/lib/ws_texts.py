"""Texts that are UTF-8 and bytes that are not, in the manner of Markus Kuhn's
stress test."""
import codecs

GOOD_TEXT = {
    "kosme": "κόσμε", "four lengths": "aä€😀", "U+0000": "\0",
    "U+007F": "\x7f", "U+0080": "\x80", "U+07FF": "\u07ff",
    "U+0800": "\u0800", "U+0FFF": "\u0fff", "U+1000": "\u1000",
    "U+CFFF": "\ucfff", "U+D000": "\ud000", "U+D7FF": "\ud7ff",
    "U+E000": "\ue000", "U+FFFD": "\ufffd", "U+FFFE": "\ufffe",
    "U+FFFF": "\uffff", "U+FEFF first": "\ufeffa", "U+10000": "\U00010000",
    "U+3FFFF": "\U0003ffff", "U+40000": "\U00040000",
    "U+FFFFF": "\U000fffff", "U+100000": "\U00100000",
    "U+10FFFE": "\U0010fffe", "U+10FFFF": "\U0010ffff",
    "two of two": "éé" * 40, "three of three": "ばかな" * 40,
    "after ASCII": "x" * 63 + "é" + "x" * 64 + "€" + "x" * 61 + "😀",
}

BAD_TEXTS = {
    "lone 80": "80", "lone BF": "bf", "two lone": "80 bf",
    "seven lone": "80 bf 80 bf 80 bf 80",
    "C0": "c0 20", "C1": "c1 20", "C2 and a space": "c2 20",
    "DF and a space": "df 20", "E0 and a space": "e0 20",
    "EF and a space": "ef 20", "F0 and a space": "f0 20",
    "F4 and a space": "f4 20", "F5": "f5 20", "F7": "f7 bf bf bf",
    "F8": "f8 88 80 80 80", "FB": "fb bf bf bf bf",
    "FC": "fc 84 80 80 80 80", "FD": "fd bf bf bf bf bf",
    "FE": "fe", "FF": "ff", "FE FE FF FF": "fe fe ff ff",
    "two of three bytes, a space": "e2 82 20",
    "three of four bytes, a space": "f0 9f 98 20",
    "overlong slash of 2": "c0 af", "overlong slash of 3": "e0 80 af",
    "overlong slash of 4": "f0 80 80 af", "overlong slash of 5":
    "f8 80 80 80 af", "overlong slash of 6": "fc 80 80 80 80 af",
    "highest overlong of 2": "c1 bf", "highest overlong of 3": "e0 9f bf",
    "highest overlong of 4": "f0 8f bf bf", "overlong NUL of 2": "c0 80",
    "overlong NUL of 3": "e0 80 80", "overlong NUL of 4": "f0 80 80 80",
    "U+D800": "ed a0 80", "U+DB7F": "ed ad bf", "U+DB80": "ed ae 80",
    "U+DBFF": "ed af bf", "U+DC00": "ed b0 80", "U+DF80": "ed be 80",
    "U+DFFF": "ed bf bf", "a pair of surrogates": "ed a0 80 ed b0 80",
    "another pair": "ed af bf ed bf bf", "U+110000": "f4 90 80 80",
    "U+13FFFF": "f4 bf bf bf", "U+140000": "f5 80 80 80",
    "U+1FFFFF": "f7 bf bf bf", "after good text":
    "ce ba e1 bd b9 cf 83 ed a0 80",
}

CUT_OFF = {
    "1 of 2": "c3", "1 of 3": "e2", "2 of 3": "e2 82", "1 of 4": "f0",
    "2 of 4": "f0 9f", "3 of 4": "f0 9f 98", "after good text": "ce ba e1 bd",
}


def first_bad(data):
    """Bytes up to the one that no good text goes on with."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for i in range(len(data)):
        try:
            decoder.decode(data[i:i + 1])
        except UnicodeDecodeError:
            return data[:i + 1]
    raise ValueError(f"nothing bad in {data!r}")
