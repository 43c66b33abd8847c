/* The reader of frames: each rule, at its limit and beyond, however the bytes
 * are cut. */
#include "test/lib/ws_reader.h"

#define NO_UTF8     "1007: the text is not UTF-8"
#define CUT_UTF8    "1007: the text ends inside a character"
#define RESERVED    "1002: a reserved bit is set"
#define NO_OPCODE   "1002: the opcode has no meaning"
#define SPLIT       "1002: a control frame in fragments"
#define LONG_PING   "1002: a control frame of more than 125 bytes"
#define OF_NOTHING  "1002: a continuation of nothing"
#define INSIDE      "1002: a new message inside another"
#define NOT_SHORT   "1002: a length is not in its shortest form"
#define HUGE_LENGTH "1002: a length of more than 63 bits"
#define BIG_FRAME   "1009: the frame is larger than the limit"
#define BIG_MESSAGE "1009: the message is larger than the limit"

TEST(whole_messages_are_read)
{
    static const struct row rows[] = {
        ROW("", ""),
        ROW("\x81\x00", "text[] "),
        ROW("\x82\x00", "binary[] "),
        ROW("\x81\x05hello", "text[hello] "),
        ROW("\x82\x05hello", "binary[hello] "),
        ROW("\x82\x03\xff\xc0\x80", "binary[\xff\xc0\x80] "),
        ROW("\x81\x01"
            "a\x81\x02"
            "bc\x82\x01"
            "d",
            "text[a] text[bc] binary[d] "),
        ROW("\x81\x05hell", "..."),
        ROW("\x81", "..."),
        ROW("\x81\x05", "..."),
        ROW("\x81\x05hello\x82", "text[hello] ..."),
    };

    CHECK_ROWS(rows);
}

TEST(fragments_become_one_message)
{
    static const struct row rows[] = {
        ROW("\x01\x02he\x80\x03llo", "text[hello] "),
        ROW("\x02\x02he\x80\x03llo", "binary[hello] "),
        ROW("\x01\x01h\x00\x01"
            "e\x00\x01l\x00\x01l\x80\x01o",
            "text[hello] "),
        ROW("\x01\x00\x00\x00\x00\x00\x80\x00", "text[] "),
        ROW("\x01\x00\x80\x02hi", "text[hi] "),
        ROW("\x01\x02hi\x80\x00\x81\x01x", "text[hi] text[x] "),
        ROW("\x01\x02hi\x00\x01x", "..."),
        ROW("\x01\x00", "..."),
    };

    CHECK_ROWS(rows);
}
