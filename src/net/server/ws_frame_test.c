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

TEST(control_frames_may_come_between_fragments)
{
    static const struct row rows[] = {
        ROW("\x89\x00", "ping[] "),
        ROW("\x8a\x00", "pong[] "),
        ROW("\x89\x02hi\x8a\x03you", "ping[hi] pong[you] "),
        ROW("\x01\x02he\x89\x01p\x80\x03llo", "ping[p] text[hello] "),
        ROW("\x01\x00\x89\x01p\x80\x00", "ping[p] text[] "),
        ROW("\x01\x02he\x89\x01p\x8a\x01q\x89\x00\x00\x01l\x89\x02rs\x80\x02lo",
            "ping[p] pong[q] ping[] ping[rs] text[hello] "),
        ROW("\x01\x02he\x89\x05p", "..."),
        ROW("\x01\x02he\x89\x01p", "ping[p] ..."),
        ROW("\x01\x02he\x88\x02\x03\xe8", "close 1000[] "),
        ROW("\x01\x02he\x89\x01p\x00\x01l\x88\x05\x03\xe9"
            "bye",
            "ping[p] close 1001[bye] "),
        /* A cut character waits while the ping passes. */
        ROW("\x01\x01\xc3\x89\x01\xff\x80\x01\xa9",
            "ping[\xff] text[\xc3\xa9] "),
    };

    CHECK_ROWS(rows);
}

TEST(control_frames_are_whole_and_small)
{
    static const struct row rows[] = {
        ROW("\x09\x00", SPLIT),
        ROW("\x0a\x01", SPLIT),
        ROW("\x08", SPLIT),
        ROW("\x89\x7e\x00\x7e", LONG_PING),
        ROW("\x8a\x7e", LONG_PING),
        ROW("\x88\x7f", LONG_PING),
        ROW("\x01\x01x\x09", "1002: a control frame in fragments"),
        ROW("\x01\x01x\x89\x7e", LONG_PING),
    };

    CHECK_ROWS(rows);
}

TEST(what_has_no_meaning_is_refused_at_its_first_byte)
{
    for (unsigned first = 0; first < 256; first++) {
        unsigned opcode = first & 15;
        char in[1] = {(char)first};
        struct row row = {in, 1, "..."};

        if (first & 0x70)
            row.as = RESERVED;
        else if ((opcode > 2 && opcode < 8) || opcode > 10)
            row.as = NO_OPCODE;
        else if (opcode >= 8 && !(first & 0x80))
            row.as = SPLIT;
        else if (opcode == 0)
            row.as = OF_NOTHING;
        CHECK(row_holds(&row));
    }
}

TEST(fragments_come_in_order)
{
    static const struct row rows[] = {
        ROW("\x00\x01x", OF_NOTHING),
        ROW("\x80\x00", OF_NOTHING),
        ROW("\x81\x01x\x80\x00", "text[x] " OF_NOTHING),
        ROW("\x01\x01x\x80\x00\x80", "text[x] " OF_NOTHING),
        ROW("\x89\x00\x80", "ping[] " OF_NOTHING),
        ROW("\x01\x01x\x81\x01x", INSIDE),
        ROW("\x01\x01x\x01", INSIDE),
        ROW("\x01\x01x\x82\x00", INSIDE),
        ROW("\x02\x00\x89\x01p\x82", "ping[p] " INSIDE),
        ROW("\x01\x01x\x00\x00\x02", INSIDE),
        ROW("\x01\x01x\x40", RESERVED),
        ROW("\x01\x01x\xc0", RESERVED),
    };

    CHECK_ROWS(rows);
}

TEST(lengths_are_in_their_shortest_form)
{
    static const struct row rows[] = {
        ROW("\x82\x7e\x00\x00", NOT_SHORT),
        ROW("\x82\x7e\x00\x01", NOT_SHORT),
        ROW("\x82\x7e\x00\x7d", NOT_SHORT),
        ROW("\x82\x7e\x00\x7e", "..."),
        ROW("\x82\x7e\x00", "..."),
        ROW("\x82\x7e\xff\xff", BIG_FRAME),
        ROW("\x82\x7f\0\0\0\0\0\0\0\0", NOT_SHORT),
        ROW("\x82\x7f\0\0\0\0\0\0\0\x7d", NOT_SHORT),
        ROW("\x82\x7f\0\0\0\0\0\0\x00\x7e", NOT_SHORT),
        ROW("\x82\x7f\0\0\0\0\0\0\xff\xff", NOT_SHORT),
        ROW("\x82\x7f\0\0\0\0\0\1\0\0", BIG_FRAME),
        ROW("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", BIG_FRAME),
        ROW("\x82\x7f\x80\0\0\0\0\0\0\0", HUGE_LENGTH),
        ROW("\x82\x7f\x80\0\0\0\0\0\0\1", HUGE_LENGTH),
        ROW("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", HUGE_LENGTH),
        ROW("\x82\x7f\x80\0\0\0\0\0\0", "..."),
        ROW("\x01\x00\x00\x7e\x00\x05", NOT_SHORT),
    };

    CHECK_ROWS(rows);
}

/* Frames without masks, of n bytes 'a' each; n below zero ends the list. The
 * first is text, the last is final when is_whole. */
static bool of_sizes(const int *sizes, bool is_whole, const char *as)
{
    char in[2048];
    struct row row = {in, 0, as};

    for (size_t i = 0; sizes[i] >= 0; i++) {
        bool is_last = sizes[i + 1] < 0;

        in[row.n++] = (char)((i ? 0 : 1) | (is_last && is_whole ? 0x80 : 0));
        if (sizes[i] > 125) {
            in[row.n++] = 126;
            in[row.n++] = (char)(sizes[i] >> 8);
        }
        in[row.n++] = (char)sizes[i];
        memset(in + row.n, 'a', (size_t)sizes[i]);
        row.n += (size_t)sizes[i];
    }
    return row_holds(&row);
}

TEST(limits_hold_for_frames_and_for_messages)
{
    CHECK(of_sizes((int[]){125, -1}, true, "text[a*125] "));
    CHECK(of_sizes((int[]){126, -1}, true, "text[a*126] "));
    CHECK(of_sizes((int[]){200, -1}, true, "text[a*200] "));
    CHECK(of_sizes((int[]){201, -1}, true, BIG_FRAME));
    CHECK(of_sizes((int[]){200, -1}, false, "..."));
    CHECK(of_sizes((int[]){201, -1}, false, BIG_FRAME));
    CHECK(of_sizes((int[]){1, 201, -1}, true, BIG_FRAME));
    CHECK(of_sizes((int[]){200, 100, -1}, true, "text[a*300] "));
    CHECK(of_sizes((int[]){200, 101, -1}, true, BIG_MESSAGE));
    CHECK(of_sizes((int[]){200, 100, 0, 0, -1}, true, "text[a*300] "));
    CHECK(of_sizes((int[]){200, 100, 0, 1, -1}, true, BIG_MESSAGE));
    CHECK(of_sizes((int[]){100, 100, 99, 1, -1}, true, "text[a*300] "));
    CHECK(of_sizes((int[]){100, 100, 99, 2, -1}, true, BIG_MESSAGE));
}

/* One frame with FIN, without a mask; returns how long it is. */
static size_t put_frame(char *to, uint8_t first, const void *p, size_t n)
{
    to[0] = (char)first;
    to[1] = (char)n;
    memcpy(to + 2, p, n);
    return 2 + n;
}

TEST(limits_that_shrink_hold_from_the_next_frame_on)
{
    static const struct ws_limits small = {5, 8};
    struct reader r;

    begin(&r, true);
    feed(&r,
         "\x01\x09"
         "12345678",
         10);
    r.limits = &small;
    feed(&r, "9\x80\x00", 3);
    CHECK_STR(str_of(r.out), BIG_MESSAGE);
    end(&r);
}

TEST(a_control_frame_may_have_125_bytes_whatever_the_limits_are)
{
    static const struct ws_limits none = {0, 0};
    char in[300], payload[125];
    struct reader r;
    size_t n;

    memset(payload, 'p', sizeof(payload));
    begin(&r, true);
    r.limits = &none;
    n = put_frame(in, 0x89, payload, 125);
    in[n++] = (char)0x81;
    in[n++] = 0;
    in[n++] = (char)0x81;
    in[n++] = 1;
    feed(&r, in, n);
    CHECK_STR(str_of(r.out), "ping[p*125] text[] " BIG_FRAME);
    end(&r);
    n = put_frame(in, 0x01, "", 0);
    n += put_frame(in + n, 0x8a, payload, 125);
    n += put_frame(in + n, 0x80, "", 0);
    CHECK(row_holds(&(struct row){in, n, "pong[p*125] text[] "}));
}

TEST(a_message_has_a_limited_number_of_fragments)
{
    struct ws_parse p = {.is_client = true};
    struct ws_event e;
    char frame[2] = {1, 0};

    for (int i = 0; i < WS_FRAGMENTS_MAX - 1; i++) {
        char bytes[2] = {frame[0], 0};
        size_t n = 2;

        CHECK(ws_parse(&p, &limits, bytes, &n, &e) == WS_MORE && n == 0);
        frame[0] = 0;
    }
    for (int is_beyond = 0; is_beyond < 2; is_beyond++) {
        struct ws_parse again = p;
        char bytes[4] = {(char)(is_beyond ? 0 : 0x80), 0, (char)0x80, 0};
        size_t n = 4;

        CHECK(ws_parse(&again, &limits, bytes, &n, &e) ==
              (is_beyond ? WS_BAD : WS_MESSAGE));
        CHECK(again.code == (is_beyond ? WS_TOO_LARGE : 0));
        CHECK(is_beyond || (e.used == 2 && again.n_fragments == 0));
    }
}

/* A flood of the smallest frames must not cost the square of its size: what
 * is moved is counted by what is left to move. */
TEST(pings_between_fragments_leave_the_rest_where_it_is)
{
    enum { N_PAIRS = 5000 };
    struct ws_parse p = {.is_client = true};
    struct ws_limits wide = {N_PAIRS, N_PAIRS};
    static char bytes[N_PAIRS * 5];
    struct ws_event e;
    size_t n = 0;
    int n_pings = 0;

    for (int i = 0; i < N_PAIRS; i++) {
        n += put_frame(bytes + n, i ? 0 : 2, "x", 1);
        n += put_frame(bytes + n, 0x89, "", 0);
    }
    while (ws_parse(&p, &wide, bytes, &n, &e) == WS_PING) {
        CHECK(e.used == 0 && n == sizeof(bytes));
        n_pings++;
    }
    CHECK(n_pings == N_PAIRS && n == N_PAIRS && p.message_bytes == n);
}

TEST(masks_are_as_the_side_demands)
{
    static const struct row to_server[] = {
        ROW("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "text[Hello] "),
        ROW("\x81\x80\x37\xfa\x21\x3d", "text[] "),
        ROW("\x81\x80\x37\xfa\x21", "..."),
        ROW("\x81\x05", "1002: a frame is not masked"),
        ROW("\x89\x00", "1002: a frame is not masked"),
        ROW("\x88\x00", "1002: a frame is not masked"),
        ROW("\x01\x81\0\0\0\0x\x80\x00", "1002: a frame is not masked"),
        ROW("\x81\xfe\x00\x7d", NOT_SHORT),
    };
    static const struct row to_client[] = {
        ROW("\x81\x80", "1002: the server has masked a frame"),
        ROW("\x89\xff", "1002: the server has masked a frame"),
        ROW("\x01\x00\x80\x80", "1002: the server has masked a frame"),
    };

    for (size_t i = 0; i < sizeof(to_server) / sizeof(to_server[0]); i++)
        CHECK(
            comes_out(false, to_server[i].in, to_server[i].n, to_server[i].as));
    for (size_t i = 0; i < sizeof(to_client) / sizeof(to_client[0]); i++)
        CHECK(
            comes_out(true, to_client[i].in, to_client[i].n, to_client[i].as));
}

TEST(text_is_refused_at_its_first_bad_byte)
{
    static const struct row rows[] = {
        ROW("\x81\x02\xc3\xa9", "text[\xc3\xa9] "),
        ROW("\x81\x03\xe2\x82\xac", "text[\xe2\x82\xac] "),
        ROW("\x81\x04\xf4\x8f\xbf\xbf", "text[\xf4\x8f\xbf\xbf] "),
        ROW("\x81\x03\xef\xbf\xbf", "text[\xef\xbf\xbf] "),
        /* The rest of the frame need not be here. */
        ROW("\x81\x20\x80", NO_UTF8),
        ROW("\x81\x20\xc0", NO_UTF8),
        ROW("\x81\x20\xc1", NO_UTF8),
        ROW("\x81\x20\xf5", NO_UTF8),
        ROW("\x81\x20\xff", NO_UTF8),
        ROW("\x81\x20\xc3\x28", NO_UTF8),
        ROW("\x81\x20\xe0\x9f", NO_UTF8),
        ROW("\x81\x20\xed\xa0", NO_UTF8),
        ROW("\x81\x20\xf0\x8f", NO_UTF8),
        ROW("\x81\x20\xf4\x90", NO_UTF8),
        ROW("\x81\x20\xf4\x8f\xc0", NO_UTF8),
        ROW("\x81\x20 fine so far \xe2\x82", "..."),
        ROW("\x81\x20 fine so far \xe2\x82 ", NO_UTF8),
        /* Over any cut into fragments. */
        ROW("\x01\x01\xe2\x00\x00\x00\x01\x82\x80\x01\xac",
            "text[\xe2\x82\xac] "),
        ROW("\x01\x01\xe2\x00\x01\x28", NO_UTF8),
        ROW("\x01\x01\xed\x00\x05\xa0", NO_UTF8),
        ROW("\x01\x01\xf4\x00\x05\x90", NO_UTF8),
        ROW("\x01\x02\xe2\x82\x00\x05\xac\xff", NO_UTF8),
        /* It ends where a character ends. */
        ROW("\x81\x01\xc3", CUT_UTF8),
        ROW("\x81\x02\xe2\x82", CUT_UTF8),
        ROW("\x81\x03\xf0\x9f\x98", CUT_UTF8),
        ROW("\x01\x01\xc3\x80\x00", CUT_UTF8),
        ROW("\x01\x00\x80\x02x\xc3", CUT_UTF8),
        ROW("\x02\x01\xff\x80\x01\xc3", "binary[\xff\xc3] "),
    };

    CHECK_ROWS(rows);
}

TEST(a_close_is_empty_or_a_code_and_a_reason)
{
    static const struct row rows[] = {
        ROW("\x88\x00", "close 1005[] "),
        ROW("\x88\x02\x03\xe8", "close 1000[] "),
        ROW("\x88\x05\x03\xe9"
            "bye",
            "close 1001[bye] "),
        ROW("\x88\x04\x0f\xa0\xc3\xa9", "close 4000[\xc3\xa9] "),
        ROW("\x88\x01\x03", "1002: a close code of one byte"),
        ROW("\x88\x03\x03\xe8\xff", "1007: the reason of a close is not UTF-8"),
        ROW("\x88\x03\x03\xe8\xc3", "1007: the reason of a close is not UTF-8"),
        ROW("\x88\x05\x03\xe8\xed\xa0\x80",
            "1007: the reason of a close is not UTF-8"),
        ROW("\x88\x03\x03\xed\xff", "1002: a close code that may not be sent"),
        ROW("\x88\x05\x03", "..."),
        /* Nothing is read behind it. */
        ROW("\x88\x00\x81\x01x", "close 1005[] "),
        ROW("\x88\x00\xff\xff", "close 1005[] "),
    };

    CHECK_ROWS(rows);
}

TEST(only_some_close_codes_may_be_sent)
{
    static const int edges[][2] = {/* from, to: those between may be */
                                   {1000, 1003},
                                   {1007, 1014},
                                   {3000, 4999}};
    int n = 0;

    for (int code = 0; code <= UINT16_MAX; code++) {
        char in[4] = {(char)0x88, 2, (char)(code >> 8), (char)code};
        char as[64] = "1002: a close code that may not be sent";
        bool may = false;

        for (int i = 0; i < 3; i++)
            may |= code >= edges[i][0] && code <= edges[i][1];
        if (may)
            snprintf(as, sizeof(as), "close %d[] ", code);
        CHECK(ws_code_may_be_sent((uint16_t)code) == may);
        if (code % 97 == 0 || (code > 990 && code < 1020))
            CHECK(row_holds(&(struct row){in, 4, as}));
        n += may;
    }
    CHECK_INT(n, 4 + 8 + 2000);
}

TEST(a_refusal_stays)
{
    struct reader r;
    struct ws_event e;
    size_t n = 2;
    char good[2] = {(char)0x81, 0};

    begin(&r, true);
    feed(&r, "\xff", 1);
    CHECK_STR(str_of(r.out), RESERVED);
    CHECK(ws_parse(&r.parse, &limits, good, &n, &e) == WS_BAD);
    CHECK_INT(r.parse.code, WS_PROTOCOL_ERROR);
    end(&r);
}

TEST(the_state_of_a_connection_is_small)
{
    CHECK(sizeof(struct ws_parse) <= 64);
}
