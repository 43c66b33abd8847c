/* Verdicts of users: corrected texts, ratings, the weight of a scope's verdicts
 * for others, and voids. */
#include "test/t.h"

#include "test/lib/learn_stage.h"
#include "test/lib/learn_table.h"

enum { TEXT = 77, OTHER_TEXT = 78 };

static struct outcome taught(struct stage *s, const char *agent,
                             const char *right, uint64_t text)
{
    struct outcome o = corrected(s, agent, right, "org:acme", 1);

    o.vector = STR("");
    o.model_hash = STR("");
    o.text_hash = text;
    return o;
}

static bool is_taught(struct stage *s, const char *scope, uint64_t text,
                      const char *agent)
{
    return ask_text(s, scope, -1, text, agent).is_taught;
}

/* Texts. */

TEST(one_correction_says_whose_the_very_text_is)
{
    struct stage *s = stage_new();
    struct outcome o = taught(s, "cook", "tailor", TEXT);

    apply(s, &o);
    CHECK(is_taught(s, "org:acme", TEXT, "Tailor"));
    CHECK(!is_taught(s, "org:acme", TEXT, "cook"));
    CHECK(!is_taught(s, "org:acme", OTHER_TEXT, "tailor"));
    CHECK(!is_taught(s, "org:acme", 0, "tailor"));
    CHECK(!is_taught(s, "org:other", TEXT, "tailor"));
    CHECK_INT(learn_stats(s->l).examples, 1);
    CHECK(learn_check(s->l));
    stage_free(s);
}

TEST(every_layer_teaches_and_so_does_a_refusal)
{
    for (enum layer layer = LAYER_EXPLICIT; layer <= LAYER_NONE; layer++) {
        struct stage *s = stage_new();
        struct outcome o = corrected(s, "cook", "tailor", "org:acme", 1);

        o.layer = layer;
        o.text_hash = TEXT;
        if (layer == LAYER_NONE)
            o.agent = STR("");
        apply(s, &o);
        CHECK(is_taught(s, "org:acme", TEXT, "tailor"));
        CHECK(ask(s, "org:acme", 1, "tailor").learned == 1);
        CHECK_INT(learn_stats(s->l).agents,
                  layer == LAYER_SEMANTIC || layer == LAYER_INTENT);
        stage_free(s);
    }
}

TEST(the_latest_correction_of_a_text_counts)
{
    struct stage *s = stage_new();
    struct outcome first = taught(s, "cook", "tailor", TEXT);
    struct outcome second = taught(s, "tailor", "smith", TEXT);
    struct outcome wrong = taught(s, "smith", "", TEXT);

    apply(s, &first);
    apply(s, &second);
    CHECK(is_taught(s, "org:acme", TEXT, "smith"));
    CHECK(!is_taught(s, "org:acme", TEXT, "tailor"));
    /* Knowing that it is not the smith's does not tell the right agent. */
    wrong.kind = OUTCOME_FEEDBACK;
    apply(s, &wrong);
    CHECK(!is_taught(s, "org:acme", TEXT, "smith"));
    CHECK(!is_taught(s, "org:acme", TEXT, "tailor"));
    /* Once withdrawn, the one before counts again. */
    wrong.verdict = VERDICT_POSITIVE;
    apply(s, &wrong);
    CHECK(is_taught(s, "org:acme", TEXT, "smith"));
    CHECK(learn_check(s->l));
    stage_free(s);
}

TEST(a_switch_that_says_nothing_teaches_nothing)
{
    struct stage *s = stage_new();
    struct outcome o = taught(s, "cook", "tailor", TEXT);

    o.text = STR("");
    apply(s, &o);
    CHECK(!is_taught(s, "org:acme", TEXT, "tailor"));
    CHECK_INT(learn_stats(s->l).examples, 0);
    CHECK_INT(learn_stats(s->l).ratings, 0);
    stage_free(s);
}

TEST(an_agent_that_is_forgotten_is_taught_and_rated_no_more)
{
    struct stage *s = stage_new();
    struct outcome o = taught(s, "cook", "tailor", TEXT);

    apply(s, &o);
    CHECK(ask_text(s, "org:acme", -1, TEXT, "tailor").is_rated);
    forget(s, "tailor");
    CHECK(!is_taught(s, "org:acme", TEXT, "tailor"));
    CHECK(!ask_text(s, "org:acme", -1, TEXT, "tailor").is_rated);
    CHECK(learn_check(s->l));
    stage_free(s);
}

TEST(examples_without_vectors_are_as_few_as_others)
{
    struct learn_settings settings = learn_defaults();
    struct stage *s;

    settings.examples_per_agent = 3;
    settings.max_examples = 5;
    s = stage_new_with(settings);
    for (uint64_t i = 1; i <= 9; i++) {
        struct outcome o = taught(s, "cook", i % 2 ? "tailor" : "smith", i);

        apply(s, &o);
        CHECK(is_taught(s, "org:acme", i, i % 2 ? "tailor" : "smith"));
        CHECK(learn_check(s->l));
    }
    CHECK_INT(learn_stats(s->l).examples, 5);
    CHECK(!is_taught(s, "org:acme", 1, "tailor"));
    stage_free(s);
}

/* Ratings. */

static struct outcome rated(struct stage *s, const char *agent, const char *by,
                            enum verdict verdict)
{
    struct outcome o = judged(s, agent, 1, verdict);

    o.kind = OUTCOME_FEEDBACK;
    o.by = str_of(by);
    return o;
}

static bool is_rated(struct stage *s, const char *scope, const char *agent)
{
    return ask_text(s, scope, -1, 0, agent).is_rated;
}

TEST(an_agent_is_rated_well_where_people_said_more_good_than_bad_of_it)
{
    struct stage *s = stage_new();
    struct outcome good = rated(s, "cook", "ann", VERDICT_POSITIVE);
    struct outcome bad = rated(s, "cook", "bob", VERDICT_NEGATIVE);

    judge(s, "cook", 1, VERDICT_POSITIVE); /* the job is not a person */
    CHECK(!is_rated(s, "org:acme", "cook"));
    apply(s, &good);
    CHECK(is_rated(s, "org:acme", "cook"));
    CHECK(!is_rated(s, "org:other", "cook"));
    apply(s, &good); /* again, on the same decision: it counts once */
    apply(s, &bad);
    CHECK(!is_rated(s, "org:acme", "cook"));
    good = rated(s, "cook", "ann", VERDICT_POSITIVE);
    apply(s, &good);
    CHECK(is_rated(s, "org:acme", "cook"));
    good.verdict = VERDICT_NEGATIVE;
    apply(s, &good);
    CHECK(!is_rated(s, "org:acme", "cook"));
    stage_free(s);
}

TEST(a_correction_rates_both_agents_and_the_next_one_takes_it_back)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "cook", "tailor", "org:acme", 1);

    apply(s, &o);
    CHECK(is_rated(s, "org:acme", "tailor"));
    CHECK(!is_rated(s, "org:acme", "cook"));
    o.right_agent = STR("smith");
    apply(s, &o);
    CHECK(!is_rated(s, "org:acme", "tailor"));
    CHECK(is_rated(s, "org:acme", "smith"));
    o.kind = OUTCOME_FEEDBACK;
    o.verdict = VERDICT_POSITIVE;
    o.right_agent = STR("");
    apply(s, &o);
    CHECK(!is_rated(s, "org:acme", "smith"));
    CHECK(is_rated(s, "org:acme", "cook"));
    CHECK_INT(learn_stats(s->l).ratings, 1);
    CHECK(learn_check(s->l));
    stage_free(s);
}

TEST(a_rating_is_its_latest_votes)
{
    struct stage *s = stage_new();
    struct outcome o;

    for (int i = 0; i < 3 * LEARN_RATING_VOTES; i++) {
        o = rated(s, "cook", "ann", VERDICT_POSITIVE);
        apply(s, &o);
    }
    for (int i = 0; i < LEARN_RATING_VOTES / 2; i++) {
        CHECK(is_rated(s, "org:acme", "cook"));
        o = rated(s, "cook", "ann", VERDICT_NEGATIVE);
        apply(s, &o);
    }
    CHECK(!is_rated(s, "org:acme", "cook"));
    stage_free(s);
}

TEST(a_scope_rates_so_many_agents_and_the_oldest_goes)
{
    struct stage *s = stage_new();
    char name[16];

    for (int i = 0; i <= LEARN_RATINGS_PER_SCOPE; i++) {
        struct outcome o;

        snprintf(name, sizeof(name), "agent%d", i);
        o = rated(s, name, "ann", VERDICT_POSITIVE);
        o.layer = LAYER_EXPLICIT;
        apply(s, &o);
    }
    CHECK_INT(learn_stats(s->l).ratings, LEARN_RATINGS_PER_SCOPE);
    CHECK(!is_rated(s, "org:acme", "agent0"));
    CHECK(is_rated(s, "org:acme", "agent1"));
    CHECK(is_rated(s, "org:acme", name));
    CHECK(learn_check(s->l));
    stage_free(s);
}

/* Weights. */

static void praise(struct stage *s, const char *agent, const char *owner,
                   const char *scope, int times)
{
    for (int i = 0; i < times; i++) {
        struct outcome o = judged(s, agent, 1, VERDICT_POSITIVE);

        o.scope = str_of(scope);
        o.owner = str_of(owner);
        apply(s, &o);
    }
}

static float seen_by(struct stage *s, const char *scope, const char *agent)
{
    return ask(s, scope, 1, agent).performance;
}

TEST(many_verdicts_of_one_scope_move_others_a_little_and_itself_in_full)
{
    struct stage *s = stage_new();
    double rate = 0.5;

    praise(s, "cook", "", "org:acme", 1000);
    CHECK(seen_by(s, "org:other", "cook") == 0.5F); /* one scope alone */
    praise(s, "cook", "", "org:second", 1);
    CHECK(seen_by(s, "org:other", "cook") > 0.5F);
    CHECK(seen_by(s, "org:other", "cook") < 0.57F);
    praise(s, "tailor", "", "org:acme", 1000);
    for (int i = 0; i < 1000; i++)
        rate += 0.1 * (1 - rate);
    CHECK(seen_by(s, "org:acme", "tailor") ==
          (float)((1000 * rate + 5 * 0.5) / 1005));
    stage_free(s);
}

TEST(independent_scopes_move_what_one_alone_cannot)
{
    struct stage *s = stage_new();
    char scope[16];
    float most;

    for (int i = 0; i < 300; i++) {
        snprintf(scope, sizeof(scope), "user:u%d", i);
        praise(s, "cook", "", scope, 1);
    }
    /* Whatever the query, and all together at most half as much as the
     * middle. */
    most = (float)((2.5 * 1 + 5 * 0.5) / 7.5);
    CHECK(seen_by(s, "org:other", "cook") > most - 0.001F);
    CHECK(seen_by(s, "org:other", "cook") <= most);
    CHECK(ask(s, "org:other", 2, "cook").performance ==
          seen_by(s, "org:other", "cook"));
    CHECK(ask_text(s, "org:other", -1, 0, "cook").performance ==
          seen_by(s, "org:other", "cook"));
    /* Not when that was, nor with which queries. */
    CHECK(ask(s, "org:other", 1, "cook").recency == 0);
    stage_free(s);
}

/* The same verdicts by other users, on other texts, at other times. */
TEST(overall_performance_depends_on_no_text_and_no_time)
{
    struct learn_hint seen[2];

    for (int i = 0; i < 2; i++) {
        struct stage *s = stage_new();
        char scope[16];

        praise(s, "cook", "", "org:acme", 2);
        for (int k = 0; k < 20; k++) {
            struct outcome o =
                judged(s, "cook", i ? 1 : 3 + k,
                       k % 3 ? VERDICT_POSITIVE : VERDICT_NEGATIVE);

            snprintf(scope, sizeof(scope), "org:o%d", k % 5);
            o.scope = str_of(scope);
            o.text = i ? STR("the Henderson merger") : STR("a recipe");
            o.at_ms = 1000 + 500 * i;
            apply(s, &o);
        }
        seen[i] = ask(s, "org:acme", 1, "cook");
        CHECK(learn_check(s->l));
        stage_free(s);
    }
    CHECK(seen[0].performance == seen[1].performance);
    CHECK(seen[0].recency == seen[1].recency);
    CHECK(seen[0].learned == seen[1].learned);
}

TEST(accounts_that_judge_one_owner_alone_move_no_other_scope)
{
    struct stage *s = stage_new();
    char scope[16];

    for (int i = 0; i < 30; i++) {
        snprintf(scope, sizeof(scope), "user:p%d", i);
        praise(s, "evil", "mallory", scope, 5);
        praise(s, "eviltwo", "Mallory", scope, 5);
    }
    CHECK(seen_by(s, "org:other", "evil") == 0.5F);
    CHECK(ask(s, "org:other", 1, "evil").recency == 0);
    CHECK(seen_by(s, "user:p7", "evil") > 0.5F);
    /* Scopes that have judged agents of several owners count. */
    for (int i = 0; i < 2; i++) {
        praise(s, "cook", "", i ? "user:x" : "user:y", 1);
        praise(s, "smith", "olga", i ? "user:x" : "user:y", 1);
        praise(s, "honest", "hanna", i ? "user:x" : "user:y", 1);
    }
    CHECK(seen_by(s, "org:other", "honest") > 0.5F);
    CHECK(seen_by(s, "org:other", "honest") < seen_by(s, "org:other", "cook"));
    stage_free(s);
}

TEST(a_verdict_about_the_platform_makes_no_account_independent)
{
    struct stage *s = stage_new();

    for (int i = 0; i < 2; i++) {
        const char *puppet = i ? "user:puppet" : "user:puppet2";

        praise(s, "cook", "", puppet, 1);
        praise(s, "evil", "mallory", puppet, 5);
        CHECK(seen_by(s, "org:other", "evil") == 0.5F);
        praise(s, "cook", "", puppet, 1);
        praise(s, "evil", "mallory", puppet, 1);
    }
    CHECK(seen_by(s, "org:other", "evil") == 0.5F);
    CHECK(seen_by(s, "org:other", "cook") > 0.5F);
    CHECK_INT(learn_stats(s->l).scopes, 2);
    CHECK(learn_check(s->l));
    stage_free(s);
}

TEST(owners_of_a_scope_are_counted_up_to_a_limit)
{
    struct stage *s = stage_new();
    char owner[16];

    for (int i = 0; i < 3 * LEARN_SCOPE_OWNERS; i++) {
        snprintf(owner, sizeof(owner), "o%d", i);
        praise(s, owner, owner, "user:x", 1);
        praise(s, owner, "", "user:y", 1); /* which makes it renowned */
    }
    CHECK(learn_check(s->l));
    CHECK_INT(learn_stats(s->l).scopes, 2);
    CHECK(seen_by(s, "org:other", "o7") < seen_by(s, "org:other", "o9"));
    stage_free(s);
}

TEST(by_the_plain_formula_all_verdicts_weigh_the_same)
{
    struct learn_settings settings = learn_defaults();
    double rate = 0.5, agent;
    struct learn_hint h;
    struct stage *s;

    settings.is_plain = true;
    s = stage_new_with(settings);
    praise(s, "cook", "mallory", "org:acme", 4);
    for (int i = 0; i < 4; i++)
        rate += 0.1 * (1 - rate);
    judge(s, "cook", 2, VERDICT_NEGATIVE); /* of another type */
    agent = rate + 0.1 * (0 - rate);
    h = ask(s, "org:acme", 1, "cook");
    CHECK(h.performance == (float)((4 * rate + 5 * agent) / 9));
    CHECK(!h.has_inside && h.outside_performance == h.performance);
    /* A type without observations, or no type: the agent's own. */
    CHECK(ask(s, "org:acme", 3, "cook").performance == (float)agent);
    CHECK(ask(s, "org:other", 1, "cook").performance == (float)agent);
    h = ask_all(s,
                (struct learn_query){.scope = STR("org:acme"),
                                     .now_ms = 1503,
                                     .recency_ms = 1000},
                "cook");
    CHECK(h.performance == (float)agent && h.recency == 0.5F);
    CHECK(ask_all(s,
                  (struct learn_query){.scope = STR("org:other"),
                                       .now_ms = 1503,
                                       .recency_ms = 1000},
                  "cook")
              .recency == 0);
    CHECK(ask(s, "org:other", 1, "unknown").performance == 0.5F);
    stage_free(s);
}

/* Voids. */

struct log {
    struct outcome list[64];
    uint8_t packed[64][STAGE_PACKED];
    size_t n;
};

static void say(struct stage *s, struct log *log, struct outcome o)
{
    o.seq = ++s->seq;
    if (o.vector.n) {
        memcpy(log->packed[log->n], o.vector.p, o.vector.n);
        o.vector.p = (const char *)log->packed[log->n];
    }
    log->list[log->n++] = o;
}

static struct outcome by(struct outcome o, const char *who)
{
    o.by = str_of(who);
    return o;
}

/* A fold over the log; `honors`: with its voids. `without`: as if this user had
 * never given a verdict. */
static char *fold(struct stage *s, const struct log *log, bool honors,
                  const char *without)
{
    struct learn_voids *v = learn_voids_new(stage_seed);

    learn_free(s->l);
    s->l = learn_new(&s->settings, STR("model"), 0, stage_seed);
    CHECK(s->l && v);
    for (size_t i = 0; honors && i < log->n; i++)
        if (log->list[i].kind == OUTCOME_VOID)
            CHECK(learn_voids_add(v, &log->list[i]) == OK);
    for (size_t i = 0; i < log->n; i++) {
        struct outcome o = log->list[i];
        bool is_void;

        if (str_eq(o.by, str_of(without)) && o.kind != OUTCOME_FORGET)
            continue;
        CHECK(learn_voids_judge(v, &o, &is_void) == OK);
        if (is_void)
            learn_skip(s->l, o.seq);
        else
            CHECK(learn_apply(s->l, &o) == OK);
    }
    CHECK(learn_check(s->l));
    learn_voids_free(v);
    return strdup(exported(s));
}

static struct outcome voids(const char *target)
{
    return (struct outcome){
        .kind = OUTCOME_VOID, .scope = str_of(target), .by = STR("admin")};
}

static void tell_all(struct stage *s, struct log *log, const char *target)
{
    struct outcome o;

    say(s, log, by(corrected(s, "cook", "tailor", "org:acme", 1), "ann"));
    say(s, log, by(corrected(s, "cook", "smith", "org:acme", 2), "bob"));
    say(s, log, by(rated(s, "cook", "", VERDICT_POSITIVE), "bob"));
    say(s, log, judged(s, "cook", 3, VERDICT_POSITIVE));
    /* Bob withdraws ann's verdict. */
    o = log->list[0];
    o.kind = OUTCOME_FEEDBACK;
    o.verdict = VERDICT_POSITIVE;
    o.right_agent = STR("");
    o.counts = COUNTS_NOT;
    say(s, log, by(o, "bob"));
    /* Bob's verdict counted; ann's on the same decision did not. */
    o = by(rated(s, "smith", "", VERDICT_NEGATIVE), "bob");
    say(s, log, o);
    o.verdict = VERDICT_POSITIVE;
    o.counts = COUNTS_NOT;
    say(s, log, by(o, "ann"));
    say(s, log, voids(target));
}

TEST(voiding_restores_the_state_byte_for_byte)
{
    struct stage *s = stage_new();
    struct log *log = calloc(1, sizeof(*log));
    char *voided, *never, *ignored;

    tell_all(s, log, "user:bob");
    ignored = fold(s, log, false, "-");
    voided = fold(s, log, true, "-");
    /* Without bob's verdict, ann's second one would have counted. */
    log->list[6].counts = COUNTS_FOR_ALL;
    never = fold(s, log, false, "bob");
    CHECK_STR(str_of(voided), never);
    CHECK(strcmp(ignored, voided) != 0); /* a fold that ignores voids */
    CHECK_INT(learn_stats(s->l).applied_total, 3);
    free(voided);
    free(never);
    free(ignored);
    free(log);
    stage_free(s);
}

TEST(a_void_covers_only_what_came_before_it)
{
    struct stage *s = stage_new();
    struct log *log = calloc(1, sizeof(*log));
    char *state;

    say(s, log, by(corrected(s, "cook", "smith", "org:acme", 2), "bob"));
    say(s, log, voids("user:bob"));
    say(s, log, by(corrected(s, "cook", "tailor", "org:acme", 2), "bob"));
    state = fold(s, log, true, "-");
    CHECK(!strstr(state, "smith") && strstr(state, "tailor"));
    CHECK_INT(learn_version(s->l), 3);
    free(state);
    free(log);
    stage_free(s);
}

TEST(an_owners_void_covers_verdicts_by_them_and_about_their_agents)
{
    struct stage *s = stage_new();
    struct log *log = calloc(1, sizeof(*log));
    struct outcome o = judged(s, "evil", 1, VERDICT_POSITIVE);
    char *state;

    o.owner = STR("mallory");
    say(s, log, o);
    o = by(corrected(s, "cook", "evil", "org:acme", 2), "puppet");
    o.right_owner = STR("mallory");
    say(s, log, o);
    say(s, log, by(corrected(s, "cook", "smith", "org:acme", 2), "mallory"));
    o = judged(s, "tailor", 1, VERDICT_NEGATIVE); /* of mallory's message */
    o.requester = STR("mallory");
    say(s, log, o);
    say(s, log, by(corrected(s, "tailor", "cook", "org:acme", 1), "ann"));
    say(s, log,
        (struct outcome){.kind = OUTCOME_FORGET,
                         .agent = STR("unknown"),
                         .by = STR("mallory")});
    say(s, log, voids("owner:mallory"));
    state = fold(s, log, true, "-");
    CHECK(!strstr(state, "evil") && !strstr(state, "smith"));
    CHECK(strstr(state, "tailor"));
    CHECK_INT(learn_stats(s->l).applied_total, 2); /* ann's, and the reset */
    free(state);
    free(log);
    stage_free(s);
}

TEST(voids_are_bounded_and_name_a_user_or_an_owner)
{
    struct learn_voids *v = learn_voids_new(stage_seed);
    struct outcome o = voids("org:acme");
    char name[32];

    CHECK(learn_voids_add(v, &o) == ERR_SYNTAX);
    for (int i = 0; i < LEARN_VOIDS_MAX; i++) {
        snprintf(name, sizeof(name), "user:u%d", i);
        o = voids(name);
        CHECK(learn_voids_add(v, &o) == OK);
    }
    CHECK(learn_voids_add(v, &o) == OK); /* the same again */
    o = voids("owner:one-more");
    CHECK(learn_voids_add(v, &o) == ERR_LIMIT);
    learn_voids_free(v);
}

TEST(a_void_alone_changes_nothing_but_the_number)
{
    struct stage *s = stage_new();
    struct outcome o = voids("user:bob");
    char *before;

    judge(s, "cook", 1, VERDICT_POSITIVE);
    before = strdup(exported(s));
    apply(s, &o);
    CHECK_STR(str_of(exported(s)), before);
    free(before);
    stage_free(s);
}

/* Bob's verdict about the decision of that number, which counted, or ann's
 * about the same one, which did not. */
static struct outcome counted(int number, const char *who)
{
    struct outcome o = {.seq = number,
                        .kind = OUTCOME_FEEDBACK,
                        .verdict = VERDICT_POSITIVE,
                        .by = str_of(who)};

    if (!str_eq(o.by, STR("bob")))
        o.counts = COUNTS_NOT;
    snprintf(o.decision_id.text, sizeof(o.decision_id.text), "dec_%026d",
             number);
    return o;
}

TEST(beyond_the_limit_of_voided_decisions_the_next_verdict_does_not_count)
{
    struct learn_voids *v = learn_voids_new(stage_seed);
    struct outcome o = voids("user:bob"), within, beyond;
    bool is_void;

    o.seq = 2 * LEARN_VOIDED_MAX;
    CHECK(learn_voids_add(v, &o) == OK);
    for (int i = 1; i <= LEARN_VOIDED_MAX + 1; i++) {
        o = counted(i, "bob");
        CHECK(learn_voids_judge(v, &o, &is_void) == OK && is_void);
    }
    within = counted(LEARN_VOIDED_MAX, "ann");
    CHECK(learn_voids_judge(v, &within, &is_void) == OK && !is_void);
    CHECK_INT(within.counts, COUNTS_FOR_ALL);
    beyond = counted(LEARN_VOIDED_MAX + 1, "ann");
    CHECK(learn_voids_judge(v, &beyond, &is_void) == OK && !is_void);
    CHECK_INT(beyond.counts, COUNTS_NOT);
    learn_voids_free(v);
}
