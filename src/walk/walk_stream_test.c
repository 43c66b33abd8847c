/* Streamed chunks of delegations: passed to all tasks above that asked for
 * them, each marked with its author. Four agents on connections: front
 * delegates to desk, desk to docs, docs to law. */
#include "test/lib/walk_stage.h"

enum { N = 4 };

static const char *const names[N] = {"front", "desk", "docs", "law"};

static struct {
    uint64_t line[N];
    char told[4096]; /* on_delegated_chunk: "asker<speaker:words|" */
    size_t n_told;
} hub;

/* A listener of a task and what it heard, "speaker:words|". */
struct ear {
    struct task_listener l;
    char heard[4096];
    size_t n;
};

static enum err on_send(void *ctx, struct str message)
{
    (void)ctx;
    (void)message;
    return OK;
}

static void on_taken_over(void *ctx)
{
    (void)ctx;
}

static void on_delegated_chunk(void *ctx, const struct delegation *d,
                               struct str agent, struct str text)
{
    CHECK(ctx == &hub);
    hub.n_told += (size_t)snprintf(
        hub.told + hub.n_told, sizeof(hub.told) - hub.n_told, "%.*s<%.*s:%.*s|",
        STR_ARG(d->agent), STR_ARG(agent), STR_ARG(text));
}

static void open_hub(void)
{
    static const struct line_ops ops = {.send = on_send,
                                        .taken_over = on_taken_over};
    static char urls[N][32];
    struct agents all;

    memset(&hub, 0, sizeof(hub));
    stage_ground();
    for (int i = 0; i < N; i++) {
        snprintf(urls[i], sizeof(urls[i]), "ws-agent://%s", names[i]);
        stage.agents[i] = (struct agent){
            .name = str_of(names[i]),
            .url = str_of(urls[i]),
            .delegation = {.max_concurrent = -1, .max_depth = -1}};
    }
    stage.n_agents = N;
    stage_start();
    stage_make_anna();
    walk_set_hub(stage.walk,
                 &(struct walk_hub){.on_delegated_chunk = on_delegated_chunk,
                                    .ctx = &hub});
    all = registry_agents(stage.registry);
    for (int i = 0; i < N; i++)
        CHECK(deliver_attach(walk_deliver(stage.walk),
                             agent_find(&all, str_of(names[i])), &ops, NULL,
                             &hub.line[i]) == OK);
}

static enum err say(int i, const char *method, const struct id *task,
                    const char *more)
{
    char text[512];
    struct wire_batch batch;
    struct arena arena;
    struct why why;
    enum err e;

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":"
             "{\"task_id\":\"%s\"%s}}",
             method, task->text, more);
    arena_init(&arena, 1 << 20);
    CHECK(wire_read(&arena, str_of(text), &batch, &why) == OK && batch.n == 1);
    e = deliver_heard(walk_deliver(stage.walk), hub.line[i], batch.list, 0,
                      &why);
    arena_fini(&arena);
    return e;
}

static void chunk(int i, const struct id *task, const char *words)
{
    char more[128];

    snprintf(more, sizeof(more), ",\"text\":\"%s\"", words);
    CHECK_INT(say(i, "task.chunk", task, more), OK);
}

static void result(int i, const struct id *task)
{
    CHECK_INT(say(i, "task.result", task, ",\"status\":\"completed\""), OK);
    pass_ms(0);
}

/* names[i], which works on parent, delegates to names[i + 1]. */
static struct id delegations(int i, const struct id *parent,
                             struct delegation_wish wish)
{
    struct caller anna = caller_named("anna");
    struct why why = {""};
    struct told t = {0};
    struct walk_order o = {.by = str_of(names[i]),
                           .caller = &anna,
                           .parent_id = str_of(parent->text),
                           .agent = str_of(names[i + 1]),
                           .message = STR("look it up"),
                           .wish = wish};

    if (walk_delegate(stage.walk, &o, stage_on_done, &t, &why) != OK)
        T_FAIL("%s", why.text);
    pass_ms(0);
    if (!t.is_back || t.err != OK)
        T_FAIL("%s", t.why.text);
    return t.task_id;
}

static const struct delegation_wish live = {.mode = DELEGATION_ASYNC,
                                            .is_stream = true};
static const struct delegation_wish quiet = {.mode = DELEGATION_ASYNC};

static void on_news(struct task_listener *l)
{
    struct ear *e = LIST_OF(l, struct ear, l);
    struct task_event ev;

    while (task_next(walk_tasks(stage.walk), l, &ev)) {
        CHECK(ev.kind != TASK_EVENT_GAP);
        if (ev.kind == TASK_EVENT_CHUNK)
            e->n += (size_t)snprintf(e->heard + e->n, sizeof(e->heard) - e->n,
                                     "%.*s:%.*s|", STR_ARG(ev.agent),
                                     STR_ARG(ev.text));
    }
}

static struct ear *ear_new(const struct id *task)
{
    struct ear *e = calloc(1, sizeof(*e));

    e->l.on_news = on_news;
    CHECK_INT(task_listen(walk_tasks(stage.walk), str_of(task->text), &e->l, 0),
              OK);
    return e;
}

static struct str heard(struct ear *e)
{
    pass_ms(0);
    return str_of(e->heard);
}

static void ear_free(struct ear *e)
{
    task_unlisten(walk_tasks(stage.walk), &e->l);
    free(e);
}

static struct id asked(void)
{
    struct told t = sent((struct letter){.to = names[0]});

    CHECK_INT(t.err, OK);
    pass_ms(0);
    return t.task_id;
}

TEST(words_of_a_hired_agent_stand_between_those_of_the_first)
{
    struct id top, child;
    struct ear *e, *own;
    char text[64];

    open_hub();
    top = asked();
    e = ear_new(&top);
    chunk(0, &top, "let me ask. ");
    child = delegations(0, &top, live);
    own = ear_new(&child);
    chunk(1, &child, "page ");
    chunk(0, &top, "hm, ");
    chunk(1, &child, "four");
    CHECK_STR(heard(e), ":let me ask. |desk:page |:hm, |desk:four|");
    CHECK_STR(heard(own), ":page |:four|");
    CHECK_STR(str_of(hub.told), "front<desk:page |front<desk:four|");
    result(1, &child);
    chunk(0, &top, "page four.");
    result(0, &top); /* without a text: its chunks are the answer */
    CHECK_INT(stored(&child, text, NULL), TASK_COMPLETED);
    CHECK(strcmp(text, "page four") == 0);
    CHECK_INT(stored(&top, text, NULL), TASK_COMPLETED);
    CHECK(strcmp(text, "let me ask. hm, page four.") == 0);
    ear_free(e);
    ear_free(own);
    stage_close();
}

TEST(words_go_up_to_the_root_as_far_as_each_is_streamed)
{
    struct id task[N];
    struct ear *e[N];

    open_hub();
    task[0] = asked();
    for (int i = 1; i < N; i++)
        task[i] = delegations(i - 1, &task[i - 1], live);
    for (int i = 0; i < N; i++)
        e[i] = ear_new(&task[i]);
    chunk(3, &task[3], "article 4");
    chunk(1, &task[1], "so");
    CHECK_STR(heard(e[0]), "law:article 4|desk:so|");
    CHECK_STR(heard(e[1]), "law:article 4|:so|");
    CHECK_STR(heard(e[2]), "law:article 4|");
    CHECK_STR(heard(e[3]), ":article 4|");
    CHECK_STR(str_of(hub.told), "docs<law:article 4|desk<law:article 4|"
                                "front<law:article 4|front<desk:so|");
    for (int i = 0; i < N; i++)
        ear_free(e[i]);
    stage_close();
}

TEST(one_that_is_not_streamed_is_where_words_end)
{
    struct id top, child, below;
    struct ear *e, *mid;

    open_hub();
    top = asked();
    child = delegations(0, &top, quiet);
    below = delegations(1, &child, live);
    e = ear_new(&top);
    mid = ear_new(&child);
    chunk(2, &below, "page four");
    chunk(1, &child, "hm");
    CHECK_STR(heard(e), "");
    CHECK_STR(heard(mid), "docs:page four|:hm|");
    CHECK_STR(str_of(hub.told), "desk<docs:page four|");
    ear_free(e);
    ear_free(mid);
    stage_close();
}

TEST(words_that_are_not_of_the_attempt_that_goes_on_go_nowhere)
{
    struct id top, child;
    struct ear *e;

    open_hub();
    top = asked();
    child = delegations(0, &top, live);
    e = ear_new(&top);
    CHECK(say(1, "task.chunk", &child, ",\"text\":\"x\",\"attempt\":7"));
    CHECK(say(1, "task.chunk", &child, ",\"text\":\"x\",\"turn\":2"));
    CHECK(
        say(2, "task.chunk", &child, ",\"text\":\"x\"")); /* of another agent */
    CHECK_STR(heard(e), "");
    result(1, &child);
    CHECK(say(1, "task.chunk", &child, ",\"text\":\"x\""));
    CHECK_STR(heard(e), "");
    CHECK_STR(str_of(hub.told), "");
    ear_free(e);
    stage_close();
}

TEST(who_delegated_hears_on_when_its_own_task_is_over)
{
    struct id top, child;
    struct ear *e;

    open_hub();
    top = asked();
    child = delegations(0, &top, live);
    e = ear_new(&top);
    chunk(0, &top, "it will come.");
    result(0, &top);
    chunk(1, &child, "page four");
    CHECK_STR(heard(e), ":it will come.|");
    CHECK_STR(str_of(hub.told), "front<desk:page four|");
    ear_free(e);
    stage_close();
}
