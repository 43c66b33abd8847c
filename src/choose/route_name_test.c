/* A conversation stays with its agent, not with the agent's name: an agent that
 * takes the name later is another one. */
#include "test/lib/walk_agents.h"

static const char card[] = "{\"description\":\"bread recipes\","
                           "\"url\":\"echo:\",\"visibility\":\"public\"}";

/* Only these agents exist; by its words the text fits each of them. */
static void open_with(const char *creator, const char *name)
{
    stage_ground();
    stage.n_agents = 0;
    stage.routing.choose.threshold = 0.15;
    stage.routing.choose.text_blend = 1;
    stage_start();
    stage_put(creator, name, card);
    pass_ms(10);
}

static void then_somebody_else(const char *before, const char *after,
                               const char *name)
{
    pass_ms(10);
    stage_take_away(before, name);
    stage_put(after, name, card);
    pass_ms(10);
}

static struct letter plain(const char *text)
{
    return (struct letter){.text = text, .conversation = "c", .is_plain = true};
}

static enum layer layer_by(const struct told *t, int64_t turn)
{
    enum layer layer = LAYER_EXPLICIT;
    struct query q;

    CHECK(t->is_back && t->err == OK);
    query_init(&q, &decision_table, 2);
    query_if(&q, DECISION_TASK_ID, IS, value_text(str_of(t->task_id.text)));
    query_if(&q, DECISION_TURN, IS, value_int(turn));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 1);
    if (q.rows)
        layer = (enum layer)row_int(q.rows, DECISION_LAYER);
    query_fini(&q);
    return layer;
}

TEST(a_conversation_does_not_follow_a_name_to_somebody_else)
{
    struct told t;

    open_with("carl", "ghost");
    t = sent(plain("bread recipes"));
    CHECK_INT(layer_by(&t, 1), LAYER_SEMANTIC);
    t = sent(plain("something private"));
    CHECK_INT(layer_by(&t, 1), LAYER_STICKY);
    then_somebody_else("carl", "bob", "ghost");
    t = sent(plain("something private"));
    CHECK_INT(t.err, ERR_NO_ROUTE);
    /* Chosen again it goes to bob's agent, which then has the conversation. */
    t = sent(plain("bread recipes"));
    CHECK_INT(layer_by(&t, 1), LAYER_SEMANTIC);
    CHECK_INT(told_in_feed("conversation.switched", NULL), 0);
    t = sent(plain("something private"));
    CHECK_INT(layer_by(&t, 1), LAYER_STICKY);
    stage_close();
}

/* The same owner removed and created it again. */
TEST(whoever_makes_their_own_agent_anew_keeps_the_conversation)
{
    struct told t;

    open_with("anna", "mine");
    t = sent(plain("bread recipes"));
    then_somebody_else("anna", "anna", "mine");
    t = sent(plain("something private"));
    CHECK_INT(layer_by(&t, 1), LAYER_STICKY);
    stage_close();
}

TEST(naming_the_new_one_overrides_nobody)
{
    struct told t;

    open_with("carl", "ghost");
    t = sent(plain("bread recipes"));
    then_somebody_else("carl", "bob", "ghost");
    stage_put("bob", "other", card);
    pass_ms(10);
    t = sent((struct letter){.to = "other", .conversation = "c"});
    CHECK_INT(t.err, OK);
    CHECK_INT(told_in_feed("conversation.switched", NULL), 0);
    t = sent(plain("something private"));
    CHECK_INT(layer_by(&t, 1), LAYER_STICKY);
    stage_close();
}

/* A further turn with one agent says nothing about another agent that has the
 * conversation. */
TEST(a_further_turn_does_not_renew_it)
{
    struct told first, t;
    struct letter more = plain("and more");

    open_with("carl", "first");
    stage_put("carl", "ghost", card);
    first = sent((struct letter){.to = "first", .conversation = "c"});
    CHECK_INT(first.err, OK);
    t = sent((struct letter){.to = "ghost", .conversation = "c"});
    CHECK_INT(t.err, OK);
    then_somebody_else("carl", "bob", "ghost");
    more.task_id = first.task_id.text;
    t = sent(more);
    CHECK_INT(layer_by(&t, 2), LAYER_STICKY);
    t = sent(plain("something private"));
    CHECK_INT(t.err, ERR_NO_ROUTE);
    stage_close();
}

TEST(a_further_turn_is_refused_where_the_name_is_somebody_elses)
{
    struct told first, t;
    struct letter more = plain("and more");

    open_with("carl", "ghost");
    first = sent(plain("bread recipes"));
    then_somebody_else("carl", "bob", "ghost");
    more.task_id = first.task_id.text;
    t = sent(more);
    CHECK_INT(t.err, ERR_AGENT_NOT_FOUND);
    CHECK(strstr(t.why.text, "another agent's now"));
    stage_close();
}
