/* Every step fails once while vectors are made and searches wait: failed work
 * is retried, and in the end all agents have their vectors, in the index and in
 * the store. Most steps belong to other modules, which sweep all of them: so
 * every third is tried here, with STRESS=full every one. */
#include "test/lib/find_stage.h"

static void put_some(struct find *f)
{
    PUT(f, "anna.acme",
        card("kerf", "Cuts wood", "private",
             "{\"id\":\"a\",\"name\":\"a\",\"description\":\"b\",\"examples\":"
             "[\"1\",\"2\"]}"));
    PUT(f, "ben.bolt", card("mosk", "Cuts moss", "shared", ""));
    CHECK(find_grant(f, "ben.bolt", "mosk", "anna.acme", "", 0) == OK);
}

/* A search may fail where the fault hits it, and only there. */
static void search_once(struct find *f, bool *was_hit)
{
    struct search s = find_query("anna.acme", "cuts");
    struct found o;
    enum err e;

    s.limit = 20;
    e = find_try(f, &s, &o);
    if (e) {
        CHECK(e == ERR_NOMEM && fault_fired() && f->why.text[0]);
        *was_hit = true;
        return;
    }
    AWAIT(f->e, o.n_done);
    if (o.err) {
        CHECK(o.err == ERR_NOMEM && fault_fired() && !o.n);
        *was_hit = true;
        return;
    }
    CHECK_INT(o.n, 2);
    if (o.mode == INDEX_TEXT)
        CHECK(fault_fired() && strstr(o.note, "because"));
}

static void wait_for_all(struct find *f)
{
    for (int i = 0; i < 400 && registry_stats(f->r).unembedded; i++) {
        if (waiting_seat(f->e->peer))
            respond_well(f->e->peer, waiting_seat(f->e->peer));
        find_later(f, 1000);
    }
}

TEST(every_fault_is_made_good)
{
    const char *stress = getenv("STRESS");
    long stride = stress && strcmp(stress, "full") == 0 ? 1 : 3, nth = 1;
    bool fired, was_hit = false;

    for (;; nth += stride) {
        struct find *f = find_begin(EMBED_HTTP);

        f->e->opts.cache_entries = 0;
        f->e->peer->respond = NULL;
        find_open(f);
        put_some(f);
        f->e->peer->respond = respond_well;
        fault_arm(nth);
        search_once(f, &was_hit);
        wait_for_all(f);
        fired = fault_fired();
        CHECK(find_n_logged(f, "registry.vectors_wait") <= 1);
        if (fired && strncmp(fault_name(), "store.", 6) == 0) {
            find_close(f); /* one that has failed does so until a restart */
            find_open(f);
            wait_for_all(f);
        }
        if (registry_stats(f->r).unembedded)
            T_FAIL("after %s (%ld) some have no vectors", fault_name(), nth);
        fault_arm(0);
        search_once(f, &was_hit);
        find_check(f);
        find_free(f);
        if (!fired)
            break;
    }
    CHECK(was_hit && nth > 100); /* the sweep met the steps it is for */
}

/* Opening: all or nothing. */
TEST(a_registry_that_cannot_be_opened_leaves_nothing)
{
    struct find *f = find_begin(EMBED_TABLE);
    struct registry *r;
    long nth = 0;

    find_open(f);
    do {
        fault_arm(++nth);
        r = registry_new(&f->opts);
        CHECK((r == NULL) == fault_fired());
        registry_free(r);
    } while (fault_fired());
    CHECK(nth > 3);
    find_free(f);
}
