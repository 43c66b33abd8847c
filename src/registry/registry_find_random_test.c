/* Anything in any order: cards come, change and go while their vectors are
 * pending, the provider fails and recovers, time passes, searches wait and are
 * cancelled. Memory, index and store agree throughout; no requester finds an
 * invisible agent; and a registry that loads everything again answers every
 * search with the same bytes. */
#include "test/lib/find_stage.h"

enum { NAMES = 12, STEPS = 600, WAITING = 8 };

static const char *const users[] = {"anna.acme", "ann2.acme", "ben.bolt",
                                    "cleo", "admin"};
static const char *const kinds[] = {"private", "shared", "public"};
static const char *const topics[] = {"wood", "stone", "glass", "cloth"};

static struct rand_seeded state;

static unsigned dice(unsigned sides)
{
    return (unsigned)(rand_u64(rand_seeded(&state)) % sides);
}

static const char *a_name(void)
{
    static char name[16];

    snprintf(name, sizeof(name), "agent%u", dice(NAMES));
    return name;
}

static void put_one(struct find *f)
{
    char about[64], what[64];
    enum err e;

    snprintf(about, sizeof(about), "Cuts %s", topics[dice(4)]);
    snprintf(what, sizeof(what), "polish %s %u", topics[dice(4)], dice(5));
    e = find_put(f, users[dice(3)],
                 card(a_name(), about, kinds[dice(3)],
                      dice(3) ? skill("s", what, "and more") : ""));
    if (e != OK && e != ERR_EXISTS && e != ERR_NOT_ALLOWED)
        T_FAIL("%d: %s", e, f->why.text);
}

static void remove_one(struct find *f)
{
    enum err e = find_remove(f, users[dice(5)], a_name());

    CHECK(e == OK || e == ERR_NOT_FOUND || e == ERR_NOT_ALLOWED);
}

static void grant_one(struct find *f)
{
    enum err e = find_grant(f, "admin", a_name(), dice(2) ? "cleo" : "", "",
                            FIND_WALL_MS + (int64_t)dice(3) - 1);

    CHECK(e == OK || e == ERR_NOT_FOUND || e == ERR_BAD_REQUEST);
}

/* No waiting search is answered with an invisible agent. */
static void check_found(struct find *f, const struct found *o, const char *user)
{
    struct eyes eyes = find_eyes(user);

    for (size_t i = 0; i < o->n; i++) {
        const struct agent *a =
            registry_find(f->r, str_of(o->hits[i].name), &eyes);

        CHECK(a && o->hits[i].score > 0);
        CHECK(!i || o->hits[i - 1].score >= o->hits[i].score || i >= 10);
    }
}

static struct {
    struct found found;
    const char *user;
    bool is_open;
} waiting[WAITING];

static void search_one(struct find *f)
{
    unsigned k = dice(WAITING);
    char text[32];
    struct search s;

    if (waiting[k].is_open) {
        if (!waiting[k].found.n_done)
            registry_search_cancel(f->r, waiting[k].found.id);
        waiting[k].is_open = false;
        return;
    }
    snprintf(text, sizeof(text), "%s %u", topics[dice(4)], dice(1000));
    waiting[k].user = users[dice(5)];
    s = find_query(waiting[k].user, text);
    CHECK(find_try(f, &s, &waiting[k].found) == OK);
    waiting[k].is_open = true;
    if (waiting[k].found.n_done)
        check_found(f, &waiting[k].found, waiting[k].user);
}

static void respond_badly(struct provider_peer *p, struct seat *s)
{
    (void)p;
    say_text(s, dice(2) ? 503 : 400, "");
}

static void respond_somehow(struct provider_peer *p, struct seat *s)
{
    if (dice(4))
        respond_well(p, s);
    else
        respond_badly(p, s);
}

static void step(struct find *f)
{
    switch (dice(9)) {
    case 0:
    case 1:
    case 2: put_one(f); break;
    case 3: remove_one(f); break;
    case 4: grant_one(f); break;
    case 5: search_one(f); break;
    case 6: find_later(f, dice(3000)); break;
    case 7:
        if (waiting_seat(f->e->peer))
            respond_somehow(f->e->peer, waiting_seat(f->e->peer));
        break;
    case 8: f->e->peer->respond = dice(2) ? respond_somehow : NULL; break;
    default: break;
    }
    eturns(f->e, (int)dice(4));
}

static void end_searches(struct find *f)
{
    for (int i = 0; i < WAITING; i++) {
        if (waiting[i].is_open && !waiting[i].found.n_done)
            registry_search_cancel(f->r, waiting[i].found.id);
        waiting[i].is_open = false;
    }
}

/* All answers, as bytes. */
static void ask_all(struct find *f, struct buf *out)
{
    static struct found o;

    buf_init(out, 16 << 20);
    for (size_t u = 0; u < 5; u++)
        for (size_t t = 0; t < 4; t++) {
            struct search s = find_query(users[u], topics[t]);

            find_search(f, &s, &o);
            check_found(f, &o, users[u]);
            buf_addf(out, "%zu %s;", o.n, o.note);
            buf_add(out, o.hits, o.n * sizeof(o.hits[0]));
        }
}

TEST(whatever_happens_a_fresh_registry_says_the_same)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct find *f = find_begin(EMBED_HTTP);
        struct buf before, after;

        state = (struct rand_seeded){seed};
        memset(waiting, 0, sizeof(waiting));
        f->e->opts.http.dims = TEST_DIMS;
        f->e->peer->respond = respond_somehow;
        find_open(f);
        for (int i = 0; i < STEPS; i++) {
            step(f);
            if (i % 10 == 0)
                find_check(f);
        }
        f->e->peer->respond = respond_well;
        end_searches(f);
        for (int i = 0; i < 200 && registry_stats(f->r).unembedded; i++) {
            while (waiting_seat(f->e->peer))
                respond_well(f->e->peer, waiting_seat(f->e->peer));
            find_later(f, 10 * 1000);
        }
        CHECK_INT(registry_stats(f->r).unembedded, 0);
        find_check(f);
        ask_all(f, &before);
        find_close(f);
        find_open(f);
        CHECK_INT(registry_stats(f->r).unembedded, 0);
        ask_all(f, &after);
        CHECK(before.n > 1000 && str_eq(buf_str(&before), buf_str(&after)));
        buf_fini(&before);
        buf_fini(&after);
        find_free(f);
    }
}
