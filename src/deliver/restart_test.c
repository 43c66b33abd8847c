/* Agents that are started again: by their process, by the command of their
 * card, or not at all; and those that are paused. */
#include "test/lib/pool_stage.h"

struct told {
    int n;
    enum err err;
    char words[512];
};

static void on_told(void *ctx, enum err e, const struct why *why)
{
    struct told *t = ctx;

    t->n++;
    t->err = e;
    snprintf(t->words, sizeof(t->words), "%s", why->text);
}

/* An agent with a line of its own and that command. */
static struct agent by_command(const struct str *argv, size_t n)
{
    return (struct agent){.name = STR("Rick"),
                          .url = STR("ws-agent://rick"),
                          .kind = AGENT_PLATFORM,
                          .restart = {argv, n}};
}

static enum err begin(struct office *o, const struct agent *a, struct told *t,
                      struct why *why)
{
    *t = (struct told){.n = 0};
    return deliver_restart(o->d, a, on_told, t, why);
}

TEST(a_command_that_ends_well_has_restarted_its_agent)
{
    static const struct str argv[] = {STR("/bin/sh"), STR("-c"),
                                      STR("echo of no interest; exit 0")};
    struct agent a = by_command(argv, 3);
    struct office o;
    struct told t;
    struct why why;

    office_init(&o, "good");
    CHECK(begin(&o, &a, &t, &why) == OK && !t.n);
    UNTIL(&o.s, t.n);
    CHECK(t.n == 1 && t.err == OK);
    office_fini(&o);
}

TEST(a_command_that_fails_says_why)
{
    static const struct str argv[] = {STR("/bin/sh"), STR("-c"),
                                      STR("echo no such unit >&2; exit 5")};
    struct agent a = by_command(argv, 3);
    struct office o;
    struct told t;
    struct why why;

    office_init(&o, "good");
    CHECK(begin(&o, &a, &t, &why) == OK);
    UNTIL(&o.s, t.n);
    CHECK(t.err == ERR_IO && strstr(t.words, "status 5: no such unit"));
    a.restart.list = (const struct str[]){STR("/no/such/program")};
    a.restart.n = 1;
    CHECK(begin(&o, &a, &t, &why) == ERR_NOT_FOUND);
    office_fini(&o);
}

TEST(a_command_has_a_minute_and_no_more)
{
    static const struct str argv[] = {STR("/bin/sleep"), STR("1000")};
    struct agent a = by_command(argv, 2);
    struct office o;
    struct told t;
    struct why why;

    office_init(&o, "good");
    CHECK(begin(&o, &a, &t, &why) == OK);
    later(&o.s, 59 * 1000);
    CHECK(!t.n);
    later(&o.s, 1000);
    UNTIL(&o.s, t.n);
    CHECK(t.err == ERR_IO && strstr(t.words, "longer than 60 s"));
    office_fini(&o);
}

TEST(one_restart_at_a_time_for_an_agent)
{
    static const struct str argv[] = {STR("/bin/sleep"), STR("1000")};
    struct agent a = by_command(argv, 2);
    struct office o;
    struct told t, second;
    struct why why;

    office_init(&o, "good");
    CHECK(begin(&o, &a, &t, &why) == OK);
    a.name = STR("RICK");
    CHECK(begin(&o, &a, &second, &why) == ERR_BUSY);
    CHECK(strstr(why.text, "already"));
    office_fini(&o); /* while it runs: no callback */
    CHECK(!t.n && !second.n);
}

TEST(there_must_be_something_to_restart_it_with)
{
    static const struct str argv[] = {STR("/bin/true")};
    struct agent a = by_command(argv, 1);
    struct office o;
    struct told t;
    struct why why;

    office_init(&o, "good");
    a.restart.n = 0;
    CHECK(begin(&o, &a, &t, &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, "nothing to restart it with"));
    CHECK(deliver_wake(o.d, &a, on_told, &t, &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, "wake.url"));
    office_fini(&o);
}

TEST(a_process_has_new_children_and_what_the_old_ones_had_is_carried_again)
{
    struct office o;
    struct told t;
    struct job *j;
    struct why why;

    office_init(&o, "good");
    o.defs[0].min = 1;
    office_set(&o, 1);
    j = give(&o, "c", "hang");
    UNTIL(&o.s, strchr(j->words, 'w'));
    CHECK(begin(&o, &o.agents[0], &t, &why) == OK);
    UNTIL(&o.s, t.n && j->n_retries);
    CHECK(t.err == OK && !j->n_results && strstr(j->error, "stopped"));
    later(&o.s, GRACE_MS);
    UNTIL(&o.s, n_started(&o) == 2);
    j->t.text = STR("echo back");
    job_offer(&o, j);
    job_says(&o, j, "back");
    o.agents[0].url = STR("process:none");
    CHECK(begin(&o, &o.agents[0], &t, &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, "\"none\""));
    office_fini(&o);
}

TEST(nothing_is_carried_to_who_is_paused)
{
    struct office o;
    struct job *j, *other;
    struct agent_queue_figures f;

    office_init(&o, "good");
    CHECK(deliver_pause(o.d, STR("Anna"), STR("bob"), 7) == OK);
    deliver_figures(o.d, STR("anna"), &f);
    CHECK(f.is_paused && f.paused_ms == 7);
    CHECK_STR(f.paused_by, "bob");
    /* Twice is once, and by who was last. */
    CHECK(deliver_pause(o.d, STR("anna"), STR("eve"), 8) == OK);
    CHECK(deliver_is_paused(o.d, STR("ANNA")));
    deliver_figures(o.d, STR("anna"), &f);
    CHECK(f.is_paused && f.paused_ms == 8);
    CHECK_STR(f.paused_by, "eve");
    j = give(&o, "c", "echo hello");
    other = job_new(&o, 1, "d", "echo other");
    job_offer(&o, other);
    job_says(&o, other, "other");
    CHECK(!j->n_words && deliver_check(o.d));
    deliver_resume(o.d, STR("anna"));
    deliver_resume(o.d, STR("anna"));
    CHECK(!deliver_is_paused(o.d, STR("anna")));
    deliver_figures(o.d, STR("anna"), &f);
    CHECK(!f.is_paused && !f.paused_ms && !f.paused_by.n);
    job_says(&o, j, "hello");
    office_fini(&o);
}

TEST(every_step_of_a_restart_can_fail)
{
    static const struct str argv[] = {STR("/bin/true")};
    struct agent a = by_command(argv, 1);
    long nth = 0;
    bool has_fired;

    do {
        struct office o;
        struct told t = {.n = 0};
        struct why why = {""};
        enum err e;

        office_init(&o, "good");
        fault_arm(++nth);
        e = begin(&o, &a, &t, &why);
        has_fired = fault_fired();
        if (e)
            CHECK(has_fired && why.text[0] && !t.n);
        else
            UNTIL(&o.s, t.n);
        fault_arm(0);
        office_fini(&o);
    } while (has_fired);
    CHECK(nth > 3);
}
