/* The threads, with a model that waits for permission before each batch, so
 * that the test controls the order of events. */
#include "test/lib/embed_stage.h"
#include "test/lib/minilm_stage.h"

#include <sys/resource.h>
#include <unistd.h>

struct gate {
    uv_sem_t begun, leave; /* per batch */
    bool is_open;          /* no permission is needed */
    bool are_queries_free; /* nor for queries */
    int n_closed;
    int nice[N_EMBED_USES]; /* of the thread of each use */

    /* The thread's; between begun and permission, the test's. */
    char texts[WORKER_BATCH][16];
    size_t n;
};

static void gate_make(void *ctx, enum embed_use use, const struct str *texts,
                      size_t n, float *out)
{
    struct gate *g = ctx;

    CHECK(n > 0 && n <= WORKER_BATCH);
    g->nice[use] = getpriority(PRIO_PROCESS, (id_t)gettid());
    if (!g->is_open && !(g->are_queries_free && use == EMBED_QUERY)) {
        g->n = n;
        for (size_t i = 0; i < n; i++)
            snprintf(g->texts[i], sizeof(g->texts[i]), "%.*s",
                     STR_ARG(texts[i]));
        uv_sem_post(&g->begun);
        uv_sem_wait(&g->leave);
    }
    for (size_t i = 0; i < n; i++)
        vector_for(texts[i], TEST_DIMS, out + i * TEST_DIMS);
}

static void gate_close(void *ctx)
{
    ((struct gate *)ctx)->n_closed++;
}

static struct gate *gate;

static enum err gate_open(struct embed *e, const struct embed_opts *opts,
                          struct why *why)
{
    struct worker_model m = {gate_make, gate_close, gate, TEST_DIMS};

    (void)opts;
    embed_stamp_set(&e->stamp, STR("gate"), "ab", TEST_DIMS);
    return worker_start(e, &m, why);
}

static enum err try_open(struct estage *st, struct why *why)
{
    struct embed_ops ops_of_gate = embed_minilm_ops;
    static struct embed_ops ops;

    ops = ops_of_gate;
    ops.open = gate_open;
    st->opts.kind = EMBED_MINILM;
    return embed_new_with(&st->embed, &st->s->loop, &st->s->log, NULL,
                          &st->opts, &ops, why);
}

static struct estage *worker_stage(bool is_open)
{
    struct estage *st = estage_begin();
    struct why why;

    gate = calloc(1, sizeof(*gate));
    gate->is_open = is_open;
    CHECK(uv_sem_init(&gate->begun, 0) == 0 &&
          uv_sem_init(&gate->leave, 0) == 0);
    CHECK(try_open(st, &why) == OK);
    return st;
}

static void end_stage(struct estage *st)
{
    estage_free(st);
    CHECK_INT(gate->n_closed, 1);
    uv_sem_destroy(&gate->begun);
    uv_sem_destroy(&gate->leave);
    free(gate);
}

/* A batch of these has begun. */
static void expect_batch(const char *texts)
{
    char got[256] = "";

    uv_sem_wait(&gate->begun);
    for (size_t i = 0; i < gate->n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s",
                 i ? " " : "", gate->texts[i]);
    CHECK_STR(str_of(got), texts);
}

static void give_leave(void)
{
    uv_sem_post(&gate->leave);
}

TEST(vectors_come_from_the_thread)
{
    struct estage *st = worker_stage(true);
    struct owner *a = ASK(st, "a", "b", "", "d"), *b = TELL(st, "e");
    float v[TEST_DIMS];

    AWAIT(st, a->n_done && b->n_done);
    CHECK(is_vector_of(a->vectors, TEST_DIMS, "a"));
    CHECK(is_vector_of(a->vectors + TEST_DIMS, TEST_DIMS, "b"));
    CHECK(a->vectors[2 * TEST_DIMS] == 0);
    CHECK(is_vector_of(a->vectors + 3 * (size_t)TEST_DIMS, TEST_DIMS, "d"));
    CHECK(is_vector_of(b->vectors, TEST_DIMS, "e"));
    CHECK_STR(str_of(a->stamp.name), "gate");
    CHECK(embed_now(st->embed, STR("b"), EMBED_QUERY, v));
    CHECK(is_vector_of(v, TEST_DIMS, "b"));
    CHECK(!embed_now(st->embed, STR("e"), EMBED_QUERY, v));
    owner_free(a);
    owner_free(b);
    end_stage(st);
}

/* A batch of documents is blocked, and a query arrives. */
static struct estage *busy_with_documents(struct owner **docs)
{
    struct estage *st = worker_stage(false);

    gate->are_queries_free = true;
    *docs =
        TELL(st, "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10");
    uv_sem_wait(&gate->begun);
    CHECK_STR(str_of(gate->texts[0]), "d1");
    CHECK(gate->n <= WORKER_DOCUMENTS);
    return st;
}

static void end_documents(struct estage *st, struct owner *docs)
{
    for (int i = 0; i < 20; i++)
        uv_sem_post(&gate->leave);
    AWAIT(st, docs->n_done);
    CHECK(
        is_vector_of(docs->vectors + 9 * (size_t)TEST_DIMS, TEST_DIMS, "d10"));
    owner_free(docs);
    end_stage(st);
}

TEST(questions_do_not_wait_for_documents)
{
    struct owner *docs, *q;
    struct estage *st = busy_with_documents(&docs);

    for (int i = 0; i < 5; i++) {
        q = ASK(st, i % 2 ? "q1" : "q2", "q3");
        AWAIT(st, q->n_done);
        CHECK(q->e == OK && !docs->n_done);
        CHECK(is_vector_of(q->vectors + TEST_DIMS, TEST_DIMS, "q3"));
        owner_free(q);
    }
    end_documents(st, docs);
}

/* While the batch of documents is blocked, no turn of the loop answers it. */
TEST(control_questions_on_the_thread_of_documents_wait)
{
    struct owner *docs, *q;
    struct estage *st = busy_with_documents(&docs);

    fault_arm_at("embed.one_lane", 1);
    q = ASK(st, "q1");
    for (int i = 0; i < 20; i++) {
        eturn(st);
        wait_a_little(st->s);
    }
    CHECK(!q->n_done);
    for (int i = 0; i < 20; i++)
        uv_sem_post(&gate->leave);
    AWAIT(st, q->n_done);
    fault_arm(0);
    owner_free(q);
    end_documents(st, docs);
}

TEST(documents_have_less_priority)
{
    struct estage *st = worker_stage(true);
    struct owner *a = ASK(st, "a"), *b = TELL(st, "b");
    int own = getpriority(PRIO_PROCESS, 0);

    AWAIT(st, a->n_done && b->n_done);
    CHECK_INT(gate->nice[EMBED_QUERY], own);
    CHECK(gate->nice[EMBED_DOCUMENT] > own || own == 19);
    owner_free(a);
    owner_free(b);
    end_stage(st);
}

TEST(batches_are_of_a_few_texts)
{
    struct estage *st = worker_stage(false);
    struct owner *first = ASK(st, "first"), *rest;

    expect_batch("first");
    rest = ASK(st, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10");
    give_leave();
    AWAIT(st, first->n_done);
    expect_batch("1 2 3 4 5 6 7 8");
    give_leave();
    give_leave();
    AWAIT(st, rest->n_done);
    owner_free(first);
    owner_free(rest);
    end_stage(st);
}

TEST(who_gives_up_while_the_thread_is_at_it_is_told_nothing)
{
    struct estage *st = worker_stage(false);
    struct owner *a = ASK(st, "a"), *b, *c;

    expect_batch("a");
    b = ASK(st, "b");
    c = ASK(st, "c");
    embed_cancel(st->embed, a->id); /* out */
    embed_cancel(st->embed, b->id); /* waits */
    eturns(st, 4);
    CHECK_INT(embed_stats(st->embed).waiting, 1);
    for (int i = 0; i < 4; i++)
        give_leave();
    AWAIT(st, c->n_done);
    CHECK(!a->n_done && !b->n_done);
    CHECK(is_vector_of(c->vectors, TEST_DIMS, "c"));
    owner_free(a);
    owner_free(b);
    owner_free(c);
    end_stage(st);
}

TEST(nobody_waits_for_the_thread_for_ever)
{
    struct estage *st = worker_stage(false);
    struct owner *a = ASK(st, "a"), *b;

    expect_batch("a");
    b = ASK(st, "b");
    elater(st, st->opts.timeout_ms);
    CHECK(a->e == ERR_TIMEOUT && b->e == ERR_TIMEOUT);
    CHECK_INT(embed_stats(st->embed).waiting, 0);
    owner_free(a);
    owner_free(b);
    b = ASK(st, "c");
    give_leave();
    give_leave();
    AWAIT(st, b->n_done);
    CHECK(b->e == OK && is_vector_of(b->vectors, TEST_DIMS, "c"));
    owner_free(b);
    end_stage(st);
}

/* Stopped during a batch: waiting texts fail at once, and the stop ends when
 * the thread has. */
TEST(stopping_waits_for_the_thread_without_holding_up_the_loop)
{
    struct estage *st = worker_stage(false);
    struct owner *a = ASK(st, "a"), *b;

    expect_batch("a");
    b = ASK(st, "b");
    embed_stop(st->embed, estage_stopped, st);
    eturns(st, 4);
    CHECK(a->e == ERR_STOPPING && b->e == ERR_STOPPING && !st->n_stopped);
    give_leave();
    AWAIT(st, st->n_stopped);
    owner_free(a);
    owner_free(b);
    end_stage(st);
}

TEST(stopping_is_fine_at_any_moment)
{
    for (int turns = 0; turns < 30; turns++) {
        struct estage *st = worker_stage(true);
        struct owner *a = ASK(st, "a", "b", "c"), *b = TELL(st, "d", "e");

        for (int i = 0; i < turns; i++) {
            eturn(st);
            if (i % 3 == 0)
                wait_a_little(st->s);
        }
        embed_stop(st->embed, estage_stopped, st);
        AWAIT(st, st->n_stopped);
        CHECK(a->n_done && b->n_done);
        owner_free(a);
        owner_free(b);
        end_stage(st);
    }
}

TEST(freeing_without_stopping_waits_for_the_thread)
{
    for (int turns = 0; turns < 20; turns++) {
        struct estage *st = worker_stage(true);
        struct owner *a = ASK(st, "a", "b", "c"), *b = TELL(st, "d", "e");
        int n_done;

        eturns(st, turns);
        n_done = a->n_done + b->n_done;
        embed_free(st->embed);
        st->embed = NULL;
        CHECK_INT(a->n_done + b->n_done, n_done);
        owner_free(a);
        owner_free(b);
        end_stage(st);
    }
}

/* Many of all kinds, cancelled at random. For the thread sanitizer. */
TEST(a_storm_of_calls_is_answered_well)
{
    enum { CALLS = 600 };
    struct estage *st = worker_stage(true);
    struct rand_seeded chance = {9};
    struct rand r = rand_seeded(&chance);
    struct owner *all[CALLS];
    char text[CALLS][16];
    bool is_cancelled[CALLS] = {0};

    for (int i = 0; i < CALLS; i++) {
        enum err e;

        snprintf(text[i], sizeof(text[i]), "t%d", (int)(rand_u64(r) % 100));
        while (!(all[i] = try_start(st->embed, rand_u64(r) % 2, TEXTS(text[i]),
                                    &e, NULL))) {
            CHECK_INT(e, ERR_BUSY);
            eturn(st);
            wait_a_little(st->s);
        }
        if (rand_u64(r) % 4 == 0) {
            int k = (int)(rand_u64(r) % (unsigned)(i + 1));

            is_cancelled[k] |= !all[k]->n_done;
            embed_cancel(st->embed, all[k]->id);
        }
        if (rand_u64(r) % 8 == 0)
            eturn(st);
    }
    for (int i = 0; i < CALLS; i++) {
        if (!is_cancelled[i])
            AWAIT(st, all[i]->n_done);
        CHECK(all[i]->n_done == !is_cancelled[i]);
        if (all[i]->n_done)
            CHECK(is_vector_of(all[i]->vectors, TEST_DIMS, text[i]));
    }
    for (int i = 0; i < CALLS; i++)
        owner_free(all[i]);
    end_stage(st);
}

TEST(a_thread_that_cannot_be_had_is_said)
{
    struct estage *st = estage_begin();
    struct gate g = {.is_open = true};
    struct why why;

    gate = &g;
    fault_arm_at("embed.thread", 1);
    CHECK(try_open(st, &why) == ERR_NOMEM && fault_fired());
    CHECK(!st->embed && why.text[0]);
    CHECK_INT(g.n_closed, 1);
    fault_arm(0);
    estage_free(st);
}

/* The real kind, with a small model: the thread gives the same vectors as the
 * transformer alone. */
TEST(minilm_says_the_same_through_the_thread)
{
    static const char *const texts[] = {"abc", "a b", "cab bac", "b", NULL};
    struct estage *st = estage_begin();
    struct toy *t = calloc(1, sizeof(*t));
    char path[] = "/tmp/signalbox-test-XXXXXX";
    int fd = mkstemp(path);
    struct minilm_scratch *scratch;
    struct embed_stamp stamp, checked;
    float wanted[MINILM_DIMS];
    struct minilm *m;
    struct owner *o;
    struct why why = {""};

    CHECK(t && fd >= 0);
    toy_init(t, TOY_F16);
    toy_make(t);
    CHECK(write(fd, t->file.p, t->file.n) == (ssize_t)t->file.n);
    close(fd);
    st->opts.kind = EMBED_MINILM;
    st->opts.model_file = path;
    estage_open(st);
    CHECK(embed_check(&st->opts, &checked, &why) == OK);
    CHECK(minilm_open(&m, path, &why) == OK);
    unlink(path);
    scratch = minilm_scratch_new(m, cpu_level());
    CHECK(scratch);
    stamp = embed_stamp(st->embed);
    CHECK(embed_stamp_is(&stamp, &checked) && stamp.dims == TOY_DIMS);
    CHECK_STR(str_of(stamp.hash), minilm_hash(m));
    o = start_texts(st->embed, EMBED_QUERY, texts);
    AWAIT(st, o->n_done);
    for (size_t i = 0; texts[i]; i++) {
        minilm_embed(m, scratch, str_of(texts[i]), wanted);
        CHECK(memcmp(o->vectors + i * TOY_DIMS, wanted,
                     TOY_DIMS * sizeof(float)) == 0);
    }
    owner_free(o);
    minilm_scratch_free(scratch);
    minilm_close(m);
    toy_fini(t);
    free(t);
    estage_free(st);
}

/* Invalid model files, with the real kind. */
TEST(a_file_that_is_no_model_is_said)
{
    struct estage *st = estage_begin();
    struct why why = {""};

    st->opts.kind = EMBED_MINILM;
    st->opts.model_file = "/nonexistent/minilm.sbm";
    CHECK(embed_new(&st->embed, &st->s->loop, &st->s->log, NULL, &st->opts,
                    &why) != OK);
    CHECK(!st->embed && strstr(why.text, "/nonexistent/minilm.sbm"));
    st->opts.model_file = "/dev/null";
    CHECK(embed_new(&st->embed, &st->s->loop, &st->s->log, NULL, &st->opts,
                    &why) != OK);
    estage_free(st);
}
