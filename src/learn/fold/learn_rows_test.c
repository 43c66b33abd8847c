/* The state, written and read again; and invalid rows. */
#include "test/t.h"

#include "test/lib/learn_stage.h"
#include "test/lib/learn_table.h"

static void teach(struct stage *s)
{
    for (int i = 1; i < 12; i++) {
        struct outcome o =
            judged(s, i % 3 ? "ann" : "Bob", i, VERDICT_POSITIVE);

        o.text = i % 2 ? STR("please mend my bicycle") : STR("sing me a song");
        o.owner = i % 3 ? STR("olga") : STR("");
        apply(s, &o);
        correct(s, "ann", "cy", i % 2 ? "org:acme" : "user:ann", 100 * i);
    }
    judge(s, "cy", 100, VERDICT_NEGATIVE);
}

static struct learn *loaded(const struct stage *s, const struct kept *k)
{
    struct learn *l = learn_new(&s->settings, STR("model"), 0, stage_seed);

    CHECK(l && load_all(l, k) == OK && learn_check(l));
    return l;
}

static void check_loads_the_same(struct stage *s, const struct kept *k)
{
    struct learn *l = loaded(s, k), *was = s->l;
    char *before = strdup(exported(s));

    s->l = l;
    CHECK_STR(str_of(exported(s)), before);
    s->l = was;
    learn_free(l);
    free(before);
}

TEST(what_is_written_is_read_again)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    bool is_last;

    CHECK(k && !write_some(s->l, k, 100, true, &is_last));
    teach(s);
    CHECK(write_some(s->l, k, 1000, true, &is_last) && is_last);
    CHECK(!write_some(s->l, k, 1000, true, &is_last));
    check_loads_the_same(s, k);
    kept_clear(k);
    free(k);
    stage_free(s);
}

/* Only changes are written, and removals. */
TEST(an_outcome_writes_its_few_rows)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    bool is_last;
    size_t n;
    struct tx tx;

    CHECK(k);
    teach(s);
    write_all(s->l, k);
    n = k->n;
    correct(s, "ann", "bob", "org:acme", 1);
    tx_init(&tx);
    CHECK(learn_dirty(s->l, &tx, 100, &is_last) && is_last);
    CHECK(tx.n_ops <= LEARN_ROWS_EACH);
    learn_written(s->l, false);
    tx_fini(&tx);
    write_all(s->l, k);
    CHECK_INT(k->n, n + 2); /* the example, and the rating of bob */
    forget(s, "cy");
    write_all(s->l, k);
    check_loads_the_same(s, k);
    forget(s, "");
    write_all(s->l, k);
    CHECK_INT(k->n, 1);
    check_loads_the_same(s, k);
    kept_clear(k);
    free(k);
    stage_free(s);
}

TEST(a_tx_that_fails_is_made_again)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    bool is_last;

    CHECK(k);
    teach(s);
    CHECK(write_some(s->l, k, 1000, false, &is_last));
    CHECK(learn_check(s->l));
    CHECK_INT(k->n, 0);
    write_all(s->l, k);
    forget(s, "");
    CHECK(write_some(s->l, k, 1000, false, &is_last));
    CHECK(k->n > 1);
    write_all(s->l, k);
    CHECK_INT(k->n, 1);
    kept_clear(k);
    free(k);
    stage_free(s);
}

TEST(one_tx_at_a_time)
{
    struct stage *s = stage_new();
    struct tx tx, second;
    bool is_last;

    teach(s);
    tx_init(&tx);
    tx_init(&second);
    CHECK(learn_dirty(s->l, &tx, 1000, &is_last));
    CHECK(!learn_dirty(s->l, &second, 1000, &is_last));
    CHECK_INT(second.n_ops, 0);
    learn_written(s->l, true);
    learn_written(s->l, true);
    CHECK(learn_check(s->l));
    tx_fini(&tx);
    tx_fini(&second);
    stage_free(s);
}

/* A crash between two pieces: the table is incomplete, and says so. */
TEST(a_table_in_pieces_counts_for_nothing)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    bool is_last;

    CHECK(k);
    teach(s);
    for (int pieces = 0;; pieces++) {
        struct learn *l;

        CHECK(write_some(s->l, k, 3, true, &is_last));
        if (is_last) {
            CHECK(pieces > 5);
            break;
        }
        l = loaded(s, k);
        CHECK_INT(learn_version(l), 0);
        CHECK_INT(learn_stats(l).types, 0);
        learn_free(l);
    }
    check_loads_the_same(s, k);
    kept_clear(k);
    free(k);
    stage_free(s);
}

TEST(a_state_that_takes_the_place_of_another_leaves_none_of_its_rows)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    struct outcome o = judged(s, "dan", 1, VERDICT_POSITIVE);
    bool is_last;

    CHECK(k);
    teach(s);
    write_all(s->l, k);
    learn_free(s->l);
    s->l = learn_new(&s->settings, STR("model"), 0, stage_seed);
    s->seq = 0;
    CHECK(s->l);
    o.owner = STR("olga");
    apply(s, &o);
    learn_rewrite(s->l);
    CHECK(write_some(s->l, k, 100, true, &is_last) && is_last);
    /* The number, the agent, the type, the pair, the scope and its view. */
    CHECK_INT(k->n, 6);
    check_loads_the_same(s, k);
    kept_clear(k);
    free(k);
    stage_free(s);
}

TEST(rows_come_in_the_order_of_their_kinds)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    struct learn *l;

    CHECK(k);
    teach(s);
    write_all(s->l, k);
    l = learn_new(&s->settings, STR("model"), 0, stage_seed);
    CHECK(l);
    for (size_t i = 0; i < k->n; i++)
        if (k->rows[i].kind != 0)
            CHECK(load_one(l, &k->rows[i]) == ERR_SYNTAX);
    for (size_t i = 0; i < k->n; i++)
        if (k->rows[i].kind == 0)
            CHECK(load_one(l, &k->rows[i]) == OK);
    for (size_t i = 0; i < k->n; i++)
        if (k->rows[i].kind == 6) /* pairs, whose types are not there */
            CHECK(load_one(l, &k->rows[i]) == ERR_SYNTAX);
    CHECK(learn_check(l));
    learn_free(l);
    kept_clear(k);
    free(k);
    stage_free(s);
}

/* Any byte of any row may be changed or missing: the row is rejected, or the
 * result is consistent and can be written again. */
static void spoil(struct stage *s, struct kept *k, struct learn *l)
{
    struct kept_row *r = &k->rows[stage_random(s) % k->n], spoilt = *r;
    char *bytes = kept_copy(kept_bytes(r)), *key = kept_copy(kept_key(r));
    uint64_t how = stage_random(s) % 4;

    spoilt.bytes = bytes;
    spoilt.key = key;
    if (how == 0)
        spoilt.n_bytes = stage_random(s) % (r->n_bytes + 1);
    else if (how == 1 && r->n_key)
        key[stage_random(s) % r->n_key] = (char)stage_random(s);
    else if (how == 2)
        spoilt.kind = (int64_t)(stage_random(s) % 9) - 1;
    else
        for (uint64_t n = 1 + stage_random(s) % 4; n > 0; n--)
            bytes[stage_random(s) % r->n_bytes] = (char)stage_random(s);
    for (int64_t kind = -1; kind < 9; kind++)
        for (size_t i = 0; i < k->n; i++) {
            const struct kept_row *one =
                &k->rows[i] == r ? &spoilt : &k->rows[i];

            if (one->kind == kind) {
                enum err e = load_one(l, one);

                CHECK(e == OK || e == ERR_SYNTAX);
            }
        }
    CHECK(learn_check(l));
    free(bytes);
    free(key);
}

TEST(rows_that_are_none_of_ours_are_refused_and_do_no_harm)
{
    const char *stress = getenv("STRESS");
    int n = stress && strcmp(stress, "full") == 0 ? 100000 : 400;
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k)), *again = calloc(1, sizeof(*k));

    CHECK(k && again);
    teach(s);
    write_all(s->l, k);
    for (int i = 0; i < n; i++) {
        struct learn *l = learn_new(&s->settings, STR("model"), 0, stage_seed);
        struct learn *was = s->l;
        struct outcome o = corrected(s, "ann", "dan", "org:acme", 100);

        CHECK(l);
        spoil(s, k, l);
        s->l = l;
        o.seq = INT64_MAX;
        CHECK(learn_apply(l, &o) == OK && learn_check(l));
        ask(s, "org:acme", 100, "dan");
        CHECK(exported(s));
        write_all(l, again);
        kept_clear(again);
        s->l = was;
        learn_free(l);
    }
    kept_clear(k);
    free(k);
    free(again);
    stage_free(s);
}

TEST(an_outcome_is_a_row_and_an_outcome_again)
{
    struct stage *s = stage_new();
    struct outcome o = corrected(s, "ann", "bob", "org:acme", 1), back;
    struct value values[N_OUTCOME_COLUMNS];
    struct row row = {.values = values};
    struct tx_op *op;
    struct tx tx;

    tx_init(&tx);
    op = outcome_append(&tx, &o);
    CHECK(op->kind == TX_INSERT && op->table == &outcome_table);
    for (int i = 0; i < N_OUTCOME_COLUMNS; i++)
        values[i] = tx_value(op, (uint8_t)i);
    values[OUTCOME_SEQ] = value_int(7);
    outcome_from_row(&row, &back);
    CHECK_INT(back.seq, 7);
    CHECK_INT(back.at_ms, o.at_ms);
    CHECK(back.kind == o.kind && back.verdict == o.verdict &&
          back.layer == o.layer);
    CHECK(strcmp(back.decision_id.text, o.decision_id.text) == 0);
    CHECK(str_eq(back.agent, o.agent) && str_eq(back.by, o.by) &&
          str_eq(back.right_agent, o.right_agent) &&
          str_eq(back.scope, o.scope) && str_eq(back.text, o.text) &&
          str_eq(back.vector, o.vector) &&
          str_eq(back.model_hash, o.model_hash));
    tx_fini(&tx);
    stage_free(s);
}

/* Cut `n` bytes out of a row. */
static void cut(struct kept_row *r, size_t at, size_t n)
{
    memmove(r->bytes + at, r->bytes + at + n, r->n_bytes - at - n);
    r->n_bytes -= n;
}

/* Rows from when scopes shared their types: of form 3, and of 2, without hashes
 * of texts. The content of the other rows does not matter, since they are not
 * read. */
static void age(struct kept *k, int form)
{
    for (size_t i = 0; i < k->n; i++) {
        struct kept_row *r = &k->rows[i];

        r->bytes[0] = (char)form;
        if (form == 2 && r->kind == 0)
            cut(r, r->n_bytes - 8, 8);
        else if (form == 2 && r->kind == 4)
            cut(r, 1 + 8 + 8, 16);
    }
}

/* Three corrections; the outcome of the first is not kept any more. */
static struct stage *upgraded(int form, int64_t kept_from)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    struct learn *l;

    CHECK(k);
    correct(s, "ann", "bob", "org:acme", 1);
    correct(s, "ann", "cy", "org:acme", 2);
    judge(s, "ann", 3, VERDICT_POSITIVE);
    write_all(s->l, k);
    age(k, form);
    l = learn_new(&s->settings, STR("model"), 0, stage_seed);
    CHECK(l);
    learn_kept_from(l, kept_from);
    CHECK(load_all(l, k) == OK && learn_check(l) && learn_was_shared(l));
    learn_free(s->l);
    s->l = l;
    kept_clear(k);
    free(k);
    return s;
}

TEST(of_rows_with_shared_types_only_examples_without_their_outcome_are_read)
{
    for (int form = 2; form <= 3; form++) {
        struct stage *s = upgraded(form, 2);
        struct kept *k = calloc(1, sizeof(*k));
        struct outcome o;

        CHECK_INT(learn_version(s->l), 0);
        CHECK_INT(learn_stats(s->l).examples, 1);
        CHECK_INT(learn_stats(s->l).types, 0);
        CHECK_INT(learn_stats(s->l).agents, 0);
        CHECK(ask(s, "org:acme", 1, "bob").learned == 1);
        CHECK(ask(s, "org:acme", 2, "cy").learned == 0);
        /* The outcomes that are kept are applied again, and all is written. */
        s->seq = 1;
        o = corrected(s, "ann", "cy", "org:acme", 2);
        apply(s, &o);
        CHECK(ask(s, "org:acme", 2, "cy").learned == 1);
        CHECK_INT(learn_stats(s->l).types, 1);
        CHECK(k);
        write_all(s->l, k);
        check_loads_the_same(s, k);
        kept_clear(k);
        free(k);
        stage_free(s);
    }
}

TEST(without_any_outcome_all_examples_stay)
{
    struct stage *s = upgraded(3, 0);

    CHECK_INT(learn_stats(s->l).examples, 2);
    CHECK(ask(s, "org:acme", 2, "cy").learned == 1);
    stage_free(s);
}

/* Rows of two forms are invalid. */
TEST(forms_do_not_mix)
{
    struct stage *s = stage_new();
    struct kept *k = calloc(1, sizeof(*k));
    struct learn *l = learn_new(&s->settings, STR("model"), 0, stage_seed);

    CHECK(k && l);
    correct(s, "ann", "bob", "org:acme", 1);
    write_all(s->l, k);
    for (size_t i = 0; i < k->n; i++)
        if (k->rows[i].kind == 0)
            k->rows[i].bytes[0] = 3;
    CHECK(load_all(l, k) == ERR_SYNTAX);
    learn_free(l);
    kept_clear(k);
    free(k);
    stage_free(s);
}
