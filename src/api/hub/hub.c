/* From a message to the function of its row in api/calls.c, and the life of the
 * hub. An unknown method is answered with the nearest names. */
#include "api/hub/hub.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/calls.h"
#include "api/hub/internal.h"
#include "base/mem.h"

enum { NEAREST_MAX = 3 };

/* Suggestions. */

static size_t method_nearest(struct str written, struct str out[NEAREST_MAX])
{
    unsigned far = 2 + (unsigned)(written.n / 6), d[NEAREST_MAX];
    const struct method_row *row;
    size_t n = 0;

    for (size_t i = 0; (row = method_row(i)); i++) {
        unsigned distance = str_distance(written, row->name);
        size_t at = n;

        if (distance > far)
            continue;
        while (at > 0 && d[at - 1] > distance)
            at--;
        if (at == NEAREST_MAX)
            continue;
        n += n < NEAREST_MAX;
        for (size_t k = n - 1; k > at; k--) {
            out[k] = out[k - 1];
            d[k] = d[k - 1];
        }
        out[at] = row->name;
        d[at] = distance;
    }
    return n;
}

static void method_unknown(struct hub_call *c)
{
    struct str names[NEAREST_MAX];
    size_t n = method_nearest(c->m->method, names);
    char shown[WIRE_METHOD_MAX + 1];
    struct json_out o;
    struct why why;
    struct buf data;
    int len = snprintf(shown, sizeof(shown), "%.*s", STR_ARG(c->m->method));

    str_tame(shown, len > 0 ? (size_t)len : 0);
    buf_init(&data, 1024);
    o = json_out(&data);
    json_open(&o, '{');
    json_key(&o, STR("nearest"));
    json_open(&o, '[');
    for (size_t i = 0; i < n; i++)
        json_put_str(&o, names[i]);
    json_close(&o, ']');
    json_close(&o, '}');
    why_err(&why, OK, "there is no method \"%s\"%s%.*s%s", shown,
            n ? "; did you mean \""
              : "; docs/protocol.md lists those there are",
            STR_ARG(n ? names[0] : STR("")), n ? "\"?" : "");
    reply_bad(&c->reply, WIRE_METHOD_NOT_FOUND, str_of(why.text),
              data.over ? STR("") : buf_str(&data));
    buf_fini(&data);
}

/* Checks before a method. False: the error was sent. */

static bool method_check_scope(struct hub_call *c, const struct method_row *row)
{
    struct str scope = scope_name((enum scope)row->scope);
    char details[64];
    struct why why;

    if (c->peer->child || !row->scope || (c->peer->caller.scopes & row->scope))
        return true;
    snprintf(details, sizeof(details), "{\"scope\":\"%.*s\"}", STR_ARG(scope));
    why_err(&why, OK, "%.*s needs a token with the scope %.*s",
            STR_ARG(row->name), STR_ARG(scope));
    reply_refuse(&c->reply, ERR_NOT_ALLOWED, str_of(why.text), str_of(details));
    return false;
}

static bool method_check_role(struct hub_call *c, const struct method_row *row)
{
    struct why why;

    if (c->peer->child && !(row->flags & FOR_CHILDREN)) {
        why_err(&why, OK, "%.*s is for connections to /hub, not for children",
                STR_ARG(row->name));
        reply_bad(&c->reply, WIRE_METHOD_NOT_FOUND, str_of(why.text), STR(""));
        return false;
    }
    if ((row->flags & FOR_AGENTS) && !c->peer->line) {
        why_err(&why, OK,
                "%.*s is for agents: call agent.register on this connection "
                "first",
                STR_ARG(row->name));
        reply_refuse(&c->reply, ERR_NOT_ALLOWED, str_of(why.text), STR(""));
        return false;
    }
    return true;
}

static bool method_check_limits(struct hub_call *c,
                                const struct method_row *row)
{
    struct why why;

    if ((row->flags & NEW_WORK) && c->hub->is_stopping) {
        reply_refuse(&c->reply, ERR_STOPPING, STR(""), STR(""));
        return false;
    }
    if ((row->flags & NEW_WORK) && net_is_short(c->hub->api->net)) {
        reply_refuse(&c->reply, ERR_OVERLOADED,
                     STR("the server has too little memory left"), STR(""));
        return false;
    }
    if (!(row->flags & LATER) || !c->reply.is_awaited ||
        c->peer->n_requests < c->hub->settings.max_open)
        return true;
    why_err(&why, OK,
            "%zu requests of this connection are open; wait for some of them "
            "(hub.maxOpen)",
            c->hub->settings.max_open);
    reply_refuse(&c->reply, ERR_OVERLOADED, str_of(why.text), STR(""));
    return false;
}

static bool hub_read_params(struct hub_call *c)
{
    static const struct json none = {.type = JSON_OBJ};

    c->params = c->m->params ? c->m->params : &none;
    if (c->params->type == JSON_OBJ)
        return true;
    reply_refuse(&c->reply, ERR_BAD_REQUEST, STR("params must be an object"),
                 STR(""));
    return false;
}

static void hub_take_call(struct hub_call *c)
{
    const struct method_row *row;

    for (size_t i = 0; (row = method_row(i)); i++)
        if (str_eq(row->name, c->m->method))
            break;
    c->row = row;
    c->peer->owed_user += !row || !(row->flags & UNCOUNTED);
    if (!row) {
        method_unknown(c);
        return;
    }
    if (method_check_role(c, row) && method_check_scope(c, row) &&
        method_check_limits(c, row) && hub_read_params(c))
        row->take(c);
}

void hub_dispatch(struct peer *p, const struct wire_message *m,
                  struct gather *g)
{
    struct why why = {""};
    struct hub_call c = {.hub = p->hub,
                         .peer = p,
                         .m = m,
                         .reply = {.peer = p, .gather = g, .id = m->id}};

    p->hub->stats.messages_total++;
    p->owed++;
    switch (m->kind) {
    case WIRE_BAD:
        c.reply.is_awaited = true;
        p->owed_user++;
        reply_bad(&c.reply, WIRE_INVALID_REQUEST, str_of(m->why.text), STR(""));
        break;
    case WIRE_RESULT:
    case WIRE_ERROR:
        /* An answer without a request is only counted: an error in reply to
         * an answer helps no client. */
        if (!p->line || deliver_heard(walk_deliver(p->hub->api->walk), p->line,
                                      m, 0, &why) != OK)
            p->hub->stats.foreign_total++;
        break;
    case WIRE_REQUEST:
    case WIRE_NOTIFICATION:
        c.reply.is_awaited = m->kind == WIRE_REQUEST;
        hub_take_call(&c);
        break;
    }
}

/* Params. */

bool param_str(struct hub_call *c, const char *key, struct str *out)
{
    const struct json *v = json_get(c->params, str_of(key));
    const struct field *row = c->row->params;
    struct str s = {NULL, 0};
    struct why why;

    *out = s;
    while (row->name && strcmp(row->name, key) != 0)
        row++;
    assert(row->name); /* the row has what its function reads */
    if (!v || v->type == JSON_NULL)
        return true;
    if (v->type == JSON_STR)
        s = v->s;
    if (field_arg(row, s, out, &why) == OK)
        return true;
    reply_refuse(&c->reply, ERR_BAD_REQUEST, str_of(why.text), STR(""));
    return false;
}

void hub_word_no_task(struct str id, struct why *out)
{
    why_err(out, OK, "there is no task %.*s, or it is not yours to see",
            STR_ARG(str_head(id, 64)));
    str_tame(out->text, strlen(out->text));
}

bool param_task(struct hub_call *c, struct id *out)
{
    struct str s;
    struct why missing;

    if (!param_str(c, "task_id", &s))
        return false;
    if (!s.n) {
        reply_refuse(&c->reply, ERR_BAD_REQUEST, STR("task_id is missing"),
                     STR(""));
        return false;
    }
    if (!id_is_valid(s, "task")) { /* like an unknown one */
        hub_word_no_task(s, &missing);
        reply_refuse(&c->reply, ERR_NOT_FOUND, str_of(missing.text), STR(""));
        return false;
    }
    memcpy(out->text, s.p, s.n);
    out->text[s.n] = '\0';
    return true;
}

bool param_obj(struct hub_call *c, const char *key, const struct json **out)
{
    struct why why;

    *out = json_get(c->params, str_of(key));
    if (*out && (*out)->type == JSON_OBJ)
        return true;
    why_err(&why, OK, *out ? "%s must be an object" : "%s is missing", key);
    reply_refuse(&c->reply, ERR_BAD_REQUEST, str_of(why.text), STR(""));
    return false;
}

bool param_listen(struct hub_call *c, enum listen *out)
{
    const struct json *v = json_get(c->params, STR("listen"));

    *out = LISTEN_ALL;
    if (!v || v->type == JSON_NULL)
        return true;
    if (v->type == JSON_BOOL)
        *out = v->b ? LISTEN_ALL : LISTEN_NOTHING;
    else if (v->type == JSON_STR && str_eq(v->s, STR("result")))
        *out = LISTEN_RESULT;
    else {
        reply_refuse(&c->reply, ERR_BAD_REQUEST,
                     STR("listen must be true, false or \"result\""), STR(""));
        return false;
    }
    return true;
}

void method_ping(struct hub_call *c)
{
    struct json_out o = reply_open(&c->reply);

    json_open(&o, '{');
    json_member_int(&o, "at_ms", loop_wall_ms(c->hub->api->loop));
    json_close(&o, '}');
    reply_close(&c->reply);
}

/* Life. */

static void reap_peers(struct list *peers)
{
    struct list_node *n, *next;

    for (n = list_first(peers); n; n = next) {
        struct peer *p = LIST_OF(n, struct peer, node);

        next = list_next(peers, n);
        if (!p->n_requests && !p->is_slowed)
            peer_free(p);
    }
}

static void hub_reap(struct loop_job *job)
{
    struct hub *h = LIST_OF(job, struct hub, reap_job);

    push_reap(h);
    reap_peers(&h->gone);
    reap_peers(&h->children);
}

void peer_reap(struct hub *h)
{
    loop_at_end(h->api->loop, &h->reap_job);
}

struct hub *hub_new(struct api *api, const struct hub_settings *settings)
{
    struct hub *h = mem_new(sizeof(*h));
    const uint64_t *seed = api->by_id.seed;

    h->api = api;
    h->settings = *settings;
    h->rates = rates_new(HUB_RATES, seed);
    map_init(&h->by_id, HUB_PEERS_MAX, seed);
    map_init(&h->by_child, HUB_PEERS_MAX, seed);
    map_init(&h->by_agent, HUB_PEERS_MAX, seed);
    map_init(&h->by_key, HUB_REQUESTS_MAX, seed);
    map_init(&h->receipts, HUB_REQUESTS_MAX, seed);
    list_init(&h->peers);
    list_init(&h->children);
    list_init(&h->gone);
    list_init(&h->over_hearings);
    arena_init(&h->tree, HUB_TREE_BYTES);
    arena_init(&h->scratch, HUB_ANSWER_BYTES);
    buf_init(&h->out, HUB_ANSWER_BYTES);
    buf_init(&h->body, HUB_ANSWER_BYTES);
    h->reap_job.run = hub_reap;
    peer_sweep_soon(h);
    return h;
}

void hub_set(struct hub *h, const struct hub_settings *s)
{
    h->settings = *s;
}

void hub_stop(struct hub *h)
{
    h->is_stopping = true;
}

struct hub_stats hub_stats(const struct hub *h)
{
    return h->stats;
}

void hub_free(struct hub *h)
{
    if (!h)
        return;
    peers_stop(h);
    loop_not_at_end(&h->reap_job);
    push_reap(h);
    tell_forget_children(h);
    rates_free(h->rates);
    map_fini(&h->by_agent);
    map_fini(&h->by_key);
    map_fini(&h->by_id);
    map_fini(&h->by_child);
    map_fini(&h->receipts);
    arena_fini(&h->tree);
    arena_fini(&h->scratch);
    buf_fini(&h->out);
    buf_fini(&h->body);
    free(h);
}

/* Child processes use the same table. The open calls of one child share a peer,
 * so that hub.maxOpen counts them. The peer goes with the last answer, since
 * the hub is not told when a child goes. */
static struct peer *child_peer(struct hub *h, uint64_t line)
{
    struct str key = {(const char *)&line, sizeof(line)};
    struct peer *p = map_get(&h->by_child, key);

    if (p)
        return p;
    p = mem_new(sizeof(*p));
    peer_init(p, h);
    p->child = p->line = line;
    key.p = (const char *)&p->child;
    if (map_put(&h->by_child, key, p) != OK) {
        free(p);
        return NULL;
    }
    list_append(&h->children, &p->node);
    return p;
}

void hub_on_call(struct hub *h, uint64_t line, struct str agent,
                 const struct wire_message *m)
{
    struct peer *p = child_peer(h, line);

    if (!p)
        return;
    snprintf(p->agent, sizeof(p->agent), "%.*s", STR_ARG(agent));
    hub_dispatch(p, m, NULL);
    peer_reap(h);
}
