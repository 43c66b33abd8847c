/* Children that crash, hang, lie, and do not want to go. */
#include "test/lib/pool_stage.h"

/* Offer retried tasks again, as the task module does. */
static void offer_again(struct office *o, struct job *j, char word)
{
    if (word == 'a') {
        later(&o->s, 0);
        job_offer(o, j);
    }
}

/* Pauses pass. Where there is a child, it has the time that it needs. */
#define UNTIL_LATER(o, condition)           \
    do {                                    \
        while (!(condition)) {              \
            wait_turn(&(o)->s);             \
            if (n_children(o) == 0)         \
                (o)->s.time.mono_ms += 400; \
        }                                   \
    } while (0)

/* Time passes, whether there is a child or not. */
#define UNTIL_LATER_MS(o, condition, ms) \
    do {                                 \
        while (!(condition)) {           \
            wait_turn(&(o)->s);          \
            (o)->s.time.mono_ms += (ms); \
        }                                \
    } while (0)

TEST(a_crash_is_retried_with_another_child_and_then_told)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "die 3");
    UNTIL(&o.s, j->n_retries == 1);
    CHECK(strstr(j->error, "status 3"));
    for (int i = 1; i < 3; i++) {
        job_offer(&o, j);
        UNTIL_LATER(&o, j->n_retries > i || j->n_results);
    }
    CHECK(j->status == TASK_FAILED && j->n_results == 1);
    CHECK(strcmp(j->code, "agent_crashed") == 0);
    CHECK(!strstr(j->error, "secret")); /* that is for the log */
    CHECK_INT(n_started(&o), 3);
    office_fini(&o);
}

TEST(a_conversation_whose_child_is_gone_gets_another)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    job_says(&o, give(&o, "c", "count"), "1");
    j = give(&o, "c", "kill");
    UNTIL(&o.s, j->n_retries);
    CHECK(strstr(j->error, "signal 9"));
    cancel(&o, j);
    j = give(&o, "c", "count");
    UNTIL_LATER(&o, j->n_results);
    job_says(&o, j, "1");
    office_fini(&o);
}

TEST(a_program_that_ends_at_once_is_not_started_again_and_again)
{
    struct office o;
    struct job *j[8];
    int64_t began_ms, before;

    office_init(&o, "exit");
    o.defs[0].min = 1;
    o.defs[0].max = 8;
    office_set(&o, 1);
    for (int i = 0; i < 8; i++)
        j[i] = give(&o, "", "echo x");
    UNTIL(&o.s, n_children(&o) == 0 && n_started(&o) >= 1);
    CHECK_INT(n_started(&o), 8); /* not known to fail yet */
    turn(&o.s, 20);
    CHECK_INT(n_started(&o), 8);
    began_ms = o.s.time.mono_ms;
    UNTIL_LATER(&o, o.s.time.mono_ms - began_ms > 100000);
    before = n_started(&o);
    CHECK(before >= 10 && before < 20); /* alone, and ever more seldom */
    for (int i = 0; i < 8; i++) {
        CHECK(j[i]->n_results == 1 && !j[i]->n_retries);
        CHECK(strcmp(j[i]->code, "wrong_dialect") == 0);
        CHECK(strstr(j[i]->error, "status 7"));
        CHECK(!strstr(j[i]->error, "cannot work")); /* that is for the log */
    }
    office_fini(&o);
}

/* A program that is configured by mistake: its first answer is enough. */

TEST(a_program_that_answers_with_text_fails_its_task_at_its_first_answer)
{
    struct office o;
    struct job *j;

    office_init(&o, "prints Hello! How can I help?");
    o.agents[0].creator = STR("ada"); /* who sees details */
    j = give(&o, "c", "echo x");
    UNTIL(&o.s, pool_find(o.d->pools, STR("p"))->n_starting == 1);
    UNTIL(&o.s, LIST_OF(list_first(&pool_find(o.d->pools, STR("p"))->workers),
                        struct pool_worker, node)
                    ->first_line[0]);
    later(&o.s, CHATTER_MS - 1); /* a message may yet follow */
    CHECK_INT(j->n_results, 0);
    later(&o.s, 1);
    job_await(&o, j);
    CHECK(j->status == TASK_FAILED && !j->n_retries && n_started(&o) == 1);
    CHECK(strcmp(j->code, "wrong_dialect") == 0);
    CHECK(strstr(j->error, "\"signalbox\" (one JSON-RPC message a line)"));
    CHECK(strstr(j->error, "\"Hello! How can I help?\""));
    CHECK(strstr(j->error, "deliver_tests\"")); /* the program's name */
    office_fini(&o);
}

TEST(what_a_wrong_program_printed_is_shown_to_its_owner_alone)
{
    struct agent_queue_figures f;
    struct office o;
    struct job *j;

    office_init(&o, "answers and ends");
    j = give(&o, "c", "echo x");
    job_await(&o, j);
    CHECK(strcmp(j->code, "wrong_dialect") == 0 && !j->n_retries);
    CHECK(strstr(j->error, "does not speak \"signalbox\""));
    CHECK(!strstr(j->error, "Hello") && !strstr(j->error, "pool_hostile"));
    deliver_figures(o.d, STR("anna"), &f); /* calls/ shows it to its owner */
    CHECK(strstr(f.error.p, "\"Hello! How can I help?\""));
    office_fini(&o);
}

TEST(a_first_line_is_cut_and_tamed_before_it_is_told)
{
    char how[160] = "prints \033[2J\xff", shown[FIRST_LINE_MAX + 4];
    struct office o;
    struct job *j;
    size_t n = strlen(how), n_kept = FIRST_LINE_MAX - (n - strlen("prints "));

    memset(how + n, 'x', 100);
    office_init(&o, how);
    o.agents[0].creator = STR("ada"); /* who sees details */
    j = give(&o, "c", "echo x");
    UNTIL(&o.s, pool_find(o.d->pools, STR("p"))->n_starting == 1);
    UNTIL_LATER_MS(&o, j->n_results, 100);
    snprintf(shown, sizeof(shown), "\"?[2J?%.*s\"", (int)n_kept, how + n);
    CHECK(strstr(j->error, shown));
    office_fini(&o);
}

TEST(a_program_that_closes_its_output_before_it_speaks_is_a_wrong_one)
{
    struct office o;
    struct job *j;

    office_init(&o, "closes");
    j = give(&o, "c", "echo x");
    UNTIL_LATER_MS(&o, j->n_results, 5);
    CHECK(strcmp(j->code, "wrong_dialect") == 0);
    CHECK(strstr(j->error, "closed its output"));
    office_fini(&o);
}

/* Negative control: the same end is a crash, and tried again, where a child
 * has spoken before. */
TEST(an_end_of_a_program_that_has_spoken_is_a_crash)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    job_says(&o, give(&o, "c", "echo x"), "x");
    CHECK(pool_find(o.d->pools, STR("p"))->has_spoken);
    j = give(&o, "c", "die 7");
    UNTIL(&o.s, j->n_retries);
    CHECK(strstr(j->error, "status 7") && !j->n_results);
    office_fini(&o);
}

TEST(one_good_result_ends_the_pauses)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    for (int i = 0; i < 5; i++) {
        j = give(&o, "", "die 1");
        UNTIL_LATER(&o, j->n_retries);
        cancel(&o, j);
    }
    CHECK_INT(pool_find(o.d->pools, STR("p"))->n_bad, 5);
    j = give(&o, "", "echo x");
    UNTIL_LATER(&o, j->n_results);
    CHECK_INT(pool_find(o.d->pools, STR("p"))->n_bad, 0);
    office_fini(&o);
}

TEST(a_child_that_is_not_ready_in_time_is_stopped)
{
    struct office o;
    struct job *j;

    office_init(&o, "mute");
    j = give(&o, "c", "echo x");
    UNTIL(&o.s, n_children(&o) == 1);
    later(&o.s, 9999);
    CHECK_INT(j->n_results, 0);
    later(&o.s, 1);
    job_await(&o, j);
    CHECK(strstr(j->error, "ran for 10000 ms before it said anything"));
    CHECK(strcmp(j->code, "wrong_dialect") == 0 && !j->n_retries);
    UNTIL(&o.s, n_children(&o) == 0);
    /* It has spoken before: then it is only slow, and tried again. */
    pool_find(o.d->pools, STR("p"))->has_spoken = true;
    j = give(&o, "c", "echo x");
    UNTIL_LATER(&o, n_children(&o) == 1);
    later(&o.s, 10000);
    UNTIL(&o.s, j->n_retries);
    CHECK(strstr(j->error, "not ready in time") && !j->n_results);
    UNTIL(&o.s, n_children(&o) == 0);
    office_fini(&o);
}

TEST(what_cannot_be_started_fails_at_once_with_words)
{
    static const struct str nothing[] = {STR("/does/not/exist")};
    struct office o;
    struct job *j;

    office_init(&o, "good");
    o.defs[0].command = (struct strs){nothing, 1};
    office_set(&o, 1);
    j = give(&o, "c", "echo x");
    job_await(&o, j);
    CHECK(j->status == TASK_FAILED && !j->n_retries);
    CHECK(strcmp(j->code, "agent_did_not_start") == 0);
    CHECK(!strstr(j->error, "/does"));
    o.defs[0] = office_def(&o, 0, "p", "good");
    o.defs[0].workspace = STR("/no/such/folder");
    office_set(&o, 1);
    j = give(&o, "c", "echo x");
    job_await(&o, j);
    CHECK(strcmp(j->code, "agent_did_not_start") == 0);
    o.defs[0].workspace = STR("/");
    office_set(&o, 1);
    job_says(&o, give(&o, "c", "echo x"), "x");
    office_fini(&o);
}

static const char *reason(struct office *o, bool has_details)
{
    static struct why why;

    deliver_state_reason(o->d, &o->agents[0], has_details, &why);
    return why.text;
}

TEST(who_has_no_program_is_dead_until_it_is_there)
{
    static char folder[] = "/tmp/signalbox-seek-XXXXXX", path[64], program[64];
    static struct str command[] = {STR("my-pi")}, env[1];
    struct office o;

    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "PATH=%s", folder);
    snprintf(program, sizeof(program), "%s/my-pi", folder);
    office_init(&o, "pi");
    env[0] = str_of(path);
    o.defs[0].command = (struct strs){command, 1};
    o.defs[0].whole_env = (struct strs){env, 1};
    office_set(&o, 1);
    CHECK_INT(deliver_state(o.d, &o.agents[0]), AGENT_DEAD);
    CHECK(strstr(reason(&o, true), "cannot start my-pi") &&
          strstr(reason(&o, true), "npm install -g"));
    CHECK(strstr(reason(&o, false), "its owner sees why") &&
          !strstr(reason(&o, false), folder));
    CHECK(symlink("/bin/cat", program) == 0);
    later(&o.s, SEEK_MS - 1);
    wait_turn(&o.s);
    CHECK_INT(deliver_state(o.d, &o.agents[0]), AGENT_DEAD);
    later(&o.s, 1);
    UNTIL(&o.s, deliver_state(o.d, &o.agents[0]) == AGENT_IDLE);
    CHECK(!reason(&o, true)[0]);
    CHECK(unlink(program) == 0 && rmdir(folder) == 0);
    office_fini(&o);
}

TEST(a_workspace_is_made_and_what_it_lies_in_is_not)
{
    static char folder[] = "/tmp/signalbox-made-XXXXXX", inner[64], below[64];
    struct office o;

    CHECK(mkdtemp(folder));
    snprintf(inner, sizeof(inner), "%s/inner", folder);
    snprintf(below, sizeof(below), "%s/other/below", folder);
    office_init(&o, "good");
    o.defs[0].workspace = str_of(below);
    office_set(&o, 1);
    CHECK_INT(deliver_state(o.d, &o.agents[0]), AGENT_DEAD);
    CHECK(strstr(reason(&o, true), "does not exist; create it"));
    o.defs[0].workspace = str_of(inner);
    office_set(&o, 1);
    CHECK_INT(deliver_state(o.d, &o.agents[0]), AGENT_IDLE);
    job_says(&o, give(&o, "c", "echo x"), "x");
    CHECK(rmdir(inner) == 0 && rmdir(folder) == 0);
    office_fini(&o);
}

/* Words. */

TEST(a_second_answer_is_told_and_changes_nothing)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "twice");
    job_says(&o, j, "first");
    job_says(&o, give(&o, "c", "count"), "2");
    CHECK(o.n_strays == 1 && j->n_results == 1);
    office_fini(&o);
}

TEST(a_child_that_says_everything_twice_answers_once)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "stutter");
    job_says(&o, j, "haha");
    CHECK(strcmp(j->words, "wccr") == 0);
    job_says(&o, give(&o, "c", "count"), "2");
    CHECK(j->n_results == 1 && n_started(&o) == 1);
    office_fini(&o);
}

TEST(an_answer_for_anothers_task_is_not_taken)
{
    struct office o;
    struct job *victim, *liar;
    char words[64];

    office_init(&o, "good");
    victim = give(&o, "one", "hang");
    UNTIL(&o.s, victim->n_words == 2);
    snprintf(words, sizeof(words), "other %s", victim->t.id.text);
    liar = give(&o, "two", words);
    UNTIL(&o.s, liar->n_words == 2);
    CHECK(victim->n_words == 2 && !victim->n_results);
    CHECK(strcmp(victim->heard, "here") == 0);
    office_fini(&o);
}

TEST(chatter_is_passed_over_and_garbage_ends_it)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    job_says(&o, give(&o, "c", "chatter"), "after all");
    CHECK_INT(n_started(&o), 1);
    j = give(&o, "c", "garbage");
    UNTIL(&o.s, j->n_retries);
    CHECK(strstr(j->error, "cannot be understood"));
    UNTIL(&o.s, n_children(&o) == 0);
    office_fini(&o);
}

TEST(a_line_without_end_ends_the_child)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "flood");
    UNTIL_LATER(&o, j->n_retries);
    CHECK(strstr(j->error, "over its limit"));
    office_fini(&o);
}

static void works_again(struct office *o)
{
    struct job *j = give(o, "c", "echo x");

    UNTIL_LATER(o, j->n_results); /* the pool pauses */
    job_says(o, j, "x");
}

/* Time passes, whether there is a child or not. */
static void until_retried(struct office *o, struct job *j)
{
    while (!j->n_retries) {
        wait_turn(&o->s);
        o->s.time.mono_ms += 5;
    }
}

TEST(a_child_that_has_closed_its_output_or_input_has_crashed)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "mute");
    until_retried(&o, j);
    CHECK(strstr(j->error, "closed its output"));
    works_again(&o);
    job_says(&o, give(&o, "c", "deaf"), "the last");
    j = give(&o, "c", "echo x"); /* which is not read */
    until_retried(&o, j);
    CHECK(strstr(j->error, "its input"));
    works_again(&o);
    office_fini(&o);
}

/* Cancel. */

TEST(a_cancel_stops_the_child)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "hang");
    UNTIL(&o.s, j->n_words == 2);
    cancel(&o, j);
    UNTIL(&o.s, n_children(&o) == 0);
    CHECK(j->n_results == 0 && j->n_retries == 0);
    CHECK_INT(pool_find(o.d->pools, STR("p"))->n_bad, 0); /* innocent */
    office_fini(&o);
}

TEST(a_cancel_kills_what_ignores_it_and_what_that_has_started)
{
    static const char *const hows[] = {"stubborn", "fork"};

    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        struct office o;
        struct job *j;
        pid_t pid;

        office_init(&o, "good");
        j = give(&o, "c", hows[i]);
        UNTIL(&o.s, j->n_words == 2);
        pid = (pid_t)strtol(j->heard, NULL, 10);
        CHECK(i == 0 || kill(pid, 0) == 0);
        cancel(&o, j);
        turn(&o.s, 5);
        CHECK_INT(n_children(&o), 1);
        later(&o.s, GRACE_MS);
        UNTIL(&o.s, n_children(&o) == 0);
        if (pid)
            await_gone(&o.s, pid);
        CHECK_INT(children_stats(o.s.all).killed_total, 1);
        office_fini(&o);
    }
}

TEST(asked_only_it_goes_on_if_it_stops_in_time)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    o.defs[0].cancel = CANCEL_ASKS;
    o.defs[0].max = 1;
    office_set(&o, 1);
    j = give(&o, "c", "hang");
    UNTIL(&o.s, j->n_words == 2);
    cancel(&o, j);
    job_says(&o, give(&o, "c", "count"), "2");
    j = give(&o, "c", "stubborn");
    UNTIL(&o.s, j->n_words == 2);
    cancel(&o, j);
    j = give(&o, "c", "count");
    later(&o.s, GRACE_MS); /* it does not say so */
    later(&o.s, GRACE_MS); /* nor does it end */
    job_says(&o, j, "1");
    CHECK_INT(n_started(&o), 2);
    office_fini(&o);
}

TEST(a_cancel_reaches_who_has_left_the_childs_group)
{
    struct office o;
    struct job *j;
    pid_t pid;

    office_init(&o, "good");
    j = give(&o, "c", "leave");
    UNTIL(&o.s, j->n_words == 2);
    pid = (pid_t)strtol(j->heard, NULL, 10);
    CHECK(pid > 1 && kill(pid, 0) == 0);
    cancel(&o, j);
    UNTIL(&o.s, n_children(&o) == 0);
    await_gone(&o.s, pid);
    office_fini(&o);
}

/* An agent whose answer is too large still works on it: its next task comes
 * after it has stopped, or to another. */
TEST(who_says_too_much_is_stopped_like_one_that_is_cancelled)
{
    static const enum process_cancel hows[] = {CANCEL_STOPS, CANCEL_ASKS};
    static const char *const cancels[] = {"0 of 1", "1 of 2"};

    for (size_t i = 0; i < 2; i++) {
        struct office o;
        struct job *j, *next;

        office_init(&o, "good");
        o.defs[0].max = 1;
        o.defs[0].max_line_bytes = 2 << 20;
        o.defs[0].cancel = hows[i];
        office_set(&o, 1);
        j = give(&o, "c", "too much");
        next = give(&o, "c", "cancels");
        job_await(&o, j);
        CHECK(j->status == TASK_FAILED && !j->n_retries);
        CHECK(strcmp(j->code, "too_large") == 0);
        job_says(&o, next, cancels[i]);
        CHECK_INT(n_started(&o), i == 0 ? 2 : 1);
        office_fini(&o);
    }
}

TEST(a_cancel_of_what_waits_costs_no_child)
{
    struct office o;
    struct job *busy, *j;

    office_init(&o, "good");
    o.defs[0].max = 1;
    office_set(&o, 1);
    busy = give(&o, "", "hang");
    UNTIL(&o.s, busy->n_words == 2);
    j = give(&o, "", "echo x");
    turn(&o.s, 3);
    cancel(&o, j);
    turn(&o.s, 3);
    CHECK_INT(n_started(&o), 1);
    CHECK_INT(pool_find(o.d->pools, STR("p"))->n_waiting, 0);
    office_fini(&o);
}

static void cancel_at_once(struct office *o, struct job *j, char word)
{
    (void)word;
    cancel(o, j);
}

TEST(it_may_be_cancelled_from_inside_any_callback)
{
    static const char *const texts[] = {"echo x", "die 1", "twice", "garbage"};
    struct office o;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct job *j;

        office_init(&o, "good");
        o.then = cancel_at_once;
        j = give(&o, "c", texts[i]);
        UNTIL(&o.s, j->n_words);
        for (int k = 0; k < 20; k++)
            wait_turn(&o.s);
        CHECK_INT(j->n_words, 1);
        office_fini(&o);
    }
}

TEST(the_end_of_the_server_stops_children_and_tells_nobody)
{
    struct office o;
    struct job *j, *waits;

    office_init(&o, "good");
    o.defs[0].max = 1;
    office_set(&o, 1);
    j = give(&o, "c", "stubborn");
    waits = give(&o, "d", "echo x");
    UNTIL(&o.s, j->n_words == 2);
    o.then = offer_again;
    office_fini(&o);
    CHECK(j->n_words == 2 && waits->n_words == 0);
}
