/* agent.register, agent.update and agent.state.
 *
 * The card is stored first, and the connection attached once that is durable,
 * so a crash never leaves a connection without a card. An agent of the
 * configuration keeps its configured card. */
#include <stdio.h>
#include <stdlib.h>

#include "api/hub/internal.h"
#include "api/share.h"
#include "base/mem.h"
#include "base/rfc3339.h"

enum { BUSY_TRIES = 100, BUSY_MS = 20 };

struct eyes peer_eyes(const struct peer *p, int64_t now_ms)
{
    struct agents all = registry_agents(p->hub->opts.registry);
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
    return net_ws_send(p->hub->opts.net, p->id, WS_TEXT, message);
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
        delegation_agent_gone(walk_delegations(h->opts.walk), str_of(p->agent));
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
    deliver_detach(walk_deliver(p->hub->opts.walk), line, because);
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
    struct deliver *d = walk_deliver(p->hub->opts.walk);
    uint64_t hash = hash_bytes(a->url, p->hub->opts.seed);
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
    gatekeeper_agent_changed(walk_gatekeeper(p->hub->opts.walk), a->name);
    return OK;
}

/* The answer. */

/* Only an owner gets advice, since only an owner can change the card. */
static void card_put_warnings(struct ask *k, const struct agent *a,
                              struct json_out *o)
{
    struct hub *h = k->hub;
    struct eyes eyes = eyes_of(&k->peer->caller, loop_wall_ms(h->opts.loop));
    struct advice advice;

    if (!agent_is_owned(a, &eyes))
        return;
    share_advice(h->opts.registry, walk_deliver(h->opts.walk), a, &eyes,
                 &advice);
    json_key(o, STR("warnings"));
    advice_write(o, &advice);
}

static void agent_answer_card(struct ask *k, const struct agent *a)
{
    struct hub *h = k->hub;
    struct json_out o = reply_open(&k->reply);

    json_open(&o, '{');
    json_member_text(&o, "agent", a->name);
    json_member_text(&o, "url", a->url);
    json_member_int(&o, "heartbeat_s", h->opts.settings.heartbeat_ms / 1000);
    json_member_int(&o, "max_message_bytes",
                    h->opts.settings.max_message_bytes);
    json_member_text(&o, "card",
                     a->is_configured                   ? STR("configuration")
                     : k->change && k->change->is_new   ? STR("created")
                     : k->change && !k->change->is_same ? STR("updated")
                                                        : STR("unchanged"));
    json_member_int(&o, "revision", a->revision);
    json_member_text(&o, "visibility", visibility_name(a->visibility));
    if (a->review) {
        json_member_text(&o, "review", review_name(a->review->state));
        json_member_str(&o, "review_reason", a->review->reason);
    }
    card_put_warnings(k, a, &o);
    json_close(&o, '}');
    reply_close(&k->reply, &o);
    if (!k->card.is_patch)
        tell_came(k->peer, k->reply.gather);
    hub_ask_end(k);
}

/* The card is stored. */
static void peer_come_in(struct ask *k, struct str name)
{
    struct agents all = registry_agents(k->hub->opts.registry);
    const struct agent *a = agent_find(&all, name);
    enum err e;

    if (peer_is_gone(k->peer)) { /* its token was revoked meanwhile */
        hub_ask_end(k);
        return;
    }
    e = a ? peer_attach(k->peer, a) : ERR_NOT_FOUND;
    if (e)
        hub_ask_refuse(k, e, STR(""), STR(""));
    else
        agent_answer_card(k, a);
}

static void on_card_written(struct tx *tx, void *ctx)
{
    struct ask *k = ctx;
    struct why why = {""};
    enum err e = registry_settle(k->hub->opts.registry, k->change, &why);

    (void)tx;
    if (!hub_ask_back(k))
        return;
    if (e)
        hub_ask_refuse(k, e, str_of(why.text), STR(""));
    else
        peer_come_in(k, str_of(k->change->name));
}

static void card_submit(struct ask *k)
{
    struct why why = {""};
    enum err e = OK;

    if (!k->change->is_same) {
        hub_ask_out(k);
        store_submit(k->hub->opts.store, &k->change->tx, on_card_written, k);
        return;
    }
    e = registry_settle(k->hub->opts.registry, k->change, &why);
    if (e)
        hub_ask_refuse(k, e, str_of(why.text), STR(""));
    else
        peer_come_in(k, str_of(k->change->name));
}

static void card_refuse(struct ask *k, enum err e,
                        const struct card_problems *p, const struct why *why)
{
    struct buf details;

    buf_init(&details, 256 * 1024);
    if (p->n)
        share_problems(&details, p);
    hub_ask_refuse(k, e, str_of(why->text),
                   details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}

/* An agent that reconnects may meet its own last change of the card, which is
 * still on its way to the disk: it waits for that, up to BUSY_TRIES times. */

static void card_try(struct ask *k, const struct json *card);

static void on_card_retry(struct timer *t)
{
    struct ask *k = LIST_OF(t, struct ask, card.again);
    struct json *card;

    if (peer_is_gone(k->peer)) {
        hub_ask_end(k);
        return;
    }
    hub_reset(&k->hub->tree);
    card = json_parse(&k->hub->tree, (struct str){k->card.text, k->card.n}, 0,
                      NULL);
    if (card)
        card_try(k, card);
    else
        hub_ask_refuse(k, ERR_NOMEM, STR(""), STR(""));
}

static bool card_keep(struct ask *k, const struct json *card)
{
    struct buf *body = &k->hub->body;
    struct json_out o = json_out(body);

    if (k->card.text)
        return true;
    hub_clear(body);
    json_put(&o, card);
    k->card.text = body->over || FAULT("hub.card") ? NULL : malloc(body->n + 1);
    if (!k->card.text)
        return false;
    memcpy(k->card.text, body->p, body->n);
    k->card.n = body->n;
    return true;
}

static bool card_will_try_again(struct ask *k, const struct json *card)
{
    if (k->card.tries++ == BUSY_TRIES || !card_keep(k, card))
        return false;
    k->card.again.fire = on_card_retry;
    loop_timer_set(k->hub->opts.loop, &k->card.again, BUSY_MS);
    return true;
}

static void card_try(struct ask *k, const struct json *card)
{
    struct registry *r = k->hub->opts.registry;
    struct registry_by by = {.caller = &k->peer->caller,
                             .now_ms = loop_wall_ms(k->hub->opts.loop),
                             .is_self = true};
    struct card_problems problems = {.n = 0};
    struct why why = {""};
    enum err e;

    e = k->card.is_patch
            ? registry_patch(r, k->change, str_of(k->peer->agent), card, &by,
                             &problems, &why)
            : registry_put(r, k->change, STR(""), card, &by, &problems, &why);
    if (!e) {
        card_submit(k);
        return;
    }
    if (e != ERR_BUSY || !card_will_try_again(k, card)) {
        card_refuse(k, e, &problems, &why);
        return;
    }
    registry_change_fini(k->change); /* and start over */
    registry_change_init(k->change);
}

/* A connection belongs to one agent, from the first agent.register on: requests
 * under way count as well. */

void agent_unclaim(struct peer *p)
{
    p->n_claims--;
}

static void card_change(struct hub_call *c, const struct json *card,
                        bool is_patch)
{
    struct str name = json_str_or(json_get(card, STR("name")), STR(""));
    struct peer *p = c->peer;
    struct ask *k = hub_ask_new(c);

    if (!k)
        return;
    k->card.is_patch = is_patch;
    k->is_claim = !is_patch;
    if (!is_patch && !p->n_claims++)
        snprintf(p->claimed, sizeof(p->claimed), "%.*s", STR_ARG(name));
    k->change = mem_new(sizeof(*k->change));
    registry_change_init(k->change);
    card_try(k, card);
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
                             .now_ms = loop_wall_ms(c->hub->opts.loop)};
    const struct agent *there;
    const struct json *card;
    struct why why = {""};
    struct str name;
    struct ask *k;
    enum err e;

    if (!param_obj(c, "card", &card))
        return;
    name = json_str_or(json_get(card, STR("name")), STR(""));
    if (is_another_agent(c, name))
        return;
    e = registry_self(c->hub->opts.registry, name, &by, &there, &why);
    if (e) {
        reply_refuse(&c->reply, e, str_of(why.text), STR(""));
    } else if (there && there->is_configured) {
        k = hub_ask_new(c);
        if (k)
            peer_come_in(k, name);
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
    struct agents all = registry_agents(c->hub->opts.registry);
    const struct agent *a = agent_find(&all, str_of(c->peer->agent));
    struct deliver *d = walk_deliver(c->hub->opts.walk);
    enum agent_state state;
    struct json_out o;
    struct str said;

    if (!param_str(c, "state", 16, &said))
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
    gatekeeper_agent_changed(walk_gatekeeper(c->hub->opts.walk),
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
    reply_close(&c->reply, &o);
}
