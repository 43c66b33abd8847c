/* The learned state is the fold of the outcomes, whatever happens. */
#include "test/lib/learning_stage.h"

#include "learn/learnt.h"

enum { ROUNDS = 30 };

/* A few corrections, and one verdict of the job. */
static void learn_some(int n)
{
    for (int i = 0; i < n; i++) {
        struct id a = ask((struct asked){.about = i, .chars = 300});

        CHECK(correct(&a, i % 3 ? "coder" : "tester") == TX_COMMITTED);
    }
}

static void check_after(bool has_last_words)
{
    struct buf was, is;

    export_now(&was);
    stage_restart(has_last_words);
    export_now(&is);
    CHECK(str_eq(buf_str(&was), buf_str(&is)) && is.n > 0);
    buf_fini(&was);
    buf_fini(&is);
    check_learnt();
}

TEST(what_was_learnt_is_there_after_a_restart_written_or_not)
{
    stage_open();
    learn_some(9);
    CHECK_INT(learning_stats(stage.learning).behind, 9);
    CHECK_INT(count_rows(&learn_table), 0);
    check_after(false);
    CHECK_INT(learning_stats(stage.learning).behind, 9);
    pass_ms(1000);
    CHECK_INT(learning_stats(stage.learning).behind, 0);
    CHECK(count_rows(&learn_table) > 0);
    check_after(false);
    CHECK_INT(learning_stats(stage.learning).behind, 0);
    learn_some(3);
    check_after(true);
    CHECK_INT(learning_stats(stage.learning).behind, 0);
    stage_close();
}

/* The control: if the number was written without the rows that it covers, or
 * the rows without the number, a restart would tell. */
TEST(a_picture_without_its_number_would_be_noticed)
{
    struct buf was, is;
    struct tx *tx;
    struct tx_op *op;
    struct query q;
    char number[64];
    size_t n;

    stage_open();
    learn_some(3);
    pass_ms(1000);
    query_init(&q, &learn_table, 1);
    query_if(&q, LEARN_KIND, IS, value_int(0));
    CHECK(store_look(stage.store, &q) == OK && q.n_rows == 1);
    n = row_str(q.rows, LEARN_BYTES).n;
    CHECK(n <= sizeof(number));
    memcpy(number, row_str(q.rows, LEARN_BYTES).p, n);
    query_fini(&q);
    learn_some(1);
    pass_ms(1000);
    export_now(&was);
    stage_stop(true);
    stage_start();
    tx = stage_tx();
    op = tx_update(tx, &learn_table);
    tx_if(op, LEARN_KIND, IS, value_int(0));
    tx_set(op, LEARN_BYTES, value_blob((struct str){number, n}));
    CHECK(submit(tx) == TX_COMMITTED);
    stage_restart(false);
    export_now(&is);
    /* Either the state differs, or the rows were rejected. */
    CHECK(!str_eq(buf_str(&was), buf_str(&is)) ||
          learning_stats(stage.learning).behind > 1);
    buf_fini(&was);
    buf_fini(&is);
    stage_close();
}

TEST(many_are_written_before_the_second_is_over)
{
    stage_open();
    learn_some(260);
    CHECK(learning_stats(stage.learning).written > 0);
    check_learnt();
    stage_close();
}

TEST(a_row_that_is_not_ours_begins_everything_anew)
{
    static const struct {
        int64_t kind;
        const char *key;
    } rows[] = {{-5, "x"}, {0, "number"}, {1, "writer"}, {99, "x"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tx *tx;
        struct tx_op *op;

        stage_open();
        learn_some(5);
        pass_ms(1000);
        tx = stage_tx();
        op = tx_put(tx, &learn_table);
        tx_set(op, LEARN_KIND, value_int(rows[i].kind));
        tx_set(op, LEARN_KEY, value_text(str_of(rows[i].key)));
        tx_set(op, LEARN_BYTES, value_blob(STR("nonsense")));
        CHECK(submit(tx) == TX_COMMITTED);
        check_after(false);
        pass_ms(1000);
        check_after(false);
        CHECK_INT(learning_stats(stage.learning).behind, 0);
        stage_close();
    }
}

/* Rows of a server whose orgs shared their types of query. */
static void age_rows(void)
{
    struct tx *tx = stage_tx();
    struct query q;

    query_init(&q, &learn_table, 1000);
    CHECK(store_look(stage.store, &q) == OK && q.n_rows > 5);
    QUERY_EACH(r, &q)
    {
        struct str was = row_str(r, LEARN_BYTES);
        struct tx_op *op = tx_put(tx, &learn_table);
        char bytes[16 * 1024];

        CHECK(was.n <= sizeof(bytes));
        memcpy(bytes, was.p, was.n);
        bytes[0] = 3;
        tx_set(op, LEARN_KIND, value_int(row_int(r, LEARN_KIND)));
        tx_set(op, LEARN_KEY, value_text(row_str(r, LEARN_KEY)));
        tx_set(op, LEARN_BYTES, value_blob((struct str){bytes, was.n}));
    }
    query_fini(&q);
    CHECK(submit(tx) == TX_COMMITTED);
}

TEST(rows_of_shared_types_are_made_again_from_the_outcomes)
{
    stage_open();
    learn_some(12);
    pass_ms(1000);
    age_rows();
    check_after(false);
    CHECK_INT(learning_stats(stage.learning).behind, 12);
    pass_ms(1000);
    CHECK_INT(learning_stats(stage.learning).behind, 0);
    check_after(false);
    CHECK_INT(learning_stats(stage.learning).behind, 0);
    stage_close();
}

TEST(what_is_made_anew_is_the_same_and_takes_the_place_of_what_was)
{
    struct heard h;

    stage_open();
    h = rebuild();
    CHECK(h.err == OK && h.judged == 0);
    learn_some(250); /* three pages */
    h = rebuild();
    CHECK(h.err == OK && h.judged == 250);
    check_learnt();
    check_after(false);
    CHECK_INT(learning_stats(stage.learning).behind, 0);
    stage_close();
}

/* The rows come in pieces: whichever piece is the last, a start finds all. */
TEST(a_rebuild_that_is_cut_off_loses_nothing)
{
    bool is_whole = false;

    stage_ground();
    stage.settings.learn.examples_per_agent = 2000;
    stage_start();
    learn_some(520);
    for (int cut = 0; !is_whole; cut++) {
        struct heard h = {0};

        CHECK(cut < 1000);
        pass_ms(1000);
        learning_rebuild(stage.learning, on_heard, &h);
        for (int i = 0; i < cut; i++)
            loop_turn(&stage.loop);
        is_whole = h.n;
        check_after(false);
        CHECK_INT(h.n, 1);
    }
    check_after(false);
    stage_close();
}

TEST(what_comes_while_it_is_made_anew_is_in_it)
{
    struct heard h = {0}, second = {0};

    stage_open();
    learn_some(150);
    learning_rebuild(stage.learning, on_heard, &h);
    learning_rebuild(stage.learning, on_heard, &second);
    CHECK(second.n == 1 && second.err == ERR_BUSY);
    learn_some(20);
    for (int i = 0; i < 100 && !h.n; i++)
        pass_ms(1);
    CHECK(h.n == 1 && h.err == OK && h.judged >= 150);
    check_learnt();
    check_after(false);
    stage_close();
}

TEST(what_is_forgotten_stays_forgotten_when_it_is_made_anew)
{
    stage_open();
    learn_some(6);
    CHECK(forget("coder").err == OK);
    check_learnt();
    CHECK_INT(learning_stats(stage.learning).learn.examples, 2);
    CHECK(rebuild().err == OK);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 2);
    CHECK(forget("").err == OK);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 0);
    CHECK_INT(learning_stats(stage.learning).learn.agents, 0);
    CHECK(rebuild().err == OK);
    CHECK_INT(learning_stats(stage.learning).learn.agents, 0);
    check_after(false);
    stage_close();
}

/* Voids. */

static void correct_as(const char *by, int n)
{
    stage.by = by;
    learn_some(n);
    stage.by = NULL;
}

TEST(what_is_voided_was_never_said)
{
    struct buf before, after, ignored;
    struct heard h;

    stage_open();
    correct_as("ann", 5);
    export_now(&before);
    correct_as("bob", 7);
    h = void_of("user:bob");
    CHECK(h.err == OK && h.judged == 5 && h.voided == 7);
    export_now(&after);
    CHECK(str_eq(buf_str(&before), buf_str(&after)));
    check_learnt();
    CHECK_INT(count_rows(&outcome_table), 13); /* all stay, for the audit */
    check_after(false);
    CHECK_INT(learning_stats(stage.learning).behind, 0);
    CHECK(rebuild().err == OK);
    check_learnt();
    /* The control: a fold that ignores the void has another result. */
    stage.ignores_voids = true;
    export_fold(&ignored);
    stage.ignores_voids = false;
    CHECK(!str_eq(buf_str(&ignored), buf_str(&after)));
    /* From here on bob's verdicts count again. */
    correct_as("bob", 3);
    check_learnt();
    check_after(false);
    /* The first seven are not voided a second time. */
    h = void_of("owner:Bob");
    CHECK(h.err == OK && h.judged == 5 && h.voided == 3);
    buf_fini(&before);
    buf_fini(&after);
    buf_fini(&ignored);
    stage_close();
}

TEST(a_void_that_is_cut_off_takes_effect_at_the_next_start)
{
    bool is_whole = false;

    stage_open();
    correct_as("ann", 120);
    for (int cut = 0; !is_whole; cut++) {
        struct heard h = {0};

        CHECK(cut < 200);
        correct_as("bob", 3);
        pass_ms(1000);
        learning_void(stage.learning, STR("user:bob"), STR("admin"), on_voided,
                      &h);
        for (int i = 0; i < cut; i++)
            loop_turn(&stage.loop);
        is_whole = h.n;
        stage_restart(cut % 2);
        CHECK_INT(h.n, 1);
        check_learnt();
        check_after(false);
    }
    CHECK_INT(learning_stats(stage.learning).learn.applied_total, 120);
    stage_close();
}

TEST(voids_and_verdicts_that_come_meanwhile_count)
{
    struct heard first = {0}, second = {0}, third = {0};

    stage_open();
    correct_as("ann", 150);
    correct_as("bob", 3);
    correct_as("cy", 3);
    learning_rebuild(stage.learning, on_heard, &first);
    learning_void(stage.learning, STR("user:bob"), STR("admin"), on_voided,
                  &second);
    learning_void(stage.learning, STR("user:cy"), STR("admin"), on_voided,
                  &third);
    CHECK(third.n == 1 && third.err == ERR_BUSY);
    correct_as("ann", 2);
    for (int i = 0; i < 1000 && !(first.n && second.n); i++)
        pass_ms(1);
    CHECK_INT(first.err, OK);
    CHECK_INT(second.err, OK);
    CHECK(second.judged >= 153);
    check_learnt();
    CHECK(void_of("user:cy").judged == 152);
    check_learnt();
    check_after(false);
    stage_close();
}

TEST(records_that_are_gone_cannot_be_folded_again)
{
    struct learning_keep keep = {
        .first_decision = 1, .first_outcome = 1, .limit = 4};
    struct tx *tx;

    stage_open();
    correct_as("ann", 4);
    correct_as("bob", 4);
    correct_as("ann", 4);
    pass_ms(1000);
    keep.before_ms = keep.unfinished_ms = stage.now.wall_ms;
    learning_prune(stage.learning, tx = stage_tx(), &keep);
    CHECK(submit(tx) == TX_COMMITTED);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 12);
    CHECK(void_of("user:bob").judged == 4);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 4);
    check_learnt();
    stage_close();
}

TEST(only_so_many_can_be_voided)
{
    struct tx *tx = NULL;
    char name[32];

    stage_open();
    for (int i = 0; i < LEARN_VOIDS_MAX; i++) {
        if (!tx)
            tx = stage_tx();
        snprintf(name, sizeof(name), "user:u%d", i);
        outcome_append(
            tx, &(struct outcome){.kind = OUTCOME_VOID, .scope = str_of(name)});
        if (i % 128 == 127) {
            CHECK(submit(tx) == TX_COMMITTED);
            tx = NULL;
        }
    }
    CHECK(!tx);
    correct_as("u7", 1);
    correct_as("one-more", 1);
    pass_ms(1000);
    CHECK_INT(void_of("user:u7").voided, 1);
    CHECK(void_of("user:one-more").err == ERR_LIMIT);
    /* A name that covers nothing uses up no void. */
    CHECK(void_of("user:typo").err == OK);
    check_learnt();
    stage_close();
}

TEST(a_void_that_covers_nothing_leaves_no_trace)
{
    struct heard h;

    stage_open();
    correct_as("bob", 2);
    for (int i = 0; i < 3; i++) {
        h = void_of("user:bop");
        CHECK(h.err == OK && h.judged == 2 && h.voided == 0);
    }
    CHECK_INT(count_rows(&outcome_table), 2);
    CHECK_INT(learning_voided_ms(stage.learning), 0);
    check_learnt();
    stage_close();
}

TEST(the_time_of_the_last_void_is_known_after_a_restart)
{
    int64_t voided_ms;

    stage_open();
    CHECK_INT(learning_voided_ms(stage.learning), 0);
    correct_as("bob", 2);
    CHECK(void_of("user:bob").err == OK);
    voided_ms = learning_voided_ms(stage.learning);
    CHECK(voided_ms > 0);
    correct_as("bob", 2);
    pass_ms(1000);
    stage_restart(true);
    CHECK_INT(learning_voided_ms(stage.learning), voided_ms);
    stage_close();
}

/* Waiting for a rebuild. */

/* A second one beside the stage's, on the same store. */
static struct learnt *learnt_beside(void)
{
    struct learnt *l = calloc(1, sizeof(*l));
    struct why why;

    CHECK(l);
    *l = (struct learnt){.loop = &stage.loop,
                         .log = &stage.log,
                         .store = stage.store,
                         .settings = stage.settings.learn,
                         .model_hash = STR("model"),
                         .seed = {1, 2}};
    learnt_init(l);
    CHECK(learnt_load(l, &why) == OK);
    return l;
}

static void learnt_end(struct learnt *l)
{
    learnt_stop(l);
    pass_ms(1);
    learnt_fini(l);
    free(l);
}

TEST(only_so_many_wait_for_a_rebuild)
{
    struct heard told[LEARNT_WAITING_MAX + 1] = {0};
    struct learnt *l;

    stage_open();
    learn_some(3);
    pass_ms(1000);
    l = learnt_beside();
    CHECK(learnt_rebuild(l, on_heard, &told[0]) == OK);
    for (int i = 1; i < LEARNT_WAITING_MAX; i++)
        CHECK(learnt_await(l, on_heard, &told[i]) == OK);
    CHECK(learnt_await(l, on_heard, &told[LEARNT_WAITING_MAX]) ==
          ERR_OVERLOADED);
    for (int i = 0; i < 1000 && !told[0].n; i++)
        pass_ms(1);
    for (int i = 0; i < LEARNT_WAITING_MAX; i++)
        CHECK(told[i].n == 1 && told[i].err == OK && told[i].judged == 3);
    CHECK_INT(told[LEARNT_WAITING_MAX].n, 0);
    learnt_end(l);
    stage_close();
}

static struct learnt *rebuilt_again;
static struct heard again[3];

static void on_rebuild_again(void *ctx, enum err e, int64_t n)
{
    on_heard(ctx, e, n);
    CHECK(learnt_rebuild(rebuilt_again, on_heard, &again[0]) == OK);
    CHECK(learnt_await(rebuilt_again, on_heard, &again[1]) == OK);
    CHECK(learnt_await(rebuilt_again, on_heard, &again[2]) == OK);
}

TEST(a_call_that_waits_again_takes_the_place_of_no_other)
{
    struct heard told[3] = {0};
    struct learnt *l;

    stage_open();
    learn_some(3);
    pass_ms(1000);
    l = rebuilt_again = learnt_beside();
    CHECK(learnt_rebuild(l, on_rebuild_again, &told[0]) == OK);
    CHECK(learnt_await(l, on_heard, &told[1]) == OK);
    CHECK(learnt_await(l, on_heard, &told[2]) == OK);
    for (int i = 0; i < 1000 && !again[0].n; i++)
        pass_ms(1);
    for (int i = 0; i < 3; i++) {
        CHECK(told[i].n == 1 && told[i].err == OK && told[i].judged == 3);
        CHECK(again[i].n == 1 && again[i].err == OK && again[i].judged == 3);
    }
    learnt_end(l);
    stage_close();
}

/* Out of memory meanwhile: the outcomes are read again, in order. */
TEST(outcomes_that_could_not_be_applied_are_caught_up_with)
{
    struct id a;

    stage_open();
    learn_some(3);
    a = ask((struct asked){.chars = 300});
    fault_arm_at("learnt.apply", 1);
    CHECK(correct(&a, "coder") == TX_COMMITTED);
    CHECK(fault_fired());
    fault_arm(0);
    learn_some(2);
    CHECK_INT(learning_stats(stage.learning).learn.applied_total, 3);
    pass_ms(1000);
    CHECK_INT(learning_stats(stage.learning).learn.applied_total, 6);
    check_learnt();
    check_after(false);
    /* And so does a state that is rebuilt meanwhile. */
    fault_arm_at("learnt.apply", 1);
    learn_some(1);
    fault_arm(0);
    CHECK(rebuild().err == OK);
    check_learnt();
    pass_ms(2000);
    check_learnt();
    stage_close();
}

TEST(old_records_go_but_for_what_is_not_over_or_not_written)
{
    struct learning_keep keep = {
        .first_decision = 1, .first_outcome = 1, .limit = 100};
    struct tx *tx;

    stage_open();
    learn_some(10);
    keep.before_ms = stage.now.wall_ms + 1;
    keep.unfinished_ms = stage.now.wall_ms;
    learning_prune(stage.learning, tx = stage_tx(), &keep);
    CHECK(submit(tx) == TX_COMMITTED);
    CHECK_INT(count_rows(&decision_table), 10); /* may not be over */
    CHECK_INT(count_rows(&outcome_table), 10);  /* not written */
    pass_ms(1000);
    keep.before_ms = keep.unfinished_ms = stage.now.wall_ms;
    keep.limit = 4;
    learning_prune(stage.learning, tx = stage_tx(), &keep);
    CHECK(submit(tx) == TX_COMMITTED);
    CHECK_INT(count_rows(&decision_table), 6);
    CHECK_INT(count_rows(&outcome_table), 6);
    /* The configured number stays. */
    keep = (struct learning_keep){.unfinished_ms = stage.now.wall_ms,
                                  .rows = 2,
                                  .first_decision = 5,
                                  .first_outcome = 5,
                                  .limit = 100};
    learning_prune(stage.learning, tx = stage_tx(), &keep);
    CHECK(submit(tx) == TX_COMMITTED);
    CHECK_INT(count_rows(&decision_table), 2);
    CHECK_INT(count_rows(&outcome_table), 2);
    /* The state learned from them stays. */
    CHECK_INT(learning_stats(stage.learning).learn.applied_total, 10);
    stage_restart(false);
    CHECK_INT(learning_stats(stage.learning).learn.applied_total, 10);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 10);
    learn_some(1);
    CHECK_INT(learning_stats(stage.learning).newest, 11);
    stage_close();
}

/* Every step fails once, with STRESS=full, else some of them: whatever was not
 * done is done by the next run. */
static int64_t n_outcomes(const struct id *id, enum outcome_kind kind)
{
    struct query q;
    int64_t n;

    query_init(&q, &outcome_table, 100);
    query_if(&q, OUTCOME_DECISION_ID, IS, value_text(str_of(id->text)));
    query_if(&q, OUTCOME_KIND, IS, value_int(kind));
    CHECK(store_look(stage.store, &q) == OK);
    n = (int64_t)q.n_rows;
    query_fini(&q);
    return n;
}

enum { N_ASKED = 3 };

static void go_through_it(const struct id *corrected)
{
    struct heard h = {0}, r = {0}, f = {0}, v = {0};
    struct decision d = {.id = *corrected,
                         .layer = LAYER_SEMANTIC,
                         .agent = STR("writer"),
                         .requester = STR("ann"),
                         .text = STR("t")};
    struct tx *tx = stage_tx();

    learning_run(stage.learning, on_heard, &h);
    pass_ms(1);
    CHECK_INT(h.n, 1);
    learning_append(stage.learning, tx,
                    &(struct learning_word){.decision = &d,
                                            .right = STR("coder"),
                                            .by = STR("ann")});
    submit(tx);
    learning_rebuild(stage.learning, on_heard, &r);
    pass_ms(1000);
    learning_forget(stage.learning, STR("tester"), STR("admin"), on_forgot, &f);
    pass_ms(1000);
    CHECK_INT(f.n, 1);
    learning_void(stage.learning, STR("user:bob"), STR("admin"), on_voided, &v);
    pass_ms(1000);
    pass_ms(1000);
    CHECK(v.n == 1 || stage.n_fatal);
}

/* A start may fail; the next one does not. */
static void start_with_fault(long nth)
{
    struct why why = {""};

    fault_arm(nth);
    if (stage_try_start(&why) != OK) {
        CHECK(fault_fired() || stage.n_fatal);
        fault_arm(0);
        store_close(stage.store);
        stage.store = NULL;
        learning_free(stage.learning);
        stage.learning = NULL;
        stage_start();
    }
    fault_arm(0);
}

static void check_asked(const struct id ids[N_ASKED])
{
    CHECK(run_job().err == OK);
    for (int i = 0; i < N_ASKED; i++) {
        int64_t judged = n_outcomes(&ids[i], OUTCOME_VERDICT);
        int64_t corrected = n_outcomes(&ids[i], OUTCOME_CORRECTION);

        CHECK(judged <= 1 && corrected <= (i == 0) && judged + corrected > 0);
    }
    check_learnt();
}

TEST(lessons_survive_every_fault)
{
    long step = getenv("STRESS") ? 1 : 23, nth = 1 - step;
    bool is_hit;

    do {
        struct id ids[N_ASKED];

        stage_open();
        for (int i = 0; i < N_ASKED; i++)
            ids[i] = ask((struct asked){.about = i,
                                        .chars = 300 * (i % 2),
                                        .by = i == 1 ? "bob" : "ann"});
        pass_ms(WINDOW_MS);
        fault_arm(nth += step);
        go_through_it(&ids[0]);
        is_hit = fault_fired();
        fault_arm(0);
        if (stage.n_fatal) /* the server ends, too */
            stage_restart(false);
        pass_ms(5000);
        check_asked(ids);
        check_after(nth % 2);
        stage_stop(true);
        start_with_fault(nth);
        check_asked(ids);
        stage_close();
    } while (is_hit);
    CHECK(nth > 30);
}

/* Random operations in any order, with restarts of both kinds. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

TEST(whatever_happens_the_state_is_what_the_outcomes_come_to)
{
    static const char *const agents[] = {"coder", "tester", "writer"};
    uint64_t chance = 42;
    struct id last = {""};
    struct heard h = {0};

    stage_open();
    for (int i = 0; i < ROUNDS * 10; i++) {
        uint64_t what = next_random(&chance) % 20;
        const char *agent = agents[next_random(&chance) % 3];

        stage.by = next_random(&chance) % 3 ? "ann" : "bob";
        if (what < 10)
            last = ask((struct asked){
                .about = (int)(next_random(&chance) % 40),
                .agent = agent,
                .layer = what < 8 ? LAYER_SEMANTIC : LAYER_DEFAULT,
                .chars = (int)(next_random(&chance) % 400)});
        else if (what < 13 && last.text[0])
            correct(&last, agent);
        else if (what < 14 && last.text[0])
            say_as(&last, NULL, VERDICT_POSITIVE, false);
        else if (what < 16)
            pass_ms((int64_t)(next_random(&chance) % WINDOW_MS));
        else if (what < 17)
            learning_run(stage.learning, on_heard, &h);
        else if (what < 18 && next_random(&chance) % 4 == 0)
            learning_rebuild(stage.learning, on_heard, &h);
        else if (what < 18 && next_random(&chance) % 4 == 0)
            CHECK(void_of("user:bob").err == OK);
        else if (what < 19 && next_random(&chance) % 8 == 0)
            CHECK(forget(agent).err == OK);
        else if (what == 19 && next_random(&chance) % 3 == 0)
            stage_restart(next_random(&chance) % 2);
        if (i % 10 == 0)
            check_learnt();
    }
    check_learnt();
    stage_close();
}
