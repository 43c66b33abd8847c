#include "base/sse.h"

#include "test/t.h"

/* Events as one text: "id|type|data;". */
struct heard {
    struct buf text;
    unsigned stop_after;
};

static bool hear(void *ctx, const struct sse_event *e)
{
    struct heard *h = ctx;

    buf_addf(&h->text, "%.*s|%.*s|%.*s;", STR_ARG(e->id), STR_ARG(e->type),
             STR_ARG(e->data));
    return h->stop_after == 0 || --h->stop_after > 0;
}

/* The same events, whatever the chunks. */
static void check_events(struct str bytes, const char *expected)
{
    for (size_t step = 1; step <= bytes.n; step++) {
        struct heard h = {.stop_after = 0};
        struct sse s;

        buf_init(&h.text, 4096);
        sse_init(&s, 1024, hear, &h);
        for (size_t at = 0; at < bytes.n; at += step)
            CHECK(sse_feed(&s, str_sub(bytes, at, at + step)) == OK);
        CHECK_STR(buf_str(&h.text), expected);
        sse_fini(&s);
        buf_fini(&h.text);
    }
}

TEST(an_event_ends_with_an_empty_line)
{
    check_events(STR("id: 3-1\nevent: chunk\ndata: {\"a\":1}\n\n"),
                 "3-1|chunk|{\"a\":1};");
    check_events(STR("event: chunk\ndata: half\n"), "");
}

TEST(lines_end_in_cr_lf_or_both)
{
    check_events(STR("data: a\r\n\r\ndata: b\r\rdata: c\n\n"),
                 "|message|a;|message|b;|message|c;");
}

TEST(the_end_of_a_line_is_the_first_of_either)
{
    static char text[1000];
    struct str bytes = {text, sizeof(text)};

    memset(text, 'x', sizeof(text));
    CHECK_INT(sse_line_end(bytes, 0), 1000);
    CHECK_INT(sse_line_end(bytes, 1000), 1000);
    CHECK_INT(sse_line_end((struct str){NULL, 0}, 0), 0);
    for (size_t at = 0; at < sizeof(text); at++) {
        size_t behind = (at * 7 + 1) % sizeof(text);

        text[at] = at % 2 ? '\r' : '\n';
        CHECK_INT(sse_line_end(bytes, 0), at);
        CHECK_INT(sse_line_end(bytes, at), at);
        CHECK_INT(sse_line_end(bytes, at + 1), sizeof(text));
        if (behind > at) { /* the other of the two, further on */
            text[behind] = at % 2 ? '\n' : '\r';
            CHECK_INT(sse_line_end(bytes, at / 2), at);
            CHECK_INT(sse_line_end(bytes, at + 1), behind);
            text[behind] = 'x';
        }
        text[at] = 'x';
    }
}

TEST(comments_and_unknown_fields_are_passed_over)
{
    check_events(STR(": still here\n\nretry: 5\nfoo\ndata: x\n\n"),
                 "|message|x;");
}

TEST(one_space_behind_the_colon_is_not_part_of_the_value)
{
    check_events(STR("data:a\n\ndata:  b\n\ndata\n\n"),
                 "|message|a;|message| b;|message|;");
}

TEST(several_data_lines_are_one_text)
{
    check_events(STR("data: a\ndata: b\n\n"), "|message|a\nb;");
}

TEST(an_id_stays_for_the_events_behind_it)
{
    check_events(STR("id: 7\n\ndata: x\n\nid: 8\ndata: y\n\n"),
                 "7|message|x;8|message|y;");
}

TEST(an_id_with_a_nul_is_none)
{
    check_events(STR("id: 7\ndata: x\n\nid: 8\0\ndata: y\n\n"),
                 "7|message|x;7|message|y;");
}

TEST(a_byte_order_mark_is_passed_over)
{
    check_events(STR("\xef\xbb\xbf"
                     "data: x\n\n"),
                 "|message|x;");
}

TEST(an_event_may_be_as_large_as_the_limit_and_no_larger)
{
    for (size_t more = 0; more < 2; more++) {
        struct heard h = {.stop_after = 0};
        struct sse s;
        enum err e;

        buf_init(&h.text, 4096);
        sse_init(&s, 16, hear, &h);
        e = sse_feed(&s, more ? STR("data: 0123456789abcdefX\n\n")
                              : STR("data: 0123456789abcdef\n\n"));
        CHECK(e == (more ? ERR_LIMIT : OK));
        CHECK_STR(buf_str(&h.text), more ? "" : "|message|0123456789abcdef;");
        sse_fini(&s);
        buf_fini(&h.text);
    }
}

TEST(whoever_has_heard_enough_hears_no_more)
{
    struct heard h = {.stop_after = 1};
    struct sse s;

    buf_init(&h.text, 4096);
    sse_init(&s, 1024, hear, &h);
    CHECK(sse_feed(&s, STR("data: a\n\ndata: b\n\n")) == ERR_GONE);
    CHECK_STR(buf_str(&h.text), "|message|a;");
    sse_fini(&s);
    buf_fini(&h.text);
}

TEST(a_new_connection_forgets_half_an_event_and_keeps_the_id)
{
    struct heard h = {.stop_after = 0};
    struct sse s;

    buf_init(&h.text, 4096);
    sse_init(&s, 1024, hear, &h);
    CHECK(sse_feed(&s, STR("id: 5\ndata: a\n\nevent: z\ndata: ha")) == OK);
    sse_restart(&s);
    CHECK(sse_feed(&s, STR("data: b\n\n")) == OK);
    CHECK_STR(buf_str(&h.text), "5|message|a;5|message|b;");
    sse_fini(&s);
    buf_fini(&h.text);
}
