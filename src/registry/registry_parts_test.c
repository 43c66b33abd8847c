/* A model of two parts: quick vectors from the first moment on, full ones once
 * the thread has made them, and the vectors that serve while those of another
 * model are rebuilt. The model is the one inside the binary. */
#include "test/lib/find_stage.h"

#include "model/advice.h"

enum { MODEL_DIMS = BOTH_DIMS, MODEL_QUICK = BUILTIN_DIMS };

static const struct str texts[] = {
    STR("book me a table"),    STR("why is the sky blue"),
    STR("fix the login page"), STR("what rhymes with moon"),
    STR("pay the invoice"),    STR("water the plants"),
    STR("asdf qwer"),          STR("thanks a lot"),
};

static struct find *stage(void)
{
    struct find *f = find_begin(EMBED_BUILTIN);

    f->opts.reference = (struct strs){texts, sizeof(texts) / sizeof(texts[0])};
    return f;
}

static int64_t n_unembedded(struct find *f)
{
    return registry_stats(f->r).unembedded;
}

static void await_full(struct find *f)
{
    AWAIT(f->e, registry_stats(f->r).is_ready);
    CHECK(n_unembedded(f) == 0 && registry_stats(f->r).has_levels);
    find_check(f);
}

static size_t row_bytes(struct find *f, const char *key)
{
    struct query q;
    size_t n;

    query_init(&q, &vector_table, 1);
    query_if(&q, VECTOR_AGENT, IS, value_text(str_of(key)));
    CHECK(store_look(f->store, &q) == OK);
    n = q.rows ? row_str(q.rows, VECTOR_BYTES).n : 0;
    query_fini(&q);
    return n;
}

/* Its full vectors are there, in a row. */
static bool has_full(struct find *f, const char *name)
{
    return row_bytes(f, name) > 0;
}

/* The packed vector of a text. */
static struct str vector_of(struct find *f, const char *text, bool is_quick)
{
    static uint8_t packed[8 + 2 * MODEL_DIMS];
    float v[MODEL_DIMS];

    if (is_quick) {
        CHECK(embed_quick(f->e->embed, str_of(text), v));
    } else if (!embed_now(f->e->embed, str_of(text), EMBED_QUERY, v)) {
        struct owner *o = ASK(f->e, text);

        AWAIT(f->e, o->n_done);
        CHECK(o->e == OK);
        memcpy(v, o->vectors, sizeof(v));
        owner_free(o);
    }
    CHECK(vec_pack(v, MODEL_DIMS, packed));
    return (struct str){(const char *)packed, sizeof(packed)};
}

/* The result of a message for one agent. */
static struct registry_near near_of(struct find *f, const char *name,
                                    struct str vector)
{
    struct registry_near_query q = {
        .eyes = find_eyes("admin"), .text = STR("x"), .vector = vector};
    const struct registry_near *list;
    size_t n, n_left;

    CHECK(registry_near(f->r, &q, &list, &n, &n_left) == OK);
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i].agent->name, str_of(name)))
            return list[i];
    T_FAIL("%s is not there", name);
}

static bool is_near(float a, float b)
{
    return fabsf(a - b) < 1e-3F;
}

static const char *cook(void)
{
    return card("cook", "Suggests recipes and plans meals", "public",
                "{\"id\":\"a\",\"name\":\"Bake\",\"description\":\"bread and "
                "cakes\",\"examples\":[\"how do I bake bread\",\"a cake for "
                "ten\"]}");
}

TEST(a_fresh_agent_is_found_by_meaning_at_once)
{
    struct find *f = stage();
    struct search s = find_query("anna", "dinner ideas");
    struct registry_near near;
    struct found o;

    find_open(f);
    PUT(f, "anna", cook());
    PUT(f, "anna", card("coder", "Fixes web pages", "public", ""));
    CHECK(n_unembedded(f) == 2 && !has_full(f, "cook"));
    CHECK(!registry_stats(f->r).is_ready);
    CHECK(find_is_embedded(f, "cook")); /* it is found by meaning */
    find_check(f);
    near = near_of(f, "cook", vector_of(f, "dinner ideas", true));
    CHECK(near.cosine > 0.1F && near.level.high >= 0);
    CHECK(near.cosine >
          near_of(f, "coder", vector_of(f, "dinner ideas", true)).cosine);
    s.mode = INDEX_SEMANTIC;
    find_search(f, &s, &o);
    CHECK(o.n && strcmp(o.hits[0].name, "cook") == 0);
    CHECK(o.mode == INDEX_SEMANTIC && !o.note[0]);
    await_full(f);
    CHECK(has_full(f, "cook"));
    CHECK_INT(row_bytes(f, "cook"), 5 * vec_packed_bytes(MODEL_DIMS));
    find_search(f, &s, &o);
    CHECK(o.n && strcmp(o.hits[0].name, "cook") == 0 && !o.note[0]);
    find_free(f);
}

/* Results from the table do not change when the full vectors arrive; results
 * from both differ. */
TEST(quick_texts_find_the_same_before_and_after)
{
    struct find *f = stage();
    struct registry_near before, after, full;
    struct card_level quick;

    find_open(f);
    PUT(f, "anna", cook());
    before = near_of(f, "cook", vector_of(f, "dinner ideas", true));
    quick = registry_quick_level(f->r, STR("cook"));
    CHECK(is_near(quick.mid, before.level.mid));
    /* A full text is compared with what is there: by first parts. */
    CHECK(is_near(registry_level(f->r, STR("cook")).high, quick.high));
    await_full(f);
    after = near_of(f, "cook", vector_of(f, "dinner ideas", true));
    CHECK(is_near(before.cosine, after.cosine));
    CHECK(is_near(before.level.mid, after.level.mid));
    CHECK(is_near(before.level.high, after.level.high));
    CHECK(is_near(registry_quick_level(f->r, STR("cook")).high, quick.high));
    full = near_of(f, "cook", vector_of(f, "dinner ideas", false));
    CHECK(full.level.high >= 0 && full.cosine > 0);
    CHECK(!is_near(full.cosine, after.cosine));
    CHECK(!is_near(full.level.high, after.level.high));
    CHECK(is_near(registry_level(f->r, STR("cook")).high, full.level.high));
    find_free(f);
}

/* Nothing is compared by both before levels are known that go with that. */
TEST(full_texts_count_once_there_are_levels_for_them)
{
    struct find *f = stage();
    uint8_t kept[8 + 2 * MODEL_DIMS];
    struct str full = {(const char *)kept, sizeof(kept)};

    find_open(f);
    await_full(f);
    memcpy(kept, vector_of(f, "dinner ideas", false).p, sizeof(kept));
    find_close(f);
    find_open(f);
    PUT(f, "anna", cook());
    CHECK(!registry_has_full(f->r)); /* the loop has not turned */
    CHECK(
        is_near(near_of(f, "cook", full).cosine,
                near_of(f, "cook", vector_of(f, "dinner ideas", true)).cosine));
    CHECK(near_of(f, "cook", full).level.high >= 0);
    await_full(f);
    CHECK(registry_has_full(f->r));
    CHECK(near_of(f, "cook", full).level.high >= 0);
    find_free(f);
}

TEST(a_full_text_meets_a_quick_agent_by_first_parts)
{
    struct find *f = stage();
    struct str vector;
    struct registry_near quick;
    uint8_t kept[8 + 2 * MODEL_DIMS];

    find_open(f);
    await_full(f);
    vector = vector_of(f, "dinner ideas", false); /* turns the loop */
    memcpy(kept, vector.p, vector.n);
    PUT(f, "anna", cook());
    CHECK(!has_full(f, "cook"));
    quick = near_of(f, "cook", vector_of(f, "dinner ideas", true));
    CHECK(is_near(
        near_of(f, "cook", (struct str){(const char *)kept, sizeof(kept)})
            .cosine,
        quick.cosine));
    find_free(f);
}

/* Another text: quick again, and no row of what it said before. */
TEST(an_agent_that_changes_is_quick_again)
{
    struct find *f = stage();

    find_open(f);
    PUT(f, "anna", cook());
    await_full(f);
    PUT(f, "anna", card("cook", "Sings of ships", "public", ""));
    CHECK(!has_full(f, "cook"));
    find_check(f);
    CHECK(near_of(f, "cook", vector_of(f, "a sea shanty", true)).cosine > 0.1F);
    await_full(f);
    /* The same words: present vectors are kept, not made again. */
    PUT(f, "anna", card("cook", "Sings of ships", "private", ""));
    CHECK(has_full(f, "cook"));
    find_check(f);
    /* Changed while it is quick, with the same words: quick ones are not kept
     * as if they were full. */
    PUT(f, "anna", card("cook", "Bakes", "public", ""));
    PUT(f, "anna", card("cook", "Bakes", "private", ""));
    CHECK(!has_full(f, "cook"));
    find_check(f);
    await_full(f);
    CHECK(find_remove(f, "anna", "cook") == OK);
    find_check(f);
    find_free(f);
}

/* Removed while its vectors are made. */
TEST(an_agent_that_goes_meanwhile_is_forgotten)
{
    struct find *f = stage();

    find_open(f);
    PUT(f, "anna", cook());
    eturn(f->e);
    CHECK(find_remove(f, "anna", "cook") == OK);
    find_check(f);
    await_full(f);
    find_free(f);
}

/* With a snapshot and without. */
TEST(a_restart_in_the_midst_of_it_goes_on)
{
    for (int with = 0; with < 2; with++) {
        struct find *f = stage();

        f->opts.folder = with ? f->folder : NULL;
        find_open(f);
        PUT(f, "anna", card("coder", "Fixes web pages", "public", ""));
        await_full(f);
        PUT(f, "anna", cook());
        find_close(f);
        find_open(f);
        CHECK(!with || find_n_logged(f, "from its snapshot") == 1);
        CHECK(has_full(f, "coder") && !has_full(f, "cook"));
        CHECK_INT(n_unembedded(f), 1);
        find_check(f);
        CHECK(near_of(f, "cook", vector_of(f, "dinner ideas", true)).cosine >
              0.1F);
        CHECK(registry_quick_level(f->r, STR("cook")).high >= 0);
        CHECK(registry_quick_level(f->r, STR("coder")).high >= 0);
        CHECK(registry_level(f->r, STR("coder")).high >= 0);
        await_full(f);
        find_close(f);
        find_open(f); /* and now all of it is there */
        CHECK_INT(n_unembedded(f), 0);
        find_check(f);
        CHECK_INT(embed_stats(f->e->embed).texts_total, 0);
        find_free(f);
    }
}

/* From the table alone to both: no search falls back to words meanwhile. */
TEST(another_model_is_made_anew_while_quick_vectors_serve)
{
    struct find *f = stage();
    struct search s = find_query("anna", "dinner ideas");
    struct registry_near quick, full;
    uint8_t kept[8 + 2 * MODEL_DIMS];
    struct found o;

    f->e->opts.kind = EMBED_TABLE;
    find_open(f);
    PUT(f, "anna", cook());
    PUT(f, "anna", card("coder", "Fixes web pages", "public", ""));
    CHECK(!registry_has_full(f->r)); /* there is one part */
    find_close(f);
    f->e->opts.kind = EMBED_BUILTIN;
    find_open(f);
    memcpy(kept, vector_of(f, "dinner ideas", true).p, sizeof(kept));
    CHECK_INT(n_unembedded(f), 2);
    CHECK(!registry_has_full(f->r));
    find_check(f);
    s.mode = INDEX_SEMANTIC;
    CHECK(find_try(f, &s, &o) == OK && o.n_done); /* nothing to wait for */
    CHECK(o.mode == INDEX_SEMANTIC && o.n);
    CHECK(strcmp(o.hits[0].name, "cook") == 0);
    CHECK(strstr(o.note, "rebuilt; until then search goes by the table's"));
    CHECK_INT(registry_stats(f->r).searches_by_words_total, 0);
    quick = near_of(f, "cook", (struct str){(const char *)kept, sizeof(kept)});
    CHECK(quick.cosine > 0.1F && quick.level.high >= 0);
    await_full(f);
    CHECK(registry_has_full(f->r));
    find_search(f, &s, &o);
    CHECK(o.mode == INDEX_SEMANTIC && o.n && !o.note[0]);
    full = near_of(f, "cook", vector_of(f, "dinner ideas", false));
    CHECK(!is_near(full.cosine, quick.cosine));
    find_free(f);
}

/* Those that have their full vectors already must not be ranked by another
 * scale than those that have not. */
TEST(while_made_anew_everyone_is_compared_by_first_parts)
{
    struct find *f = stage();
    uint8_t kept[8 + 2 * MODEL_DIMS];
    struct registry_near quick, full;
    struct str v;

    f->e->opts.kind = EMBED_TABLE;
    find_open(f);
    PUT(f, "anna", cook());
    find_close(f);
    f->e->opts.kind = EMBED_BUILTIN;
    find_open(f);
    PUT(f, "anna", card("coder", "Fixes web pages", "public", ""));
    v = vector_of(f, "dinner ideas", false); /* whatever is there by then */
    memcpy(kept, v.p, v.n);
    await_full(f);
    find_close(f);
    f->e->opts.kind = EMBED_TABLE; /* cook's row is the table's again */
    find_open(f);
    AWAIT(f->e, n_unembedded(f) == 0);
    find_close(f);
    f->e->opts.kind = EMBED_BUILTIN;
    find_open(f);
    CHECK(!registry_has_full(f->r));
    full = near_of(f, "cook", (struct str){(const char *)kept, sizeof(kept)});
    quick = near_of(f, "cook", vector_of(f, "dinner ideas", true));
    CHECK(is_near(full.cosine, quick.cosine));
    CHECK(is_near(full.level.high, quick.level.high));
    /* An invalid vector is none. */
    kept[0] ^= 0x55;
    CHECK(near_of(f, "cook", (struct str){(const char *)kept, sizeof(kept)})
              .cosine < 0);
    find_free(f);
}

/* The thread has too much to do. */
TEST(a_search_that_cannot_wait_goes_by_the_quick_vector)
{
    struct find *f = stage();
    struct search s = find_query("anna", "dinner ideas");
    struct owner *busy;
    struct found o;
    enum err e;

    f->e->opts.max_waiting = 4;
    f->opts.reference.n = 0;
    find_open(f);
    PUT(f, "anna", cook());
    AWAIT(f->e, n_unembedded(f) == 0);
    busy = try_start(f->e->embed, EMBED_QUERY, TEXTS("a", "b", "c", "d"), &e,
                     NULL);
    CHECK(busy);
    s.mode = INDEX_SEMANTIC;
    CHECK(find_try(f, &s, &o) == OK && o.n_done);
    CHECK(o.mode == INDEX_SEMANTIC && o.n == 1);
    CHECK(strstr(o.note, "searched by the table's vectors alone, because too "
                         "many texts wait"));
    CHECK_INT(registry_stats(f->r).searches_by_words_total, 0);
    AWAIT(f->e, busy->n_done);
    owner_free(busy);
    find_free(f);
}

/* The thread is late. */
TEST(a_search_whose_vector_is_late_goes_by_the_quick_one)
{
    struct find *f = stage();
    struct search s = find_query("anna", "dinner ideas");
    struct found o;

    f->e->opts.timeout_ms = 5000;
    f->opts.reference.n = 0;
    find_open(f);
    PUT(f, "anna", cook());
    AWAIT(f->e, n_unembedded(f) == 0);
    s.mode = INDEX_SEMANTIC;
    CHECK(find_try(f, &s, &o) == OK && !o.n_done);
    f->mono_ms += 5001; /* before the loop hears of the thread, or not */
    AWAIT(f->e, o.n_done);
    CHECK(o.mode == INDEX_SEMANTIC && o.n == 1);
    CHECK(!o.note[0] || strstr(o.note, "the table's vectors alone, because the "
                                       "model did not answer in time"));
    find_free(f);
}

/* More texts than are a moment's work: by words, until they are made. */
TEST(a_card_that_is_too_large_waits)
{
    struct find *f = stage();
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_addf(&text, "{\"id\":\"a\",\"name\":\"a\",\"description\":\"b\","
                    "\"examples\":[");
    for (int i = 0; i < 50; i++)
        buf_addf(&text, "%s\"example %d\"", i ? "," : "", i);
    buf_addf(&text, "]}");
    for (int i = 0; i < 220; i++)
        buf_addf(&text, ",{\"id\":\"s%d\",\"name\":\"x\"}", i);
    buf_add_char(&text, '\0');
    find_open(f);
    PUT(f, "anna", card("large", "Cuts wood", "public", text.p));
    CHECK(near_of(f, "large", vector_of(f, "wood", true)).cosine < 0);
    find_check(f);
    await_full(f);
    CHECK(near_of(f, "large", vector_of(f, "wood", true)).cosine >= 0);
    buf_fini(&text);
    find_free(f);
}

/* Without memory for its quick vectors an agent is there by its words. */
TEST(no_memory_for_quick_vectors_is_no_failure)
{
    struct find *f = stage();

    find_open(f);
    fault_arm_at("vectors.pack", 1);
    PUT(f, "anna", card("cook", "Suggests recipes", "public", ""));
    CHECK(fault_fired());
    fault_arm(0);
    CHECK(near_of(f, "cook", vector_of(f, "meal", true)).cosine < 0);
    find_check(f);
    await_full(f);
    CHECK(near_of(f, "cook", vector_of(f, "meal", true)).cosine > 0);
    find_free(f);
}

/* Nor for the quick reference vectors: choices are unsure then. */
TEST(without_quick_reference_vectors_no_quick_level_is_known)
{
    struct find *f = stage();

    fault_arm_at("vectors.pack", 1); /* when it is opened */
    find_open(f);
    CHECK(fault_fired());
    fault_arm(0);
    CHECK_INT(find_n_logged(f, "registry.no_levels"), 1);
    find_free(f);
}

TEST(the_closest_card_is_found_whichever_vectors_they_have)
{
    struct eyes eyes = find_eyes("anna");
    struct find *f = stage();
    const struct agent *a;
    double likeness;

    find_open(f);
    PUT(f, "anna",
        card("one", "Paints old wooden houses and fences", "public", ""));
    await_full(f);
    PUT(f, "anna",
        card("two", "Paints old wooden fences and houses!", "public", ""));
    CHECK(has_full(f, "one") && !has_full(f, "two"));
    for (int i = 0; i < 2; i++) {
        a = registry_find(f->r, str_of(i ? "one" : "two"), &eyes);
        a = registry_closest(f->r, a, &eyes, &likeness);
        CHECK(a && str_eq(a->name, str_of(i ? "two" : "one")));
        CHECK(likeness >= ADVICE_CLOSE && likeness < 1.001);
    }
    await_full(f);
    a = registry_find(f->r, STR("one"), &eyes);
    a = registry_closest(f->r, a, &eyes, &likeness);
    CHECK(a && likeness < 1.001);
    find_free(f);
}

/* In whichever order rows are written and cards change. */
TEST(many_agents_come_and_go_and_all_agrees)
{
    enum { N = 60 };
    struct find *f = stage();
    char name[16];

    find_open(f);
    for (int i = 0; i < 3 * N; i++) {
        snprintf(name, sizeof(name), "a%02d", i * 7 % N);
        if (i % 5 == 4)
            (void)!find_remove(f, "anna", name);
        else
            PUT(f, "anna",
                card(name, i % 3 ? "Cuts wood" : "Sings", "public",
                     i % 2 ? skill("s", "Saw", "a board") : ""));
        if (i % 11 == 0)
            eturn(f->e);
        if (i % 20 == 0)
            find_check(f);
    }
    await_full(f);
    find_free(f);
}
