/* Input requests: the streams that show them, how long they wait, their ends
 * and their limits. */
#include "test/lib/task_stage.h"

static void on_news(struct task_listener *l)
{
    (void)l;
}

static struct task_listener *ear_new(const struct id *id, bool hears,
                                     int64_t from)
{
    struct task_listener *l = calloc(1, sizeof(*l));

    l->on_news = on_news;
    l->hears_inputs = hears;
    CHECK_INT(task_listen(stage.tasks, str_of(id->text), l, from), OK);
    CHECK(tasks_check(stage.tasks));
    return l;
}

static void ear_free(struct task_listener *l)
{
    task_unlisten(stage.tasks, l);
    CHECK(tasks_check(stage.tasks));
    free(l);
}

/* "input|over|gap|result|", and nothing of a status. */
static struct str heard(struct task_listener *l)
{
    static char all[1024];
    static const char *const words[] = {[TASK_EVENT_INPUT] = "input|",
                                        [TASK_EVENT_INPUT_OVER] = "over|",
                                        [TASK_EVENT_GAP] = "gap|",
                                        [TASK_EVENT_RESULT] = "result|"};
    struct task_event ev;
    size_t n = 0;

    all[0] = '\0';
    while (task_next(stage.tasks, l, &ev))
        if (ev.kind != TASK_EVENT_STATUS)
            n += (size_t)snprintf(all + n, sizeof(all) - n, "%s",
                                  words[ev.kind]);
    return (struct str){all, n};
}

static struct id working(const char *from)
{
    struct id id = accepted(from, "", "x");

    move(&id, TASK_DISPATCHED);
    move(&id, TASK_WORKING);
    return id;
}

/* A delegated task. */
static struct id below(const struct id *root)
{
    struct msg *m = message("front", "", "x");
    struct id id;

    m->delegation.parent_id = m->delegation.root_id = str_of(root->text);
    CHECK_INT(accept_turn(m, NULL), OK);
    id = m->task.id;
    msg_free(m);
    move(&id, TASK_DISPATCHED);
    return id;
}

static enum err asks(const struct id *id, const struct input_ask *q,
                     const struct input **out)
{
    enum err e = task_ask(stage.tasks, str_of(id->text), 1, 1, q, out);

    CHECK(tasks_check(stage.tasks));
    return e;
}

static const struct input *sure(const struct id *id, const char *handle)
{
    const struct input *in = NULL;

    CHECK_INT(asks(id,
                   &(struct input_ask){.kind = INPUT_CONFIRM,
                                       .title = STR("Sure?"),
                                       .handle = str_of(handle)},
                   &in),
              OK);
    return in;
}

static size_t n_open(const struct id *id)
{
    const struct input *list[TASK_INPUTS_MAX];

    return task_inputs(stage.tasks, str_of(id->text), list);
}

TEST(where_nobody_listens_it_waits_as_long_as_it_may)
{
    struct id id;

    stage_open();
    id = working("anna");
    sure(&id, "a");
    pass_ms(29999);
    CHECK_INT(n_open(&id), 1);
    pass_ms(1);
    CHECK_INT(n_open(&id), 0);
    CHECK(strcmp(stage.inputs, "unheard:a ") == 0);
    stage_close();
}

/* The control is above. A listener for the result alone gets no request. */
TEST(as_long_as_somebody_listens_it_stays_and_counts_from_when_they_left)
{
    struct task_listener *deaf, *l;
    struct id id;

    stage_open();
    id = working("anna");
    sure(&id, "a");
    deaf = ear_new(&id, false, 0);
    pass_ms(29999);
    l = ear_new(&id, true, 0);
    pass_ms(500000);
    CHECK_INT(n_open(&id), 1);
    ear_free(l);
    pass_ms(29999);
    CHECK_INT(n_open(&id), 1);
    pass_ms(1);
    CHECK_INT(n_open(&id), 0);
    CHECK(strcmp(stage.inputs, "unheard:a ") == 0);
    ear_free(deaf);
    stage_close();
}

TEST(an_agent_that_waits_no_longer_is_told_apart)
{
    struct task_listener *l;
    const struct input *in;
    struct id id;

    stage_open();
    id = working("anna");
    l = ear_new(&id, true, 0);
    CHECK_INT(asks(&id,
                   &(struct input_ask){.kind = INPUT_TEXT,
                                       .timeout_ms = 5000,
                                       .handle = STR("a")},
                   &in),
              OK);
    CHECK_INT(in->until_ms, in->at_ms + 5000);
    /* Longer than the task has is as long as it has. */
    CHECK_INT(asks(&id,
                   &(struct input_ask){.kind = INPUT_TEXT,
                                       .timeout_ms = 600001,
                                       .handle = STR("b")},
                   &in),
              OK);
    CHECK_INT(in->until_ms, found(&id)->deadline_ms);
    pass_ms(4999);
    CHECK_INT(n_open(&id), 2);
    pass_ms(1);
    CHECK_INT(n_open(&id), 1);
    CHECK(strcmp(stage.inputs, "expired:a ") == 0);
    CHECK_STR(heard(l), "input|input|over|");
    pass_ms(600000);
    CHECK_INT(stage.n_due, 1); /* the time of the task went on */
    ear_free(l);
    stage_close();
}

TEST(what_is_answered_is_known_to_be_for_a_while)
{
    const struct input *in;
    char first[ID_BYTES];
    struct id id;

    stage_open();
    id = working("anna");
    for (int i = 0; i < TASK_INPUTS_KEPT + 1; i++) {
        in = sure(&id, "a");
        if (i == 0)
            snprintf(first, sizeof(first), "%s", in->id.text);
        task_input_end(stage.tasks, in, INPUT_ANSWERED, STR("anna"));
        CHECK(tasks_check(stage.tasks));
        CHECK(strcmp(in->by, "anna") == 0 && !in->ask.title.n);
        in = task_input_find(stage.tasks, str_of(id.text), str_of(first));
        CHECK(!in == (i == TASK_INPUTS_KEPT));
        CHECK(!in || in->outcome == INPUT_ANSWERED);
    }
    CHECK(!task_input_find(stage.tasks, str_of(id.text), STR("input_")));
    stage_close();
}

TEST(whatever_ends_the_attempt_withdraws_what_it_asked)
{
    struct task_listener *l;
    struct id id;

    stage_open();
    id = working("anna");
    l = ear_new(&id, true, 0);
    sure(&id, "a");
    task_retry(stage.tasks, str_of(id.text), 10);
    CHECK(tasks_check(stage.tasks));
    CHECK(strcmp(stage.inputs, "withdrawn:a ") == 0);
    CHECK_STR(heard(l), "input|over|");
    ear_free(l);

    id = working("bert");
    l = ear_new(&id, true, 0);
    sure(&id, "b");
    CHECK_INT(ended(&id, TASK_CANCELLED, ""), OK);
    CHECK(strcmp(stage.inputs, "withdrawn:a withdrawn:b ") == 0);
    CHECK_STR(heard(l), "input|over|result|"); /* the result is the last */
    ear_free(l);
    stage_close();
}

TEST(only_the_attempt_that_goes_on_may_ask)
{
    struct input_ask q = {.kind = INPUT_CONFIRM};
    const struct input *in;
    struct id id, none = {"task_00000000000000000000000000"};

    stage_open();
    id = accepted("anna", "", "x");
    CHECK_INT(asks(&id, &q, &in), ERR_NOT_FOUND); /* not dispatched yet */
    move(&id, TASK_DISPATCHED);
    CHECK_INT(task_ask(stage.tasks, str_of(id.text), 1, 2, &q, &in),
              ERR_NOT_FOUND);
    CHECK_INT(task_ask(stage.tasks, str_of(id.text), 2, 1, &q, &in),
              ERR_NOT_FOUND);
    CHECK_INT(asks(&none, &q, &in), ERR_NOT_FOUND);
    CHECK_INT(asks(&id, &q, &in), OK);
    CHECK_INT(ended(&id, TASK_COMPLETED, "done"), OK);
    CHECK_INT(asks(&id, &q, &in), ERR_NOT_FOUND);
    stage_close();
}

TEST(the_root_and_the_asker_are_told_and_either_end_withdraws_it)
{
    struct task_listener *l, *child;
    const struct input *in;
    struct id root, a, b;

    stage_open();
    root = working("anna");
    a = below(&root);
    b = below(&root);
    l = ear_new(&root, true, 0);
    child = ear_new(&a, true, 0);
    in = sure(&a, "a");
    sure(&b, "b");
    CHECK_STR(heard(l), "input|input|");
    CHECK_STR(heard(child), "input|"); /* its own alone */
    CHECK_INT(input_number(in, &root), in->number);
    CHECK_INT(input_number(in, &a), in->own_number);
    CHECK_INT(input_number(in, &b), 0);
    CHECK(n_open(&root) == 2 && n_open(&a) == 1 && n_open(&b) == 1);
    CHECK(task_input_find(stage.tasks, str_of(a.text), str_of(in->id.text)));
    CHECK(!task_input_find(stage.tasks, str_of(b.text), str_of(in->id.text)));
    ear_free(l);
    pass_ms(30000);
    CHECK(strcmp(stage.inputs, "unheard:b ") == 0); /* who hears a counts */
    ear_free(child);
    pass_ms(29999);
    CHECK_INT(n_open(&a), 1);
    pass_ms(1);
    CHECK(strcmp(stage.inputs, "unheard:b unheard:a ") == 0);
    child = ear_new(&a, true, 1);
    CHECK_STR(heard(child), "input|over|");

    stage.inputs[0] = '\0';
    sure(&a, "c");
    sure(&b, "d");
    CHECK_INT(ended(&a, TASK_FAILED, ""), OK);
    CHECK(strcmp(stage.inputs, "withdrawn:c ") == 0 && n_open(&root) == 1);
    CHECK_STR(heard(child), "input|over|result|");
    CHECK_INT(ended(&root, TASK_COMPLETED, "done"), OK);
    CHECK(strcmp(stage.inputs, "withdrawn:c withdrawn:d ") == 0);
    CHECK_INT(asks(&b, &(struct input_ask){.kind = INPUT_CONFIRM}, &in),
              ERR_NOT_FOUND); /* the root is over */
    ear_free(child);
    stage_close();
}

TEST(so_many_are_open_for_one_root_and_no_more)
{
    struct input_ask q = {.kind = INPUT_CONFIRM};
    const struct input *in;
    struct id root, child, other;

    stage_open();
    root = working("anna");
    child = below(&root);
    other = working("bert");
    for (int i = 0; i < TASK_INPUTS_MAX; i++)
        CHECK_INT(asks(i % 2 ? &root : &child, &q, &in), OK);
    CHECK_INT(asks(&root, &q, &in), ERR_LIMIT);
    CHECK_INT(asks(&child, &q, &in), ERR_LIMIT);
    CHECK_INT(asks(&other, &q, &in), OK);
    task_input_end(
        stage.tasks,
        task_input_find(stage.tasks, str_of(other.text), str_of(in->id.text)),
        INPUT_ANSWERED, STR("bert"));
    CHECK_INT(asks(&root, &q, &in), ERR_LIMIT);
    CHECK_INT(ended(&child, TASK_COMPLETED, "done"), OK);
    CHECK_INT(asks(&root, &q, &in), OK);
    stage_close();
}

TEST(an_attempt_asks_so_often_and_the_next_one_anew)
{
    struct input_ask q = {.kind = INPUT_CONFIRM};
    const struct input *in;
    struct id id;

    stage_open();
    id = working("anna");
    for (int i = 0; i < TASK_ASKS_MAX; i++) {
        CHECK_INT(asks(&id, &q, &in), OK);
        CHECK_INT(in->nth, i + 1);
        task_input_end(stage.tasks, in, INPUT_ANSWERED, STR("anna"));
    }
    CHECK_INT(asks(&id, &q, &in), ERR_LIMIT);
    CHECK_INT(n_open(&id), 0);
    task_retry(stage.tasks, str_of(id.text), 10);
    pass_ms(10);
    turn(); /* the attempt is written before it is made */
    move(&id, TASK_DISPATCHED);
    CHECK_INT(task_ask(stage.tasks, str_of(id.text), 1, 2, &q, &in), OK);
    CHECK_INT(in->nth, 1);
    CHECK(tasks_check(stage.tasks));
    stage_close();
}

/* As large as may be, in a ring that it fills: a gap, and it is open. */
TEST(what_has_left_the_ring_is_open_all_the_same)
{
    static char words[TASK_RING_BYTES];
    struct task_listener *l;
    struct id id;

    memset(words, 'w', sizeof(words));
    stage_open();
    id = working("anna");
    l = ear_new(&id, true, 0);
    sure(&id, "a");
    CHECK(task_chunk(stage.tasks, str_of(id.text), 1, 1,
                     (struct str){words, sizeof(words)}));
    CHECK(str_starts(heard(l), STR("gap|")));
    CHECK_INT(n_open(&id), 1);
    ear_free(l);
    stage_close();
}

/* Whichever of the two goes first. */
TEST(the_end_of_everything_forgets_who_asks_and_who_listens)
{
    struct task_listener *up, *down;
    struct id root, child;

    stage_open();
    root = working("anna");
    child = below(&root);
    up = ear_new(&root, true, 0);
    down = ear_new(&child, true, 0);
    sure(&child, "a");
    sure(&root, "b");
    stage_close();
    CHECK(!up->entry && !down->entry);
    free(up);
    free(down);
}

TEST(a_start_forgets_what_was_asked)
{
    struct id id;

    stage_open();
    id = working("anna");
    sure(&id, "a");
    stage_restart();
    CHECK(found(&id) && n_open(&id) == 0);
    stage_close();
}
