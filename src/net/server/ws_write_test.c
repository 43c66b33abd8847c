/* The writer of frames, and that the reader reads what it wrote. */
#include "test/lib/ws_reader.h"

static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};

TEST(frames_are_written_as_the_standard_shows_them)
{
    struct buf out;

    buf_init(&out, 100);
    ws_write(&out, WS_TEXT, STR("Hello"), NULL);
    CHECK(str_eq(buf_str(&out), STR("\x81\x05Hello")));
    buf_clear(&out);
    ws_write(&out, WS_TEXT, STR("Hello"), mask);
    CHECK(str_eq(buf_str(&out),
                 STR("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")));
    buf_clear(&out);
    ws_write(&out, WS_OP_PING, STR(""), NULL);
    ws_write(&out, WS_OP_PONG, STR("x"), NULL);
    ws_write(&out, WS_BINARY, (struct str){NULL, 0}, NULL);
    CHECK(str_eq(buf_str(&out), STR("\x89\x00\x8a\x01x\x82\x00")));
    buf_fini(&out);
}

/* Each length at the edges of the three forms, both sides, and back. */
TEST(lengths_are_written_in_their_shortest_form)
{
    static const struct {
        size_t n, head;
    } rows[] = {{0, 2},     {1, 2},      {125, 2},    {126, 4},
                {65535, 4}, {65536, 10}, {100000, 10}};
    static const struct ws_limits wide = {100000, 100000};
    char *payload = calloc(1, 100000);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int is_masked = 0; is_masked < 2; is_masked++) {
            struct str s = {payload, rows[i].n};
            struct ws_parse p = {.is_client = !is_masked};
            struct ws_event e;
            struct buf out;

            buf_init(&out, s.n + WS_HEAD_BYTES);
            ws_write(&out, WS_TEXT, s, is_masked ? mask : NULL);
            CHECK_INT(out.n, rows[i].head + 4u * (unsigned)is_masked + s.n);
            CHECK(ws_parse(&p, &wide, out.p, &out.n, &e) == WS_MESSAGE);
            CHECK(e.kind == WS_TEXT && str_eq(e.payload, s) && e.used == out.n);
            buf_fini(&out);
        }
    free(payload);
}

TEST(what_does_not_fit_is_not_begun)
{
    struct buf out;

    buf_init(&out, 16);
    ws_write(&out, WS_TEXT, STR("0123456"), NULL);
    CHECK(out.n == 9 && !out.over);
    ws_write(&out, WS_TEXT, STR("012345"), NULL);
    CHECK(out.n == 9 && out.over);
    buf_clear(&out);
    ws_write(&out, WS_TEXT, STR("0123456789"), mask);
    CHECK(out.n == 16 && !out.over);
    buf_fini(&out);
}

/* What a close of that code and reason is read as. */
static bool closes(uint16_t code, struct str reason, const char *as)
{
    struct reader r;
    struct buf out;
    bool is_so;

    buf_init(&out, WS_HEAD_BYTES + WS_CONTROL_BYTES);
    ws_write_close(&out, code, reason, mask);
    begin(&r, false);
    feed(&r, out.p, out.n);
    end(&r);
    is_so = is_as(&r, as, "close", 0);
    buf_fini(&out);
    return is_so;
}

TEST(closes_are_always_such_as_may_be_read)
{
    char long_reason[200];

    CHECK(closes(WS_NORMAL, STR("bye"), "close 1000[bye] "));
    CHECK(closes(WS_TRY_LATER, STR(""), "close 1013[] "));
    CHECK(closes(WS_NO_CODE, STR("unsaid"), "close 1005[] "));
    CHECK(closes(4999, STR("\xc3\xa9"), "close 4999[\xc3\xa9] "));
    CHECK(closes(WS_NORMAL, STR("\xc3"), "close 1000[] "));
    memset(long_reason, 'r', sizeof(long_reason));
    CHECK(closes(WS_NORMAL, (struct str){long_reason, 123},
                 "close 1000[r*123] "));
    CHECK(closes(WS_NORMAL, (struct str){long_reason, 124},
                 "close 1000[r*123] "));
    memcpy(long_reason + 121, "\xe2\x82\xac", 3); /* over the edge */
    CHECK(closes(WS_NORMAL, (struct str){long_reason, 200},
                 "close 1000[r*121] "));
}
