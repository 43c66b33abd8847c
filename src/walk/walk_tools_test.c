/* Tools of models on the stage of the walk: "boss" never finishes, and the test
 * calls tools in its name. */
#include "test/lib/walk_stage.h"
#include "walk/internal.h"

static struct {
    int n;
    char text[4096];
} heard;

static void on_heard(void *ctx, struct str text)
{
    CHECK(ctx == &heard && json_check(text, NULL) == OK);
    heard.n++;
    snprintf(heard.text, sizeof(heard.text), "%.*s", STR_ARG(text));
}

static struct delivery_id work;

static void open_boss(const char *url)
{
    struct told t;

    memset(&heard, 0, sizeof(heard));
    stage_ground();
    stage.agents[2] = (struct agent){.name = STR("boss"),
                                     .url = str_of(url),
                                     .description = STR("gives work")};
    stage.agents[0].description = STR("says it again");
    stage.n_agents = 3;
    for (size_t i = 0; i < 3; i++)
        stage.agents[i].delegation.max_concurrent =
            stage.agents[i].delegation.max_depth = -1;
    stage_start();
    stage_make_anna();
    t = sent(
        (struct letter){.to = "boss", .from = "anna", .conversation = "c"});
    CHECK_INT(t.err, OK);
    pass_ms(1);
    work = (struct delivery_id){t.task_id, 1, 1};
}

static void *use(enum wire_tool tool, const char *arguments)
{
    void *handle = NULL;

    heard.text[0] = '\0';
    walk_on_tool(stage.walk, &work, STR("boss"), tool, str_of(arguments),
                 on_heard, &heard, &handle);
    CHECK(handle);
    return handle;
}

static bool is_said(const char *words)
{
    return strstr(heard.text, words) != NULL;
}

TEST(a_delegation_is_answered_when_it_is_over)
{
    open_boss("echo:3600000");
    use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"say this\"}");
    pass_ms(500);
    CHECK_INT(heard.n, 0);
    pass_ms(600);
    CHECK(heard.n == 1 && is_said("\"status\":\"completed\""));
    CHECK(is_said("\"response\":\"say this\"") && is_said("\"sessionKey\""));
    CHECK_INT(delegation_stats(stage.walk->delegations).open, 0);
    CHECK_INT(delegation_stats(stage.walk->delegations).ready, 0);
    stage_close();
}

TEST(several_are_answered_together_and_apart)
{
    open_boss("echo:3600000");
    use(WIRE_DELEGATE,
        "{\"tasks\":[{\"agentId\":\"echo\",\"task\":\"one\"},{\"agentId\":"
        "\"nobody\",\"task\":\"two\"},{\"agentId\":\"boss\",\"task\":\"x\"},"
        "{\"agentId\":\"slow\",\"task\":\"three\",\"mode\":\"async\"}]}");
    pass_ms(10);
    pass_ms(10);
    CHECK(heard.n == 1 && is_said("{\"results\":[{\"status\":\"completed\""));
    CHECK(is_said("\"response\":\"one\"") &&
          is_said("\"status\":\"accepted\""));
    CHECK(is_said("itself") && is_said("nobody"));
    stage_close();
}

TEST(what_cannot_be_is_said_at_once)
{
    open_boss("echo:3600000");
    use(WIRE_DELEGATE, "{\"agentId\":\"echo\"}");
    CHECK(heard.n == 1 && is_said("\"status\":\"error\"") && is_said("task"));
    use(WIRE_SEARCH, "{}");
    CHECK(heard.n == 2 && is_said("query is needed"));
    stage_close();
}

TEST(a_search_finds_others_and_not_itself)
{
    open_boss("echo:3600000");
    use(WIRE_SEARCH, "{\"query\":\"says it again\"}");
    CHECK(heard.n == 1 && is_said("{\"agents\":[{\"agentId\":\"echo\""));
    use(WIRE_SEARCH, "{\"query\":\"gives work\"}");
    CHECK(heard.n == 2 && !is_said("boss"));
    stage_close();
}

TEST(what_was_left_is_not_answered)
{
    void *u;

    open_boss("echo:3600000");
    u = use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"x\"}");
    walk_tool_cancel(stage.walk, u); /* before the delegation was accepted */
    pass_ms(10);
    u = use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"x\"}");
    pass_ms(10);
    walk_tool_cancel(stage.walk, u); /* after it was accepted */
    pass_ms(2000);
    CHECK_INT(heard.n, 0);
    use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"x\"}");
    pass_ms(10);
    stage_close(); /* with one still open */
    CHECK_INT(heard.n, 0);
}

static size_t rows_of(const struct table *table, uint8_t column,
                      const char *words)
{
    struct query q;
    size_t n = 0;

    query_init(&q, table, 100);
    CHECK_INT(store_look(stage.store, &q), OK);
    QUERY_EACH(r, &q)
    n += strstr(row_str(r, column).p, words) != NULL;
    query_fini(&q);
    return n;
}

static void begin_async(void)
{
    open_boss("echo:3600000");
    use(WIRE_DELEGATE,
        "{\"agentId\":\"slow\",\"task\":\"x\",\"mode\":\"async\"}");
    pass_ms(10);
    CHECK(heard.n == 1 && is_said("accepted"));
}

/* The name belongs to another agent now. */
static void become_model(void)
{
    stage.agents[2].url = STR("model:small");
    CHECK_INT(stage_configure(NULL), OK);
}

/* A model has no connection to be told on later. */
TEST(what_a_model_does_not_wait_for_becomes_a_note)
{
    for (int is_model = 0; is_model < 2; is_model++) {
        begin_async();
        if (is_model)
            become_model();
        pass_ms(1100);
        CHECK_INT(delegation_stats(stage.walk->delegations).ready, !is_model);
        CHECK_INT(rows_of(&note_table, NOTE_TEXT, "\"response\":\"x\""),
                  is_model);
        CHECK_INT(rows_of(&feed_table, FEED_TYPE, "task.delegated"), is_model);
        stage_close();
    }
}

/* A delegation that ends with its parent is not reported: no turn continues
 * it. */
TEST(what_ends_with_its_parent_is_no_note)
{
    begin_async();
    become_model();
    CHECK_INT(walk_cancel(stage.walk, str_of(work.task_id.text), STR("anna"),
                          NULL, NULL),
              OK);
    pass_ms(1100);
    CHECK(!delegation_stats(stage.walk->delegations).ready &&
          !delegation_stats(stage.walk->delegations).open);
    CHECK(!rows_of(&note_table, NOTE_TEXT, "") &&
          !rows_of(&feed_table, FEED_TYPE, "task.delegated"));
    stage_close();
}

static void wait_for_note(void)
{
    const struct delegations *h = stage.walk->delegations;

    for (int i = 0;
         i < 200 && (delegation_stats(h).open || delegation_stats(h).ready);
         i++)
        pass_ms(1000);
}

/* Its next turn starts with the note. */
TEST(a_turn_waits_for_its_notes)
{
    enum ready not_yet;
    const struct task *t;
    struct told second;
    struct id id;

    begin_async();
    second = sent(
        (struct letter){.to = "boss", .text = "and?", .conversation = "c"});
    become_model();
    wait_for_note();
    id = second.task_id;
    t = task_find(stage.walk->tasks, str_of(id.text));
    CHECK(walk_with_notes(stage.walk, t) == t);
    for (int i = 0; i < 2; i++) /* two calls, one read */
        CHECK(!walk_recall(stage.walk, t, &not_yet) &&
              not_yet == READY_NOT_YET);
    pass_ms(0);
    t = task_find(stage.walk->tasks, str_of(id.text));
    CHECK(walk_recall(stage.walk, t, &not_yet));
    t = walk_with_notes(stage.walk, t);
    CHECK(memmem(t->text.p, t->text.n, "\"response\":\"x\"", 14));
    CHECK_STR(str_sub(t->text, t->text.n - 6, t->text.n), "\n\nand?");
    t = task_find(stage.walk->tasks, str_of(id.text));
    walk_recall_over(stage.walk, str_of(id.text));
    CHECK(walk_with_notes(stage.walk, t) == t);
    CHECK(!walk_recall(stage.walk, t, &not_yet)); /* it ends during the read */
    walk_recall_over(stage.walk, str_of(id.text));
    pass_ms(0);
    stage_close();
}

static void note_for(const struct task *t, int i)
{
    struct delegation d = {.owner = t->requester,
                           .conversation = t->conversation_id,
                           .agent = t->agent};

    snprintf(d.key.text, sizeof(d.key.text), "del_%d", i);
    walk_on_noted(stage.walk, &d, STR("{\"new\":1}"));
}

static int news_in(const struct task *t)
{
    int n = 0;

    for (size_t i = 0; i + 7 < t->text.n; i++)
        n += memcmp(t->text.p + i, "{\"new\":", 7) == 0;
    return n;
}

/* Until it starts; at most NOTES_AT_ONCE in one turn. */
TEST(a_turn_that_waits_takes_along_what_ends)
{
    enum ready not_yet;
    const struct task *t, *with;
    struct told second;

    begin_async();
    second = sent(
        (struct letter){.to = "boss", .text = "and?", .conversation = "c"});
    become_model();
    t = task_find(stage.walk->tasks, str_of(second.task_id.text));
    CHECK(!walk_recall(stage.walk, t, &not_yet));
    note_for(t, 0); /* during the read, perhaps too early for it */
    pass_ms(0);
    CHECK(!walk_recall(stage.walk, t, &not_yet) && not_yet == READY_NOT_YET);
    pass_ms(0);
    CHECK(walk_recall(stage.walk, t, &not_yet));
    note_for(t, 1);
    note_for(t, 1);
    with = walk_with_notes(stage.walk, t);
    CHECK_INT(news_in(with), 1);
    note_for(t, 2); /* its turn has started */
    CHECK_INT(news_in(walk_with_notes(stage.walk, t)), 1);

    walk_recall_over(stage.walk, str_of(second.task_id.text));
    CHECK(!walk_recall(stage.walk, t, &not_yet));
    pass_ms(0);
    CHECK(walk_recall(stage.walk, t, &not_yet));
    for (int i = 0; i < 20; i++)
        note_for(t, i);
    with = walk_with_notes(stage.walk, t);
    CHECK_INT(news_in(with), 16);
    CHECK(memmem(with->text.p, with->text.n, "More has ended", 14));
    walk_recall_over(stage.walk, str_of(second.task_id.text));
    stage_close();
}

/* Given once, whatever fails; if the store fails, after a restart. */
TEST(a_note_survives_every_fault)
{
    bool has_fired = true;
    long nth = 0;

    while (has_fired && nth < 500) {
        begin_async();
        CHECK_INT(walk_end(stage.walk, str_of(work.task_id.text),
                           &(struct task_result){.status = TASK_COMPLETED},
                           NULL, NULL),
                  OK);
        pass_ms(10);
        become_model();
        fault_arm(++nth);
        wait_for_note();
        has_fired = fault_fired();
        fault_arm(0);
        if (!rows_of(&note_table, NOTE_TEXT, "slow")) {
            stage_restart();
            wait_for_note();
        }
        CHECK_INT(rows_of(&note_table, NOTE_TEXT, "slow"), 1);
        CHECK_INT(rows_of(&feed_table, FEED_TYPE, "task.delegated"), 1);
        stage_close();
    }
    CHECK(!has_fired && nth > 1);
}

static void on_news(struct task_listener *l)
{
    struct task_event ev;

    while (task_next(stage.walk->tasks, l, &ev))
        if (ev.kind == TASK_EVENT_DELEGATED) {
            heard.n++;
            CHECK_INT(rows_of(&note_table, NOTE_TEXT, "slow"), 1);
        }
}

/* Listeners are told when it is stored, and once. */
TEST(the_stream_is_told_what_is_written)
{
    struct task_listener l = {.on_news = on_news};
    bool has_fired = true;

    for (long nth = 1; has_fired; nth++) {
        begin_async();
        become_model();
        heard.n = 0;
        CHECK_INT(
            task_listen(stage.walk->tasks, str_of(work.task_id.text), &l, 0),
            OK);
        fault_arm_at("store.commit.full", nth);
        wait_for_note();
        has_fired = fault_fired();
        fault_arm(0);
        pass_ms(0);
        CHECK_INT(heard.n, 1);
        task_unlisten(stage.walk->tasks, &l);
        stage_close();
    }
}

TEST(who_may_delegate_has_tools)
{
    struct agent a = {.delegation = {.max_depth = -1, .max_concurrent = -1}};
    struct str one = STR("x");

    open_boss("echo:3600000");
    CHECK(walk_has_tools(stage.walk, NULL, &a));
    a.delegation.is_limited = true;
    CHECK(!walk_has_tools(stage.walk, NULL, &a));
    a.delegation.allow = (struct strs){&one, 1};
    CHECK(walk_has_tools(stage.walk, NULL, &a));
    a.delegation.max_depth = 0;
    CHECK(!walk_has_tools(stage.walk, NULL, &a));
    a.delegation.max_depth = 1;
    stage.walk->opts.delegation.max_depth = 0;
    CHECK(walk_has_tools(stage.walk, NULL, &a));
    a.delegation.max_depth = -1;
    CHECK(!walk_has_tools(stage.walk, NULL, &a));
    stage_close();
}

/* Answered once, whatever fails, with valid JSON. */
TEST(a_use_survives_every_fault)
{
    static const struct {
        enum wire_tool tool;
        const char *arguments;
    } cases[] = {
        {WIRE_DELEGATE, "{\"agentId\":\"echo\",\"task\":\"x\"}"},
        {WIRE_SEARCH, "{\"query\":\"says it again\"}"},
    };

    for (size_t i = 0; i < 2; i++) {
        bool has_fired = true;
        long nth = 0;

        while (has_fired && nth < 500) {
            open_boss("echo:3600000");
            fault_arm(++nth);
            use(cases[i].tool, cases[i].arguments);
            for (int j = 0; j < 200 && !heard.n; j++)
                pass_ms(1000);
            has_fired = fault_fired();
            fault_arm(0);
            CHECK_INT(heard.n, 1);
            stage_close();
        }
        CHECK(!has_fired && nth > 1);
    }
}
