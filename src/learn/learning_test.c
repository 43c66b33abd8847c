/* From decisions to the learned state. */
#include "test/lib/learning_stage.h"

TEST(verdicts_are_as_the_table_says)
{
    static const struct judge_rules rules = {WINDOW_MS, 200, 20};
    static const struct {
        struct judge_facts facts;
        enum verdict verdict;
    } table[] = {
#define OVER(s, n, followed, switched) \
    {.is_known = true,                 \
     .status = TASK_##s,               \
     .chars = (n),                     \
     .is_followed = (followed),        \
     .is_switched = (switched)}
        {OVER(COMPLETED, 200, true, false), VERDICT_POSITIVE},
        {OVER(COMPLETED, 199, true, false), VERDICT_NEUTRAL},
        {OVER(COMPLETED, 200, false, false), VERDICT_NEUTRAL},
        {OVER(COMPLETED, 200, false, true), VERDICT_NEGATIVE},
        {OVER(COMPLETED, 20, true, false), VERDICT_NEUTRAL},
        {OVER(COMPLETED, 19, true, false), VERDICT_NEGATIVE},
        {OVER(COMPLETED, 0, false, false), VERDICT_NEGATIVE},
        {OVER(FAILED, 1000, true, false), VERDICT_NEGATIVE},
        {OVER(EXPIRED, 1000, true, false), VERDICT_NEGATIVE},
        {OVER(CANCELLED, 0, false, false), VERDICT_NEUTRAL},
        {OVER(CANCELLED, 0, false, true), VERDICT_NEGATIVE},
        {OVER(DROPPED, 0, false, false), VERDICT_NEUTRAL},
        {{.is_known = false}, VERDICT_NEUTRAL},
#undef OVER
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (judge_verdict(&rules, &table[i].facts) != table[i].verdict)
            T_FAIL("row %zu", i);
}

TEST(a_decision_is_judged_once_its_window_is_over_and_not_again)
{
    struct id a, b;

    stage_open();
    a = ask((struct asked){.chars = 300, .took_ms = MINUTE_MS});
    pass_ms(10 * MINUTE_MS);
    b = ask((struct asked){.chars = 5, .layer = LAYER_STICKY});
    pass_ms(WINDOW_MS - 9 * MINUTE_MS - 1);
    CHECK_INT(run_job().judged, 0);
    pass_ms(1);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(verdict_of(&a), VERDICT_POSITIVE);
    CHECK_INT(decided(&a, DECISION_ANSWER_CHARS), 300);
    CHECK_INT(decided(&a, DECISION_LATENCY_MS), MINUTE_MS);
    CHECK_INT(decided(&a, DECISION_FOLLOWED), 1);
    CHECK_INT(decided(&a, DECISION_VERDICT_MS), stage.now.wall_ms);
    CHECK_INT(verdict_of(&b), VERDICT_OPEN);
    CHECK_INT(run_job().judged, 0);
    pass_ms(10 * MINUTE_MS);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(verdict_of(&b), VERDICT_NEGATIVE);
    CHECK_INT(decided(&b, DECISION_FOLLOWED), 0);
    /* Sticky decisions are judged, but teach nothing. */
    CHECK_INT(count_rows(&outcome_table), 1);
    check_learnt();
    stage_close();
}

TEST(what_is_not_over_waits_and_what_is_gone_is_neutral)
{
    struct id open, gone, failed, turn;
    struct id task = {"task_x"};
    struct query q;

    stage_open();
    open = ask((struct asked){.conversation = "a", .status = TASK_QUEUED});
    gone = ask((struct asked){.conversation = "b", .has_no_task = true});
    failed = ask((struct asked){.conversation = "c",
                                .status = TASK_FAILED,
                                .chars = 300,
                                .error_code = "agent_offline"});
    turn = ask((struct asked){
        .conversation = "d", .task_id = task, .turn = 1, .chars = 30});
    pass_ms(WINDOW_MS);
    /* Memory is ahead of its row. */
    stage.going_on = str_of(task.text);
    CHECK_INT(run_job().judged, 2);
    stage.going_on = STR("");
    CHECK_INT(verdict_of(&open), VERDICT_OPEN);
    CHECK_INT(verdict_of(&gone), VERDICT_NEUTRAL);
    CHECK_INT(decided(&gone, DECISION_ANSWER_CHARS), -99);
    CHECK_INT(verdict_of(&failed), VERDICT_NEGATIVE);
    CHECK_STR(row_str(find_decision(&q, &failed), DECISION_ERROR_CODE),
              "agent_offline");
    query_fini(&q);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(verdict_of(&turn), VERDICT_NEUTRAL);
    check_learnt();
    stage_close();
}

/* The task goes on to its second turn: the first one is judged. */
TEST(a_past_turn_is_judged_by_its_own_answer)
{
    struct id first, task = {"task_x"};
    struct tx *tx;
    struct tx_op *op;

    stage_open();
    first =
        ask((struct asked){.task_id = task, .turn = 1, .has_no_task = true});
    ask((struct asked){.task_id = task,
                       .turn = 2,
                       .layer = LAYER_STICKY,
                       .status = TASK_QUEUED});
    tx = stage_tx();
    op = tx_insert(tx, &turn_table);
    tx_set(op, TURN_TASK_SEQ, value_int(1));
    tx_set(op, TURN_NUMBER, value_int(1));
    tx_set(op, TURN_MESSAGE_ID, value_text(STR("m")));
    tx_set(op, TURN_TEXT, value_text(STR("t")));
    tx_set(op, TURN_STATUS, value_int(TASK_COMPLETED));
    tx_set(op, TURN_BEGAN_MS, value_int(stage.now.wall_ms));
    tx_set(op, TURN_FINISHED_MS, value_int(stage.now.wall_ms + 5));
    tx_set(op, TURN_RESULT_TEXT,
           value_text(STR("w\xc3\xb6rter und mehr als "
                          "zwanzig Zeichen")));
    CHECK(submit(tx) == TX_COMMITTED);
    pass_ms(WINDOW_MS + 5);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(verdict_of(&first), VERDICT_NEUTRAL);
    CHECK_INT(decided(&first, DECISION_ANSWER_CHARS), 35); /* not bytes */
    CHECK_INT(decided(&first, DECISION_FOLLOWED), 1);
    stage_close();
}

TEST(only_the_next_word_of_the_same_person_there_is_a_follow_up)
{
    static const struct {
        struct asked next;
        int64_t after_ms;
        enum verdict verdict;
    } table[] = {
        {{.conversation = "c"}, WINDOW_MS, VERDICT_POSITIVE},
        {{.conversation = "c"}, WINDOW_MS + 1, VERDICT_NEUTRAL},
        {{.conversation = "d"}, 1, VERDICT_NEUTRAL},
        {{.conversation = "c", .by = "bob"}, 1, VERDICT_NEUTRAL},
        {{.agent = "coder", .layer = LAYER_EXPLICIT}, 1, VERDICT_NEGATIVE},
        {{.agent = "coder", .layer = LAYER_PREFIX}, 1, VERDICT_NEGATIVE},
        /* It was gone, and another was chosen. */
        {{.agent = "coder", .layer = LAYER_SEMANTIC}, 1, VERDICT_NEUTRAL},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct id first;

        stage_open();
        first = ask((struct asked){.chars = 300});
        pass_ms(table[i].after_ms);
        ask(table[i].next);
        pass_ms(2 * WINDOW_MS);
        CHECK(run_job().err == OK);
        if (verdict_of(&first) != table[i].verdict)
            T_FAIL("row %zu", i);
        stage_close();
    }
}

static const struct asked refused = {
    .agent = "", .layer = LAYER_NONE, .has_no_task = true};

TEST(the_job_leaves_refusals_alone)
{
    struct asked late = refused;
    struct id none, gone;

    stage_open();
    none = ask(refused);
    /* The control: another decision without a task is judged. */
    late.layer = LAYER_SEMANTIC;
    late.agent = "writer";
    late.conversation = "d";
    gone = ask(late);
    pass_ms(2 * WINDOW_MS);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(verdict_of(&gone), VERDICT_NEUTRAL);
    CHECK_INT(verdict_of(&none), VERDICT_OPEN);
    CHECK_INT(decided(&none, DECISION_VERDICT_MS), -99);
    /* And a user may still name the right agent. */
    CHECK(correct(&none, "coder") == TX_COMMITTED);
    CHECK_INT(verdict_of(&none), VERDICT_NEGATIVE);
    CHECK(is_overridden_to(&none, "coder"));
    stage_close();
}

TEST(a_refusal_in_between_is_no_end_of_the_talk)
{
    struct id first;

    stage_open();
    first = ask((struct asked){.chars = 300});
    pass_ms(1);
    ask(refused);
    pass_ms(1);
    ask((struct asked){.layer = LAYER_STICKY});
    pass_ms(2 * WINDOW_MS);
    CHECK(run_job().err == OK);
    CHECK_INT(verdict_of(&first), VERDICT_POSITIVE);
    stage_close();
}

TEST(a_correction_marks_the_decision_and_teaches)
{
    struct id a;
    struct learning_stats s;

    stage_open();
    a = ask((struct asked){.chars = 300});
    CHECK(correct(&a, "coder") == TX_COMMITTED);
    CHECK_INT(verdict_of(&a), VERDICT_NEGATIVE);
    CHECK(is_overridden_to(&a, "coder"));
    CHECK_INT(decided(&a, DECISION_OVERRIDDEN_MS), stage.now.wall_ms);
    s = learning_stats(stage.learning);
    CHECK_INT(s.learn.examples, 1);
    CHECK_INT(s.learn.agents, 1); /* the writer, who has done badly */
    /* The job does not judge it again. */
    pass_ms(WINDOW_MS);
    CHECK_INT(run_job().judged, 0);
    CHECK_INT(count_rows(&outcome_table), 1);
    check_learnt();
    stage_close();
}

static struct learn_hint hint_of(const char *agent)
{
    struct learn_hint h;
    uint8_t packed[PACKED];
    struct learn_query q = {.scope = STR("org:acme"),
                            .now_ms = stage.now.wall_ms,
                            .recency_ms = MINUTE_MS,
                            .vector = vector_of(0, packed)};

    learn_begin(learning_learn(stage.learning), &q);
    learn_look(learning_learn(stage.learning), str_of(agent), &h);
    return h;
}

/* The first verdict counts once, and later ones change nothing. */
TEST(a_decision_counts_against_its_agent_once)
{
    struct learn_hint once;
    struct id a;

    stage_open();
    a = ask((struct asked){.chars = 5});
    pass_ms(WINDOW_MS);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(verdict_of(&a), VERDICT_NEGATIVE);
    once = hint_of("writer");
    CHECK(once.performance < 0.5F);
    CHECK(correct(&a, "coder") == TX_COMMITTED);
    CHECK(correct(&a, "tester") == TX_COMMITTED);
    CHECK(is_overridden_to(&a, "tester"));
    CHECK_INT(count_rows(&outcome_table), 3);
    CHECK(hint_of("writer").performance == once.performance);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 1);
    check_learnt();
    stage_close();
}

TEST(nobody_wears_out_a_good_name_with_one_decision)
{
    struct learn_hint once;
    struct id a;

    stage_open();
    a = ask((struct asked){.chars = 300});
    CHECK(say_as(&a, NULL, VERDICT_POSITIVE, false) == TX_COMMITTED);
    once = hint_of("writer");
    CHECK(once.performance > 0.5F && once.learned == 0);
    for (int i = 0; i < 5; i++) {
        CHECK(say_as(&a, NULL, VERDICT_NEGATIVE, false) == TX_COMMITTED);
        CHECK(hint_of("writer").learned < 0); /* the example follows it */
        CHECK(correct(&a, "coder") == TX_COMMITTED);
        CHECK(hint_of("coder").learned > 0);
        CHECK(say_as(&a, NULL, VERDICT_POSITIVE, false) == TX_COMMITTED);
    }
    CHECK(hint_of("writer").performance == once.performance);
    CHECK(hint_of("writer").learned == 0);
    /* A neutral verdict does not count. */
    a = ask((struct asked){.chars = 100, .conversation = "n"});
    pass_ms(WINDOW_MS);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(verdict_of(&a), VERDICT_NEUTRAL);
    CHECK(correct(&a, "coder") == TX_COMMITTED);
    CHECK(hint_of("writer").performance < once.performance);
    check_learnt();
    stage_close();
}

TEST(what_insiders_find_is_not_for_others_whoever_says_so)
{
    struct learn_hint h;
    struct id a;

    stage_open();
    stage.standing = STANDS_INSIDE;
    a = ask((struct asked){.chars = 300});
    CHECK(say_as(&a, NULL, VERDICT_POSITIVE, false) == TX_COMMITTED);
    ask((struct asked){.chars = 5, .conversation = "short"});
    h = hint_of("writer");
    CHECK(h.has_inside && h.performance > 0.5F && h.recency > 0);
    CHECK(h.outside_performance == 0.5F && h.outside_recency == 0);
    pass_ms(WINDOW_MS);
    CHECK_INT(run_job().judged, 1);
    h = hint_of("writer");
    CHECK(h.performance < 0.5F && h.outside_performance == 0.5F);
    check_learnt();
    stage_close();
}

TEST(what_comes_of_an_agent_that_is_gone_makes_nobody_known)
{
    struct id a;

    stage_open();
    stage.standing = STANDS_ALONE;
    a = ask((struct asked){.chars = 300});
    ask((struct asked){.chars = 5, .conversation = "short"});
    CHECK(say_as(&a, NULL, VERDICT_NEGATIVE, false) == TX_COMMITTED);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 0);
    CHECK(correct(&a, "coder") == TX_COMMITTED);
    pass_ms(WINDOW_MS);
    CHECK_INT(run_job().judged, 1);
    CHECK_INT(learning_stats(stage.learning).learn.agents, 0);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 1);
    CHECK(hint_of("coder").learned > 0 && hint_of("writer").learned == 0);
    check_learnt();
    stage_close();
}

TEST(what_somebody_judged_first_gets_its_facts_all_the_same)
{
    struct id a, gone;
    struct query q;

    stage_open();
    a = ask((struct asked){.chars = 300,
                           .took_ms = MINUTE_MS,
                           .status = TASK_FAILED,
                           .error_code = "agent_offline"});
    gone = ask((struct asked){.conversation = "b", .has_no_task = true});
    CHECK(correct(&a, "coder") == TX_COMMITTED);
    CHECK(say_as(&gone, NULL, VERDICT_POSITIVE, false) == TX_COMMITTED);
    CHECK_INT(run_job().judged, 0);
    CHECK_INT(decided(&a, DECISION_ANSWER_CHARS), -99);
    pass_ms(WINDOW_MS + MINUTE_MS);
    CHECK_INT(run_job().judged, 0);
    CHECK_INT(verdict_of(&a), VERDICT_NEGATIVE);
    CHECK(is_overridden_to(&a, "coder"));
    CHECK_INT(decided(&a, DECISION_ANSWER_CHARS), 300);
    CHECK_INT(decided(&a, DECISION_LATENCY_MS), MINUTE_MS);
    CHECK_INT(decided(&a, DECISION_FOLLOWED), 0);
    CHECK_STR(row_str(find_decision(&q, &a), DECISION_ERROR_CODE),
              "agent_offline");
    query_fini(&q);
    /* The facts of a removed task are unknown, and it is not judged again. */
    CHECK_INT(verdict_of(&gone), VERDICT_POSITIVE);
    CHECK_INT(decided(&gone, DECISION_ANSWER_CHARS), -99);
    CHECK_INT(decided(&gone, DECISION_FOLLOWED), 0);
    CHECK_INT(count_rows(&outcome_table), 2);
    check_learnt();
    stage_close();
}

TEST(going_elsewhere_corrects_only_what_we_had_chosen)
{
    static const struct {
        enum layer layer;
        bool is_switch, teaches;
    } table[] = {
        {LAYER_SEMANTIC, true, true},  {LAYER_INTENT, true, true},
        {LAYER_DEFAULT, true, true},   {LAYER_EXPLICIT, true, false},
        {LAYER_PREFIX, true, false},   {LAYER_BINDING, true, false},
        {LAYER_STICKY, true, false},   {LAYER_EXPLICIT, false, true},
        {LAYER_BINDING, false, true},  {LAYER_STICKY, false, true},
        {LAYER_SEMANTIC, false, true},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct learning_stats s;
        struct id a;
        bool is_ours =
            table[i].layer == LAYER_SEMANTIC || table[i].layer == LAYER_INTENT;

        stage_open();
        a = ask((struct asked){.layer = table[i].layer});
        CHECK(say_as(&a, "coder", VERDICT_NEGATIVE, table[i].is_switch) ==
              TX_COMMITTED);
        s = learning_stats(stage.learning);
        CHECK_INT(count_rows(&outcome_table), 1);
        CHECK_INT(s.learn.examples, table[i].teaches);
        CHECK_INT(s.learn.agents, is_ours);
        check_learnt();
        stage_close();
    }
}

TEST(what_is_said_twice_at_once_counts_once)
{
    struct tx *tx[2] = {stage_tx(), stage_tx()};
    struct decision d = {.layer = LAYER_SEMANTIC,
                         .agent = STR("writer"),
                         .requester = STR("ann"),
                         .text = STR("t")};
    struct learning_word w = {.decision = &d,
                              .right = STR("coder"),
                              .verdict = VERDICT_NEGATIVE,
                              .by = STR("ann")};

    stage_open();
    d.id = ask((struct asked){.chars = 300});
    learning_append(stage.learning, tx[0], &w);
    learning_append(stage.learning, tx[1], &w);
    CHECK(submit(tx[0]) == TX_COMMITTED);
    CHECK(submit(tx[1]) == TX_GUARD_FAILED);
    CHECK_INT(count_rows(&outcome_table), 1);
    /* So does a verdict. */
    d.id = ask((struct asked){.chars = 300});
    w.right = STR("");
    for (int i = 0; i < 2; i++)
        learning_append(stage.learning, tx[i] = stage_tx(), &w);
    CHECK(submit(tx[0]) == TX_COMMITTED);
    CHECK(submit(tx[1]) == TX_GUARD_FAILED);
    CHECK_INT(count_rows(&outcome_table), 2);
    /* And a verdict about a removed decision. */
    d.id = id_make(&stage.ids, "dec", 1);
    learning_append(stage.learning, tx[0] = stage_tx(), &w);
    CHECK(submit(tx[0]) == TX_GUARD_FAILED);
    CHECK_INT(count_rows(&outcome_table), 2);
    check_learnt();
    stage_close();
}

TEST(right_after_all_takes_back_an_override)
{
    struct id a;

    stage_open();
    a = ask((struct asked){.chars = 300});
    CHECK(correct(&a, "coder") == TX_COMMITTED);
    CHECK(say_as(&a, NULL, VERDICT_POSITIVE, false) == TX_COMMITTED);
    CHECK_INT(verdict_of(&a), VERDICT_POSITIVE);
    CHECK(is_overridden_to(&a, ""));
    CHECK_INT(decided(&a, DECISION_OVERRIDDEN_MS), -99);
    CHECK_INT(learning_stats(stage.learning).learn.examples, 0);
    check_learnt();
    stage_close();
}

/* The job has read an open decision when a user gives a verdict. */
static struct id said_of;

static void say_meanwhile(void)
{
    struct tx *tx = stage_tx();
    struct decision d = {.id = said_of,
                         .layer = LAYER_SEMANTIC,
                         .agent = STR("writer"),
                         .requester = STR("ann"),
                         .text = STR("t")};

    stage.meanwhile = NULL;
    learning_append(stage.learning, tx,
                    &(struct learning_word){.decision = &d,
                                            .right = STR("coder"),
                                            .by = STR("ann")});
    store_submit(stage.store, tx, stage_on_tx, NULL);
}

TEST(a_word_that_comes_while_the_job_looks_wins)
{
    struct heard h;

    stage_open();
    said_of = ask((struct asked){.chars = 300});
    pass_ms(WINDOW_MS);
    stage.meanwhile = say_meanwhile;
    h = run_job();
    CHECK(!stage.meanwhile && h.err == OK && h.judged == 0);
    CHECK_INT(verdict_of(&said_of), VERDICT_NEGATIVE);
    CHECK_INT(count_rows(&outcome_table), 1);
    check_learnt();
    stage_close();
}

TEST(the_job_runs_by_itself)
{
    struct id a, b;

    stage_ground();
    stage.settings.every_ms = 10 * MINUTE_MS;
    stage_start();
    a = ask((struct asked){.chars = 300});
    pass_ms(10 * MINUTE_MS);
    pass_ms(10 * MINUTE_MS);
    CHECK_INT(verdict_of(&a), VERDICT_OPEN);
    pass_ms(10 * MINUTE_MS);
    CHECK_INT(verdict_of(&a), VERDICT_NEUTRAL);
    CHECK_INT(learning_stats(stage.learning).runs_total, 3);
    stage.settings.every_ms = 0;
    learning_set(stage.learning, &stage.settings);
    b = ask((struct asked){.chars = 300});
    pass_ms(10 * WINDOW_MS);
    CHECK_INT(verdict_of(&b), VERDICT_OPEN);
    CHECK_INT(run_job().judged, 1);
    stage_close();
}

TEST(whoever_asks_while_it_runs_gets_a_run_of_their_own_and_only_so_many_may)
{
    struct heard first = {0}, more = {0}, over = {0};

    stage_open();
    ask((struct asked){.chars = 300});
    pass_ms(WINDOW_MS);
    learning_run(stage.learning, on_heard, &first);
    for (int i = 0; i < LEARNING_WAITING_MAX; i++)
        learning_run(stage.learning, on_heard, &more);
    CHECK(more.n == 0);
    learning_run(stage.learning, on_heard, &over);
    CHECK(over.n == 1 && over.err == ERR_OVERLOADED);
    pass_ms(1);
    CHECK(first.n == 1 && first.judged == 1 && more.n == LEARNING_WAITING_MAX &&
          more.judged == 0);
    CHECK_INT(learning_stats(stage.learning).runs_total, 2);
    stage_close();
}

TEST(a_page_of_young_ones_ends_a_run_and_one_from_the_future_does_not)
{
    struct id old, future;

    stage_open();
    stage.now.wall_ms += 1000 * WINDOW_MS;
    future = ask((struct asked){.chars = 300, .conversation = "f"});
    stage.now.wall_ms -= 1000 * WINDOW_MS;
    old = ask((struct asked){.chars = 300});
    for (int i = 0; i < 120; i++)
        ask((struct asked){.conversation = "x", .chars = 300});
    pass_ms(WINDOW_MS);
    CHECK_INT(run_job().judged, 121);
    CHECK(verdict_of(&old) && !verdict_of(&future));
    stage_close();
}
