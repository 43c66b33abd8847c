/* Credentials of cards are sealed in the store, and nowhere else to be seen. */
#include <unistd.h>

#include "test/lib/registry_stage.h"

#define KEY   "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define CARD                                                          \
    "{\"name\":\"Z\",\"url\":\"https://z.example/a?key=s3cret-url\"," \
    "\"authentication\":{\"schemes\":[\"bearer\"],\"credentials\":"   \
    "\"s3cret-proof\"},\"wake\":{\"url\":\"https://w.example/?s3cret-wake\"}}"

static struct seal_key key, other;

static void open_with_key(struct stage *s, const struct seal_key *k)
{
    CHECK(seal_key_read(STR(KEY), &key) == OK);
    CHECK(seal_key_read(STR(OTHER), &other) == OK);
    stage_prepare(s);
    s->opts.seal = k;
    s->opts.seal_from = "/etc/key";
    CHECK(stage_start(s) == OK);
}

/* The row as the store has it. */
static void read_row(struct stage *s, struct buf *out)
{
    struct query q;

    query_init(&q, &agent_table, 1);
    query_if(&q, AGENT_KEY, IS, value_text(STR("z")));
    CHECK(store_look(s->store, &q) == OK && q.rows);
    buf_init(out, 1 << 20);
    buf_add_str(out, row_str(q.rows, AGENT_CARD));
    query_fini(&q);
}

static bool row_has(struct stage *s, const char *words)
{
    struct buf row;
    bool has;

    read_row(s, &row);
    buf_add_char(&row, '\0');
    has = strstr(row.p, words) != NULL;
    buf_fini(&row);
    return has;
}

static void expect_whole(struct stage *s)
{
    const struct agent *a = stage_find(s, NULL, "z");

    CHECK(a);
    CHECK_STR(a->url, "https://z.example/a?key=s3cret-url");
    CHECK_STR(a->wake.url, "https://w.example/?s3cret-wake");
    CHECK_STR(a->authentication,
              "{\"schemes\":[\"bearer\"],\"credentials\":\"s3cret-proof\"}");
}

TEST(no_secret_is_in_the_store_and_all_are_back_after_a_start)
{
    struct stage s;

    open_with_key(&s, &key);
    CHECK(stage_put(&s, &stage_anna, CARD) == OK);
    expect_whole(&s);
    CHECK(!row_has(&s, "s3cret") && row_has(&s, "\nsealed 1:"));
    CHECK(row_has(&s, "https://z.example/a\"") && row_has(&s, "w.example"));
    stage_restart(&s, false);
    expect_whole(&s);
    /* A card without secrets is as it was. */
    CHECK(stage_patch(&s, &stage_anna, "z",
                      "{\"authentication\":null,\"wake\":null,\"url\":"
                      "\"https://z.example/\"}") == OK);
    CHECK(!row_has(&s, "sealed"));
    stage_close(&s);
}

TEST(control_without_a_key_they_are_in_the_store)
{
    struct stage s;

    open_with_key(&s, NULL);
    CHECK(stage_put(&s, &stage_anna, CARD) == OK);
    CHECK(row_has(&s, "s3cret-proof") && row_has(&s, "s3cret-url"));
    stage_close(&s);
}

TEST(what_was_written_without_a_key_is_sealed_when_there_is_one)
{
    struct stage s;

    open_with_key(&s, NULL);
    CHECK(stage_put(&s, &stage_anna, CARD) == OK);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"plain\"}") == OK);
    s.opts.seal = &key;
    stage_restart(&s, false);
    registry_begin(s.r);
    store_turn(s.store);
    CHECK(!row_has(&s, "s3cret") && row_has(&s, "sealed 1:"));
    expect_whole(&s);
    stage_check(&s);
    stage_restart(&s, false);
    expect_whole(&s);
    stage_close(&s);
}

TEST(a_wrong_or_missing_key_is_told_and_nothing_is_lost)
{
    struct stage s;

    open_with_key(&s, &key);
    CHECK(stage_put(&s, &stage_anna, CARD) == OK);
    for (int i = 0; i < 2; i++) {
        stage_end(&s);
        s.opts.seal = i ? NULL : &other;
        CHECK(stage_start(&s) == ERR_BAD_CONFIG);
        CHECK(strstr(s.why.text, key.id));
        CHECK(strstr(s.why.text, i ? "there is no key" : "/etc/key"));
        CHECK(strstr(s.why.text, "seal.keyFile"));
        CHECK(strstr(s.why.text, "seal.ignoreWrongKey"));
    }
    /* Told to, it goes on without them, and they stay where they are. */
    stage_end(&s);
    s.opts.ignores_wrong_key = true;
    CHECK(stage_start(&s) == OK);
    CHECK(stage_find(&s, NULL, "z")->authentication.n == 0);
    CHECK_STR(stage_find(&s, NULL, "z")->url, "https://z.example/a");
    stage_end(&s);
    s.opts.ignores_wrong_key = false;
    s.opts.seal = &key;
    CHECK(stage_start(&s) == OK);
    expect_whole(&s);
    stage_close(&s);
}

TEST(credentials_that_are_said_to_be_set_stay)
{
    static const char said[] =
        "{\"name\":\"Z\",\"authentication\":{\"schemes\":[\"basic\"],"
        "\"credentials\":\"" CARD_IS_SET "\"}}";
    struct stage s;

    open_with_key(&s, &key);
    CHECK(stage_put(&s, &stage_anna, said) == ERR_BAD_REQUEST);
    CHECK(strstr(s.why.text, "there are none"));
    CHECK(stage_put(&s, &stage_anna, CARD) == OK);
    CHECK(stage_put(&s, &stage_anna, said) == OK);
    CHECK_STR(stage_find(&s, NULL, "z")->authentication,
              "{\"schemes\":[\"basic\"],\"credentials\":\"s3cret-proof\"}");
    CHECK(stage_patch(&s, &stage_anna, "z",
                      "{\"authentication\":{\"credentials\":\"" CARD_IS_SET
                      "\"}}") == OK &&
          s.is_same);
    stage_close(&s);
}
