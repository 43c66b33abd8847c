/* Chunks of other agents between a task's own: their source, their order, and
 * that they stay within the limit of the ring. */
#include "model/agent.h"
#include "test/lib/task_stage.h"

static void on_news(struct task_listener *l)
{
    (void)l;
}

static struct task_listener *ear_new(const struct id *id)
{
    struct task_listener *l = calloc(1, sizeof(*l));

    l->on_news = on_news;
    CHECK_INT(task_listen(stage.tasks, str_of(id->text), l, 0), OK);
    return l;
}

static void ear_free(struct task_listener *l)
{
    task_unlisten(stage.tasks, l);
    CHECK(tasks_check(stage.tasks));
    free(l);
}

static bool own(const struct id *id, const char *words)
{
    return task_chunk(stage.tasks, str_of(id->text), 1, 1, str_of(words));
}

static bool says(const struct id *id, const char *agent, const char *words)
{
    bool is_told = task_chunk_of(stage.tasks, str_of(id->text), str_of(agent),
                                 str_of(words));

    CHECK(tasks_check(stage.tasks));
    return is_told;
}

/* The events to read, as "agent:text|…", "gap" or "result". */
static struct str heard(struct task_listener *l)
{
    static char all[4096];
    struct task_event ev;
    size_t n = 0;

    all[0] = '\0';
    while (task_next(stage.tasks, l, &ev)) {
        if (ev.kind == TASK_EVENT_CHUNK)
            n += (size_t)snprintf(all + n, sizeof(all) - n, "%.*s:%.*s|",
                                  STR_ARG(ev.agent), STR_ARG(ev.text));
        else
            CHECK(ev.agent.n == 0);
        if (ev.kind == TASK_EVENT_GAP)
            n += (size_t)snprintf(all + n, sizeof(all) - n, "gap|");
        if (ev.kind == TASK_EVENT_RESULT)
            n += (size_t)snprintf(all + n, sizeof(all) - n, "result|");
    }
    return (struct str){all, n};
}

TEST(others_are_heard_between_its_own_words_by_their_name)
{
    struct task_listener *l;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    move(&id, TASK_DISPATCHED);
    l = ear_new(&id);
    CHECK(own(&id, "let me ask. "));
    CHECK(says(&id, "docs", "chapter "));
    CHECK(says(&id, "law", "article 4"));
    CHECK(says(&id, "docs", "4"));
    CHECK(own(&id, "so it is."));
    CHECK_STR(heard(l),
              ":let me ask. |docs:chapter |law:article 4|docs:4|:so it is.|");
    CHECK_INT(ended(&id, TASK_COMPLETED, "let me ask. so it is."), OK);
    CHECK_STR(heard(l), "result|");
    CHECK(str_eq(task_heard(l)->result.text, STR("let me ask. so it is.")));
    ear_free(l);
    stage_close();
}

TEST(nothing_is_said_of_a_task_that_is_over_or_not_there)
{
    struct task_listener *l;
    struct id id, none = {"task_00000000000000000000000000"};

    stage_open();
    id = accepted("anna", "c", "x");
    l = ear_new(&id);
    CHECK(says(&id, "docs", "before it is given to anybody"));
    CHECK(!says(&id, "docs", ""));
    CHECK(!says(&none, "docs", "x"));
    CHECK_STR(heard(l), "docs:before it is given to anybody|");
    move(&id, TASK_DISPATCHED);
    CHECK_INT(ended(&id, TASK_COMPLETED, "done"), OK);
    CHECK(!says(&id, "docs", "too late"));
    CHECK_STR(heard(l), "result|");
    ear_free(l);
    stage_close();
}

/* A name as long as may be, in every piece of a long word. */
TEST(every_piece_of_a_long_word_has_the_name)
{
    enum { N = 30000 };
    static char words[N + 1], name[AGENT_NAME_MAX + 1];
    struct task_listener *l;
    struct task_event ev;
    struct id id;
    size_t n = 0;

    memset(words, 'w', N);
    memset(name, 'n', AGENT_NAME_MAX);
    stage_open();
    id = accepted("anna", "c", "x");
    l = ear_new(&id);
    CHECK(says(&id, name, words));
    while (task_next(stage.tasks, l, &ev)) {
        CHECK(str_eq(ev.agent, str_of(name)) && ev.text.p[0] == 'w');
        n += ev.text.n;
    }
    CHECK_INT(n, N);
    ear_free(l);
    stage_close();
}

/* A listener that does not read costs at most the ring, regardless of source
 * and amount; then it gets one gap, and the rest in order. */
TEST(a_reader_who_stands_still_costs_no_more_than_the_ring)
{
    static char words[1001];
    struct task_listener *l;
    struct task_event ev;
    int64_t last, n_own = 0, n_others = 0;
    struct id id;

    memset(words, 'w', 1000);
    stage_open();
    id = accepted("anna", "c", "x");
    move(&id, TASK_DISPATCHED);
    l = ear_new(&id);
    for (int i = 0; i < 2000; i++) {
        CHECK(i % 4 ? says(&id, "docs", words) : own(&id, words));
        CHECK(tasks_stats(stage.tasks).ring_bytes <= TASK_RING_BYTES);
    }
    CHECK(task_next(stage.tasks, l, &ev) && ev.kind == TASK_EVENT_GAP);
    for (last = ev.number; task_next(stage.tasks, l, &ev); last = ev.number) {
        bool is_own = (ev.number - 3) % 4 == 0; /* two were of its status */

        CHECK(ev.kind == TASK_EVENT_CHUNK && ev.number == last + 1);
        CHECK(str_eq(ev.agent, is_own ? STR("") : STR("docs")));
        n_own += is_own;
        n_others += !is_own;
    }
    CHECK_INT(last, 2002);
    CHECK(n_own > 50 && n_others > 150);
    ear_free(l);
    stage_close();
}

/* When all rings are at their limit, a long name still fits. */
TEST(where_space_is_scarce_the_longest_name_finds_room)
{
    enum { N = 300 };
    static char words[16 * 1024 + 1], name[AGENT_NAME_MAX + 1];
    struct task_listener *l;
    struct task_event ev;
    struct id id[N];
    int n = 0;

    memset(words, 'w', sizeof(words) - 1);
    memset(name, 'n', AGENT_NAME_MAX);
    stage_open();
    for (int i = 0; i < N; i++)
        id[i] = accepted("anna", "", "x");
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 20; k++)
            (void)task_chunk_of(stage.tasks, str_of(id[i].text), str_of(name),
                                str_of(words));
    CHECK(tasks_check(stage.tasks));
    CHECK(tasks_stats(stage.tasks).ring_bytes > TASK_RINGS_BYTES);
    CHECK(tasks_stats(stage.tasks).ring_bytes <
          TASK_RINGS_BYTES + TASK_RING_BYTES + N * TASK_RING_BYTES_MIN);
    l = ear_new(&id[N - 1]);
    CHECK(says(&id[N - 1], name, words));
    while (task_next(stage.tasks, l, &ev))
        n += ev.kind == TASK_EVENT_CHUNK && ev.agent.n == AGENT_NAME_MAX;
    CHECK(n >= 2);
    ear_free(l);
    stage_close();
}
