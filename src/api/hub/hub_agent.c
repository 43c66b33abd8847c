/* agent.register, agent.update, agent.state and agent.search.
 *
 * The card is stored first, and the connection attached once that is durable,
 * so a crash never leaves a connection without a card. An agent of the
 * configuration keeps its configured card. */
#include <stdio.h>

#include "api/hub/internal.h"
#include "base/rfc3339.h"

enum { BUSY_TRIES = 100, BUSY_MS = 20 };

struct eyes peer_eyes(const struct peer *p, int64_t now_ms)
{
    struct agents all = registry_agents(p->hub->api->registry);
    const struct agent *a = p->line ? agent_find(&all, str_of(p->agent)) : NULL;
    struct eyes eyes = eyes_of(&p->caller, now_ms);

    if (p->child) /* through the eyes of its owner */
        eyes = (struct eyes){.user = a ? a->creator : STR(""),
                             .org = a ? a->org : STR(""),
                             .now_ms = now_ms};
    if (p->line)
        eyes.self = str_of(p->agent);
    return eyes;
}

/* The connection of the agent. */

static enum err peer_line_send(void *ctx, struct str message)
{
    struct peer *p = ctx;

    if (!p->id)
        return ERR_GONE;
    if (peer_is_stuck(p))
        return ERR_BUSY;
    return net_ws_send(p->hub->api->net, p->id, WS_TEXT, message);
}

/* Send no results of this agent to p any more. */
static void peer_forget_name(struct peer *p)
{
    struct hub *h = p->hub;

    if (!p->by_name[0])
        return;
    map_take(&h->by_agent, str_of(p->by_name));
    p->by_name[0] = '\0';
    tell_end_all(p);
    if (!h->is_stopping) /* otherwise the server goes, not the agent */
        delegation_agent_gone(walk_delegations(h->api->walk), str_of(p->agent));
}

static void peer_forget_line(struct peer *p)
{
    if (p->line && !p->child)
        p->hub->stats.agents--;
    p->line = 0;
    peer_forget_name(p);
}

static void peer_line_taken_over(void *ctx)
{
    struct peer *p = ctx;

    if (p->is_attaching) /* by p itself */
        return;
    peer_forget_line(p);
    peer_shut(p, HUB_TAKEN_OVER,
              STR("another connection of this agent took over"));
}

static const struct line_ops line_ops = {peer_line_send, peer_line_taken_over};

void agent_leave(struct peer *p, struct str because)
{
    uint64_t line = p->line;

    if (p->child || !line)
        return;
    peer_forget_line(p);
    deliver_detach(walk_deliver(p->hub->api->walk), line, because);
}

static enum err peer_take_name(struct peer *p)
{
    struct str low;
    struct peer *other;

    if (p->by_name[0])
        return OK;
    low = str_lowered(str_of(p->agent), p->by_name, AGENT_NAME_MAX);
    other = map_get(&p->hub->by_agent, low);
    if (other) /* has another url, and so its own connection */
        peer_forget_name(other);
    p->by_name[low.n] = '\0';
    if (map_put(&p->hub->by_agent, low, p) == OK)
        return OK;
    p->by_name[0] = '\0';
    return ERR_NOMEM;
}

/* Attach again only if the url has changed. */
static enum err peer_attach(struct peer *p, const struct agent *a)
{
    struct deliver *d = walk_deliver(p->hub->api->walk);
    uint64_t hash = hash_bytes(a->url, p->hub->api->by_id.seed);
    uint64_t before = p->line, line = 0;
    enum err e;

    if (before && hash == p->url_hash)
        return OK;
    snprintf(p->agent, sizeof(p->agent), "%.*s", STR_ARG(a->name));
    p->is_attaching = true;
    e = deliver_attach(d, a, &line_ops, p, &line);
    p->is_attaching = false;
    if (e)
        return e;
    p->line = line;
    p->url_hash = hash;
    if (before)
        deliver_detach(d, before, STR(""));
    else
        p->hub->stats.agents++;
    e = peer_take_name(p);
    if (e) {
        agent_leave(p, STR(""));
        return e;
    }
    gatekeeper_agent_changed(walk_gatekeeper(p->hub->api->walk), a->name);
    return OK;
}

/* The state of a change of the card; agent_change.c has the change. */
struct card_call {
    struct registry_change change; /* first */
    bool is_patch;
    bool has_change;
    struct str text; /* of the card, for another try */
    unsigned tries;
};

static void card_call_fini(void *own)
{
    struct card_call *k = own;

    if (k->has_change)
        registry_change_fini(&k->change);
}

static const struct request_state card_state = {
    .bytes = sizeof(struct card_call), .fini = card_call_fini};

/* The answer. */

static void agent_answer_card(struct request *o, const struct agent *a)
{
    struct hub *h = peer_of(o)->hub;
    const struct card_call *k = o->own;
    struct eyes eyes = eyes_of(&o->caller, loop_wall_ms(h->api->loop));
    struct json_out out = request_json(o);
    struct advice advice;

    json_open(&out, '{');
    json_member_text(&out, "agent", a->name);
    json_member_text(&out, "url", a->url);
    json_member_int(&out, "heartbeat_s", h->settings.heartbeat_ms / 1000);
    json_member_int(&out, "max_message_bytes", h->settings.max_message_bytes);
    json_member_text(&out, "card",
                     a->is_configured                    ? STR("configuration")
                     : k->has_change && k->change.is_new ? STR("created")
                     : k->has_change && !k->change.is_same ? STR("updated")
                                                           : STR("unchanged"));
    json_member_int(&out, "revision", a->revision);
    json_member_text(&out, "visibility", visibility_name(a->visibility));
    if (a->review) {
        json_member_text(&out, "review", review_name(a->review->state));
        json_member_str(&out, "review_reason", a->review->reason);
    }
    /* Only an owner gets advice, since only an owner can change the card. */
    if (agent_is_owned(a, &eyes)) {
        agent_advice(h->api, a, &eyes, &advice);
        json_key(&out, STR("warnings"));
        advice_write(&out, &advice);
    }
    json_close(&out, '}');
    o->front->answer(o, 200);
    if (!k->is_patch)
        tell_came(peer_of(o), hub_seat(o)->reply.gather);
    request_end(o);
}

/* The card is stored. */
static void peer_come_in(struct request *o, struct str name)
{
    struct agents all = registry_agents(o->api->registry);
    const struct agent *a = agent_find(&all, name);
    enum err e;

    if (peer_is_gone(peer_of(o))) { /* its token was revoked meanwhile */
        request_end(o);
        return;
    }
    e = a ? peer_attach(peer_of(o), a) : ERR_NOT_FOUND;
    if (e)
        request_fail(o, e);
    else
        agent_answer_card(o, a);
}

static void on_card_changed(struct request *o)
{
    const struct card_call *k = o->own;

    peer_come_in(o, str_of(k->change.name));
}

/* An agent that reconnects may meet its own last change of the card, which is
 * still on its way to the disk: it waits for that, up to BUSY_TRIES times. */

static void card_try(struct request *o, const struct json *card);

static void on_card_retry(struct timer *t)
{
    struct request *o = LIST_OF(t, struct request, timer);
    const struct card_call *k = o->own;
    struct hub *h = peer_of(o)->hub;
    struct json *card;

    if (peer_is_gone(peer_of(o))) {
        request_end(o);
        return;
    }
    hub_reset(&h->tree);
    card = json_parse(&h->tree, k->text, 0, NULL);
    if (card)
        card_try(o, card);
    else
        request_fail(o, ERR_NOMEM);
}

static bool card_keep(struct request *o, const struct json *card)
{
    struct card_call *k = o->own;
    struct buf *body = &peer_of(o)->hub->body;
    struct json_out out = json_out(body);

    if (k->text.n)
        return true;
    hub_clear(body);
    json_put(&out, card);
    return !body->over && !FAULT("hub.card") &&
           arena_keep(&o->arena, buf_str(body), &k->text);
}

static void card_try(struct request *o, const struct json *card)
{
    struct card_call *k = o->own;
    struct registry *r = o->api->registry;
    struct registry_by by = {.caller = &o->caller,
                             .now_ms = loop_wall_ms(o->api->loop),
                             .is_self = true};
    struct card_problems problems = {.n = 0};
    struct why why = {""};
    enum err e;

    e = k->is_patch
            ? registry_patch(r, &k->change, str_of(peer_of(o)->agent), card,
                             &by, &problems, &why)
            : registry_put(r, &k->change, STR(""), card, &by, &problems, &why);
    if (!e) {
        change_submit(o, on_card_changed);
    } else if (e != ERR_BUSY || k->tries++ == BUSY_TRIES ||
               !card_keep(o, card)) {
        request_refuse_card(o, e, str_of(why.text), &problems);
    } else {
        o->timer.fire = on_card_retry;
        loop_timer_set(o->api->loop, &o->timer, BUSY_MS);
        registry_change_fini(&k->change); /* and start over */
        registry_change_init(&k->change);
    }
}

static void card_change(struct hub_call *c, const struct json *card,
                        bool is_patch)
{
    struct str name = json_str_or(json_get(card, STR("name")), STR(""));
    struct peer *p = c->peer;
    struct request *o = hub_request(c, &card_state);
    struct card_call *k;

    if (!o)
        return;
    k = o->own;
    k->is_patch = is_patch;
    /* A connection belongs to one agent, from the first agent.register on:
     * requests under way count as well. */
    hub_seat(o)->is_claim = !is_patch;
    if (!is_patch && !p->n_claims++)
        snprintf(p->claimed, sizeof(p->claimed), "%.*s", STR_ARG(name));
    k->has_change = true;
    registry_change_init(&k->change);
    card_try(o, card);
}

/* The methods. */

static bool is_another_agent(struct hub_call *c, struct str name)
{
    struct peer *p = c->peer;
    const char *is = p->line ? p->agent : p->n_claims ? p->claimed : NULL;
    struct why why;

    if (!is || str_eq_nocase(name, str_of(is)))
        return false;
    why_err(&why, OK,
            "this connection already belongs to the agent \"%s\"; open "
            "another connection for another agent",
            is);
    reply_refuse(&c->reply, ERR_BAD_REQUEST, str_of(why.text), STR(""));
    return true;
}

void method_register(struct hub_call *c)
{
    struct registry_by by = {.caller = &c->peer->caller,
                             .now_ms = loop_wall_ms(c->hub->api->loop)};
    const struct agent *there;
    const struct json *card;
    struct why why = {""};
    struct str name;
    struct request *o;
    enum err e;

    if (!param_obj(c, "card", &card))
        return;
    name = json_str_or(json_get(card, STR("name")), STR(""));
    if (is_another_agent(c, name))
        return;
    e = registry_self(c->hub->api->registry, name, &by, &there, &why);
    if (e) {
        reply_refuse(&c->reply, e, str_of(why.text), STR(""));
    } else if (there && there->is_configured) {
        o = hub_request(c, &card_state);
        if (o)
            peer_come_in(o, name);
    } else {
        card_change(c, card, false);
    }
}

void method_update(struct hub_call *c)
{
    const struct json *card;

    if (param_obj(c, "card", &card))
        card_change(c, card, true);
}

/* data_at, how old the agent's data is: a time as text or in milliseconds. */
static bool agent_take_data_at(struct hub_call *c, struct deliver *d)
{
    const struct json *v = json_get(c->params, STR("data_at"));
    int64_t at_ms = json_int_or(v, 0);

    if (!v || v->type == JSON_NULL)
        return true;
    if (at_ms <= 0 && !rfc3339_read(json_str_or(v, STR("")), &at_ms)) {
        reply_refuse(&c->reply, ERR_BAD_REQUEST,
                     STR("data_at must be a time, \"2025-02-15T09:00:00Z\" or "
                         "milliseconds since 1970"),
                     STR(""));
        return false;
    }
    deliver_report_data(d, str_of(c->peer->agent), at_ms);
    return true;
}

void method_state(struct hub_call *c)
{
    struct agents all = registry_agents(c->hub->api->registry);
    const struct agent *a = agent_find(&all, str_of(c->peer->agent));
    struct deliver *d = walk_deliver(c->hub->api->walk);
    enum agent_state state;
    struct json_out o;
    struct str said;

    if (!param_str(c, "state", &said))
        return;
    state = agent_state_of(said);
    if (said.n && (!state || state == AGENT_DEAD)) {
        reply_refuse(&c->reply, ERR_BAD_REQUEST,
                     STR("state must be \"ACTIVE\", \"IDLE\", \"BUSY\", "
                         "\"SLOW\" or \"ERROR\"; null or absent to withdraw "
                         "it"),
                     STR(""));
        return;
    }
    if (!agent_take_data_at(c, d))
        return;
    deliver_report(d, str_of(c->peer->agent), state);
    gatekeeper_agent_changed(walk_gatekeeper(c->hub->api->walk),
                             str_of(c->peer->agent));
    o = reply_open(&c->reply);
    json_open(&o, '{');
    json_member_text(&o, "agent", str_of(c->peer->agent));
    json_key(&o, STR("state"));
    if (a)
        json_put_str(&o, agent_state_name(deliver_state(d, a)));
    else
        json_put_null(&o);
    json_close(&o, '}');
    reply_close(&c->reply);
}

/* As POST /api/agents/search, with the visibility of the peer. */
void method_search(struct hub_call *c)
{
    struct eyes eyes = peer_eyes(c->peer, loop_wall_ms(c->hub->api->loop));
    struct buf *body = &c->hub->body;
    struct json_out out = json_out(body);
    struct speak_search_call s;
    struct why why = {""};
    struct request *o;
    enum err e;

    hub_clear(body);
    hub_reset(&c->hub->scratch);
    json_put(&out, c->params);
    e = body->over
            ? ERR_NOMEM
            : speak_search_post(&c->hub->scratch, buf_str(body), &s, &why);
    if (e) {
        reply_refuse(&c->reply, e, str_of(why.text), STR(""));
        return;
    }
    o = hub_request(c, &search_state);
    if (o)
        search_begin(o, &s, &eyes);
}
