/* Vectors that are made in the background: which texts, in which order, what
 * becomes of a provider that fails, of an agent that changes meanwhile, and of
 * another model. */
#include "test/lib/find_stage.h"

static int64_t n_unembedded(struct find *f)
{
    return registry_stats(f->r).unembedded;
}

/* The row of an agent's vectors, or NULL; q is to be finished. */
static const struct row *row_of(struct find *f, struct query *q,
                                const char *key)
{
    query_init(q, &vector_table, 1);
    query_if(q, VECTOR_AGENT, IS, value_text(str_of(key)));
    CHECK(store_look(f->store, q) == OK);
    return q->rows;
}

static bool has_row(struct find *f, const char *key)
{
    struct query q;
    bool has = row_of(f, &q, key) != NULL;

    query_fini(&q);
    return has;
}

/* Which text a place of a row was made from: the one it is like. */
static bool is_packed_of(const struct row *row, size_t nth, const char *text)
{
    struct str bytes = row_str(row, VECTOR_BYTES);
    size_t each = vec_packed_bytes(TEST_DIMS);
    uint8_t wanted[64];
    struct vec_packed a, b;
    float v[TEST_DIMS];

    CHECK(bytes.n >= (nth + 1) * each && each <= sizeof(wanted));
    vector_for(str_of(text), TEST_DIMS, v);
    CHECK(vec_pack(v, TEST_DIMS, wanted));
    CHECK(vec_packed_open(&a, (const uint8_t *)bytes.p + nth * each, each,
                          TEST_DIMS));
    CHECK(vec_packed_open(&b, wanted, each, TEST_DIMS));
    return vec_packed_dot(&a, &b) > 0.999;
}

TEST(vectors_are_kept_in_order_with_model_and_revision)
{
    struct find *f = find_new(EMBED_HTTP);
    struct embed_stamp stamp;
    const struct row *row;
    struct query q;

    PUT(f, "anna",
        "{\"name\":\"Kerf\",\"description\":\"Cuts wood\",\"routing\":"
        "{\"keywords\":[\"saw\"]},\"skills\":[{\"id\":\"a\",\"name\":\"Cut\","
        "\"description\":\"wood\",\"examples\":[\"cut it\",\"saw it\"]},"
        "{\"id\":\"b\",\"name\":\"Split\",\"description\":\"logs\","
        "\"tags\":[\"axe\"],\"examples\":[\"split it\"]}]}");
    CHECK(n_unembedded(f) == 1 && !find_is_embedded(f, "kerf"));
    find_check(f);
    AWAIT(f->e, n_unembedded(f) == 0);
    CHECK(find_is_embedded(f, "kerf"));
    row = row_of(f, &q, "kerf");
    CHECK(row && row_int(row, VECTOR_REVISION) == 1);
    stamp = embed_stamp(f->e->embed);
    CHECK_STR(row_str(row, VECTOR_MODEL), stamp.name);
    CHECK_STR(row_str(row, VECTOR_HASH), stamp.hash);
    CHECK_INT(row_int(row, VECTOR_DIMS), TEST_DIMS);
    CHECK_INT(row_str(row, VECTOR_BYTES).n, 7 * vec_packed_bytes(TEST_DIMS));
    CHECK(is_packed_of(row, 0, "Kerf: Cuts wood"));
    CHECK(is_packed_of(row, 1, "Kerf: Cuts wood saw"));
    CHECK(is_packed_of(row, 2, "Cut: wood"));
    CHECK(is_packed_of(row, 3, "Split: logs axe"));
    CHECK(is_packed_of(row, 4, "cut it"));
    CHECK(is_packed_of(row, 5, "saw it"));
    CHECK(is_packed_of(row, 6, "split it"));
    query_fini(&q);
    find_check(f);
    find_free(f);
}

TEST(the_model_inside_has_them_with_the_card)
{
    struct find *f = find_new(EMBED_TABLE);

    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    CHECK(n_unembedded(f) == 0 && has_row(f, "kerf"));
    find_check(f);
    find_free(f);
}

/* So many examples that one turn is too short for them, and one call too
 * small. */
TEST(what_is_no_moments_work_is_made_in_the_background)
{
    struct find *f = find_new(EMBED_TABLE);
    struct buf text;
    struct query q;

    buf_init(&text, 1 << 20);
    buf_addf(&text, "{\"name\":\"kerf\",\"description\":\"Cuts\",\"skills\":[");
    for (int i = 0; i < 50; i++) {
        buf_addf(&text,
                 "%s{\"id\":\"s%d\",\"name\":\"n%d\",\"description\":\"d\","
                 "\"examples\":[",
                 i ? "," : "", i, i);
        for (int k = 0; k < 50; k++)
            buf_addf(&text, "%s\"example %d of %d\"", k ? "," : "", k, i);
        buf_addf(&text, "]}");
    }
    buf_add(&text, "]}", 3); /* and its NUL */
    PUT(f, "anna", text.p);
    buf_fini(&text);
    CHECK_INT(n_unembedded(f), 1);
    AWAIT(f->e, n_unembedded(f) == 0);
    CHECK_INT(row_str(row_of(f, &q, "kerf"), VECTOR_BYTES).n,
              (2 + 50 + 2500) * vec_packed_bytes(256));
    query_fini(&q);
    find_check(f);
    find_free(f);
}

TEST(a_batch_that_can_never_wait_is_made_smaller)
{
    struct find *f = find_begin(EMBED_HTTP);

    f->e->opts.max_waiting = 4; /* three of documents */
    find_open(f);
    PUT(f, "anna",
        card("kerf", "Cuts wood", "private",
             "{\"id\":\"a\",\"name\":\"a\",\"description\":\"b\",\"examples\":"
             "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}"));
    AWAIT(f->e, n_unembedded(f) == 0);
    CHECK(find_n_logged(f, "registry.vectors_wait") == 0);
    find_check(f);
    find_free(f);
}

TEST(only_so_many_agents_and_texts_are_out)
{
    enum { N = 40 };
    struct find *f = find_begin(EMBED_HTTP);
    char name[16];

    f->e->opts.http.dims = TEST_DIMS;
    f->e->peer->respond = NULL;
    find_open(f);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "a%02d", i);
        PUT(f, "anna", card(name, "Cuts", "private", skill("s", "x", "y")));
    }
    eturns(f->e, 20);
    CHECK_INT(n_unembedded(f), N);
    CHECK_INT(embed_stats(f->e->embed).waiting, 16 * 3);
    f->e->peer->respond = respond_well;
    AWAIT(f->e, waiting_seat(f->e->peer));
    respond_well(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, n_unembedded(f) == 0);
    find_check(f);
    find_free(f);
}

/* Six with 72 texts each: four send 64 of them, and that is all there may be.
 */
TEST(a_few_large_agents_are_enough)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct buf skills;
    char name[16];

    buf_init(&skills, 1 << 20);
    buf_addf(&skills, "{\"id\":\"a\",\"name\":\"a\",\"description\":\"b\","
                      "\"examples\":[");
    for (int i = 0; i < 64; i++)
        buf_addf(&skills, "%s\"example %d\"", i ? "," : "", i);
    buf_addf(&skills, "]}");
    for (int i = 0; i < 5; i++)
        buf_addf(&skills,
                 ",{\"id\":\"s%d\",\"name\":\"x\",\"description\":\"y\"}", i);
    buf_add(&skills, "", 1);
    f->e->opts.http.dims = TEST_DIMS;
    f->e->peer->respond = NULL;
    find_open(f);
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "a%02d", i);
        PUT(f, "anna", card(name, "Cuts", "private", skills.p));
    }
    buf_fini(&skills);
    eturns(f->e, 20);
    CHECK_INT(embed_stats(f->e->embed).waiting, 4 * 64);
    f->e->peer->respond = respond_well;
    AWAIT(f->e, waiting_seat(f->e->peer));
    respond_well(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, n_unembedded(f) == 0);
    find_check(f);
    find_free(f);
}

/* A public card with so many skills. */
static void put_large(struct find *f, const char *user, const char *name,
                      int n_skills)
{
    struct buf skills;

    buf_init(&skills, 1 << 20);
    for (int i = 0; i < n_skills; i++)
        buf_addf(&skills,
                 "%s{\"id\":\"s%d\",\"name\":\"x\",\"description\":\"y\"}",
                 i ? "," : "", i);
    buf_add(&skills, "", 1);
    PUT(f, user, card(name, "Cuts", "public", skills.p));
    buf_fini(&skills);
}

/* Two have registered 800 skills when a third comes with one: it has its
 * vectors before any of their four cards is done. */
static void owners_in_turns(void)
{
    struct find *f = find_begin(EMBED_HTTP);

    f->e->opts.http.dims = TEST_DIMS;
    f->e->peer->respond = NULL;
    find_open(f);
    put_large(f, "mallory", "m1", 200);
    put_large(f, "mallory", "m2", 200);
    put_large(f, "oscar", "o1", 200);
    put_large(f, "oscar", "o2", 200);
    eturns(f->e, 20);
    put_large(f, "anna", "own", 1);
    f->e->peer->respond = respond_well;
    AWAIT(f->e, waiting_seat(f->e->peer));
    respond_well(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, find_is_embedded(f, "own"));
    CHECK_INT(n_unembedded(f), 4);
    AWAIT(f->e, n_unembedded(f) == 0);
    find_check(f);
    find_free(f);
}

TEST(owners_get_their_vectors_in_turns)
{
    owners_in_turns();
}

TEST(control_one_line_for_all_owners_is_noticed)
{
    find_control("backlog.one_turn", owners_in_turns);
}

/* Slices of others are outstanding or wait when a card goes and comes back. */
TEST(cards_go_and_change_between_their_slices)
{
    struct find *f = find_new(EMBED_HTTP);

    for (int turns = 0; turns < 40; turns++) {
        put_large(f, "mallory", "m1", 150 + turns);
        put_large(f, "oscar", "o1", 150 + turns);
        put_large(f, "oscar", "o2", 150 + turns);
        eturns(f->e, turns);
        if (turns % 3)
            CHECK(find_remove(f, "oscar", "o1") == OK);
        find_check(f);
    }
    AWAIT(f->e, n_unembedded(f) == 0);
    find_check(f);
    find_free(f);
}

/* Failing. */

static void respond_badly(struct provider_peer *p, struct seat *s)
{
    (void)p;
    say_text(s, 503, "{\"error\":{\"message\":\"tired\"}}");
}

TEST(a_provider_that_fails_is_asked_again_more_and_more_seldom)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct provider_peer *p = f->e->peer;
    struct search s = find_query("anna", "wood");
    struct found o;
    int n = 0;

    p->respond = respond_badly;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    PUT(f, "anna", card("mosk", "Cuts moss", "private", ""));
    AWAIT(f->e, find_n_logged(f, "registry.vectors_wait") == 1);
    for (int64_t wait_ms = 1000; wait_ms < 300 * 1000; wait_ms *= 2) {
        n = p->n_asked;
        find_later(f, wait_ms / 2); /* some turns have passed already */
        CHECK_INT(p->n_asked, n);
        find_later(f, wait_ms * 3 / 4);
        AWAIT(f->e, p->n_asked > n); /* one of them goes first */
        AWAIT(f->e, registry_stats(f->r).embed_failures_total > n);
        CHECK_INT(p->n_asked, n + 1);
    }
    CHECK_INT(find_n_logged(f, "registry.vectors_wait"), 1);
    CHECK_INT(n_unembedded(f), 2);
    /* Found by its words, and it is said why. */
    find_search(f, &s, &o);
    CHECK(o.n == 1 && o.mode == INDEX_TEXT && strstr(o.note, "cannot be"));
    p->respond = respond_well;
    find_later(f, 300 * 1000);
    AWAIT(f->e, n_unembedded(f) == 0);
    CHECK_INT(find_n_logged(f, "registry.vectors_wait"), 1);
    CHECK_INT(find_n_logged(f, "registry.vectors_again"), 1);
    find_check(f);
    find_free(f);
}

static void respond_without_x(struct provider_peer *p, struct seat *s)
{
    if (seat_heard(s, "XX"))
        say_text(s, 400, "{\"error\":{\"message\":\"no XX please\"}}");
    else
        respond_well(p, s);
}

TEST(one_agents_bad_text_does_not_hold_up_the_others)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct search s = find_query("anna", "wood");
    struct found o;

    f->e->peer->respond = respond_without_x;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    PUT(f, "anna", card("bad", "XX wood", "private", ""));
    PUT(f, "anna", card("mosk", "Cuts moss", "private", ""));
    AWAIT(f->e, n_unembedded(f) == 1);
    AWAIT(f->e, find_n_logged(f, "registry.vectors_refused") == 1);
    CHECK(!find_is_embedded(f, "bad") && find_is_embedded(f, "mosk"));
    find_search(f, &s, &o);
    CHECK(o.mode == INDEX_HYBRID && strstr(o.note, "one agent of yours waits"));
    s.eyes = find_eyes("ben"); /* a requester who does not see it */
    find_search(f, &s, &o);
    CHECK(!o.note[0]);
    for (int i = 0; i < 4; i++)
        find_later(f, 60 * 1000);
    CHECK_INT(find_n_logged(f, "registry.vectors_refused"), 1);
    CHECK_INT(find_n_logged(f, "registry.vectors_wait"), 0);
    f->e->peer->respond = respond_well;
    find_later(f, 300 * 1000);
    AWAIT(f->e, n_unembedded(f) == 0);
    CHECK_INT(find_n_logged(f, "registry.vectors_taken"), 1);
    find_check(f);
    find_free(f);
}

/* Then it is hardly the texts, and one is tried a second. */
TEST(where_all_are_refused_nobody_is_flooded)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct provider_peer *p = f->e->peer;
    char name[16];
    int n;

    p->respond = respond_without_x;
    f->e->opts.http.batch = 1;
    find_open(f);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "a%02d", i);
        PUT(f, "anna", card(name, "XX", "private", ""));
    }
    PUT(f, "anna", card("fine", "Cuts", "private", ""));
    AWAIT(f->e, registry_stats(f->r).embed_failures_total >= 16);
    eturns(f->e, 50);
    n = p->n_asked;
    for (int i = 0; i < 5; i++)
        find_later(f, 1000);
    CHECK(p->n_asked - n <= 5 * 2); /* each has two texts */
    for (int i = 0; i < 40 && !find_is_embedded(f, "fine"); i++)
        find_later(f, 1000);
    CHECK(find_is_embedded(f, "fine"));
    find_free(f);
}

TEST(a_full_disk_is_waited_for)
{
    struct find *f = find_begin(EMBED_HTTP);

    f->e->peer->respond = NULL;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, waiting_seat(f->e->peer));
    fault_arm_at("store.op.full", 1);
    f->e->peer->respond = respond_well;
    respond_well(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, find_n_logged(f, "registry.vectors_wait") == 1);
    CHECK(fault_fired() && find_n_logged(f, "no_space") == 1);
    CHECK(!has_row(f, "kerf"));
    find_later(f, 2000);
    AWAIT(f->e, n_unembedded(f) == 0);
    CHECK_INT(find_n_logged(f, "registry.vectors_again"), 1);
    find_check(f);
    find_free(f);
}

/* Changing meanwhile. */

TEST(an_agent_that_changes_meanwhile_is_taken_anew)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct provider_peer *p = f->e->peer;
    const struct row *row;
    struct query q;

    p->respond = NULL;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, waiting_seat(p));
    PUT(f, "anna", card("kerf", "Cuts stone", "private", ""));
    p->respond = respond_well;
    respond_well(p, waiting_seat(p));
    AWAIT(f->e, n_unembedded(f) == 0);
    row = row_of(f, &q, "kerf");
    CHECK(row && row_int(row, VECTOR_REVISION) == 2);
    CHECK(is_packed_of(row, 0, "kerf: Cuts stone"));
    query_fini(&q);
    find_check(f);
    find_free(f);
}

TEST(one_that_is_removed_meanwhile_is_forgotten)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct provider_peer *p = f->e->peer;

    p->respond = NULL;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, waiting_seat(p));
    CHECK(find_remove(f, "anna", "kerf") == OK);
    CHECK(n_unembedded(f) == 0);
    p->respond = respond_well;
    if (waiting_seat(p))
        respond_well(p, waiting_seat(p));
    eturns(f->e, 20);
    CHECK(!has_row(f, "kerf"));
    find_check(f);
    find_free(f);
}

/* The row is with the store, and what is committed before it changes the card:
 * the guard tells. */
TEST(a_row_for_a_card_that_is_gone_is_not_written)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct caller anna = find_caller("anna");
    struct registry_by by = {.caller = &anna, .now_ms = FIND_WALL_MS};
    struct provider_peer *p = f->e->peer;
    struct registry_change c;

    p->respond = NULL;
    find_open(f);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, waiting_seat(p));
    respond_well(p, waiting_seat(p));
    registry_change_init(&c);
    CHECK(registry_remove(f->r, &c, STR("kerf"), &by, &f->why) == OK);
    store_submit(f->store, &c.tx, find_on_done, NULL);
    /* Reported and not settled, for as long as the answer takes. */
    eturns(f->e, 50);
    CHECK(c.tx.result == TX_COMMITTED && !has_row(f, "kerf"));
    CHECK(registry_settle(f->r, &c, &f->why) == OK);
    registry_change_fini(&c);
    eturns(f->e, 50);
    CHECK(n_unembedded(f) == 0 && find_n_logged(f, "vectors_wait") == 0);
    find_check(f);
    find_free(f);
}

/* Another start, another model. */

TEST(rows_of_the_same_model_are_not_made_again)
{
    struct find *f = find_new(EMBED_HTTP);
    int n;

    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, n_unembedded(f) == 0);
    n = f->e->peer->n_asked;
    find_close(f);
    find_open(f); /* which does not know how long its vectors are */
    eturns(f->e, 20);
    CHECK(n_unembedded(f) == 0 && find_is_embedded(f, "kerf"));
    CHECK_INT(f->e->peer->n_asked, n);
    find_check(f);
    find_free(f);
}

TEST(a_provider_that_gives_longer_ones_now_has_all_made_anew)
{
    struct find *f = find_new(EMBED_HTTP);
    struct search s = find_query("anna", "wood");
    struct found o;

    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, n_unembedded(f) == 0);
    find_close(f);
    f->e->peer->dims = 12;
    find_open(f);
    CHECK_INT(n_unembedded(f), 0);
    find_search(f, &s, &o); /* the first that it hears of it */
    CHECK(o.n == 1 && o.hits[0].matches[0].semantic == 0);
    CHECK_STR(str_of(o.note), "vectors are being rebuilt; until then search "
                              "goes by words");
    AWAIT(f->e, n_unembedded(f) == 0);
    CHECK_INT(find_n_logged(f, "registry.vectors_begun"), 1);
    CHECK_INT(find_n_logged(f, "registry.vectors_made"), 1);
    find_search(f, &s, &o);
    CHECK(o.n == 1 && !o.note[0]);
    find_check(f);
    find_free(f);
}

/* A change that keeps the vectors is on its way when that comes out. */
TEST(a_change_on_its_way_does_not_keep_vectors_of_another_length)
{
    struct find *f = find_new(EMBED_HTTP);
    struct caller anna = find_caller("anna");
    struct registry_by by = {.caller = &anna, .now_ms = FIND_WALL_MS};
    struct search s = find_query("anna", "wood");
    struct card_problems problems = {.n = 0};
    struct registry_change c;
    struct arena arena;
    struct found o;

    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    AWAIT(f->e, n_unembedded(f) == 0);
    find_close(f);
    f->e->peer->dims = 12;
    find_open(f);
    arena_init(&arena, 1 << 20);
    registry_change_init(&c);
    CHECK(
        registry_patch(f->r, &c, STR("kerf"),
                       json_parse(&arena, STR("{\"version\":\"2\"}"), 0, NULL),
                       &by, &problems, &f->why) == OK);
    find_search(f, &s, &o);
    CHECK(find_commit(f, &c, OK) == OK);
    CHECK_INT(n_unembedded(f), 1);
    AWAIT(f->e, n_unembedded(f) == 0);
    find_check(f);
    arena_fini(&arena);
    find_free(f);
}

/* Some have their vectors by now, and would come first if search did not go by
 * words. */
static void check_made_anew(struct find *f)
{
    struct search s = find_query("anna", "cuts");
    struct found o;

    s.limit = 5;
    find_search(f, &s, &o);
    CHECK(o.n == 5 && o.mode == INDEX_TEXT);
    CHECK_STR(str_of(o.note), "vectors are being rebuilt; until then search "
                              "goes by words");
}

/* One that is refused is left behind, and so is one that was never made; also
 * after a start in the midst of it. */
TEST(what_is_refused_does_not_prolong_a_change_of_the_model)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("anna", "wood");
    struct found o;

    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    PUT(f, "anna", card("bad", "XX wood", "private", ""));
    find_close(f);
    f->e->opts.kind = EMBED_HTTP;
    f->e->peer->respond = NULL;
    find_open(f);
    find_close(f);
    find_open(f); /* with a snapshot this time */
    find_search(f, &s, &o);
    CHECK(o.n == 2 && o.mode == INDEX_TEXT && strstr(o.note, "rebuilt"));
    f->e->peer->respond = respond_without_x;
    for (int i = 0; i < 20 && waiting_seat(f->e->peer); i++)
        respond_without_x(f->e->peer, waiting_seat(f->e->peer));
    AWAIT(f->e, n_unembedded(f) == 1);
    AWAIT(f->e, find_n_logged(f, "registry.vectors_refused") == 1);
    AWAIT(f->e, find_n_logged(f, "registry.vectors_made_in_part") == 1);
    CHECK_INT(find_n_logged(f, "\"refused\":1"), 1);
    find_search(f, &s, &o);
    CHECK(o.n == 2 && o.mode == INDEX_HYBRID);
    CHECK(strstr(o.note, "one agent of yours waits"));
    find_check(f);
    find_free(f);
}

/* From the model inside to a provider's, and search goes on. */
TEST(another_model_has_all_made_anew_while_searching_goes_on)
{
    enum { N = 60 };
    struct find *f = find_new(EMBED_TABLE);
    struct provider_peer *p = f->e->peer;
    struct search s = find_query("anna", "cuts");
    struct found o;
    char name[16];

    s.limit = SEARCH_LIMIT_MAX;
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "a%02d", i);
        PUT(f, "anna", card(name, "Cuts", "private", ""));
    }
    find_close(f);
    CHECK_INT(find_n_logged(f, "registry.vectors_begun"), 0);
    f->e->opts.kind = EMBED_HTTP;
    p->respond = NULL;
    find_open(f);
    CHECK_INT(n_unembedded(f), N);
    find_check(f);
    CHECK_INT(find_n_logged(f, "registry.vectors_begun"), 1);
    CHECK_INT(find_n_logged(f, "\"total\":60"), 1);
    s.mode = INDEX_TEXT;
    find_search(f, &s, &o);
    CHECK_INT(o.n, N);
    AWAIT(f->e, waiting_seat(p));
    find_later(f, 60 * 1000); /* nothing was done: nothing is said */
    CHECK_INT(find_n_logged(f, "registry.vectors_going_on"), 0);
    respond_well(p, waiting_seat(p));
    AWAIT(f->e, n_unembedded(f) < N);
    check_made_anew(f);
    find_later(f, 10 * 1000);
    CHECK_INT(find_n_logged(f, "registry.vectors_going_on"), 1);
    p->respond = respond_well;
    while (waiting_seat(p))
        respond_well(p, waiting_seat(p));
    AWAIT(f->e, n_unembedded(f) == 0);
    AWAIT(f->e, find_n_logged(f, "registry.vectors_made") == 1);
    CHECK_INT(find_n_logged(f, "\"done\":60,\"total\":60"), 1);
    s.mode = INDEX_HYBRID;
    find_search(f, &s, &o);
    CHECK(o.n == N && o.mode == INDEX_HYBRID && !o.note[0]);
    find_check(f);
    find_close(f);
    f->e->opts.kind = EMBED_TABLE; /* and back */
    find_open(f);
    AWAIT(f->e, n_unembedded(f) == 0);
    find_check(f);
    find_free(f);
}

TEST(vectors_that_are_too_long_are_not_made)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct search s = find_query("anna", "wood");
    struct found o;

    f->e->opts.http.dims = INDEX_DIMS_MAX + 1;
    f->e->opts.max_waiting_bytes = 64 << 20;
    find_open(f);
    CHECK_INT(find_n_logged(f, "registry.vectors_too_long"), 1);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    eturns(f->e, 20);
    CHECK_INT(f->e->peer->n_asked, 0);
    find_search(f, &s, &o);
    CHECK(o.n == 1 && strstr(o.note, "longer than can be searched"));
    find_free(f);
}

TEST(without_a_model_words_alone_are_searched)
{
    struct find *f = find_new(EMBED_TABLE);
    struct search s = find_query("anna", "wood");
    struct found o;

    registry_stop(f->r);
    registry_free(f->r);
    f->opts.embed = NULL;
    f->r = registry_new(&f->opts);
    CHECK(f->r && registry_load(f->r, &f->why) == OK);
    registry_begin(f->r);
    PUT(f, "anna", card("kerf", "Cuts wood", "private", ""));
    CHECK(n_unembedded(f) == 0 && !find_is_embedded(f, "kerf"));
    find_search(f, &s, &o);
    CHECK(o.n == 1 && o.mode == INDEX_TEXT && strstr(o.note, "no model"));
    find_free(f);
}
