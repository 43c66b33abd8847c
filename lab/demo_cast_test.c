#include "lab/demo_cast.h"
#include "model/card.h"
#include "server/config/config.h"
#include "test/t.h"

/* All four are valid in a configuration. */
TEST(every_card_is_a_good_one)
{
    for (size_t i = 0; i < DEMO_ACTORS; i++) {
        struct config_report report;
        struct config *c;
        struct json_out o;
        struct buf text;

        buf_init(&text, 64 * 1024);
        buf_add_str(&text, STR("{\"agents\":{\"list\":["));
        o = json_out(&text);
        json_open(&o, '{');
        demo_put_card(&o, &demo_cast[i]);
        json_close(&o, '}');
        buf_add_str(&text, STR("]}}"));
        c = config_load_text("demo", buf_str(&text), &(struct config_source){0},
                             &report);
        CHECK_STR(str_of(report.text), "");
        CHECK(c && c->agents.n == 1 && c->agents.list[0].n_skills == 3);
        CHECK(c->agents.list[0].routing.keywords.n == 4);
        CHECK(demo_find(c->agents.list[0].name) == &demo_cast[i]);
        config_free(c);
        buf_fini(&text);
    }
    CHECK(!demo_find(STR("stranger")));
}

TEST(a_reply_is_chosen_by_the_words_of_the_message)
{
    const struct demo_actor *engineer = demo_find(STR("Engineer"));
    struct str any = demo_reply_to(engineer, STR("hm"));

    CHECK(str_eq(any, demo_reply_to(engineer, STR(""))));
    CHECK(str_starts(demo_reply_to(engineer, STR("Why so SLOW?")),
                     STR("Slow is measurable")));
    CHECK(str_starts(demo_reply_to(engineer, STR("it crashed: a bug")),
                     STR("Let us find")));
    /* Part of a word does not match. */
    CHECK(str_eq(any, demo_reply_to(engineer, STR("slowly, apiary"))));
    /* The reply with more matching words. */
    CHECK(str_starts(
        demo_reply_to(engineer, STR("write code for a slow function")),
        STR("Here is a first version")));
}

/* The example message also matches a reply of the other agent. */
TEST(one_of_them_asks_another)
{
    const struct demo_actor *writer = demo_find(STR("content-writer"));
    const struct demo_actor *other =
        demo_find(str_of(writer->delegations.agent));
    struct str ask = str_of(writer->delegations.ask);

    CHECK(other && !other->delegations.agent);
    CHECK(demo_wants_help(writer, ask) && !demo_wants_help(other, ask));
    CHECK(!demo_wants_help(writer, str_of(writer->ask)));
    CHECK(!str_eq(demo_reply_to(other, ask), demo_reply_to(other, STR(""))));
}

/* Each example message gets a specific reply. */
TEST(every_example_has_a_reply_of_its_own)
{
    for (size_t i = 0; i < DEMO_ACTORS; i++) {
        const struct demo_actor *a = &demo_cast[i];

        CHECK(!str_eq(demo_reply_to(a, str_of(a->ask)),
                      demo_reply_to(a, STR(""))));
    }
}

TEST(the_pieces_of_a_reply_are_the_reply)
{
    for (size_t i = 0; i < DEMO_ACTORS; i++)
        for (size_t k = 0; k < DEMO_REPLIES_MAX; k++) {
            struct str rest = str_of(demo_cast[i].replies[k].text);
            struct str whole = rest;
            struct buf all;
            int pause_ms;

            buf_init(&all, 16 * 1024);
            while (rest.n) {
                struct str piece = demo_piece(&rest, &pause_ms);

                CHECK(piece.n > 0 && piece.n < 64);
                CHECK(pause_ms > 0 && pause_ms < 500);
                buf_add_str(&all, piece);
            }
            CHECK(str_eq(buf_str(&all), whole));
            buf_fini(&all);
        }
}
