/* Children of pools: how many there are, whose they are, and until when. */
#include "test/lib/pool_stage.h"

TEST(a_task_is_carried_to_a_child_and_back)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    CHECK_INT(n_children(&o), 0); /* min is none */
    j = give(&o, "c", "echo hello");
    job_says(&o, j, "hello");
    CHECK(strcmp(j->words, "wcr") == 0 && strcmp(j->heard, "hello") == 0);
    job_says(&o, give(&o, "c", "chunks"), "one two");
    CHECK_INT(n_started(&o), 1);
    office_fini(&o);
}

TEST(a_child_may_be_ready_in_any_words)
{
    static const char *const hows[] = {"plain", "eager", "many", "noisy"};

    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        struct office o;

        office_init(&o, hows[i]);
        job_says(&o, give(&o, "c", "echo x"), "x");
        CHECK_INT(n_started(&o), 1);
        office_fini(&o);
    }
}

TEST(what_a_child_says_of_its_failure_is_final)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "fail");
    job_await(&o, j);
    CHECK(j->status == TASK_FAILED && strcmp(j->code, "no_luck") == 0);
    CHECK(strcmp(j->error, "not today") == 0 && !j->n_retries);
    office_fini(&o);
}

TEST(a_process_must_be_configured)
{
    struct agent a = {.name = STR("x"), .url = STR("process:none")};
    struct office o;
    struct why why;

    office_init(&o, "good");
    CHECK(deliver_reaches(o.d, &a, &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, "\"none\""));
    a.url = STR("process:P"); /* whatever the case */
    CHECK(deliver_reaches(o.d, &a, &why) == OK);
    office_fini(&o);
}

TEST(as_many_as_min_are_kept_ready)
{
    struct office o;
    struct job *j[2];

    office_init(&o, "good");
    o.defs[0].min = 2;
    o.defs[0].cancel = CANCEL_ASKS;
    office_set(&o, 1);
    UNTIL(&o.s, n_children(&o) == 2);
    for (int i = 0; i < 2; i++)
        j[i] = give(&o, "", "hang");
    UNTIL(&o.s, j[0]->n_words && j[1]->n_words); /* so both are ready */
    for (int i = 0; i < 2; i++)
        cancel(&o, j[i]);
    job_says(&o, give(&o, "c", "echo x"), "x");
    CHECK_INT(n_started(&o), 2);
    later(&o.s, 60000); /* those of min do not go when they are idle */
    CHECK_INT(n_children(&o), 2);
    office_fini(&o);
}

TEST(there_are_never_more_than_max_and_those_beyond_min_go_when_idle)
{
    struct office o;
    struct job *j[6];

    office_init(&o, "good");
    for (int i = 0; i < 6; i++)
        j[i] = give(&o, "", "hang");
    UNTIL(&o.s, j[0]->n_words && j[1]->n_words);
    CHECK_INT(n_children(&o), 2);
    for (int i = 2; i < 6; i++)
        cancel(&o, j[i]);
    cancel(&o, j[0]);
    cancel(&o, j[1]);
    UNTIL(&o.s, n_children(&o) == 0);
    job_says(&o, give(&o, "", "echo x"), "x");
    CHECK_INT(n_children(&o), 1);
    later(&o.s, 59999);
    CHECK_INT(n_children(&o), 1);
    later(&o.s, 1);
    UNTIL(&o.s, n_children(&o) == 0);
    office_fini(&o);
}

TEST(the_more_urgent_goes_first)
{
    struct office o;
    struct job *first, *low, *urgent;

    office_init(&o, "good");
    o.defs[0].max = 1;
    o.defs[0].cancel = CANCEL_ASKS;
    office_set(&o, 1);
    first = give(&o, "", "hang");
    UNTIL(&o.s, first->n_words);
    low = give(&o, "", "count");
    urgent = job_new(&o, 0, "", "count");
    urgent->t.priority = PRIORITY_URGENT;
    job_offer(&o, urgent);
    cancel(&o, first);
    job_says(&o, urgent, "2");
    job_says(&o, low, "3");
    office_fini(&o);
}

/* Waiting tasks are not scanned while no child is free, however many wait. */
TEST(a_look_costs_what_can_be_had_and_not_what_waits)
{
    struct office o;
    struct job *busy, *j[50];
    struct pool *p;
    uint64_t before;

    office_init(&o, "good");
    o.defs[0].max = 1;
    o.defs[0].cancel = CANCEL_ASKS;
    office_set(&o, 1);
    p = pool_find(o.d->pools, STR("p"));
    busy = give(&o, "", "hang");
    UNTIL(&o.s, busy->n_words == 2);
    CHECK_INT(p->n_free, 0);
    before = p->n_looked_at;
    for (int i = 0; i < 50; i++) {
        j[i] = give(&o, "", "echo x");
        turn(&o.s, 1); /* a look each */
    }
    CHECK(p->n_waiting == 50 && p->n_looked_at == before);
    cancel(&o, busy);
    for (int i = 0; i < 50; i++)
        job_says(&o, j[i], "x");
    CHECK_INT(p->n_looked_at - before, 50);
    CHECK(p->n_free == 1 && p->n_waiting == 0);
    office_fini(&o);
}

/* Conversations. */

TEST(a_conversation_keeps_its_child)
{
    struct office o;
    struct job *a, *b, *other;

    office_init(&o, "good");
    b = give(&o, "two", "hang");
    UNTIL(&o.s, b->n_words);
    a = give(&o, "one", "pid");
    job_await(&o, a);
    other =
        give(&o, "two", "pid"); /* waits for b's child, though a's is free */
    turn(&o.s, 5);
    CHECK_INT(other->n_results, 0);
    job_says(&o, give(&o, "one", "pid"), a->text);
    cancel(&o, b); /* that child is stopped */
    job_await(&o, other);
    CHECK(strcmp(a->text, other->text) == 0); /* and the other is free */
    office_fini(&o);
}

TEST(the_same_conversation_id_of_another_user_is_another_conversation)
{
    struct office o;
    struct job *mine, *j;

    office_init(&o, "pi");
    mine = give(&o, "c", "x");
    job_await(&o, mine);
    j = job_new(&o, 0, "c", "x");
    j->t.root_user = STR("eve");
    job_offer(&o, j);
    job_await(&o, j);
    CHECK(strcmp(mine->text, j->text) != 0);
    office_fini(&o);
}

TEST(a_child_is_one_agents_alone)
{
    struct office o;
    struct job *a, *b, *c;

    office_init(&o, "good");
    o.defs[0].max = 1;
    office_set(&o, 1);
    a = give(&o, "c", "pid");
    job_await(&o, a);
    b = job_new(&o, 1, "c", "pid");
    job_offer(&o, b);
    job_await(&o, b); /* the first one had to make room */
    CHECK(strcmp(a->text, b->text) != 0);
    c = give(&o, "c", "count");
    job_says(&o, c, "1");
    CHECK_INT(n_started(&o), 3);
    office_fini(&o);
}

TEST(of_conversations_only_so_many_are_remembered)
{
    struct pools all = {.deliver = NULL};
    struct pool_worker h = {.pool = NULL};
    struct pool p = {.all = &all};
    const uint64_t seed[2] = {1, 2};
    char key[32];

    list_init(&h.affinities);
    list_init(&p.affinities_by_use);
    map_init(&p.affinities, AFFINITIES_MAX, seed);
    h.pool = &p;
    for (int i = 0; i < AFFINITIES_MAX + 1; i++) {
        snprintf(key, sizeof(key), "%d", i);
        affinity_put(&p, str_of(key), &h);
        affinity_put(&p, STR("0"), &h); /* used again and again */
    }
    CHECK_INT(p.affinities.n, AFFINITIES_MAX);
    CHECK(affinity_find(&p, STR("0")) == &h);
    CHECK(affinity_find(&p, STR("1")) == NULL);
    CHECK(affinity_find(&p, STR("2")) == &h);
    affinities_drop(&h);
    CHECK_INT(p.affinities.n, 0);
    affinities_free(&p);
}

TEST(who_takes_several_at_once_gets_them)
{
    struct office o;
    struct job *j[5];

    office_init(&o, "many");
    o.defs[0].max = 1;
    office_set(&o, 1);
    for (int i = 0; i < 5; i++)
        j[i] = give(&o, "c", "hang");
    UNTIL(&o.s, j[3]->n_words);
    CHECK_INT(n_started(&o), 1);
    CHECK_INT(j[4]->n_words, 0);
    cancel(&o, j[1]); /* it is asked, the others go on */
    UNTIL(&o.s, j[4]->n_words);
    CHECK_INT(n_started(&o), 1);
    CHECK(j[0]->n_retries + j[2]->n_retries + j[3]->n_retries == 0);
    office_fini(&o);
}

/* Reload. */

TEST(a_reload_that_changes_nothing_leaves_the_children)
{
    struct office o;
    struct job *a;

    office_init(&o, "good");
    a = give(&o, "c", "pid");
    job_await(&o, a);
    office_set(&o, 1);
    job_says(&o, give(&o, "c", "pid"), a->text);
    office_fini(&o);
}

TEST(a_changed_definition_lets_the_old_ones_finish)
{
    struct office o;
    struct job *idle, *busy, *waits, *fresh;

    office_init(&o, "good");
    o.defs[0].cancel = CANCEL_ASKS;
    office_set(&o, 1);
    busy = give(&o, "two", "hang");
    UNTIL(&o.s, busy->n_words);
    idle = give(&o, "one", "pid");
    job_await(&o, idle);
    waits = give(&o, "two", "count");
    turn(&o.s, 3);
    o.defs[0].idle_ms = 1000;
    office_set(&o, 1);
    UNTIL(&o.s, waits->n_retries); /* innocent */
    CHECK_INT(busy->n_retries, 0);
    UNTIL(&o.s, n_children(&o) == 1); /* the idle one goes */
    fresh = give(&o, "two", "count");
    job_says(&o, fresh, "1");
    CHECK_INT(n_children(&o), 2);
    cancel(&o, busy); /* it says that it has stopped, and goes */
    UNTIL(&o.s, n_children(&o) == 1);
    office_set(&o, 0);
    UNTIL(&o.s, n_children(&o) == 0);
    office_fini(&o);
}

/* Calls of a child. */

TEST(a_child_asks_as_its_agent)
{
    struct office o;

    office_init(&o, "good");
    job_says(&o, give(&o, "c", "ask"), "answered");
    CHECK_INT(o.n_calls, 1);
    CHECK(strcmp(o.call, "anna agent.search") == 0);
    office_fini(&o);
}

TEST(a_child_hears_that_its_result_is_kept)
{
    struct office o;
    struct job *j;

    office_init(&o, "good");
    j = give(&o, "c", "receipt");
    job_says(&o, j, "kept?");
    CHECK(j->receipt);
    deliver_recorded(o.d, j->receipt, OK);
    turn(&o.s, 3);
    job_says(&o, give(&o, "c", "count"), "2");
    office_fini(&o);
}

TEST(a_child_gets_the_environment_and_the_folder_it_is_given)
{
    static const struct str command[] = {
        STR("sh"), STR("-c"),
        STR("read hello; echo '{\"jsonrpc\":\"2.0\",\"method\":\"x\"}'; read "
            "t; "
            "id=${t#*task_id\\\":\\\"}; id=${id%%\\\"*}; printf "
            "'{\"jsonrpc\":\"2.0\",\"method\":\"task.result\",\"params\":{"
            "\"task_id\":\"%s\",\"text\":\"%s %s %s %s\"}}\\n' $id \"$PWD\" "
            "\"$A\" \"${HOME-none}\" $(ulimit -n)")};
    static const struct str env[] = {STR("PATH=/usr/bin:/bin"), STR("A=b c")};
    struct office o;

    office_init(&o, "good");
    o.defs[0].command = (struct strs){command, 3};
    o.defs[0].whole_env = (struct strs){env, 2};
    o.defs[0].workspace = STR("/usr");
    o.defs[0].files = 77;
    office_set(&o, 1);
    job_says(&o, give(&o, "c", "x"), "/usr b c none 77");
    office_fini(&o);
}
