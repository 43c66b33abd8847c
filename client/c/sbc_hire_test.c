/* Delegations, at their limits and with every step broken once; the orders in
 * which the hub may speak are test/lib/sdk_delegation_cases.py's. */
#include "base/fault.h"
#include "test/lib/sbc_stage.h"

struct told {
    int n_accepted, n_results, n_failed;
    char text[64], code[64];
};

static const struct sbc_delegation hello = {
    .agent = "bob", .skill = "talk", .message = "hello"};

static void hears(void *ctx, const struct sbc_news *n)
{
    struct told *t = ctx;

    t->n_accepted += n->kind == SBC_ACCEPTED;
    t->n_results += n->kind == SBC_RESULT;
    t->n_failed += n->kind == SBC_FAILED;
    snprintf(t->text, sizeof(t->text), "%s", n->text);
    snprintf(t->code, sizeof(t->code), "%s", n->code);
}

static void never(void *ctx, struct sbc_task *t)
{
    (void)ctx;
    (void)t;
    T_FAIL("nothing was to run");
}

/* The id of what was heard, a string. */
static const char *id_of(const struct stage *st)
{
    static char id[SBC_ID_BYTES];
    const char *at = strstr(st->heard, "\"id\":\"");

    CHECK(at != NULL);
    snprintf(id, sizeof(id), "%.*s", (int)strcspn(at + 6, "\""), at + 6);
    return id;
}

static void say_accepted(struct stage *st, const char *id)
{
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"status\":"
              "\"accepted\",\"task_id\":\"task_1\"}}",
              id);
}

static void say_result(struct stage *st, const char *id)
{
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"method\":\"delegation.result\","
              "\"params\":{\"original_id\":\"%s\",\"task_id\":\"task_1\","
              "\"status\":\"completed\",\"text\":\"done\",\"metadata\":{}}}",
              id);
}

static void answer_it(struct stage *st)
{
    stage_say(st, "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{}}",
              stage_id(st));
}

static void turn_until(struct stage *st, const int *what)
{
    for (int i = 0; i < STAGE_TURNS && !*what; i++)
        stage_turn(st);
    CHECK(*what > 0);
}

TEST(a_result_before_the_answer_is_a_result)
{
    struct stage *st = stage_agent(never);
    struct told t = {0};

    CHECK_INT(sbc_delegate(st->s, &hello, hears, &t), SBC_OK);
    HEAR(st, "\"agent.send_task\"");
    say_result(st, id_of(st));
    HEAR(st, "\"delegation.ack\"");
    CHECK_INT(t.n_results, 1);
    CHECK(strcmp(t.text, "done") == 0);
    CHECK_INT(sbc_waiting(st->s), 0);
    stage_free(st);
}

TEST(who_books_it_too_late_misses_it)
{
    struct stage *st = stage_agent(never);
    struct told t = {0};

    CHECK_INT(sbc_delegate(st->s, &hello, hears, &t), SBC_OK);
    HEAR(st, "\"agent.send_task\"");
    fault_arm_at("sbc.late", 1);
    say_result(st, id_of(st));
    for (int i = 0; i < 50; i++)
        stage_turn(st);
    CHECK(fault_fired());
    fault_arm(0);
    CHECK_INT(t.n_results, 0);
    stage_free(st);
}

TEST(what_is_no_delegation_is_not_sent)
{
    struct sbc *s = sbc_open("http://box", "t");
    struct sbc_delegation d = hello;
    char *text = calloc(1, SBC_TEXT_MAX + 2);

    memset(text, 'x', SBC_TEXT_MAX + 1);
    CHECK_INT(sbc_delegate(s, NULL, NULL, NULL), SBC_USAGE);
    d.skill = NULL;
    CHECK_INT(sbc_delegate(s, &d, NULL, NULL), SBC_USAGE);
    d = hello;
    d.metadata = "{";
    CHECK_INT(sbc_delegate(s, &d, NULL, NULL), SBC_USAGE);
    d = hello;
    d.message = text;
    CHECK_INT(sbc_delegate(s, &d, NULL, NULL), SBC_LIMIT);
    d.message = text + 1;
    CHECK_INT(sbc_delegate(s, &d, NULL, NULL), SBC_OK);
    for (int i = 1; i < SBC_SENDS_MAX; i++)
        CHECK_INT(sbc_delegate(s, &hello, NULL, NULL), SBC_OK);
    CHECK_INT(sbc_waiting(s), SBC_SENDS_MAX);
    CHECK_INT(sbc_delegate(s, &hello, NULL, NULL), SBC_LIMIT);
    CHECK(!sbc_delegate_to_agent(s, "knit"));
    CHECK(!sbc_delegate_to_agent(s, NULL));
    CHECK(!sbc_tools(s, "no such"));
    free(text);
    sbc_close(s);
}

TEST(its_time_is_the_callers_last_resort)
{
    struct stage *st = stage_agent(never);
    struct sbc_delegation d = hello;
    struct told t = {0};

    d.timeout_ms = -1;
    CHECK_INT(sbc_delegate(st->s, &d, NULL, NULL), SBC_OK);
    CHECK_INT(sbc_delegations_tick(st->s, INT64_MAX), INT32_MAX);
    CHECK_INT(sbc_delegate(st->s, &hello, hears, &t), SBC_OK);
    HEAR(st, "\"agent.send_task\"");
    HEAR(st, "\"agent.send_task\"");
    CHECK(sbc_delegations_tick(st->s, sbc_now_ms()) >
          SBC_DELEGATION_MS - 10000);
    CHECK_INT(sbc_delegations_tick(st->s, sbc_now_ms() + SBC_DELEGATION_MS), 0);
    turn_until(st, &t.n_failed);
    CHECK(strcmp(t.code, "timeout") == 0);
    CHECK_INT(sbc_waiting(st->s), 1);
    stage_free(st);
}

static struct sbc *to_stop;
static void stops(void *ctx, const struct sbc_news *n)
{
    (void)ctx;
    if (n->kind == SBC_ACCEPTED)
        sbc_stop(to_stop);
}

TEST(who_is_stopped_waits_no_more)
{
    struct stage *st = stage_agent(never);

    to_stop = st->s;
    CHECK_INT(sbc_delegate(st->s, &hello, stops, NULL), SBC_OK);
    HEAR(st, "\"agent.send_task\"");
    say_accepted(st, id_of(st));
    CHECK(!sbc_delegate_wait(st->s, &hello, NULL));
    stage_free(st);
}

TEST(only_so_many_ids_are_remembered)
{
    struct stage *st = stage_agent(never);

    for (int i = 0; i < SBC_IDS + 10; i++) {
        char id[32];

        snprintf(id, sizeof(id), "other-%d", i);
        say_result(st, id);
        stage_turn(st);
    }
    for (int i = 0; i < STAGE_TURNS && st->s->warned.next < SBC_IDS + 10; i++)
        stage_turn(st);
    CHECK_INT(st->s->warned.next, SBC_IDS + 10);
    CHECK(list_is_empty(&st->s->had));
    stage_free(st);
}

/* What the hub does: it answers, and tells the result on each connection until
 * it hears that it was had. */
static bool carried(struct stage *st, char id[SBC_ID_BYTES])
{
    bool is_had = false;

    for (int i = 0; i < 20 && !is_had; i++) {
        if (!stage_join(st))
            continue;
        if (id[0])
            say_result(st, id);
        while (!is_had && stage_hear(st) == 1) {
            is_had = strstr(st->heard, "\"delegation.ack\"") != NULL;
            if (!strstr(st->heard, "\"agent.send_task\""))
                continue;
            /* The same each time, or it would be another task. */
            CHECK(!id[0] || strcmp(id, id_of(st)) == 0);
            snprintf(id, SBC_ID_BYTES, "%s", id_of(st));
            say_accepted(st, id);
            say_result(st, id);
        }
    }
    if (is_had)
        answer_it(st);
    return is_had;
}

/* `where` is NULL for every step, or the name of some. */
static void check_faults_at(const char *where)
{
    long nth = 0;

    do {
        struct stage *st = stage_new();
        struct told t = {0};
        char id[SBC_ID_BYTES] = "";

        fault_arm_at(where, ++nth);
        st->s = sbc_open(stage_url(st), "secret");
        if (st->s &&
            sbc_register(st->s, "{\"name\":\"a\"}", never, st) == SBC_OK &&
            sbc_delegate(st->s, &hello, hears, &t) == SBC_OK) {
            if (!carried(st, id))
                T_FAIL("lost after %s", fault_name());
            CHECK_INT(t.n_results, 1);
            CHECK_INT(t.n_failed, 0);
        } else {
            CHECK(fault_fired());
            CHECK(!st->s || sbc_waiting(st->s) == 0);
        }
        if (!fault_fired())
            fault_arm(0);
        stage_free(st);
    } while (fault_fired());
    CHECK(nth > 20);
}

TEST(a_delegation_survives_every_fault)
{
    check_faults_at(NULL);
}

TEST(a_delegation_survives_every_failed_allocation)
{
    check_faults_at("mem");
}
