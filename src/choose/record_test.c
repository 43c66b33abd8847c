#include "choose/choose.h"

#include <stdlib.h>

#include "test/t.h"

/* A tx's one operation as the row that it would be. */
static struct row row_of(const struct tx *tx, struct value *values)
{
    for (uint8_t i = 0; i < N_DECISION_COLUMNS; i++)
        values[i] = tx_value(tx->first, i);
    return (struct row){.values = values};
}

static const struct candidate candidates[] = {
    {STR("engineer"),
     STR("debug"),
     STR("code"),
     {.362F, .35F, .4F, .1F, .02F, .5F, 1, .25F},
     .level = {.05F, .2F},
     .is_trusted = true,
     .score = 0.467},
    {STR("researcher"),
     STR(""),
     STR(""),
     {.289F, .2F, .3F, 0, 0, .5F, 0, 0},
     .level = {-1, -1},
     .is_taught = true,
     .score = 0.1},
};

static struct decision sample(void)
{
    struct decision d = {
        .at_ms = 1763169000000,
        .turn = 2,
        .conversation_id = STR("c-1"),
        .requester = STR("ann"),
        .org = STR("acme"),
        .text = STR("why does this segfault"),
        .executor = STR(""),
        .source = STR("{\"channel\":\"telegram\"}"),
        .stuck_to = STR("docs"),
        .layer = LAYER_SEMANTIC,
        .agent = STR("engineer"),
        .skill = STR("debug"),
        .reason = STR("because"),
        .score = 0.1 + 0.2,
        .margin = 1e-300,
        .threshold = 0.3,
        .is_explored = true,
        .weights = {.6, .2, .15, .05},
        .rules = {.layers_off = 6,
                  .default_agent = STR("main"),
                  .text_blend = .25,
                  .close_margin = .05,
                  .explore = .01,
                  .chance = 1.0 / 3,
                  .has_intent = true,
                  .intent_is_over_bindings = true,
                  .intent_threshold = .8},
        .candidates = candidates,
        .n_candidates = 2,
        .n_considered = 10000,
        .is_by_agent = true,
        .intent = {.is_asked = true,
                   .agent = STR("docs"),
                   .confidence = .5,
                   .reasoning = STR("words"),
                   .why = STR("not sure enough"),
                   .took_ms = 41},
        .vector = STR("\0\1\2\3"),
        .model = STR("builtin"),
        .model_hash = STR("abc"),
        .config_version = STR("0123456789abcdef"),
        .registry_version = 7,
        .learn_version = 9,
        .type = 3,
    };

    d.id = id_from(STR("dec_01j00000000000000000000000"));
    d.task_id = id_from(STR("task_01j00000000000000000000000"));
    return d;
}

static void check_same(const struct decision *a, const struct decision *b)
{
    CHECK_STR(str_of(a->id.text), b->id.text);
    CHECK_INT(a->turn, b->turn);
    CHECK(str_eq(a->text, b->text) && str_eq(a->source, b->source));
    CHECK(str_eq(a->stuck_to, b->stuck_to) && str_eq(a->agent, b->agent));
    CHECK(a->layer == b->layer && a->score == b->score);
    CHECK(a->margin == b->margin && a->threshold == b->threshold);
    CHECK(a->is_explored == b->is_explored);
    CHECK(a->is_by_agent && b->is_by_agent);
    CHECK(memcmp(&a->weights, &b->weights, sizeof(a->weights)) == 0);
    CHECK(a->rules.layers_off == b->rules.layers_off);
    CHECK(str_eq(a->rules.default_agent, b->rules.default_agent));
    CHECK(a->rules.chance == b->rules.chance);
    CHECK(a->rules.has_intent && a->rules.intent_is_over_bindings);
    CHECK(!a->rules.intent_is_ambiguous);
    CHECK(a->intent.is_asked && !a->intent.is_good);
    CHECK(str_eq(a->intent.why, b->intent.why));
    CHECK(a->intent.confidence == b->intent.confidence);
    CHECK_INT(a->intent.took_ms, b->intent.took_ms);
    CHECK(str_eq(a->vector, b->vector));
    CHECK(str_eq(a->config_version, b->config_version));
    CHECK_INT(a->n_considered, b->n_considered);
    CHECK_INT(a->n_candidates, b->n_candidates);
    for (size_t i = 0; i < a->n_candidates; i++) {
        const struct candidate *x = &a->candidates[i], *y = &b->candidates[i];

        CHECK(str_eq(x->agent, y->agent) && str_eq(x->keyword, y->keyword));
        CHECK(memcmp(&x->signals, &y->signals, sizeof(x->signals)) == 0);
        CHECK(x->score == y->score);
    }
}

TEST(a_decision_comes_back_as_it_was)
{
    struct decision d = sample(), back;
    struct value values[N_DECISION_COLUMNS];
    struct arena a;
    struct row row;
    struct tx tx;

    arena_init(&a, 1 << 20);
    tx_init(&tx);
    choose_record(&tx, &d);
    CHECK(!tx.build_error);
    row = row_of(&tx, values);
    CHECK(decision_from_row(&a, &row, &back) == OK);
    check_same(&back, &d);
    CHECK(back.verdict == VERDICT_OPEN && back.answer_chars == -1);
    tx_fini(&tx);
    arena_fini(&a);
}

/* Every beginning of a body, and one byte too many. */
TEST(a_body_that_is_none_is_refused)
{
    struct decision d = sample(), back;
    struct value values[N_DECISION_COLUMNS];
    struct arena a;
    struct row row;
    struct str whole;
    char *more;
    struct tx tx;

    arena_init(&a, 1 << 20);
    tx_init(&tx);
    choose_record(&tx, &d);
    row = row_of(&tx, values);
    whole = values[DECISION_BODY].s;
    for (size_t n = 0; n < whole.n; n++) {
        values[DECISION_BODY].s = (struct str){whole.p, n};
        CHECK(decision_from_row(&a, &row, &back) == ERR_SYNTAX);
    }
    more = calloc(1, whole.n + 1);
    CHECK(more);
    memcpy(more, whole.p, whole.n);
    values[DECISION_BODY].s = (struct str){more, whole.n + 1};
    CHECK(decision_from_row(&a, &row, &back) == ERR_SYNTAX);
    values[DECISION_BODY].s = whole;
    values[DECISION_LAYER] = value_int(N_LAYERS);
    CHECK(decision_from_row(&a, &row, &back) == ERR_SYNTAX);
    free(more);
    tx_fini(&tx);
    arena_fini(&a);
}
