/* Routing with the real modules: what is fetched for a message, what is
 * recorded of it, and the order of messages. */
#include "choose/routing.h"
#include "test/lib/walk_stage.h"

/* Two agents that differ in their words; not started yet. */
static void two_with_words(void)
{
    stage_ground();
    stage.agents[0] = (struct agent){.name = STR("cook"),
                                     .url = STR("echo:"),
                                     .description = STR("bread recipes")};
    stage.agents[1] = (struct agent){.name = STR("engineer"),
                                     .url = STR("echo:"),
                                     .description = STR("debugging programs")};
    stage.n_agents = 2;
    stage.routing.choose.is_auto = false;
    stage.routing.choose.threshold = 0.15;
    stage.routing.choose.text_blend = 1;
}

static void open_with_words(void)
{
    two_with_words();
    stage_start();
}

/* And a third, another user's, for all other texts. */
static void three_with_a_secret(void)
{
    two_with_words();
    stage.agents[2] = (struct agent){.name = STR("secret"),
                                     .url = STR("echo:"),
                                     .creator = STR("ben"),
                                     .visibility = VISIBILITY_PRIVATE};
    stage.n_agents = 3;
    stage.routing.choose.default_agent = STR("secret");
}

/* The decision of a task's turn, its strings in `a`. */
static struct decision decision_of(struct arena *a, const struct id *task_id,
                                   int64_t turn)
{
    struct decision d = {.seq = 0};
    struct query q;

    query_init(&q, &decision_table, 2);
    query_if(&q, DECISION_TASK_ID, IS, value_text(str_of(task_id->text)));
    query_if(&q, DECISION_TURN, IS, value_int(turn));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 1);
    CHECK_INT(decision_from_row(a, q.rows, &d), OK);
    d.agent = (struct str){arena_strdup(a, d.agent), d.agent.n};
    d.overridden_to =
        (struct str){arena_strdup(a, d.overridden_to), d.overridden_to.n};
    d.rules.default_agent = (struct str){arena_strdup(a, d.rules.default_agent),
                                         d.rules.default_agent.n};
    query_fini(&q);
    return d;
}

static size_t n_rows(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 1000);
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static void check_layer(const struct told *t, enum layer layer,
                        const char *agent)
{
    struct arena a;
    struct decision d;

    arena_init(&a, 1 << 20);
    CHECK(t->is_back && t->err == OK);
    d = decision_of(&a, &t->task_id, 1);
    CHECK_INT(d.layer, layer);
    CHECK_STR(d.agent, agent);
    arena_fini(&a);
}

static struct letter plain(const char *text, const char *conversation)
{
    return (struct letter){
        .text = text, .conversation = conversation, .is_plain = true};
}

/* Each reading of the clock takes a tenth of a millisecond here, and so does
 * every stretch of work; waiting is not counted. */
TEST(a_decision_says_how_long_choosing_took)
{
    struct router_stats s;
    struct decision d;
    struct arena a;
    struct told t;

    arena_init(&a, 1 << 20);
    open_with_words();
    stage.now.tick_us = 100;
    t = sent(plain("bread recipes", NULL));
    d = decision_of(&a, &t.task_id, 1);
    CHECK_INT(d.decide_us, 100);
    t = sent(plain("bread recipes", "c")); /* and the store is asked */
    d = decision_of(&a, &t.task_id, 1);
    CHECK_INT(d.decide_us, 200);
    t = sent(plain("zzz", NULL));
    CHECK_INT(t.err, ERR_NO_ROUTE);
    s = router_stats(stage.router);
    CHECK(route_bucket_us[1] == 100 && route_bucket_us[2] == 250);
    CHECK_INT(s.decide_total[0], 0);
    CHECK_INT(s.decide_total[1], 2);
    CHECK_INT(s.decide_total[2], 1);
    CHECK_INT(s.decide_sum_us, 400);
    stage_close();
    arena_fini(&a);
}

TEST(a_text_finds_its_agent_and_the_conversation_stays_with_it)
{
    struct told t;

    open_with_words();
    t = sent(plain("bread recipes", "c"));
    check_layer(&t, LAYER_SEMANTIC, "cook");
    t = sent(plain("debugging programs", "c"));
    check_layer(&t, LAYER_STICKY, "cook");
    t = sent(plain("debugging programs", NULL));
    check_layer(&t, LAYER_SEMANTIC, "engineer");
    t = sent((struct letter){.to = "cook"});
    check_layer(&t, LAYER_EXPLICIT, "cook");
    t = sent(plain("zzz", NULL));
    CHECK_INT(t.err, ERR_NO_ROUTE);
    CHECK_INT(n_rows(&decision_table), 5);
    CHECK_INT(router_stats(stage.router).no_route_total, 1);
    CHECK_INT(router_stats(stage.router).by_layer[LAYER_NONE], 1);
    CHECK_INT(router_stats(stage.router).by_layer[LAYER_SEMANTIC], 2);
    stage_close();
}

TEST(a_further_turn_stays_with_its_task_and_leaves_the_conversation_alone)
{
    struct told first, t;
    struct letter more = {.text = "/engineer and more", .is_plain = true};
    struct arena a;

    open_with_words();
    arena_init(&a, 1 << 20);
    first = sent(plain("bread recipes", "c"));
    t = sent((struct letter){.to = "engineer", .conversation = "c"});
    CHECK_INT(t.err, OK);
    pass_ms(1);
    more.task_id = first.task_id.text;
    t = sent(more);
    CHECK_INT(t.err, OK);
    CHECK_INT(decision_of(&a, &t.task_id, 2).layer, LAYER_STICKY);
    CHECK_STR(decision_of(&a, &t.task_id, 2).agent, "cook");
    pass_ms(1);
    t = sent(plain("hm", "c"));
    check_layer(&t, LAYER_STICKY, "engineer");
    arena_fini(&a);
    stage_close();
}

TEST(a_switch_overrides_what_had_put_the_agent_there)
{
    struct told first, t;
    struct decision d;
    struct arena a;

    open_with_words();
    arena_init(&a, 1 << 20);
    first = sent(plain("bread recipes", "c"));
    t = sent(plain("and then", "c"));
    CHECK_INT(told_in_feed("conversation.switched", NULL), 0);
    t = sent(plain("/engineer why does it crash", "c"));
    check_layer(&t, LAYER_PREFIX, "engineer");
    CHECK_INT(told_in_feed("conversation.switched", &t.task_id), 1);
    d = decision_of(&a, &first.task_id, 1);
    CHECK_INT(d.verdict, VERDICT_NEGATIVE);
    CHECK_STR(d.overridden_to, "engineer");
    CHECK_INT(n_rows(&outcome_table), 1);
    CHECK_INT(learning_stats(stage.learning).outcomes_total, 1);
    CHECK_INT(router_stats(stage.router).switches_total, 1);
    /* Naming the conversation's own agent is no switch. */
    t = sent((struct letter){.to = "engineer", .conversation = "c"});
    CHECK_INT(t.err, OK);
    CHECK_INT(told_in_feed("conversation.switched", NULL), 1);
    /* And back: now the prefix's decision is overridden. */
    t = sent((struct letter){.to = "cook", .conversation = "c"});
    CHECK_INT(t.err, OK);
    CHECK_INT(n_rows(&outcome_table), 2);
    t = sent(plain("good", "c"));
    check_layer(&t, LAYER_STICKY, "cook");
    arena_fini(&a);
    stage_close();
}

/* If conversations do not stick they have no agent to switch from. */
TEST(nothing_is_overridden_where_conversations_do_not_stick)
{
    struct told first, t;
    struct decision d;
    struct arena a;

    open_with_words();
    arena_init(&a, 1 << 20);
    stage.routing.choose.is_off[LAYER_STICKY] = true;
    router_set(stage.router, &stage.routing);
    first = sent(plain("bread recipes", "c"));
    t = sent((struct letter){.to = "engineer", .conversation = "c"});
    check_layer(&t, LAYER_EXPLICIT, "engineer");
    t = sent(plain("/cook and then", "c"));
    check_layer(&t, LAYER_PREFIX, "cook");
    d = decision_of(&a, &first.task_id, 1);
    CHECK_INT(d.verdict, VERDICT_OPEN);
    CHECK_STR(d.overridden_to, "");
    CHECK_INT(n_rows(&outcome_table), 0);
    CHECK_INT(told_in_feed("conversation.switched", NULL), 0);
    CHECK_INT(router_stats(stage.router).switches_total, 0);
    arena_fini(&a);
    stage_close();
}

/* All messages share one array of candidates, and the conversation is fetched
 * after them if no layer asked for it. */
TEST(signals_of_one_message_are_not_taken_for_those_of_another)
{
    struct told t[2];

    open_with_words();
    stage.routing.choose.is_off[LAYER_STICKY] = true;
    router_set(stage.router, &stage.routing);
    CHECK(post(plain("bread recipes", "c"), &t[0]));
    CHECK(post(plain("debugging programs", "d"), &t[1]));
    pass_ms(0);
    check_layer(&t[0], LAYER_SEMANTIC, "cook");
    check_layer(&t[1], LAYER_SEMANTIC, "engineer");
    stage_close();
}

static void on_pruned(struct tx *tx, void *ctx)
{
    (void)ctx;
    CHECK_INT(tx->result, TX_COMMITTED);
}

/* Before it is fetched, and after. */
TEST(a_switch_from_a_decision_that_is_gone_is_a_switch_all_the_same)
{
    for (int i = 0; i < 2; i++) {
        struct told t;
        struct tx tx;
        struct tx_op *op;

        open_with_words();
        t = sent(plain("bread recipes", "c"));
        tx_init(&tx);
        op = tx_prune(&tx, &decision_table, 10);
        tx_if(op, DECISION_LAYER, IS, value_int(LAYER_SEMANTIC));
        CHECK(post(plain("/engineer help", "c"), &t));
        if (i)
            store_turn(stage.store);
        store_submit(stage.store, &tx, on_pruned, NULL);
        pass_ms(0);
        check_layer(&t, LAYER_PREFIX, "engineer");
        CHECK_INT(told_in_feed("conversation.switched", NULL), 1);
        tx_fini(&tx);
        stage_close();
        stage_remove();
    }
}

TEST(what_comes_at_once_in_a_conversation_is_accepted_in_that_order)
{
    enum { N = 6 };
    struct told t[N], other;
    struct query q;
    size_t i = 0;

    open_with_words();
    for (i = 0; i < N; i++)
        CHECK(post(plain("bread recipes", "c"), &t[i]));
    CHECK(post(plain("debugging programs", "d"), &other));
    pass_ms(0);
    check_layer(&other, LAYER_SEMANTIC, "engineer");
    check_layer(&t[0], LAYER_SEMANTIC, "cook");
    for (i = 1; i < N; i++)
        check_layer(&t[i], LAYER_STICKY, "cook");
    query_init(&q, &task_table, 100);
    query_if(&q, TASK_CONVERSATION_ID, IS, value_text(STR("c")));
    query_order(&q, TASK_PLACE, false);
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, N);
    i = 0;
    QUERY_EACH(r, &q)
    CHECK_STR(row_str(r, TASK_ID), t[i++].task_id.text);
    query_fini(&q);
    stage_close();
}

/* Another server with the same store: it has lines of its own, so only the
 * guard detects it. */
static struct walk *another_server(struct router **router)
{
    struct walk_opts opts;
    struct walk *w;
    struct why why;

    *router = router_new(&(struct router_opts){.loop = &stage.loop,
                                               .log = &stage.log,
                                               .store = stage.store,
                                               .registry = stage.registry,
                                               .learning = stage.learning,
                                               .ids = &stage.ids,
                                               .seed = {1, 2},
                                               .settings = stage.routing});
    opts = stage_walk_opts();
    opts.router = *router;
    w = walk_new(&opts, &why);
    CHECK(*router && w);
    return w;
}

static void close_another(struct walk *w, struct router *router)
{
    router_stop(router);
    pass_ms(5000);
    walk_free(w);
    router_free(router);
}

TEST(whoever_is_overtaken_by_another_server_is_routed_once_more)
{
    struct walk *here, *there;
    struct router *router;
    struct told a, b, c;

    open_with_words();
    there = another_server(&router);
    here = stage.walk;
    CHECK(post(plain("bread recipes", "c"), &a));
    stage.walk = there;
    CHECK(post(plain("debugging programs", "c"), &b));
    pass_ms(0);
    check_layer(&a, LAYER_SEMANTIC, "cook");
    check_layer(&b, LAYER_STICKY, "cook");
    /* Both switch from the same decision: it is overridden once. */
    CHECK(post((struct letter){.to = "engineer", .conversation = "c"}, &b));
    stage.walk = here;
    CHECK(post((struct letter){.to = "engineer", .conversation = "c"}, &c));
    pass_ms(0);
    CHECK(b.err == OK && c.err == OK);
    CHECK_INT(n_rows(&outcome_table), 1);
    CHECK_INT(told_in_feed("conversation.switched", NULL), 1);
    close_another(there, router);
    stage_close();
}

TEST(whoever_is_overtaken_keeps_the_place_among_those_that_wait)
{
    enum { N = 4 };
    struct walk *here, *there;
    struct router *router;
    struct told first, t[N];
    struct query q;
    size_t i = 0;

    open_with_words();
    there = another_server(&router);
    here = stage.walk;
    stage.walk = there;
    CHECK(post(plain("bread recipes", "c"), &first));
    stage.walk = here;
    for (i = 0; i < N; i++)
        CHECK(post(plain("debugging programs", "c"), &t[i]));
    pass_ms(0);
    check_layer(&first, LAYER_SEMANTIC, "cook");
    query_init(&q, &decision_table, 100);
    query_order(&q, DECISION_SEQ, false);
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, N + 1);
    i = 0;
    QUERY_EACH(r, &q)
    {
        CHECK_STR(row_str(r, DECISION_TASK_ID),
                  i ? t[i - 1].task_id.text : first.task_id.text);
        i++;
    }
    query_fini(&q);
    for (i = 0; i < N; i++)
        check_layer(&t[i], LAYER_STICKY, "cook");
    CHECK_INT(router_stats(stage.router).waiting, 0);
    close_another(there, router);
    stage_close();
}

static void on_look(struct msg *m, enum err e, void *ctx)
{
    struct told *t = ctx;

    *t = (struct told){.is_back = true, .err = e};
    CHECK(e || m->choice.agent.n);
    msg_free(m);
}

TEST(a_look_leaves_nothing_behind_and_waits_for_nobody)
{
    struct caller c = caller_named("anna");
    struct msg *m = msg_new(&c, 1000);
    struct told t = {0};

    open_with_words();
    m->call.text = STR("bread recipes");
    m->call.conversation_id = STR("c");
    route_look(stage.router, m, on_look, &t);
    pass_ms(0);
    CHECK(t.is_back && t.err == OK);
    CHECK_INT(n_rows(&decision_table), 0);
    CHECK_INT(n_rows(&conversation_table), 0);
    CHECK_INT(router_stats(stage.router).waiting, 0);
    stage_close();
}

/* Senders who do not see the default agent do not learn its name. */
TEST(a_record_names_no_default_that_its_sender_does_not_see)
{
    static const char *const seen[] = {"", "secret"};
    struct arena a;

    for (int i = 0; i < 2; i++) {
        struct told t;

        arena_init(&a, 1 << 20);
        three_with_a_secret();
        if (i)
            stage.agents[2].visibility = VISIBILITY_PUBLIC;
        stage_start();
        t = sent(plain("bread recipes", NULL));
        check_layer(&t, LAYER_SEMANTIC, "cook");
        CHECK_STR(decision_of(&a, &t.task_id, 1).rules.default_agent, seen[i]);
        arena_fini(&a);
        stage_close();
    }
}

/* A message of an agent does not go to itself, whichever layer would choose
 * it. */
TEST(an_agent_is_not_given_what_it_sends_itself)
{
    struct letter l = plain("bread recipes", NULL);
    struct arena a;
    struct told t;

    arena_init(&a, 1 << 20);
    open_with_words();
    stage.routing.choose.default_agent = STR("Cook");
    router_set(stage.router, &stage.routing);
    t = sent(l);
    check_layer(&t, LAYER_SEMANTIC, "cook");
    CHECK(!decision_of(&a, &t.task_id, 1).is_by_agent);
    l.from = "cook";
    l.is_by_agent = true;
    CHECK_INT(sent(l).err, ERR_NO_ROUTE);
    l.text = "debugging programs";
    t = sent(l);
    check_layer(&t, LAYER_SEMANTIC, "engineer");
    CHECK(decision_of(&a, &t.task_id, 1).is_by_agent);
    l.from = "engineer";
    t = sent(l);
    check_layer(&t, LAYER_DEFAULT, "cook");
    l.text = "/engineer later";
    t = sent(l);
    check_layer(&t, LAYER_PREFIX, "engineer");
    arena_fini(&a);
    stage_close();
}

/* The limit on bytes is reached before that on messages: first one user's, then
 * that of all. */
TEST(no_more_wait_than_may)
{
    enum {
        N = ROUTING_WAITING_BYTES_MAX / MSG_TEXT_MAX,
        SHARE = N / ROUTING_SHARE,
    };
    static const char *const users[] = {"anna", "bob", "carl", "dora", "erin"};
    static struct told t[ROUTING_SHARE + 1][SHARE + 1];
    static char text[MSG_TEXT_MAX + 1];
    struct letter l = plain(text, "c");
    struct walk_opts opts;

    memset(text, 'x', MSG_TEXT_MAX);
    open_with_words();
    stage.routing.choose.default_agent = STR("cook");
    router_set(stage.router, &stage.routing);
    opts = stage_walk_opts();
    opts.limits.max_unfinished_bytes = 1 << 30;
    walk_set(stage.walk, &opts);
    for (int u = 0; u <= ROUTING_SHARE; u++)
        for (int i = 0; i <= SHARE; i++) {
            l.from = users[u];
            CHECK(post(l, &t[u][i]));
        }
    CHECK_INT(router_stats(stage.router).waiting, N);
    for (int i = 0; i < 10; i++)
        pass_ms(1);
    for (int u = 0; u <= ROUTING_SHARE; u++)
        for (int i = 0; i <= SHARE; i++)
            CHECK_INT(t[u][i].err,
                      u < ROUTING_SHARE && i < SHARE ? OK : ERR_OVERLOADED);
    CHECK_INT(router_stats(stage.router).waiting, 0);
    CHECK_INT(sent(l).err, OK);
    stage_close();
}

TEST(one_users_flood_leaves_room_for_everybody_else)
{
    enum { SHARE = ROUTING_WAITING_MAX / ROUTING_SHARE };
    static struct told t[SHARE + 1];
    struct told other;

    open_with_words();
    for (int i = 0; i <= SHARE; i++)
        CHECK(post(plain("bread", "c"), &t[i]));
    CHECK_INT(router_stats(stage.router).waiting, SHARE);
    CHECK(post((struct letter){.from = "bob",
                               .text = "bread recipes",
                               .conversation = "c",
                               .is_plain = true},
               &other));
    CHECK_INT(router_stats(stage.router).waiting, SHARE + 1);
    router_stop(stage.router);
    pass_ms(0);
    CHECK_INT(t[SHARE].err, ERR_OVERLOADED);
    CHECK_INT(t[SHARE - 1].err, ERR_STOPPING);
    CHECK_INT(other.err, ERR_STOPPING);
    CHECK_INT(router_stats(stage.router).waiting, 0);
    stage_close();
}

TEST(whoever_waits_when_it_stops_is_told_so)
{
    struct told t[3], late;

    open_with_words();
    for (int i = 0; i < 3; i++)
        CHECK(post(plain("bread recipes", "c"), &t[i]));
    router_stop(stage.router);
    CHECK(post(plain("bread recipes", "c"), &late));
    pass_ms(0);
    for (int i = 0; i < 3; i++)
        CHECK(t[i].is_back && t[i].err == ERR_STOPPING);
    CHECK_INT(late.err, ERR_STOPPING);
    CHECK_INT(n_rows(&task_table), 0);
    stage_close();
}

/* One step of routing after the other fails, the first time it is taken and the
 * second: a message is refused or accepted whole, with its decision. The walk's
 * own test fails every step of every room. */
TEST(routing_survives_every_fault_of_its_own)
{
    static const char *const steps[] = {"route.begin", "route.room",
                                        "route.hints", "choose.record",
                                        "store.read.io"};
    const struct letter letters[] = {
        plain("bread recipes", "c"),
        plain("/engineer help", "c"),
    };
    int n_fired = 0;

    open_with_words();
    for (size_t i = 0; i < 2 * sizeof(steps) / sizeof(*steps); i++) {
        struct told t;

        fault_arm_at(steps[i / 2], 1 + (long)i % 2);
        for (int k = 0; k < 2; k++)
            if (post(letters[k], &t)) {
                pass_ms(0);
                CHECK(t.is_back);
            }
        n_fired += fault_fired();
        fault_arm(0);
        CHECK_INT(n_rows(&decision_table), n_rows(&task_table));
        CHECK_INT(router_stats(stage.router).waiting, 0);
        CHECK(sent(plain("bread recipes", "c")).err == OK);
    }
    CHECK(n_fired > 5);
    stage_close();
}
