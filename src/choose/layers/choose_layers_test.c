/* Which layer decides, as a truth table; and the messages of the first and last
 * layers if their agent is gone or does not exist. */
#include "choose/layers/choose.h"

#include "base/fault.h"
#include "base/utf8.h"
#include "test/lib/choose_stage.h"
#include "test/t.h"

/* One agent for each layer, so the answer shows which one decided. */
static void stage_layers(void)
{
    STAGE("binding", "default", "explicit", "intent", "prefix", "semantic",
          "sticky");
    stage.settings.is_off[LAYER_SEMANTIC] = false;
}

static const struct binding for_telegram[] = {
    {.agent = STR("binding"), .channel = STR("telegram")}};

/* The classifier may only name a candidate, so it needs one: an agent that the
 * signals would never choose. */
static struct candidate candidates[2];

/* Every layer whose bit is set has an answer. All inputs are known, or known to
 * be missing. */
static void speak_up(unsigned layers)
{
    struct msg *m;
    bool has_intent = layers & 1u << LAYER_INTENT;
    bool has_semantic = layers & 1u << LAYER_SEMANTIC;

    stage_message();
    m = stage.m;
    m->call.conversation_id = STR("c-1");
    m->call.text =
        layers & 1u << LAYER_PREFIX ? STR("/prefix hello") : STR("hello");
    if (layers & 1u << LAYER_EXPLICIT)
        m->call.executor = STR("explicit");
    if (layers & 1u << LAYER_BINDING)
        m->call.source = STR("{\"channel\":\"telegram\"}");
    m->known.has_conversation = true;
    if (layers & 1u << LAYER_STICKY)
        m->known.stuck_to = STR("sticky");
    candidates[0] = (struct candidate){.agent = STR("intent")};
    candidates[1] = (struct candidate){
        .agent = STR("semantic"),
        .signals = {.cosine = 1, .text = 1, .learned = 1, .performance = 1}};
    m->known.has_candidates = true;
    m->known.candidates = has_intent ? candidates : candidates + 1;
    m->known.n_candidates = (size_t)has_intent + has_semantic;
    stage.settings.intent.is_on = has_intent;
    m->known.has_intent = has_intent;
    m->known.intent = (struct intent_answer){.is_asked = true,
                                             .is_good = true,
                                             .agent = STR("intent"),
                                             .confidence = 0.99};
    stage.settings.bindings = (struct bindings){for_telegram, 1};
    stage.settings.default_agent =
        layers & 1u << LAYER_DEFAULT ? STR("default") : STR("");
}

static enum layer first_of(unsigned layers, bool is_intent_first)
{
    static const enum layer orders[2][7] = {
        {LAYER_EXPLICIT, LAYER_PREFIX, LAYER_STICKY, LAYER_BINDING,
         LAYER_INTENT, LAYER_SEMANTIC, LAYER_DEFAULT},
        {LAYER_EXPLICIT, LAYER_PREFIX, LAYER_STICKY, LAYER_INTENT,
         LAYER_BINDING, LAYER_SEMANTIC, LAYER_DEFAULT},
    };

    for (size_t i = 0; i < 7; i++)
        if (layers & 1u << orders[is_intent_first][i])
            return orders[is_intent_first][i];
    return (enum layer)0;
}

static void check_row(unsigned layers, unsigned off, bool is_intent_first)
{
    enum layer right = first_of(layers & ~off, is_intent_first);
    enum layer layer = right ? right : LAYER_NONE;
    enum err e;

    speak_up(layers);
    for (unsigned l = LAYER_EXPLICIT; l <= LAYER_DEFAULT; l++)
        stage.settings.is_off[l] = off & 1u << l;
    stage.settings.intent.overrides =
        is_intent_first ? INTENT_OVER_BINDINGS : INTENT_OVER_DEFAULT;
    e = stage_ask();
    if (e != (right ? OK : ERR_NO_ROUTE) || stage.m->choice.layer != layer)
        T_FAIL("those of %#x but %#x: layer %d, not %d (%s)", layers, off,
               stage.m->choice.layer, right, stage.m->why.text);
    CHECK(str_eq(stage.m->choice.agent, right ? layer_name(right) : STR("")));
    CHECK_INT(stage.m->choice.needs, NEEDS_NOTHING);
    CHECK(stage.m->choice.reason.n);
}

enum { EVERY = 0xfe }; /* bits of layers: 1 is the first */

TEST(the_first_layer_that_has_something_to_say_decides)
{
    stage_layers();
    for (unsigned layers = 0; layers <= EVERY; layers += 2)
        for (int first = 0; first < 2; first++)
            check_row(layers, 0, first);
    stage_leave();
}

TEST(a_layer_that_is_off_says_nothing)
{
    stage_layers();
    for (unsigned layers = 0; layers <= EVERY; layers += 2)
        for (unsigned off = 0; off <= EVERY; off += 2)
            check_row(layers, off, (layers ^ off) & 2);
    stage_leave();
}

/* Inputs are requested in the order of the layers, and not before a layer that
 * answers without them. */
TEST(nothing_is_asked_for_that_a_layer_above_spares)
{
    stage_layers();
    speak_up(1u << LAYER_STICKY | 1u << LAYER_SEMANTIC);
    stage.m->known.has_conversation = stage.m->known.has_candidates = false;
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.needs, NEEDS_CONVERSATION);
    CHECK(!stage.m->choice.layer && !stage.m->choice.agent.n);
    stage.m->known.has_conversation = true;
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.needs, NEEDS_NOTHING);
    CHECK_INT(stage.m->choice.layer, LAYER_STICKY);

    speak_up(1u << LAYER_BINDING | 1u << LAYER_INTENT);
    stage.m->known.has_candidates = stage.m->known.has_intent = false;
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.layer, LAYER_BINDING);
    stage.settings.intent.overrides = INTENT_OVER_BINDINGS;
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.needs, NEEDS_CANDIDATES);
    stage.m->known.has_candidates = true;
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.needs, NEEDS_INTENT);
    CHECK(!stage.m->choice.layer && !stage.m->choice.agent.n);
    stage.settings.intent.overrides = INTENT_OVER_DEFAULT;
    speak_up(1u << LAYER_DEFAULT);
    stage.m->known.has_candidates = false;
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.needs, NEEDS_CANDIDATES);
    stage.settings.is_off[LAYER_SEMANTIC] = true;
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.layer, LAYER_DEFAULT);
    stage_leave();
}

/* An agent that is gone. */

TEST(a_conversation_whose_agent_is_gone_is_given_to_another)
{
    static const enum layer below[] = {LAYER_BINDING, LAYER_INTENT,
                                       LAYER_SEMANTIC, LAYER_DEFAULT};

    stage_layers();
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        struct str head = STR("the conversation's agent \"old\" is gone; ");

        speak_up(1u << below[i]);
        stage.m->known.stuck_to = STR("old");
        CHECK(stage_ask() == OK);
        CHECK_INT(stage.m->choice.layer, below[i]);
        CHECK(!stage.m->choice.is_switch); /* not the user's wish */
        CHECK(str_starts(stage.m->choice.reason, head));
        CHECK(stage.m->choice.reason.n > head.n);
    }
    /* A sender who named an agent had their own reasons. */
    speak_up(1u << LAYER_EXPLICIT);
    stage.m->known.stuck_to = STR("old");
    CHECK(stage_ask() == OK);
    CHECK_STR(stage.m->choice.reason, "the message names it as its executor");
    stage_leave();
}

TEST(a_conversations_agent_that_is_no_longer_seen_is_gone)
{
    stage_layers();
    speak_up(1u << LAYER_STICKY | 1u << LAYER_DEFAULT);
    CHECK(stage_ask() == OK);
    CHECK_STR(stage.m->choice.agent, "sticky");
    stage_hide(6);
    CHECK_STR(stage.list[6].name, "sticky");
    CHECK(stage_ask() == OK);
    CHECK_STR(stage.m->choice.agent, "default");
    CHECK_STR(stage.m->choice.reason,
              "the conversation's agent \"sticky\" is gone; nothing spoke "
              "clearly for another agent, and it is the default agent");
    stage_leave();
}

TEST(a_reason_is_cut_between_two_characters)
{
    static char name[AGENT_NAME_MAX + 1], said[INTENT_REASON_MAX + 2];

    stage_layers();
    memset(name, 'o', AGENT_NAME_MAX);
    for (size_t i = 0; i < INTENT_REASON_MAX; i += 2)
        memcpy(said + i, "\xc3\xa4", 2);
    for (size_t i = 0; i < 2; i++) {
        speak_up(1u << LAYER_INTENT);
        stage.m->known.stuck_to = str_sub(str_of(name), i, AGENT_NAME_MAX);
        stage.m->known.intent.reasoning = str_of(said);
        CHECK(stage_ask() == OK);
        CHECK(utf8_is_valid(stage.m->choice.reason));
        CHECK(stage.m->choice.reason.n + 1 >= DECISION_REASON_MAX);
        CHECK(stage.m->choice.reason.n <= DECISION_REASON_MAX);
    }
    stage_leave();
}

/* No agent. */

TEST(a_default_that_is_not_there_is_none)
{
    stage_layers();
    speak_up(1u << LAYER_DEFAULT);
    stage.settings.default_agent = STR("DEFAULT");
    CHECK(stage_ask() == OK);
    stage_hide(1);
    CHECK_STR(stage.list[1].name, "default");
    CHECK(stage_ask() == ERR_NO_ROUTE);
    stage.settings.default_agent = STR("gone");
    CHECK(stage_ask() == ERR_NO_ROUTE);
    stage_leave();
}

/* The sender itself. */

/* The sender is the agent that this layer, and the default, name. */
static void speak_as(enum layer l)
{
    speak_up(1u << l | 1u << LAYER_DEFAULT);
    stage.eyes.self = layer_name(l);
}

/* A sender that names itself gets the message, and so does one that named
 * itself before; bindings and the default are for messages of others. */
TEST(nobody_is_given_their_own_message_but_by_their_own_word)
{
    static const enum layer own_word[] = {LAYER_EXPLICIT, LAYER_PREFIX,
                                          LAYER_STICKY};

    for (size_t i = 0; i < 3; i++) {
        stage_layers();
        speak_as(own_word[i]);
        CHECK(stage_ask() == OK);
        CHECK_INT(stage.m->choice.layer, own_word[i]);
        CHECK(str_eq(stage.m->choice.agent, stage.eyes.self));
        stage_leave();
    }
    /* The binding is already fulfilled: the next layer is asked. */
    stage_layers();
    speak_as(LAYER_BINDING);
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.layer, LAYER_DEFAULT);
    stage.eyes.self = STR("Default");
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.layer, LAYER_BINDING);
    speak_as(LAYER_DEFAULT);
    stage.settings.default_agent = STR("DEFAULT");
    CHECK(stage_ask() == ERR_NO_ROUTE);
    /* A user of that name is not the agent. */
    stage.eyes.self = STR("");
    CHECK(stage_ask() == OK);
    stage_leave();
}

/* The sender of a message may read its record. */
TEST(a_default_that_they_do_not_see_is_not_in_the_record)
{
    struct choose_view v;
    struct decision d;

    stage_layers();
    speak_up(1u << LAYER_EXPLICIT);
    stage.settings.default_agent = STR("default");
    CHECK(stage_ask() == OK);
    v = stage_view();
    choose_decision(&v, stage.m, &d);
    CHECK_STR(d.rules.default_agent, "default");
    stage_hide(1);
    CHECK(stage_ask() == OK);
    choose_decision(&v, stage.m, &d);
    CHECK_STR(d.rules.default_agent, "");
    /* The default is in the record if it was chosen, whatever the eyes see. */
    stage_leave();
    stage_layers();
    speak_up(1u << LAYER_DEFAULT);
    CHECK(stage_ask() == OK);
    choose_decision(&(struct choose_view){.settings = &stage.settings}, stage.m,
                    &d);
    CHECK_STR(d.rules.default_agent, "default");
    stage_leave();
}

TEST(no_route_says_who_came_nearest_and_what_to_do)
{
    stage_layers();
    speak_up(1u << LAYER_SEMANTIC);
    candidates[1].signals = (struct signals){.performance = 0.5f};
    CHECK(stage_ask() == ERR_NO_ROUTE);
    CHECK(stage_says("no agent fits this message: the best, \"semantic\", has "
                     "a score of 0.100, and 0.300 is needed; name one as "
                     "executor.name, begin the text with \"/NAME\", or have "
                     "agents.default set"));
    CHECK_INT(stage.m->choice.n_candidates, 1);
    CHECK(!stage.m->choice.agent.n && stage.m->choice.layer == LAYER_NONE);
    /* 0.29988 is not 0.300, which would be enough. */
    speak_up(1u << LAYER_SEMANTIC);
    candidates[1].signals =
        (struct signals){.performance = 1.0f, .keyword = 0.6659f};
    CHECK(stage_ask() == ERR_NO_ROUTE);
    CHECK(strstr(stage.m->why.text, "score of 0.299, and 0.300 is needed"));
    stage.settings.is_off[LAYER_PREFIX] = true;
    speak_up(0);
    CHECK(stage_ask() == ERR_NO_ROUTE);
    CHECK(stage_says("there is no agent that messages are routed to; register "
                     "one (POST /api/agents), or list it as agents.list in the "
                     "configuration"));
    stage_leave();
}

static bool is_nowhere(void *ctx, const struct agent *a)
{
    (void)ctx;
    (void)a;
    return false;
}

TEST(no_route_says_how_many_cannot_be_reached)
{
    stage_layers();
    stage.settings.is_off[LAYER_PREFIX] = true;
    speak_up(1u << LAYER_SEMANTIC);
    stage.m->known.candidates = candidates;
    stage.m->known.n_candidates = 2;
    stage.m->known.is_there = is_nowhere;
    CHECK(stage_ask() == ERR_NO_ROUTE);
    CHECK(stage_says("none of the 2 agents that messages are routed to can be "
                     "reached now; try again once one is back, or name one as "
                     "executor.name, or have agents.default set"));
    stage.m->known.n_candidates = 1;
    CHECK(stage_ask() == ERR_NO_ROUTE);
    CHECK(stage_says("the only agent that messages are routed to cannot be "
                     "reached now; try again once it is back, or name one as "
                     "executor.name, or have agents.default set"));
    stage_leave();
}
