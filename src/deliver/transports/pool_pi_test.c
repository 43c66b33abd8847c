/* The dialect of pi-coding-agent, spoken by a child that does as it does. The
 * real one is in test/e2e/pi_test.py. */
#include "test/lib/pool_stage.h"

static struct office o;

static void with(const char *how)
{
    office_init(&o, how);
    o.defs[0].max = 1;
    office_set(&o, 1);
}

TEST(an_answer_of_pi_has_chunks_text_and_usage)
{
    struct job *j;

    with("pi");
    j = give(&o, "c", "hello");
    job_await(&o, j);
    CHECK(j->status == TASK_COMPLETED && strcmp(j->words, "wcr") == 0);
    CHECK(strcmp(j->text, j->heard) == 0 && strstr(j->text, "/1"));
    CHECK(strcmp(j->metadata,
                 "{\"stop_reason\":\"stop\",\"model\":\"m\",\"usage\":{"
                 "\"input_tokens\":5,\"output_tokens\":2,"
                 "\"cache_read_tokens\":1,\"cache_write_tokens\":0,"
                 "\"cost\":0.5}}") == 0);
    office_fini(&o);
}

TEST(messages_between_tools_are_apart)
{
    struct job *j;

    with("pi");
    j = give(&o, "c", "tools");
    job_says(&o, j, "Let me see.\n\nDone.");
    CHECK(strcmp(j->heard, "Let me see.\n\nDone.") == 0);
    CHECK(strstr(j->metadata, "\"input_tokens\":10"));
    office_fini(&o);
}

TEST(pi_remembers_a_conversation_and_forgets_it_for_another)
{
    struct job *a, *b, *c, *d;

    with("pi");
    a = give(&o, "one", "x");
    job_await(&o, a);
    b = give(&o, "one", "x");
    job_await(&o, b);
    CHECK(strstr(a->text, "/1") && strstr(b->text, "/2"));
    c = give(&o, "two", "x"); /* max is one: it has to forget */
    job_await(&o, c);
    CHECK(strstr(c->text, "/1"));
    CHECK_INT(n_started(&o), 1);
    d = give(&o, "", "x"); /* no conversation: always a new session */
    job_await(&o, d);
    CHECK(strstr(d->text, "/1"));
    office_fini(&o);
}

TEST(each_conversation_has_a_pi_as_long_as_there_is_room)
{
    struct job *a, *b;

    office_init(&o, "pi");
    a = give(&o, "one", "x");
    job_await(&o, a);
    b = give(&o, "two", "x");
    job_await(&o, b);
    CHECK_INT(n_started(&o), 2);
    a = give(&o, "one", "x");
    job_await(&o, a);
    CHECK(strstr(a->text, "/2"));
    office_fini(&o);
}

/* The next task is not ended by what was said twice of the one before. */
TEST(a_pi_that_says_everything_twice_answers_once)
{
    static const char *const hows[] = {"pi", "pi settles"};

    for (size_t i = 0; i < 2; i++) {
        struct job *j;

        with(hows[i]);
        for (int k = 0; k < 2; k++) {
            j = give(&o, "c", "stutter");
            job_await(&o, j);
            CHECK(j->status == TASK_COMPLETED && j->n_results == 1);
            CHECK(strcmp(j->words, "wccr") == 0);
        }
        j = give(&o, "c", "x");
        job_await(&o, j);
        CHECK(strstr(j->text, "/3") && !strstr(j->text, "\n"));
        CHECK_INT(n_started(&o), 1);
        office_fini(&o);
    }
}

TEST(an_error_of_pi_is_the_answer)
{
    struct job *j;

    with("pi");
    j = give(&o, "c", "error");
    job_await(&o, j);
    CHECK(j->status == TASK_FAILED && !j->n_retries);
    CHECK(strcmp(j->code, "agent_failed") == 0);
    CHECK(strcmp(j->error, "400 no such luck") == 0);
    j = give(&o, "c", "refuse");
    job_await(&o, j);
    CHECK(strcmp(j->code, "agent_refused") == 0);
    CHECK(strcmp(j->error, "No API key") == 0);
    job_await(&o, give(&o, "c", "x"));
    CHECK_INT(n_started(&o), 1);
    office_fini(&o);
}

TEST(what_pi_tries_again_by_itself_is_waited_for)
{
    static const char *const hows[] = {"pi", "pi settles"};

    for (size_t i = 0; i < 2; i++) {
        struct job *j;

        with(hows[i]);
        j = give(&o, "c", "again");
        job_says(&o, j, "whole");
        CHECK(strcmp(j->heard, "bro\n\nwhole") == 0);
        job_await(&o, give(&o, "c", "x"));
        office_fini(&o);
    }
}

TEST(one_that_settles_is_waited_for)
{
    struct job *j;

    with("pi settles");
    for (int i = 0; i < 3; i++) {
        j = give(&o, "c", i == 1 ? "error" : "x");
        job_await(&o, j);
        CHECK_INT(j->n_results, 1);
    }
    CHECK(strstr(j->text, "/3"));
    office_fini(&o);
}

#define CANCELLED "{'type':'extension_ui_response','id':'d-1','cancelled':true}"

/* It cannot be shown, or not be asked at all. */
TEST(a_dialog_that_nobody_takes_is_cancelled_at_once)
{
    static const char *const asks[] = {
        "dialog 'method':'confirm','title':'Sure?'",
        "dialog 'method':'unheardOf'",
        "dialog 'method':'select','title':'x','options':['a',7]",
        "dialog 'title':'no method'",
    };

    with("pi");
    for (size_t i = 0; i < 4; i++) {
        o.takes_asked = i > 0;
        o.asked[0] = '\0';
        job_says(&o, give(&o, "c", asks[i]), CANCELLED);
        CHECK(!o.asked[0] == (i > 0));
    }
    CHECK_INT(n_started(&o), 1);
    office_fini(&o);
}

static enum err tell(struct job *j, const struct input_answer *a)
{
    struct delivery_id id = {j->t.id, j->t.turn, j->t.attempt};

    return deliver_answer(o.d, &id, str_of(o.handle), a);
}

TEST(what_pi_asks_is_told_as_it_stands_and_answered)
{
    static const struct {
        const char *asks, *asked, *told;
        struct input_answer answer;
    } cases[] = {
        {"dialog 'method':'select','title':'Which?','options':['a','b c']",
         "select Which?    0 a b c",
         "'value':'b c'}",
         {.has_value = true, .value = STR("b c")}},
        {"dialog 'method':'confirm','title':'Sure?','message':'m',"
         "'timeout':5000",
         "confirm Sure? m   5000",
         "'confirmed':false}",
         {.has_confirmed = true}},
        {"dialog 'method':'input','title':'t','placeholder':'p'",
         "text t  p  0",
         "'value':''}",
         {.has_value = true}},
        {"dialog 'method':'editor','title':'t','prefill':'f'",
         "editor t   f 0",
         "'cancelled':true}",
         {.is_cancelled = true}},
    };

    with("pi");
    o.takes_asked = true;
    for (size_t i = 0; i < 4; i++) {
        struct job *j = give(&o, "c", cases[i].asks);

        o.asked[0] = '\0';
        UNTIL(&o.s, o.asked[0]);
        CHECK(strcmp(o.asked, cases[i].asked) == 0);
        CHECK(strcmp(o.handle, "\"d-1\"") == 0);
        CHECK_INT(tell(j, &cases[i].answer), OK);
        job_await(&o, j);
        if (!strstr(j->text, cases[i].told))
            T_FAIL("%s", j->text);
        CHECK_INT(tell(j, &cases[i].answer), ERR_GONE); /* it has answered */
    }
    office_fini(&o);
}

TEST(an_answer_is_for_the_attempt_that_asked_and_no_other)
{
    struct input_answer yes = {.has_confirmed = true, .confirmed = true};
    struct job *j;

    with("pi");
    o.takes_asked = true;
    j = give(&o, "c", "dialog 'method':'confirm'");
    UNTIL(&o.s, o.asked[0]);
    j->t.attempt++;
    CHECK_INT(tell(j, &yes), ERR_GONE);
    j->t.attempt--;
    cancel(&o, j);
    CHECK_INT(tell(j, &yes), ERR_GONE);
    office_fini(&o);
}

TEST(a_cancel_stops_pi_and_asked_only_it_stays)
{
    struct job *j;

    with("pi");
    j = give(&o, "c", "hang");
    UNTIL(&o.s, j->n_words == 2);
    cancel(&o, j);
    UNTIL(&o.s, n_children(&o) == 0);
    o.defs[0].cancel = CANCEL_ASKS;
    office_set(&o, 1);
    j = give(&o, "c", "hang");
    UNTIL(&o.s, j->n_words == 2);
    cancel(&o, j);
    j = give(&o, "c", "x");
    job_await(&o, j);
    CHECK(strstr(j->text, "/2"));
    CHECK_INT(n_started(&o), 2);
    office_fini(&o);
}

TEST(a_pi_that_dies_is_replaced)
{
    struct job *j;

    with("pi");
    j = give(&o, "c", "die");
    UNTIL(&o.s, j->n_retries);
    CHECK(strstr(j->error, "status 3"));
    office_fini(&o);
}

TEST(a_program_that_is_not_pi_fails_its_task_at_its_first_answer)
{
    static const char *const says[] = {"pi", "prints Welcome",
                                       "prints {\"jsonrpc\":\"2.0\",\"id\":1}"};

    for (int i = 1; i < 3; i++) {
        struct job *j;

        office_init(&o, says[0]);
        o.defs[0] = office_def(&o, 0, "p", says[i]);
        o.defs[0].dialect = DIALECT_PI;
        office_set(&o, 1);
        o.agents[0].creator = STR("ada"); /* who sees details */
        j = give(&o, "c", "x");
        while (!j->n_results) {
            wait_turn(&o.s);
            o.s.time.mono_ms += 100;
        }
        CHECK(strcmp(j->code, "wrong_dialect") == 0 && !j->n_retries);
        CHECK(strstr(j->error, "does not speak \"pi\""));
        office_fini(&o);
    }
}

TEST(a_model_is_part_of_the_command)
{
    static const struct {
        struct str model;
        const char *args;
    } cases[] = {
        {STR(""), ""},
        {STR("anthropic/claude-x"), "--provider anthropic --model claude-x "},
        {STR("p/a/b"), "--provider p --model a/b "},
        {STR("alone"), "--model alone "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct process_def def = {.model = cases[i].model};
        struct str out[DIALECT_ARGS_MAX];
        size_t n = dialect_pi.more_args(&def, out);
        char all[256] = "";

        for (size_t k = 0; k < n; k++)
            snprintf(all + strlen(all), sizeof(all) - strlen(all), "%.*s ",
                     STR_ARG(out[k]));
        CHECK(strcmp(all, cases[i].args) == 0);
    }
}
