#include "choose/layers/choose.h"

#include <stdlib.h>

#include "test/t.h"

/* A tx's only operation as the row that it would be. */
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
     .price_micros = 1500,
     .score = 0.467},
    {STR("researcher"),
     STR(""),
     STR(""),
     {.289F, .2F, .3F, 0, 0, .5F, 0, 0},
     .level = {-1, -1},
     .is_taught = true,
     .is_unpaid = true,
     .price_micros = 20000000,
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
        .is_by_price = true,
        .price_micros = 1500,
        .ceiling_micros = 101500,
        .weights = {.6, .2, .15, .05},
        .rules = {.layers_off = 6,
                  .trusts_all = true,
                  .default_agent = STR("main"),
                  .text_blend = .25,
                  .close_margin = .05,
                  .explore = .01,
                  .second_margin = 0.1 + 0.2,
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
        .tier = TIER_TABLE,
        .tier_note = STR("the transformer slept"),
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
    CHECK(a->rules.trusts_all == b->rules.trusts_all);
    CHECK(a->rules.has_intent && a->rules.intent_is_over_bindings);
    CHECK(!a->rules.intent_is_ambiguous);
    CHECK(a->intent.is_asked && !a->intent.is_good);
    CHECK(str_eq(a->intent.why, b->intent.why));
    CHECK(a->intent.confidence == b->intent.confidence);
    CHECK_INT(a->intent.took_ms, b->intent.took_ms);
    CHECK(str_eq(a->vector, b->vector));
    CHECK(a->tier == b->tier && str_eq(a->tier_note, b->tier_note));
    CHECK(a->rules.second_margin == b->rules.second_margin);
    CHECK(str_eq(a->config_version, b->config_version));
    CHECK_INT(a->n_considered, b->n_considered);
    CHECK_INT(a->n_candidates, b->n_candidates);
    for (size_t i = 0; i < a->n_candidates; i++) {
        const struct candidate *x = &a->candidates[i], *y = &b->candidates[i];

        CHECK(str_eq(x->agent, y->agent) && str_eq(x->keyword, y->keyword));
        CHECK(memcmp(&x->signals, &y->signals, sizeof(x->signals)) == 0);
        CHECK(x->score == y->score);
        CHECK(x->is_trusted == y->is_trusted && x->is_taught == y->is_taught &&
              x->is_half == y->is_half && x->is_unpaid == y->is_unpaid);
        CHECK_INT(x->price_micros, y->price_micros);
    }
    CHECK(a->is_by_price == b->is_by_price);
    CHECK_INT(a->price_micros, b->price_micros);
    CHECK_INT(a->ceiling_micros, b->ceiling_micros);
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

static size_t cut_out(char *bytes, size_t n, size_t at, size_t n_cut)
{
    CHECK(at + n_cut <= n);
    memmove(bytes + at, bytes + at + n_cut, n - at - n_cut);
    return n - n_cut;
}

/* Fields that a record older than prices lacks; the strings of the last
 * candidate are its name. */
static size_t cut_out_prices(char *bytes, size_t n)
{
    enum { TAIL = 8 + 8 + 4, CANDIDATE = 3 * 4 + 8 * 4 + 8 + 2 * 4 + 4 };

    n = cut_out(bytes, n, n - TAIL, TAIL);
    n = cut_out(bytes, n, n - 8, 8);
    return cut_out(bytes, n, n - CANDIDATE - candidates[1].agent.n - 8, 8);
}

static struct decision without_prices(struct decision d,
                                      struct candidate list[2])
{
    memcpy(list, candidates, sizeof(candidates));
    list[0].price_micros = list[1].price_micros = -1;
    d.candidates = list;
    d.is_by_price = false;
    d.price_micros = d.ceiling_micros = -1;
    return d;
}

TEST(a_decision_of_before_prices_is_read)
{
    struct decision d = sample(), back;
    struct value values[N_DECISION_COLUMNS];
    struct candidate list[2];
    char bytes[2048];
    struct arena a;
    struct row row;
    struct tx tx;
    size_t n;

    arena_init(&a, 1 << 20);
    tx_init(&tx);
    choose_record(&tx, &d);
    row = row_of(&tx, values);
    n = values[DECISION_BODY].s.n;
    CHECK(n < sizeof(bytes));
    memcpy(bytes, values[DECISION_BODY].s.p, n);
    n = cut_out_prices(bytes, n);
    values[DECISION_BODY].s = (struct str){bytes, n};
    CHECK(decision_from_row(&a, &row, &back) == ERR_SYNTAX); /* it says 4 */
    bytes[0] = 3;
    CHECK(decision_from_row(&a, &row, &back) == OK);
    d = without_prices(d, list);
    check_same(&back, &d);
    tx_fini(&tx);
    arena_fini(&a);
}

/* A body older than tiers lacks their fields. */
TEST(a_decision_of_before_tiers_is_read)
{
    enum { MARGIN_AT = 1 + 44 + 36 + 4 + 4 + 40 + 12 + 24 };
    static const char vector[] = {4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3};
    struct decision d = sample(), back;
    struct value values[N_DECISION_COLUMNS];
    struct candidate list[2];
    char bytes[2048], *tier;
    struct arena a;
    struct row row;
    struct tx tx;
    size_t n;

    arena_init(&a, 1 << 20);
    tx_init(&tx);
    choose_record(&tx, &d);
    row = row_of(&tx, values);
    n = values[DECISION_BODY].s.n;
    CHECK(n < sizeof(bytes));
    memcpy(bytes, values[DECISION_BODY].s.p, n);
    n = cut_out_prices(bytes, n);
    tier = memmem(bytes, n, vector, sizeof(vector));
    CHECK(tier);
    n = cut_out(bytes, n, (size_t)(tier - bytes) + sizeof(vector),
                8 + d.tier_note.n);
    n = cut_out(bytes, n, (size_t)(tier - bytes) + 4, 4);
    n = cut_out(bytes, n, MARGIN_AT, 8);
    values[DECISION_BODY].s = (struct str){bytes, n};
    CHECK(decision_from_row(&a, &row, &back) == ERR_SYNTAX); /* it says 4 */
    bytes[0] = 2;
    CHECK(decision_from_row(&a, &row, &back) == OK);
    CHECK(back.tier == TIER_NONE && !back.tier_note.n);
    CHECK(back.rules.second_margin == 0);
    d.tier = TIER_NONE;
    d.tier_note = STR("");
    d.rules.second_margin = 0;
    d = without_prices(d, list);
    check_same(&back, &d);
    tx_fini(&tx);
    arena_fini(&a);
}

/* Vectors of all lengths with zeros at their ends, and all their prefixes. */
TEST(a_vector_comes_back_whatever_zeros_it_ends_with)
{
    enum { MOST = 8 + 2 * 20 + 1 };
    size_t shortest = SIZE_MAX, longest = 0;

    for (size_t n = 0; n <= MOST; n++)
        for (size_t zeros = 0; zeros <= 20; zeros++) {
            struct decision d = sample(), back;
            struct value values[N_DECISION_COLUMNS];
            char bytes[MOST + 1], *less;
            size_t each = n > 8 ? (n - 8) / 2 : 0;
            struct arena a;
            struct row row;
            struct str body;
            struct tx tx;

            memset(bytes, 'v', sizeof(bytes));
            for (size_t i = 0; i < zeros && i < each; i++)
                bytes[8 + each - 1 - i] = bytes[8 + 2 * each - 1 - i] = 0;
            d.vector = (struct str){bytes, n};
            arena_init(&a, 1 << 20);
            tx_init(&tx);
            choose_record(&tx, &d);
            row = row_of(&tx, values);
            CHECK(decision_from_row(&a, &row, &back) == OK);
            CHECK(str_eq(back.vector, d.vector));
            body = values[DECISION_BODY].s;
            shortest = n == MOST && body.n < shortest ? body.n : shortest;
            longest = n == MOST && body.n > longest ? body.n : longest;
            less = malloc(body.n); /* so that reading too far is seen */
            CHECK(less);
            memcpy(less, body.p, body.n);
            for (size_t k = 0; k < body.n; k += 7) {
                values[DECISION_BODY].s = (struct str){less, k};
                CHECK(decision_from_row(&a, &row, &back) == ERR_SYNTAX);
            }
            free(less);
            tx_fini(&tx);
            arena_fini(&a);
        }
    CHECK_INT(longest - shortest, 40);
}

TEST(a_tier_that_there_is_not_is_refused)
{
    struct decision d = sample(), back;
    struct value values[N_DECISION_COLUMNS];
    struct arena a;
    struct row row;
    struct tx tx;

    arena_init(&a, 1 << 20);
    tx_init(&tx);
    d.tier = N_TIERS;
    choose_record(&tx, &d);
    row = row_of(&tx, values);
    CHECK(decision_from_row(&a, &row, &back) == ERR_SYNTAX);
    tx_fini(&tx);
    arena_fini(&a);
}

/* All prefixes of a body, and one byte too many. */
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
