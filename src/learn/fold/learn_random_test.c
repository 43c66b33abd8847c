/* Random outcomes, compared with a plain model that keeps everything in lists
 * and searches all of it each time; and with the state itself, written and
 * loaded at any moment. STRESS=full does much more of it. */
#include "test/t.h"

#include "test/lib/learn_stage.h"

#include "test/lib/learn_plain.h"
#include "test/lib/learn_table.h"

#include "base/map.h"

static struct outcome any_outcome(struct stage *s)
{
    const char *agent = agents[stage_random(s) % N_AGENTS];
    int number =
        100 * (1 + (int)(stage_random(s) % 8)) + (int)(stage_random(s) % 20);
    struct outcome o =
        judged(s, agent, number, (enum verdict)(stage_random(s) % 4));
    uint64_t kind = stage_random(s) % 40;
    static const struct str owners[] = {STR(""), STR("mallory"), STR("eve"),
                                        STR("bob")};

    o.kind = kind < 18   ? OUTCOME_VERDICT
             : kind < 32 ? OUTCOME_CORRECTION
             : kind < 39 ? OUTCOME_FEEDBACK
                         : OUTCOME_FORGET;
    o.scope = str_of(scopes[stage_random(s) % N_PLAIN_SCOPES]);
    o.layer = stage_random(s) % 8 ? LAYER_SEMANTIC : LAYER_DEFAULT;
    o.at_ms = 1000 + (int64_t)(stage_random(s) % 2000);
    if (o.kind == OUTCOME_CORRECTION ||
        (o.kind == OUTCOME_FEEDBACK && stage_random(s) % 2))
        o.right_agent = str_of(agents[stage_random(s) % N_AGENTS]);
    if (o.kind == OUTCOME_FORGET && stage_random(s) % 6 == 0)
        o.agent = STR("");
    if (stage_random(s) % 3 == 0)
        o.counts = stage_random(s) % 2 ? COUNTS_INSIDE : COUNTS_NOT;
    if (stage_random(s) % 10 == 0)
        o.vector = STR("");
    o.owner = owners[stage_random(s) % 4];
    o.by = o.kind == OUTCOME_VERDICT ? STR("") : owners[stage_random(s) % 4];
    o.text_hash = stage_random(s) % 5;
    if (stage_random(s) % 6 == 0)
        o.model_hash = STR("other");
    if (stage_random(s) % 4 == 0) /* a decision again */
        snprintf(o.decision_id.text, sizeof(o.decision_id.text), "dec_%026lld",
                 1 + (long long)stage_random(s) % s->n_decisions);
    return o;
}

static void check_agent(struct stage *s, struct plain *p, int agent, int scope,
                        int number)
{
    uint64_t text_hash = stage_random(s) % 6;
    struct learn_hint h =
        ask_text(s, scopes[scope], number, text_hash, agents[agent]);
    struct vec_packed v;
    int type;

    CHECK(opened(s, number, &v));
    type = plain_near(p, scope, 0, &v);
    CHECK(h.performance ==
          (float)plain_performance(p, agent, type, scope, false));
    CHECK(h.outside_performance ==
          (float)plain_performance(p, agent, type, scope, true));
    CHECK_INT(h.is_taught, plain_taught(p, scope, text_hash) == agent);
    CHECK_INT(h.is_rated, plain_is_rated(p, scope, agent));
    if (fabs((double)h.learned - plain_learned(p, scope, agent, &v)) > 0.01)
        T_FAIL("%s %s: learned %g, not %g", scopes[scope], agents[agent],
               (double)h.learned, plain_learned(p, scope, agent, &v));
    CHECK(h.recency == (float)plain_recency(p, agent, type, scope, false));
    CHECK(h.outside_recency ==
          (float)plain_recency(p, agent, type, scope, true));
    if (!h.has_inside)
        CHECK(h.performance == h.outside_performance &&
              h.recency == h.outside_recency);
}

/* Each example exists, and is as useful as it should be. */
static void check_examples(struct stage *s, const struct plain *p)
{
    const char *all = exported(s);

    for (size_t i = 0; i < p->n_examples; i++) {
        const struct plain_example *x = &p->examples[i];
        char line[128], end[64];
        const char *at;

        snprintf(line, sizeof(line), "{\"example\":\"%.30s\",\"scope\":\"%s\"",
                 x->key, scopes[x->scope]);
        snprintf(end, sizeof(end), "\"outcome\":%" PRId64 "}\n", x->heard);
        at = strstr(all, line);
        if (!at || strncmp(strstr(at, "\"outcome\""), end, strlen(end)) != 0)
            T_FAIL("%s %s at %" PRId64 " in\n%s", line, end, s->seq, all);
    }
}

static void check_same(struct stage *s, struct plain *p)
{
    struct learn_stats stats = learn_stats(s->l);
    int number = 100 * (1 + (int)(stage_random(s) % 8));
    size_t n = 0;
    struct vec_packed v;
    int type;

    CHECK(learn_check(s->l));
    for (int i = 0; i < N_AGENTS; i++)
        n += p->agents[i].is_there;
    CHECK_INT(stats.agents, n);
    CHECK_INT(stats.types, p->n_types);
    CHECK_INT(stats.agent_types, p->n_pairs);
    CHECK_INT(stats.examples, p->n_examples);
    CHECK_INT(stats.views, p->n_views);
    check_examples(s, p);
    CHECK(opened(s, number, &v));
    for (int i = 0; i < N_PLAIN_SCOPES; i++) {
        type = plain_near(p, i, 0, &v);
        CHECK_INT(learn_type(s->l, str_of(scopes[i]), vector_of(s, number)),
                  type < 0 ? 0 : p->types[type].id);
    }
    for (int i = 0; i < N_AGENTS; i++)
        check_agent(s, p, i, (int)(stage_random(s) % N_PLAIN_SCOPES), number);
}

static struct learn_settings tight(void)
{
    struct learn_settings s = learn_defaults();

    s.max_types = 6;
    s.examples_per_agent = 3;
    s.max_examples = 20;
    s.max_agents = 5;
    return s;
}

static int n_rounds(int few)
{
    const char *stress = getenv("STRESS");

    return stress && strcmp(stress, "full") == 0 ? 100 * few : few;
}

TEST(random_outcomes_give_what_a_plain_model_gives)
{
    struct stage *s = stage_new_with(tight());
    struct plain *p = calloc(1, sizeof(*p));

    CHECK(p);
    p->s = s->settings;
    for (int i = 0; i < n_rounds(1500); i++) {
        struct outcome o = any_outcome(s);

        apply(s, &o);
        plain_apply(p, &o);
        check_same(s, p);
    }
    free(p);
    stage_free(s);
}

/* Kept for a restart: a stage frees its vectors after a while. */
struct journal {
    struct outcome list[8192];
    uint8_t packed[8192][STAGE_PACKED];
    size_t n;
};

static void note(struct journal *j, const struct outcome *o)
{
    CHECK(j->n < 8192);
    j->list[j->n] = *o;
    if (o->vector.n) {
        memcpy(j->packed[j->n], o->vector.p, STAGE_PACKED);
        j->list[j->n].vector.p = (const char *)j->packed[j->n];
    }
    j->n++;
}

/* The state that a start loads from the table and the outcomes. */
static void start_again(struct stage *s, const struct kept *k,
                        const struct journal *j)
{
    struct learn *l = learn_new(&s->settings, STR("model"), 0, stage_seed);
    char *before = strdup(exported(s));

    CHECK(l && before);
    CHECK(load_all(l, k) == OK);
    CHECK(learn_check(l));
    for (size_t i = 0; i < j->n; i++)
        CHECK(learn_apply(l, &j->list[i]) == OK);
    learn_free(s->l);
    s->l = l;
    CHECK(learn_check(l));
    CHECK_STR(str_of(exported(s)), before);
    free(before);
}

static void write_randomly(struct stage *s, struct kept *k, struct outcome *o,
                           struct journal *j)
{
    bool is_committed = stage_random(s) % 4 != 0, is_any, is_last;
    size_t max = stage_random(s) % 3 ? 1000 : stage_random(s) % 6;
    struct tx tx;

    tx_init(&tx);
    is_any = learn_dirty(s->l, &tx, max, &is_last);
    if (stage_random(s) % 2) { /* while it is on its way */
        apply(s, o);
        note(j, o);
        CHECK(learn_check(s->l));
    }
    if (is_any && is_committed)
        TX_EACH(op, &tx)
    kept_do(k, op);
    if (is_any)
        learn_written(s->l, is_committed);
    CHECK(learn_check(s->l));
    tx_fini(&tx);
}

TEST(a_start_at_any_moment_gives_the_same_state)
{
    struct stage *s = stage_new_with(tight());
    struct kept *k = calloc(1, sizeof(*k));
    struct journal *j = calloc(1, sizeof(*j));

    CHECK(k && j);
    s->random = 77;
    for (int i = 0; i < n_rounds(600) && j->n < 8000; i++) {
        struct outcome o = any_outcome(s);

        if (stage_random(s) % 3 == 0) {
            write_randomly(s, k, &o, j);
        } else {
            apply(s, &o);
            note(j, &o);
        }
        if (stage_random(s) % 40 == 0)
            learn_rewrite(s->l);
        if (stage_random(s) % 10 == 0)
            start_again(s, k, j);
    }
    write_all(s->l, k);
    start_again(s, k, j);
    kept_clear(k);
    free(k);
    free(j);
    stage_free(s);
}

/* The same on every processor: one that adds in another order is detected. The
 * number changes when the learned state of these outcomes changes. */
TEST(the_same_outcomes_give_the_same_bits_everywhere)
{
    struct stage *s = stage_new_with(tight());
    struct buf bits;
    uint64_t hash;

    buf_init(&bits, 1 << 20);
    s->random = 4713;
    for (int i = 0; i < 300; i++) {
        struct outcome o = any_outcome(s);

        apply(s, &o);
        for (int agent = 0; agent < N_AGENTS; agent++) {
            struct learn_hint h = ask(s, scopes[i % N_PLAIN_SCOPES],
                                      100 + i * 7 % 800, agents[agent]);

            buf_add(&bits,
                    (float[]){h.performance, h.recency, h.learned,
                              h.outside_performance, h.outside_recency},
                    5 * sizeof(float));
        }
    }
    exported(s);
    buf_add(&bits, s->out.p, s->out.n);
    CHECK(!bits.over && learn_stats(s->l).examples > 5);
    hash = hash_bytes(buf_str(&bits), (const uint64_t[2]){0, 0});
    if (hash != UINT64_C(0xbff53ee1b1388df8))
        T_FAIL("the bits are %016" PRIx64, hash);
    buf_fini(&bits);
    stage_free(s);
}
