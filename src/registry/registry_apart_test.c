/* Non-interference: to the last bit, no answer to a tenant depends on what
 * another keeps private. STRESS=full asks 500 queries with and without 5 000
 * agents; give it time: T_LIMIT_S=600. */
#include "test/lib/find_stage.h"

static const char *const words[] = {
    "weather", "forecast", "rain",  "music",  "song",    "play",   "travel",
    "flight",  "hotel",    "book",  "cook",   "recipe",  "dinner", "tax",
    "law",     "court",    "code",  "debug",  "compile", "paint",  "wall",
    "house",   "garden",   "plant", "doctor", "health",  "pill",   "match",
    "score",   "team",     "stock", "price",  "market",  "mail",   "letter",
    "send",    "write",    "poem",  "story",  "map"};

enum { N_WORDS = sizeof(words) / sizeof(words[0]), LINE = 200 };

static unsigned dice(struct rand_seeded *state, unsigned sides)
{
    return (unsigned)(rand_u64(rand_seeded(state)) % sides);
}

static const char *line(struct rand_seeded *state, int n, char out[LINE])
{
    size_t at = 0;

    out[0] = '\0';
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, LINE - at, "%s%s", i ? " " : "",
                               words[dice(state, N_WORDS)]);
    return out;
}

static void put_many(struct find *f, const char *user, const char *prefix,
                     const char *visibility, int n, uint64_t seed)
{
    struct rand_seeded state = {seed};
    char name[64], about[LINE], what[LINE], how[LINE];

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s-%d", prefix, i);
        line(&state, 4, about);
        line(&state, 2, what);
        line(&state, 6, how);
        PUT(f, user, card(name, about, visibility, skill("s", what, how)));
    }
}

/* Everything that n searches are told, as bytes. */
static void ask_all(struct find *f, const char *user, int n, struct buf *out)
{
    struct rand_seeded state = {99};
    char text[LINE];
    struct found o;

    buf_init(out, 256 << 20);
    for (int i = 0; i < n; i++) {
        struct search s =
            find_query(user, line(&state, 1 + (int)dice(&state, 6), text));

        s.mode = (enum index_mode)(i % 3);
        s.has_fusion = true;
        s.fusion = i % 4 ? INDEX_WEIGHTED : INDEX_RRF;
        s.limit = i % 5 ? 10 : 25;
        find_search(f, &s, &o);
        CHECK_INT(o.err, OK);
        buf_addf(out, "%s: %zu %d %s\n", text, o.n, o.mode, o.note);
        for (size_t k = 0; k < o.n; k++) {
            buf_addf(out, "%s %zu ", o.hits[k].name, o.hits[k].n_matches);
            buf_add(out, &o.hits[k].score, sizeof(float));
            buf_add(out, o.hits[k].matches,
                    o.hits[k].n_matches * sizeof(o.hits[k].matches[0]));
        }
    }
    CHECK(!out->over);
}

static void searches_are_the_same_with_and_without(void)
{
    const char *stress = getenv("STRESS");
    bool is_full = stress && strcmp(stress, "full") == 0;
    int n_searches = is_full ? 500 : 60, n_others = is_full ? 5000 : 80;
    struct find *f = find_new(EMBED_TABLE);
    struct buf before, after;

    put_many(f, "anna.acme", "mine", "private", 15, 1);
    put_many(f, "ann2.acme", "ours", "shared", 10, 2);
    put_many(f, "ben.bolt", "all", "public", 15, 3);
    put_many(f, "cleo.cine", "lent", "shared", 3, 4);
    CHECK(find_grant(f, "cleo.cine", "lent-1", "anna.acme", "", 0) == OK);
    ask_all(f, "anna.acme", n_searches, &before);
    put_many(f, "eve.evil", "others", "private", n_others, 5);
    put_many(f, "eva.evil", "orgs", "shared", n_others / 8, 6);
    CHECK(find_grant(f, "eva.evil", "orgs-1", "", "bolt", 0) == OK);
    ask_all(f, "anna.acme", n_searches, &after);
    if (!str_eq(buf_str(&before), buf_str(&after)))
        T_FAIL("what others keep private shows");
    CHECK(before.n > (size_t)n_searches * 100);
    buf_fini(&after);
    /* And they can see what they put there. */
    ask_all(f, "eve.evil", 5, &after);
    CHECK(memmem(after.p, after.n, "others-", 7));
    buf_fini(&after);
    buf_fini(&before);
    find_free(f);
}

TEST(answers_do_not_depend_on_what_is_not_seen)
{
    searches_are_the_same_with_and_without();
}

/* Words weighed by everybody's statistics, and the test above turns red. */
TEST(the_control_with_shared_statistics_is_caught)
{
    setenv("STRESS", "", 1);
    find_control("index.all_classes", searches_are_the_same_with_and_without);
}

/* Those that wait for vectors are counted for whose they are. */
TEST(notes_do_not_tell_of_others_either)
{
    struct find *f = find_begin(EMBED_HTTP);
    struct search s = find_query("anna.acme", "rain");
    struct found o;

    f->e->peer->respond = NULL;
    f->e->opts.http.dims = TEST_DIMS;
    find_open(f);
    put_many(f, "anna.acme", "mine", "private", 2, 1);
    put_many(f, "eve.evil", "others", "private", 30, 2);
    CHECK(find_try(f, &s, &o) == OK);
    for (int i = 0; i < 3 && !o.n_done; i++) {
        struct seat *seat;

        AWAIT(f->e, (seat = waiting_seat(f->e->peer)) || o.n_done);
        if (seat && seat_heard(seat, "[\"rain\"]"))
            respond_well(f->e->peer, seat);
        AWAIT(f->e, o.n_done);
    }
    CHECK(strstr(o.note, "2 agents of yours wait"));
    find_free(f);
}
