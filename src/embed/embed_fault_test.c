/* Every step that can fail fails once, each in its own run. Nothing crashes,
 * nothing leaks, every call is answered once, and later calls succeed. */
#include "test/lib/embed_stage.h"

enum { TALES = 8 };

struct scene {
    struct estage st;
    struct owner *tales[TALES];
    int n_tales, n_fine;
};

static void begin(struct scene *sc, enum embed_use use,
                  const char *const *texts)
{
    struct why why = {""};
    enum err e;
    struct owner *o = try_start(sc->st.embed, use, texts, &e, &why);

    if (o) {
        sc->tales[sc->n_tales++] = o;
        return;
    }
    CHECK(fault_fired() && why.text[0] && e != ERR_BUSY);
}

static void await_all(struct scene *sc)
{
    for (int i = 0; i < sc->n_tales; i++) {
        struct owner *o = sc->tales[i];

        AWAIT(&sc->st, o->n_done);
        sc->n_fine += o->e == OK;
        owner_free(o);
    }
    sc->n_tales = 0;
    CHECK_INT(embed_stats(sc->st.embed).waiting, 0);
}

static void respond(struct provider_peer *p, struct seat *s)
{
    if (seat_heard(s, "X"))
        say_text(s, 400, "{\"error\":{\"message\":\"too long\"}}");
    else if (seat_heard(s, "slow"))
        say(s, 429, "Retry-After: 1\r\n", STR("{}"));
    else
        respond_well(p, s);
}

/* A batch, one that is split, one that is given up, the cache, a failure. */
static void play(struct scene *sc)
{
    begin(sc, EMBED_QUERY, TEXTS("a", "b"));
    begin(sc, EMBED_DOCUMENT, TEXTS("c"));
    await_all(sc);
    begin(sc, EMBED_QUERY, TEXTS("a"));
    begin(sc, EMBED_QUERY, TEXTS("X"));
    begin(sc, EMBED_QUERY, TEXTS("d"));
    begin(sc, EMBED_QUERY, TEXTS("e"));
    await_all(sc);
    begin(sc, EMBED_DOCUMENT, TEXTS("f"));
    if (sc->n_tales) {
        eturn(&sc->st);
        embed_cancel(sc->st.embed, sc->tales[0]->id);
        owner_free(sc->tales[--sc->n_tales]);
    }
    begin(sc, EMBED_QUERY, TEXTS("slow"));
    await_all(sc);
    elater(&sc->st, 1000);
}

static bool open_scene(struct scene *sc)
{
    struct estage *st = &sc->st;
    struct why why;

    st->s = calloc(1, sizeof(*st->s));
    st->peer = calloc(1, sizeof(*st->peer));
    CHECK(st->s && st->peer);
    if (!stage_try_init(st->s, test_opts())) {
        free(st->s);
        free(st->peer);
        return false;
    }
    peer_start(st->peer);
    st->peer->respond = respond;
    st->opts = embed_test_opts(st->peer);
    if (embed_new(&st->embed, &st->s->loop, &st->s->log, st->s->fetch,
                  &st->opts, &why) == OK)
        return true;
    CHECK(!st->embed && why.text[0]);
    stage_free(st->s);
    peer_end(st->peer);
    free(st->peer);
    return false;
}

/* One run with the armed fault. Returns whether it was met. */
static bool run_scene(void)
{
    struct scene *sc = calloc(1, sizeof(*sc));
    struct estage *st = &sc->st;
    bool fired;

    if (!open_scene(sc)) {
        CHECK(fault_fired());
        fault_arm(0);
        free(sc);
        return true;
    }
    play(sc);
    fired = fault_fired();
    fault_arm(0);
    CHECK(fired || sc->n_fine == 5);
    begin(sc, EMBED_QUERY, TEXTS("after"));
    sc->n_fine = 0;
    await_all(sc);
    CHECK_INT(sc->n_fine, 1);
    embed_stop(st->embed, estage_stopped, st);
    AWAIT(st, st->n_stopped == 1);
    embed_free(st->embed);
    stage_free(st->s);
    peer_end(st->peer);
    free(st->peer);
    free(sc);
    return fired;
}

TEST(every_step_may_fail_once)
{
    long nth = 0;

    do
        fault_arm(++nth);
    while (run_scene());
    CHECK(nth > 50); /* the scene met many steps */
}

/* By name, to notice steps that the scene no longer reaches. */
TEST(every_named_step_is_reached_and_may_fail)
{
    static const char *names[] = {
        "embed.hash",    "embed.slots", "embed.job",
        "embed.vectors", "embed.cache", "embed.reply",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        long nth = 0;

        do
            fault_arm_at(names[i], ++nth);
        while (run_scene());
        if (nth == 1)
            T_FAIL("never reached: %s", names[i]);
    }
}
