/* Events and those who listen. */
#include "test/lib/task_stage.h"

struct ear {
    struct task_listener l;
    int n_news;
    bool reads; /* everything, when there is news */
    bool leaves;
    struct ear *takes_along; /* another listener, removed meanwhile */
    struct task_event got[512];
    char text[512][32];
    int n_got;
};

static void ear_read(struct ear *e)
{
    struct task_event ev;

    while (task_next(stage.tasks, &e->l, &ev)) {
        CHECK(e->n_got < 512);
        snprintf(e->text[e->n_got], sizeof(e->text[0]), "%.*s",
                 STR_ARG(ev.text));
        e->got[e->n_got++] = ev;
    }
}

static void on_news(struct task_listener *l)
{
    struct ear *e = LIST_OF(l, struct ear, l);

    e->n_news++;
    if (e->reads)
        ear_read(e);
    if (e->takes_along)
        task_unlisten(stage.tasks, &e->takes_along->l);
    if (e->leaves)
        task_unlisten(stage.tasks, &e->l);
}

static struct ear *ear_new(const struct id *id, int64_t from)
{
    struct ear *e = calloc(1, sizeof(*e));

    e->l.on_news = on_news;
    e->reads = true;
    CHECK_INT(task_listen(stage.tasks, str_of(id->text), &e->l, from), OK);
    CHECK(tasks_check(stage.tasks));
    return e;
}

static void ear_free(struct ear *e)
{
    task_unlisten(stage.tasks, &e->l);
    CHECK(tasks_check(stage.tasks));
    free(e);
}

static void say(const struct id *id, const char *words)
{
    const struct task *t = found(id);

    task_chunk(stage.tasks, str_of(id->text), t->turn, t->attempt,
               str_of(words));
    CHECK(tasks_check(stage.tasks));
}

TEST(whoever_listens_hears_everything_in_order)
{
    static const enum task_event_kind kinds[] = {
        TASK_EVENT_STATUS, TASK_EVENT_STATUS, TASK_EVENT_STATUS,
        TASK_EVENT_CHUNK,  TASK_EVENT_CHUNK,  TASK_EVENT_RESULT,
    };
    struct ear *e;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    e = ear_new(&id, 1);
    turn();
    CHECK(e->n_news == 1 && e->n_got == 1);
    CHECK_INT(e->got[0].status, TASK_QUEUED);
    move(&id, TASK_DISPATCHED);
    move(&id, TASK_WORKING);
    say(&id, "hel");
    CHECK_INT(e->n_news, 1); /* at the end of the turn */
    turn();
    CHECK(e->n_news == 2 && e->n_got == 4);
    say(&id, "lo");
    CHECK_INT(ended(&id, TASK_COMPLETED, "hello"), OK);
    turn();
    CHECK_INT(e->n_got, 6);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(e->got[i].kind, kinds[i]);
        CHECK_INT(e->got[i].number, i + 1);
        CHECK_INT(e->got[i].turn, 1);
    }
    CHECK_STR(str_of(e->text[3]), "hel");
    CHECK_STR(str_of(e->text[4]), "lo");
    CHECK_INT(e->got[5].status, TASK_COMPLETED);
    CHECK_STR(task_heard(&e->l)->result.text, "hello");
    CHECK(found(&id)); /* while it has a listener */
    turn();
    CHECK(found(&id) && e->n_news == 3);
    ear_free(e);
    turn();
    CHECK(!found(&id));
    CHECK_INT(tasks_stats(stage.tasks).listeners, 0);
    CHECK_INT(tasks_stats(stage.tasks).ring_bytes, 0);
    stage_close();
}

TEST(nobody_hears_of_a_task_that_is_not_there)
{
    struct task_listener l = {.on_news = on_news};
    struct task_event ev;

    stage_open();
    CHECK_INT(task_listen(stage.tasks, STR("task_x"), &l, 1), ERR_NOT_FOUND);
    CHECK(!task_heard(&l) && !task_next(stage.tasks, &l, &ev));
    task_unlisten(stage.tasks, &l);
    stage_close();
}

TEST(words_of_another_attempt_or_turn_are_ignored)
{
    struct ear *e;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    task_chunk(stage.tasks, str_of(id.text), 1, 0, STR("queued"));
    turn();
    move(&id, TASK_DISPATCHED);
    e = ear_new(&id, 0);
    task_chunk(stage.tasks, str_of(id.text), 1, 0, STR("too old"));
    task_chunk(stage.tasks, str_of(id.text), 1, 2, STR("too new"));
    task_chunk(stage.tasks, str_of(id.text), 2, 1, STR("another turn"));
    task_chunk(stage.tasks, str_of(id.text), 1, 1, STR(""));
    task_chunk(stage.tasks, STR("task_none"), 1, 1, STR("lost"));
    turn();
    CHECK_INT(e->n_news, 0);
    task_chunk(stage.tasks, str_of(id.text), 1, 1, STR("yes"));
    turn();
    CHECK(e->n_got == 1 && strcmp(e->text[0], "yes") == 0);
    ear_free(e);
    stage_close();
}

TEST(one_can_begin_anywhere)
{
    static const struct {
        int64_t from;
        int n_got;
        int64_t first;
    } rows[] = {{1, 4, 1}, {2, 3, 2}, {3, 2, 3}, {4, 1, 4},
                {0, 0, 0}, {5, 0, 0}, {99, 0, 0}};
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    move(&id, TASK_DISPATCHED);
    say(&id, "a");
    say(&id, "b");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct ear *e = ear_new(&id, rows[i].from);

        turn();
        CHECK_INT(e->n_got, rows[i].n_got);
        if (e->n_got)
            CHECK_INT(e->got[0].number, rows[i].first);
        say(&id, ""); /* nothing */
        ear_free(e);
    }
    stage_close();
}

TEST(whoever_comes_after_the_end_still_gets_the_result)
{
    static const int64_t from[] = {0, 1, 2, 3, 4, 99};
    struct ear *stays, *e;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    stays = ear_new(&id, 1);
    turn();
    move(&id, TASK_DISPATCHED);
    CHECK_INT(ended(&id, TASK_FAILED, ""), OK);
    for (int i = 0; i < 6; i++) {
        e = ear_new(&id, from[i]);
        turn();
        CHECK(e->n_got >= 1);
        CHECK_INT(e->got[e->n_got - 1].kind, TASK_EVENT_RESULT);
        CHECK_INT(e->got[e->n_got - 1].number, 3);
        ear_free(e);
    }
    ear_free(stays);
    /* It is freed at the end of the turn, unless a listener comes before. */
    e = ear_new(&id, 0);
    turn();
    CHECK(found(&id) && e->n_got == 1);
    ear_free(e);
    turn();
    CHECK(!found(&id));
    stage_close();
}

/* Fill the ring of a task that is going on. Returns the bytes said. */
static size_t say_much(const struct id *id, size_t n_chunks, size_t bytes)
{
    const struct task *t = found(id);
    char *words = malloc(bytes);

    memset(words, 'w', bytes);
    for (size_t i = 0; i < n_chunks; i++)
        task_chunk(stage.tasks, str_of(id->text), t->turn, t->attempt,
                   (struct str){words, bytes});
    free(words);
    CHECK(tasks_check(stage.tasks));
    return n_chunks * bytes;
}

TEST(whoever_falls_behind_gets_one_gap_and_goes_on)
{
    struct task_event ev;
    struct ear *e, *late;
    int64_t last;
    struct id id;
    size_t kept = 0;

    stage_open();
    id = accepted("anna", "c", "x");
    move(&id, TASK_DISPATCHED);
    e = ear_new(&id, 1);
    e->reads = false;
    turn();
    CHECK(task_next(stage.tasks, &e->l, &ev) && ev.number == 1);
    say_much(&id, 500, 1000);
    CHECK(tasks_stats(stage.tasks).ring_bytes <= TASK_RING_BYTES);
    CHECK(tasks_stats(stage.tasks).ring_bytes > TASK_RING_BYTES * 3 / 4);
    CHECK(task_next(stage.tasks, &e->l, &ev) && ev.kind == TASK_EVENT_GAP);
    last = ev.number;
    CHECK(last > 1 && last < 502);
    while (task_next(stage.tasks, &e->l, &ev)) {
        CHECK_INT(ev.kind, TASK_EVENT_CHUNK);
        CHECK_INT(ev.number, ++last);
        kept += ev.text.n;
    }
    CHECK_INT(last, 502);
    CHECK(kept > TASK_RING_BYTES * 3 / 4);
    /* Asking for dropped events gives a gap, asking from the first none. */
    late = ear_new(&id, 2);
    turn();
    CHECK(late->got[0].kind == TASK_EVENT_GAP && late->n_got > 1);
    ear_free(late);
    late = ear_new(&id, 1);
    turn();
    CHECK(late->got[0].kind == TASK_EVENT_CHUNK);
    ear_free(late);
    /* And the result comes even to those who read nothing meanwhile. */
    say_much(&id, 500, 1000);
    CHECK_INT(ended(&id, TASK_COMPLETED, "done"), OK);
    e->reads = true;
    turn();
    CHECK_INT(e->got[0].kind, TASK_EVENT_GAP);
    CHECK_INT(e->got[e->n_got - 1].kind, TASK_EVENT_RESULT);
    CHECK_INT(e->got[e->n_got - 1].number, 1003);
    ear_free(e);
    stage_close();
}

TEST(a_long_chunk_becomes_several_and_no_character_is_cut)
{
    enum { N = 30000 };
    char *words = malloc(N + 1), *back = calloc(1, N + 1);
    struct task_event ev;
    struct ear *e;
    struct id id;
    size_t n = 0;

    for (size_t i = 0; i < N; i += 3)
        memcpy(words + i, "\xe2\x82\xac", 3);
    stage_open();
    id = accepted("anna", "c", "x");
    move(&id, TASK_DISPATCHED);
    e = ear_new(&id, 0);
    e->reads = false;
    task_chunk(stage.tasks, str_of(id.text), 1, 1, (struct str){words, N});
    while (task_next(stage.tasks, &e->l, &ev)) {
        CHECK(ev.text.n % 3 == 0 && ev.text.n > 0);
        memcpy(back + n, ev.text.p, ev.text.n);
        n += ev.text.n;
    }
    CHECK(n == N && memcmp(words, back, N) == 0);
    ear_free(e);
    stage_close();
    free(words);
    free(back);
}

TEST(all_rings_together_are_bounded)
{
    enum { N = 400 };
    struct id id[N];
    struct ear *e;

    stage_open();
    for (int i = 0; i < N; i++) {
        id[i] = accepted("anna", "", "x");
        task_move(stage.tasks, str_of(id[i].text), TASK_DISPATCHED);
    }
    e = ear_new(&id[N - 1], 1);
    e->reads = false;
    for (int i = 0; i < N; i++)
        say_much(&id[i], 20, 16 * 1024);
    CHECK(tasks_stats(stage.tasks).ring_bytes <
          TASK_RINGS_BYTES + TASK_RING_BYTES + N * TASK_RING_BYTES_MIN);
    ear_read(e);
    CHECK_INT(e->got[0].kind, TASK_EVENT_GAP);
    CHECK(e->n_got > 1 && e->n_got <= 1 + TASK_RING_BYTES_MIN / 1024);
    CHECK_INT(e->got[e->n_got - 1].number, 2 + 20 * 16);
    ear_free(e);
    stage_close();
}

static int n_results;

static void on_result_news(struct task_listener *l)
{
    struct task_event ev;

    CHECK(task_next(stage.tasks, l, &ev));
    CHECK_INT(ev.kind, TASK_EVENT_RESULT);
    CHECK(!task_next(stage.tasks, l, &ev));
    n_results++;
}

TEST(ten_thousand_listeners_are_called_over_several_turns)
{
    enum { N = 10000, MOST = 512 };
    static struct task_listener ears[N];
    struct id id;
    int turns = 0;

    stage_open();
    id = accepted("anna", "c", "x");
    turn();
    for (int i = 0; i < N; i++) {
        ears[i].on_news = on_result_news;
        CHECK_INT(task_listen(stage.tasks, str_of(id.text), &ears[i], 0), OK);
    }
    CHECK_INT(ended(&id, TASK_COMPLETED, "x"), OK);
    while (n_results < N) {
        int before = n_results;

        loop_turn(&stage.loop);
        CHECK(n_results > before && n_results <= before + MOST);
        turns++;
    }
    CHECK(turns >= N / MOST);
    for (int i = 0; i < N; i++)
        task_unlisten(stage.tasks, &ears[i]);
    turn();
    CHECK(!found(&id));
    stage_close();
}

TEST(a_listener_may_leave_and_take_others_along)
{
    struct ear *a, *b, *c;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    a = ear_new(&id, 1);
    b = ear_new(&id, 1);
    c = ear_new(&id, 1);
    a->takes_along = b; /* who was to be told next */
    c->takes_along = a; /* who has been told already */
    c->leaves = true;
    turn();
    CHECK(a->n_news == 1 && b->n_news == 0 && c->n_news == 1);
    CHECK(!task_heard(&a->l) && !task_heard(&b->l) && !task_heard(&c->l));
    CHECK_INT(tasks_stats(stage.tasks).listeners, 0);
    ear_free(a);
    ear_free(b);
    ear_free(c);
    stage_close();
}

TEST(news_comes_once_until_it_was_read)
{
    struct ear *e;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    e = ear_new(&id, 1);
    e->reads = false;
    turn();
    CHECK_INT(e->n_news, 1);
    move(&id, TASK_DISPATCHED);
    turn();
    say(&id, "a");
    turn();
    CHECK_INT(e->n_news, 1);
    ear_read(e);
    CHECK_INT(e->n_got, 3);
    turn();
    CHECK_INT(e->n_news, 1);
    say(&id, "b");
    turn();
    CHECK_INT(e->n_news, 2);
    ear_free(e);
    stage_close();
}

TEST(who_listens_to_a_turn_hears_nothing_of_the_next)
{
    struct ear *first, *second;
    struct msg *m;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "one");
    first = ear_new(&id, 1);
    first->reads = false;
    turn();
    move(&id, TASK_DISPATCHED);
    CHECK_INT(ended(&id, TASK_COMPLETED, "uno"), OK);
    turn();
    m = message("anna", "", "two");
    CHECK_INT(accept_turn(m, found(&id)), OK); /* from memory */
    msg_free(m);
    second = ear_new(&id, 1);
    turn();
    CHECK_INT(found(&id)->turn, 2);
    CHECK_INT(task_heard(&first->l)->turn, 1);
    CHECK_STR(task_heard(&first->l)->result.text, "uno");
    move(&id, TASK_DISPATCHED);
    CHECK_INT(ended(&id, TASK_COMPLETED, "due"), OK);
    turn();
    ear_read(first);
    CHECK_INT(first->n_got, 3);
    CHECK_INT(first->got[2].kind, TASK_EVENT_RESULT);
    CHECK_INT(first->got[2].turn, 1);
    CHECK_INT(second->n_got, 3);
    CHECK(second->got[0].number > first->got[2].number); /* none twice */
    CHECK_STR(task_heard(&second->l)->result.text, "due");
    ear_free(first);
    turn();
    CHECK_INT(found(&id)->turn, 2);
    ear_free(second);
    turn();
    CHECK(!found(&id));
    stage_close();
}

TEST(those_who_still_listen_when_the_room_goes_are_left_alone)
{
    struct ear *e;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    e = ear_new(&id, 1);
    stage_stop();
    CHECK(!task_heard(&e->l));
    free(e);
    loop_fini(&stage.loop);
}
