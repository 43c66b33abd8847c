/* A recorded decision decides itself again, to the last bit: from its record
 * alone, by its own settings, and through a store that was closed and reopened.
 * STRESS=full: half a million of them. */
#include "choose/layers/choose.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/loop.h"
#include "store/store.h"
#include "test/lib/decision_maker.h"
#include "test/lib/folder.h"

static int rounds(int few, int many)
{
    const char *stress = getenv("STRESS");

    return stress && strcmp(stress, "full") == 0 ? many : few;
}

/* A tx's only operation as the row that it would be. */
static struct row row_of(const struct tx *tx, struct value *values)
{
    for (uint8_t i = 0; i < N_DECISION_COLUMNS; i++)
        values[i] = tx_value(tx->first, i);
    return (struct row){.values = values};
}

/* With other settings a rejection has another message: how many agents could
 * not be reached is not in the record. */
static void keep_words(const struct decision *d, struct decision *again)
{
    if (d->layer == LAYER_NONE && again->layer == LAYER_NONE)
        again->reason = d->reason;
}

TEST(a_record_decides_itself_again)
{
    int n = rounds(4000, 500 * 1000), n_by_layer[N_LAYERS] = {0};
    struct value values[N_DECISION_COLUMNS];
    struct decision d, back, again;
    struct choose_settings seen;
    struct arena a;
    struct row row;
    struct tx tx;

    arena_init(&a, 1 << 20);
    for (int i = 0; i < n; i++) {
        if (make_decision((uint64_t)i, &d))
            continue;
        n_by_layer[d.layer]++;
        tx_init(&tx);
        choose_record(&tx, &d);
        row = row_of(&tx, values);
        arena_reset(&a);
        CHECK_INT(decision_from_row(&a, &row, &back), OK);
        CHECK_INT(choose_again(NULL, NULL, &back, &a, &again), made_with(&d));
        check_same_answer(&d, &again);
        if (!made_by_missing(&d)) {
            seen = stage.settings;
            seen.default_agent = d.rules.default_agent;
            CHECK_INT(choose_again(&seen, NULL, &back, &a, &again),
                      made_with(&d));
            keep_words(&d, &again);
            check_same_answer(&d, &again);
        }
        CHECK_INT(choose_again(&stage.settings, &stage.all, &back, &a, &again),
                  made_with(&d));
        keep_words(&d, &again);
        check_same_answer(&d, &again);
        tx_fini(&tx);
        stage_close();
    }
    arena_fini(&a);
    for (int l = LAYER_EXPLICIT; l < LAYER_NONE; l++)
        if (n_by_layer[l] < n / 100)
            T_FAIL("only %d of %d by %s", n_by_layer[l], n,
                   layer_name((enum layer)l).p);
}

/* Count what the maker makes: all kinds must occur. */
TEST(what_is_made_by_chance_has_all_that_there_is)
{
    int n_off = 0, n_taken_off = 0, n_wordy = 0, n_beyond = 0, n_dead = 0;
    int n_by_agent = 0, n_by_tier[N_TIERS] = {0}, n_unheard = 0, n_half = 0;
    struct decision d;

    for (uint64_t i = 0; i < 2000; i++) {
        if (make_decision(i, &d))
            continue;
        n_off += d.stuck_to.n && stage.settings.is_off[LAYER_STICKY];
        n_by_agent += d.is_by_agent;
        n_by_tier[d.tier]++;
        n_unheard += d.tier == TIER_TABLE && d.tier_note.n;
        n_dead += stage.m->known.is_there && d.n_candidates;
        for (size_t k = 0; k < d.n_candidates; k++) {
            const struct signals *s = &d.candidates[k].signals;

            n_taken_off += s->discount > 0;
            n_half += s->keyword > 0 && d.candidates[k].is_half;
            n_wordy += s->cosine < 0;
            n_beyond += s->learned < 0 || s->learned > 1;
        }
        stage_close();
    }
    CHECK(n_off >= 20 && n_dead >= 20 && n_by_agent >= 100);
    CHECK(n_half >= 100);
    CHECK(n_taken_off >= 100 && n_wordy >= 100 && n_beyond >= 100);
    CHECK(n_unheard >= 20 && n_by_tier[TIER_TABLE] - n_unheard >= 20);
    CHECK(n_by_tier[TIER_TRANSFORMER] >= 20 && n_by_tier[TIER_NONE] >= 50);
}

/* If conversations do not stick, the conversation's agent changes neither the
 * choice nor the reason. */
TEST(a_conversation_that_does_not_stick_has_nobody_who_could_be_gone)
{
    struct decision d, again;
    struct arena a;

    arena_init(&a, 1 << 20);
    stage_open("cook", "lawyer");
    stage_text("please sort my invoices");
    stage_score("cook", .6);
    stage.settings.is_off[LAYER_STICKY] = true;
    stage.m->call.conversation_id = stage.m->task.conversation_id = STR("c");
    stage.m->known.has_conversation = true;
    stage.m->known.stuck_to = STR("gone");
    CHECK_INT(stage_ask(), OK);
    CHECK(!str_starts(stage.m->choice.reason, STR("the conversation's")));
    choose_decision(&stage.view, stage.m, &d);
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &again), OK);
    check_same_answer(&d, &again);
    arena_fini(&a);
    stage_close();
}

/* Other settings. */

static struct decision decided(const char *const *names, const double *scores,
                               size_t n)
{
    struct decision d;

    stage_open_n(n, names);
    stage_text("please sort my invoices");
    for (size_t i = 0; i < n; i++)
        stage_score(names[i], scores[i]);
    stage.settings.default_agent = STR("main");
    CHECK_INT(stage_ask(), OK);
    choose_decision(&stage.view, stage.m, &d);
    return d;
}

static const char *const three[] = {"cook", "coder", "lawyer"};
static const double clear[] = {.2, .6, .4};

/* The skill that the sender gave is in the record of every layer, and survives
 * deciding again. */
TEST(a_skill_that_was_given_is_the_decisions)
{
    struct decision d, again;
    struct arena a;

    arena_init(&a, 1 << 20);
    d = decided(three, clear, 3);
    stage_candidate("coder")->skill = STR("build");
    CHECK_INT(stage_ask(), OK);
    choose_decision(&stage.view, stage.m, &d);
    CHECK_STR(d.skill, "build");
    stage.m->call.skill = STR("debug");
    CHECK_INT(stage_ask(), OK);
    choose_decision(&stage.view, stage.m, &d);
    CHECK_INT(d.layer, LAYER_SEMANTIC);
    CHECK_STR(d.skill, "debug");
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &again), OK);
    check_same_answer(&d, &again);
    stage.m->call.executor = STR("cook");
    CHECK_INT(stage_ask(), OK);
    choose_decision(&stage.view, stage.m, &d);
    CHECK_INT(d.layer, LAYER_EXPLICIT);
    CHECK_STR(d.skill, "debug");
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &again), OK);
    check_same_answer(&d, &again);
    arena_fini(&a);
    stage_close();
}

TEST(other_settings_decide_otherwise)
{
    struct decision d = decided(three, clear, 3), out;
    struct choose_settings other = stage.settings;
    struct arena a;

    arena_init(&a, 1 << 20);
    CHECK_STR(d.agent, "coder");
    other.threshold = .7;
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), OK);
    CHECK_INT(out.layer, LAYER_DEFAULT);
    CHECK_STR(out.agent, "main");
    /* Without a default, no agent. */
    other.default_agent = STR("");
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), ERR_NO_ROUTE);
    /* Nor an agent that does not exist now. */
    other.threshold = .1;
    CHECK(map_take(&stage.by_name, STR("coder")));
    CHECK_INT(choose_again(&other, &stage.all, &d, &a, &out), ERR_NO_ROUTE);
    arena_fini(&a);
    stage_close();
}

TEST(other_bindings_decide_otherwise)
{
    struct decision d = decided(three, clear, 3), out;
    struct choose_settings other = stage.settings;
    struct binding b = {.agent = STR("porter"), .channel = STR("telegram")};
    struct arena a;

    arena_init(&a, 1 << 20);
    other.bindings = (struct bindings){&b, 1};
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), OK);
    CHECK_STR(out.agent, "coder");
    d.source = STR("{\"channel\":\"telegram\"}");
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), OK);
    CHECK_INT(out.layer, LAYER_BINDING);
    CHECK_STR(out.agent, "porter");
    /* By its own settings there were none. */
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), OK);
    CHECK_STR(out.agent, "coder");
    arena_fini(&a);
    stage_close();
}

TEST(what_nobody_looked_at_cannot_be_said)
{
    struct decision d = decided(three, clear, 3), out;
    struct choose_settings other = stage.settings;
    struct arena a;

    arena_init(&a, 1 << 20);
    /* The classifier was not asked. */
    other.intent.is_on = true;
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), ERR_NOT_FOUND);
    /* But it would not have been asked. */
    other.intent.when = INTENT_AMBIGUOUS;
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), OK);
    CHECK_STR(out.agent, "coder");
    other.intent.is_on = false;
    /* There were no candidates. */
    stage.m->call.executor = STR("cook");
    stage.m->known.has_candidates = false;
    CHECK_INT(stage_ask(), OK);
    choose_decision(&stage.view, stage.m, &d);
    CHECK_INT(d.layer, LAYER_EXPLICIT);
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), OK);
    other.is_off[LAYER_EXPLICIT] = true;
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), ERR_NOT_FOUND);
    arena_fini(&a);
    stage_close();
}

/* The control: a change of the last bit of one number is noticed. */
TEST(a_bit_that_is_lost_is_seen)
{
    struct decision d = decided(three, clear, 3), out;
    struct candidate list[3];
    struct arena a;
    uint32_t bits;

    arena_init(&a, 1 << 20);
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), OK);
    CHECK(out.score == d.score && out.margin == d.margin);
    memcpy(list, d.candidates, sizeof(list));
    memcpy(&bits, &list[0].signals.cosine, sizeof(bits));
    bits ^= 1;
    memcpy(&list[0].signals.cosine, &bits, sizeof(bits));
    d.candidates = list;
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), OK);
    CHECK(out.score != d.score && out.margin != d.margin);
    arena_fini(&a);
    stage_close();
}

TEST(a_refusal_decides_itself_again_and_other_settings_deliver_it)
{
    struct decision d, out;
    struct choose_settings other;
    struct arena a;

    arena_init(&a, 1 << 20);
    stage_open("cook", "coder");
    stage_text("please sort my invoices");
    stage_score("cook", .2);
    stage_score("coder", .1);
    CHECK_INT(stage_ask(), ERR_NO_ROUTE);
    choose_decision(&stage.view, stage.m, &d);
    CHECK_INT(d.layer, LAYER_NONE);
    CHECK(!d.agent.n && d.reason.n && d.n_candidates == 2 && !d.margin);
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), ERR_NO_ROUTE);
    check_same_answer(&d, &out);
    other = stage.settings;
    other.threshold = .15;
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), OK);
    CHECK_STR(out.agent, "cook");
    other.threshold = .25;
    CHECK_INT(choose_again(&other, NULL, &d, &a, &out), ERR_NO_ROUTE);
    CHECK_INT(out.layer, LAYER_NONE);
    arena_fini(&a);
    stage_close();
}

/* An executor that a record names need not have existed. */
TEST(a_refusal_of_an_unknown_executor_decides_itself_again)
{
    struct decision d, out;
    struct arena a;

    arena_init(&a, 1 << 20);
    stage_open("cook", "coder");
    stage_text("please sort my invoices");
    stage.m->call.executor = STR("kook");
    CHECK_INT(stage_ask(), ERR_AGENT_NOT_FOUND);
    choose_decision(&stage.view, stage.m, &d);
    CHECK_INT(d.layer, LAYER_NONE);
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), ERR_NO_ROUTE);
    check_same_answer(&d, &out);
    /* The control: by the present agents, one of which has the name. */
    stage_add("kook");
    CHECK_INT(choose_again(&stage.settings, &stage.all, &d, &a, &out), OK);
    CHECK_STR(out.agent, "kook");
    arena_fini(&a);
    stage_close();
}

/* A forged record: any answer, but no crash. */
TEST(a_record_that_makes_no_sense_is_survived)
{
    struct decision d = {.layer = LAYER_SEMANTIC,
                         .source = STR("{\"channel\":"),
                         .agent = STR("x"),
                         .n_considered = -5};
    struct candidate twice[2] = {{.agent = STR("x")}, {.agent = STR("X")}};
    struct decision out;
    struct arena a;

    arena_init(&a, 1 << 20);
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), ERR_NO_ROUTE);
    d.candidates = twice;
    d.n_candidates = 2;
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), OK);
    d.layer = LAYER_BINDING;
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &out), OK);
    CHECK_INT(out.layer, LAYER_BINDING);
    arena_fini(&a);
}

TEST(deciding_again_survives_every_fault)
{
    bool has_fired = true;

    for (long nth = 1; has_fired; nth++) {
        struct decision d = decided(three, clear, 3), out;
        struct arena a;
        enum err e;

        arena_init(&a, 1 << 20);
        fault_arm(nth);
        e = choose_again(NULL, NULL, &d, &a, &out);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK_INT(e, has_fired ? ERR_NOMEM : OK);
        arena_fini(&a);
        stage_close();
    }
}

/* Versions. */

static bool is_same_version(const struct choose_settings *a,
                            const struct choose_settings *b)
{
    char x[17], y[17];

    choose_version(a, x);
    choose_version(b, y);
    CHECK(strlen(x) == 16 && strlen(y) == 16);
    return strcmp(x, y) == 0;
}

TEST(what_decides_alike_has_one_version)
{
    struct choose_settings a = choose_defaults(), b = choose_defaults();
    struct binding list[2] = {{.agent = STR("x"), .channel = STR("telegram")},
                              {.agent = STR("y"), .channel = STR("telegram")}};
    struct binding turned[2] = {list[1], list[0]};

    CHECK(is_same_version(&a, &b));
    b.intent.threshold = .5; /* of a classifier that is off */
    CHECK(is_same_version(&a, &b));
    b.intent.is_on = true;
    CHECK(!is_same_version(&a, &b));
    b = a;
    b.threshold += 1e-15; /* of a threshold that cutoffs stand in for */
    CHECK(is_same_version(&a, &b));
    a.is_auto = b.is_auto = false;
    CHECK(!is_same_version(&a, &b));
    b = a;
    b.second_margin = .5;
    CHECK(!is_same_version(&a, &b));
    b = a;
    b.trusts_all = true;
    CHECK(!is_same_version(&a, &b));
    b = a;
    b.explore = -0.0;
    CHECK(is_same_version(&a, &b));
    b.default_agent = STR("main");
    CHECK(!is_same_version(&a, &b));
    a.default_agent = STR("MAIN");
    CHECK(is_same_version(&a, &b));
    a.bindings = (struct bindings){list, 2};
    b.bindings = (struct bindings){turned, 2};
    CHECK(!is_same_version(&a, &b));
    a.is_off[LAYER_BINDING] = b.is_off[LAYER_BINDING] = true;
    CHECK(is_same_version(&a, &b));
    b.is_off[LAYER_STICKY] = true;
    CHECK(!is_same_version(&a, &b));
}

/* Through a store. */

static char root[64];
static struct loop loop;
static struct store *store;
static struct store_folder folder;
static int n_done;

static void remove_root(void)
{
    folder_remove(root);
}

static void on_fatal(void *ctx, const struct why *why)
{
    (void)ctx;
    T_FAIL("%s", why->text);
}

static void store_begin(void)
{
    static const struct schema *const schemas[] = {&choose_schema};
    struct store_opts opts = {.folder = root,
                              .schemas = schemas,
                              .n_schemas = 1,
                              .max_waiting = 10,
                              .loop = &loop,
                              .on_fatal = on_fatal};
    struct why why;

    if (store_folder_open(&folder, str_of(root), &why) ||
        store_open(&store, &opts, &why))
        T_FAIL("%s", why.text);
}

static void store_end(void)
{
    store_close(store);
    store_folder_close(&folder);
}

static void on_tx(struct tx *tx, void *ctx)
{
    (void)ctx;
    CHECK(tx->result == TX_COMMITTED);
    n_done++;
    loop_stop(&loop);
}

static void on_query(struct query *q, void *ctx)
{
    (void)ctx;
    CHECK(!q->err);
    n_done++;
    loop_stop(&loop);
}

static void put_decision(const struct decision *d)
{
    struct tx tx;
    int before = n_done;

    tx_init(&tx);
    choose_record(&tx, d);
    store_submit(store, &tx, on_tx, NULL);
    while (n_done == before)
        loop_run(&loop);
    tx_fini(&tx);
}

/* Row i was decision number numbers[i], which is made once more for
 * comparison. */
static void check_rows(const struct query *q, const int *numbers, int n)
{
    const struct row *row = q->rows;
    struct decision d, back, again;
    struct arena a;

    CHECK_INT(q->n_rows, n);
    arena_init(&a, 1 << 20);
    for (int i = 0; i < n; i++, row = row->next) {
        arena_reset(&a);
        CHECK_INT(decision_from_row(&a, row, &back), OK);
        CHECK_INT(make_decision((uint64_t)numbers[i], &d), OK);
        CHECK_INT(choose_again(NULL, NULL, &back, &a, &again), made_with(&d));
        check_same_answer(&d, &again);
        CHECK_STR(str_of(again.id.text), d.id.text);
        stage_close();
    }
    arena_fini(&a);
}

TEST(a_decision_of_before_the_restart_is_the_same)
{
    enum { MOST = 2000 };
    static int numbers[MOST];
    int n_tries = rounds(150, MOST), n = 0, before;
    struct decision d;
    struct query q;

    snprintf(root, sizeof(root), "%s/signalbox-test-XXXXXX", t_above());
    CHECK(mkdtemp(root));
    atexit(remove_root);
    CHECK(loop_init(&loop, clock_system()) == OK);
    store_begin();
    for (int i = 0; i < n_tries; i++) {
        if (make_decision((uint64_t)i, &d))
            continue;
        put_decision(&d);
        numbers[n++] = i;
        stage_close();
    }
    CHECK(n > n_tries / 3);
    store_end();
    store_begin();
    query_init(&q, &decision_table, MOST);
    query_order(&q, DECISION_SEQ, false);
    before = n_done;
    store_read(store, &q, on_query, NULL);
    while (n_done == before)
        loop_run(&loop);
    check_rows(&q, numbers, n);
    query_fini(&q);
    store_end();
    loop_fini(&loop);
}
