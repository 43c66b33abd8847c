/* The reference vectors, and the levels that cards get from them: with a model
 * at hand, with a provider, over a restart, and while the provider is away. */
#include "test/lib/find_stage.h"

static const struct str texts[] = {
    STR("book me a table"),    STR("why is the sky blue"),
    STR("fix the login page"), STR("what rhymes with moon"),
    STR("pay the invoice"),    STR("water the plants"),
    STR("asdf qwer"),          STR("thanks a lot"),
};
enum { N_TEXTS = sizeof(texts) / sizeof(texts[0]) };

static struct find *stage(enum embed_kind kind)
{
    struct find *f = find_begin(kind);

    f->opts.reference = (struct strs){texts, N_TEXTS};
    f->e->opts.http.dims = kind == EMBED_HTTP ? TEST_DIMS : 0;
    return f;
}

static struct card_level level_of(struct find *f, const char *name)
{
    return registry_level(f->r, str_of(name));
}

static bool is_known(struct find *f, const char *name)
{
    return level_of(f, name).high >= 0;
}

static bool is_same(struct card_level a, struct card_level b)
{
    return a.mid >= b.mid && a.mid <= b.mid && a.high >= b.high &&
           a.high <= b.high;
}

static const char *const COOK = "{\"name\":\"anna\",\"description\":\"Suggests "
                                "recipes\",\"visibility\":\"public\"}";
static const char *const CODER = "{\"name\":\"ben\",\"description\":\"Fixes "
                                 "web pages\",\"visibility\":\"public\"}";

TEST(a_card_has_its_level_with_its_vectors)
{
    struct find *f = stage(EMBED_TABLE);

    find_open(f);
    PUT(f, "anna", COOK);
    CHECK(is_known(f, "anna"));
    CHECK(level_of(f, "anna").mid <= level_of(f, "anna").high);
    find_free(f);
}

TEST(without_reference_texts_no_level_is_known)
{
    struct find *f = find_begin(EMBED_TABLE);

    find_open(f);
    PUT(f, "anna", COOK);
    CHECK(!is_known(f, "anna"));
    find_free(f);
}

/* The texts are in the binary, and a card may hold them all. */
TEST(a_card_that_holds_the_reference_texts_moves_no_other)
{
    struct find *f = stage(EMBED_TABLE);
    struct card_level before, hostile;
    struct buf card;

    find_open(f);
    PUT(f, "anna", COOK);
    before = level_of(f, "anna");
    buf_init(&card, 65536);
    buf_addf(
        &card,
        "{\"name\":\"eve\",\"description\":\"all\",\"visibility\":\"public\","
        "\"skills\":[");
    for (size_t i = 0; i < N_TEXTS; i++)
        buf_addf(&card, "%s{\"id\":\"s%zu\",\"name\":\"%.*s\"}", i ? "," : "",
                 i, STR_ARG(texts[i]));
    buf_addf(&card, "]}");
    buf_add_char(&card, 0);
    PUT(f, "eve", card.p);
    hostile = level_of(f, "eve");
    CHECK(is_same(level_of(f, "anna"), before));
    CHECK(hostile.mid > before.high);
    buf_fini(&card);
    find_free(f);
}

TEST(a_provider_is_asked_for_the_texts_once_per_stamp)
{
    struct find *f = stage(EMBED_HTTP);
    struct card_level before;
    int64_t n;

    find_open(f);
    PUT(f, "anna", COOK);
    PUT(f, "ben", CODER);
    AWAIT(f->e, is_known(f, "anna") && is_known(f, "ben"));
    before = level_of(f, "ben");
    find_close(f);
    find_open(f);
    AWAIT(f->e, is_known(f, "ben"));
    CHECK(is_same(level_of(f, "ben"), before));
    n = embed_stats(f->e->embed).texts_total;
    CHECK_INT(n, 0);
    find_free(f);
}

TEST(levels_stay_in_force_while_the_provider_is_away)
{
    struct find *f = stage(EMBED_HTTP);
    struct card_level before;

    find_open(f);
    PUT(f, "anna", COOK);
    AWAIT(f->e, is_known(f, "anna"));
    before = level_of(f, "anna");
    find_close(f);
    f->e->peer->respond = NULL; /* it hears, and says nothing */
    find_open(f);
    AWAIT(f->e, is_known(f, "anna"));
    CHECK(is_same(level_of(f, "anna"), before));
    find_free(f);
}

/* Other texts are other levels: the row of the old ones does not count. */
TEST(other_texts_are_asked_for)
{
    struct find *f = stage(EMBED_HTTP);

    find_open(f);
    PUT(f, "anna", COOK);
    AWAIT(f->e, is_known(f, "anna"));
    find_close(f);
    f->opts.reference.n--;
    find_open(f);
    AWAIT(f->e, is_known(f, "anna"));
    CHECK_INT(embed_stats(f->e->embed).texts_total, N_TEXTS - 1);
    find_free(f);
}

/* The provider has another model under the same name: vectors of another
 * length, of the cards and of the texts. */
TEST(vectors_of_another_length_bring_other_levels)
{
    struct find *f = stage(EMBED_HTTP);
    struct search s = find_query("anna", "recipes");
    struct card_level before;
    struct found o;

    f->e->opts.http.dims = 0; /* the first answer tells */
    find_open(f);
    PUT(f, "anna", COOK);
    AWAIT(f->e, is_known(f, "anna"));
    before = level_of(f, "anna");
    find_close(f);
    f->e->peer->dims = 12;
    f->e->opts.cache_entries = 0;
    find_open(f);
    find_search(f, &s, &o); /* the first that it hears of it */
    AWAIT(f->e, find_n_logged(f, "registry.vectors_made") == 1);
    AWAIT(f->e, is_known(f, "anna"));
    CHECK(!is_same(level_of(f, "anna"), before));
    before = level_of(f, "anna");
    find_close(f);
    find_open(f); /* and they are kept */
    AWAIT(f->e, is_known(f, "anna"));
    CHECK(is_same(level_of(f, "anna"), before));
    CHECK_INT(embed_stats(f->e->embed).texts_total, 0);
    find_free(f);
}

TEST(a_snapshot_brings_the_levels_and_new_cards_get_theirs)
{
    struct find *f = stage(EMBED_TABLE);
    struct card_level before;

    f->opts.folder = f->folder;
    find_open(f);
    PUT(f, "anna", COOK);
    before = level_of(f, "anna");
    find_close(f);
    find_open(f);
    CHECK(is_same(level_of(f, "anna"), before));
    PUT(f, "ben", CODER);
    CHECK(is_known(f, "ben"));
    find_free(f);
}

TEST(no_more_texts_count_than_the_index_takes)
{
    static struct str many[INDEX_REFERENCE_MAX + 1];
    struct find *f = find_begin(EMBED_TABLE);

    for (size_t i = 0; i <= INDEX_REFERENCE_MAX; i++)
        many[i] = texts[i % N_TEXTS];
    f->opts.reference = (struct strs){many, INDEX_REFERENCE_MAX + 1};
    find_open(f);
    PUT(f, "anna", COOK);
    CHECK(is_known(f, "anna"));
    find_free(f);
}
