/* The table is walked from top to bottom: with a few dozen rows that is some
 * hundred nanoseconds, and a reader sees at once what there is. One
 * column is a decision nobody can forget: a row without one is refused to
 * everybody. */
#include "calls/calls.h"

#include <assert.h>
#include <stdio.h>

#include "base/fault.h"
#include "calls/internal.h"

/* Who may: nobody needs a token, any token will do, or a scope. What a load
 * balancer asks for is answered whatever name it has for us, and however often
 * it asks; everything else to our own names only, so that no web page reads it
 * through a name that was made to lead here. */
enum {
    PUBLIC = 1 << 30,
    ANY_TOKEN = 1 << 29,
    HEALTH = 1 << 28,  /* with PUBLIC */
    FIGURES = 1 << 27, /* with PUBLIC, unless metrics.public says no */
};

#define ARGS(...)                          \
    (const char *const[CALL_ARGS_MAX + 1]) \
    {                                      \
        __VA_ARGS__                        \
    }

static const struct call_row {
    struct str method, path; /* ":x" stands for one part of any name, "*" at
                              * the end for all that is left */
    void (*take)(struct call *c);
    unsigned who;
    const char *const *args; /* what the query may hold; NULL: nothing */
} table[] = {
    {STR("GET"), STR("/"), call_front, PUBLIC, NULL},
    {STR("GET"), STR("/assets/:folder/*"), call_assets, PUBLIC, NULL},
    {STR("GET"), STR("/healthz"), call_healthz, PUBLIC | HEALTH, NULL},
    {STR("GET"), STR("/readyz"), call_readyz, PUBLIC | HEALTH, NULL},
    {STR("GET"), STR("/metrics"), call_metrics, PUBLIC | FIGURES, NULL},
    {STR("GET"), STR("/hub"), call_hub, ANY_TOKEN, NULL},

    {STR("POST"), STR("/api/messages"), call_messages_post, SCOPE_SEND, NULL},
    {STR("POST"), STR("/api/envelopes"), call_envelopes_post, SCOPE_SEND, NULL},
    {STR("POST"), STR("/api/delegate"), call_delegate_post, SCOPE_SEND, NULL},
    {STR("GET"), STR("/api/delegations/:key"), call_delegations_get, SCOPE_READ,
     NULL},
    {STR("POST"), STR("/api/route"), call_route_post, SCOPE_SEND, NULL},
    {STR("POST"), STR("/api/gate"), call_gate_post, SCOPE_SEND, NULL},
    {STR("GET"), STR("/api/decisions"), call_decisions_list, SCOPE_READ,
     ARGS("limit", "cursor", "layer", "agent", "verdict", "overridden",
          "requester", "conversation_id", "task_id", "since", "until",
          "min_score", "max_score", "type", "full", "q")},
    {STR("GET"), STR("/api/decisions/:id"), call_decisions_get, SCOPE_READ,
     NULL},
    {STR("GET"), STR("/api/tasks"), call_tasks_list, SCOPE_READ,
     ARGS("limit", "cursor", "status", "agent", "conversation_id")},
    {STR("GET"), STR("/api/tasks/:id"), call_tasks_get, SCOPE_READ, NULL},
    {STR("GET"), STR("/api/tasks/:id/events"), call_tasks_events, SCOPE_READ,
     ARGS("after")},
    {STR("GET"), STR("/api/tasks/:id/tree"), call_tasks_tree, SCOPE_READ, NULL},
    {STR("GET"), STR("/api/trees"), call_trees_list, SCOPE_READ,
     ARGS("limit", "cursor", "status", "agent", "user", "since")},
    {STR("POST"), STR("/api/tasks/:id/cancel"), call_tasks_cancel, SCOPE_SEND,
     NULL},
    {STR("POST"), STR("/api/tasks/:id/input"), call_tasks_input, SCOPE_SEND,
     NULL},
    {STR("GET"), STR("/api/conversations/:id"), call_conversations_get,
     SCOPE_READ, ARGS("owner")},
    {STR("GET"), STR("/api/agents"), call_agents_list, SCOPE_READ,
     ARGS("limit", "cursor", "tag", "org", "creator", "kind", "visibility",
          "state", "q", "brief")},
    {STR("POST"), STR("/api/agents"), call_agents_post, SCOPE_AGENTS, NULL},
    /* Before NAME: "search" can be no agent's. */
    {STR("GET"), STR("/api/agents/search"), call_search_get, SCOPE_READ,
     ARGS("q", "query", "limit", "mode", "fusion", "order", "explain", "tag",
          "org", "state", "max_price_micros", "min_score")},
    {STR("POST"), STR("/api/agents/search"), call_search_post, SCOPE_READ,
     NULL},
    {STR("GET"), STR("/api/agents/:name"), call_agents_get, SCOPE_READ, NULL},
    {STR("PUT"), STR("/api/agents/:name"), call_agents_put, SCOPE_AGENTS, NULL},
    {STR("PATCH"), STR("/api/agents/:name"), call_agents_patch, SCOPE_AGENTS,
     NULL},
    {STR("DELETE"), STR("/api/agents/:name"), call_agents_delete, SCOPE_AGENTS,
     NULL},
    {STR("GET"), STR("/api/agents/:name/figures"), call_agents_figures,
     SCOPE_READ, NULL},
    {STR("GET"), STR("/api/fleet"), call_fleet_get, SCOPE_READ,
     ARGS("names", "counts")},
    {STR("POST"), STR("/api/agents/:name/wake"), call_agents_wake, SCOPE_AGENTS,
     NULL},
    {STR("POST"), STR("/api/agents/:name/restart"), call_agents_restart,
     SCOPE_AGENTS, NULL},
    {STR("POST"), STR("/api/agents/:name/pause"), call_agents_pause,
     SCOPE_AGENTS, NULL},
    {STR("POST"), STR("/api/agents/:name/resume"), call_agents_resume,
     SCOPE_AGENTS, NULL},
    {STR("GET"), STR("/api/holds"), call_holds_list, SCOPE_READ,
     ARGS("limit", "cursor", "agent", "rule", "reference", "task_id")},
    {STR("GET"), STR("/api/escalations"), call_escalations_list, SCOPE_READ,
     ARGS("limit", "cursor", "status", "kind", "agent", "task_id")},
    {STR("GET"), STR("/api/escalations/:id"), call_escalations_get, SCOPE_READ,
     NULL},
    {STR("POST"), STR("/api/escalations/:id/approve"), call_escalations_approve,
     SCOPE_ESCALATIONS, NULL},
    {STR("POST"), STR("/api/escalations/:id/reject"), call_escalations_reject,
     SCOPE_ESCALATIONS, NULL},
    {STR("POST"), STR("/api/escalations/:id/redirect"),
     call_escalations_redirect, SCOPE_ESCALATIONS, NULL},
    {STR("GET"), STR("/api/grants"), call_grants_list, SCOPE_READ,
     ARGS("limit", "cursor", "agent")},
    {STR("POST"), STR("/api/grants"), call_grants_post, SCOPE_AGENTS, NULL},
    {STR("DELETE"), STR("/api/grants/:id"), call_grants_delete, SCOPE_AGENTS,
     NULL},
    {STR("GET"), STR("/api/commands"), call_commands_get, SCOPE_READ,
     ARGS("format", "limit", "cursor", "tag", "org")},
    {STR("GET"), STR("/api/tools"), call_tools_get, ANY_TOKEN, ARGS("format")},
    {STR("POST"), STR("/api/decisions/:id/override"), call_decisions_override,
     SCOPE_SEND, NULL},
    {STR("POST"), STR("/api/decisions/:id/feedback"), call_decisions_feedback,
     SCOPE_SEND, NULL},
    {STR("GET"), STR("/api/analytics/:what"), call_analytics_get, SCOPE_READ,
     ARGS("since", "until", "window", "format", "at")},
    {STR("GET"), STR("/api/learning"), call_learning_get, SCOPE_ADMIN, NULL},
    {STR("GET"), STR("/api/learning/export"), call_learning_export, SCOPE_ADMIN,
     NULL},
    {STR("POST"), STR("/api/learning/run"), call_learning_run, SCOPE_ADMIN,
     NULL},
    {STR("POST"), STR("/api/learning/reset"), call_learning_reset, SCOPE_ADMIN,
     NULL},
    {STR("POST"), STR("/api/learning/rebuild"), call_learning_rebuild,
     SCOPE_ADMIN, NULL},
    {STR("POST"), STR("/api/learning/void"), call_learning_void, SCOPE_ADMIN,
     NULL},
    {STR("GET"), STR("/api/gate"), call_gate_get, SCOPE_READ, NULL},
    {STR("GET"), STR("/api/gate/graph"), call_gate_graph, SCOPE_READ,
     ARGS("task_id", "reference")},
    {STR("GET"), STR("/api/gate/audit"), call_gate_audit_get, SCOPE_ADMIN,
     NULL},
    {STR("POST"), STR("/api/gate/audit"), call_gate_audit_post, SCOPE_ADMIN,
     NULL},
    {STR("GET"), STR("/api/ledger/balance"), call_ledger_balance, SCOPE_READ,
     ARGS("user")},
    {STR("GET"), STR("/api/ledger/statement"), call_ledger_statement,
     SCOPE_READ,
     ARGS("user", "account", "after_ms", "before_ms", "limit", "cursor",
          "format")},
    {STR("GET"), STR("/api/ledger/accounts"), call_ledger_accounts,
     SCOPE_LEDGER, ARGS("limit", "cursor")},
    {STR("POST"), STR("/api/ledger/topup"), call_ledger_topup, SCOPE_LEDGER,
     NULL},
    {STR("POST"), STR("/api/ledger/refund"), call_ledger_refund, SCOPE_LEDGER,
     NULL},
    {STR("POST"), STR("/api/ledger/payout"), call_ledger_payout, SCOPE_LEDGER,
     NULL},
    {STR("GET"), STR("/api/ledger/check"), call_ledger_check, SCOPE_LEDGER,
     NULL},
    {STR("GET"), STR("/api/budgets"), call_budgets_list, SCOPE_READ,
     ARGS("limit", "cursor")},
    {STR("PUT"), STR("/api/budgets"), call_budgets_put, SCOPE_SEND, NULL},
    {STR("DELETE"), STR("/api/budgets"), call_budgets_delete, SCOPE_SEND,
     ARGS("user", "org", "agent", "period")},
    {STR("GET"), STR("/api/feed"), call_feed, SCOPE_READ,
     ARGS("after", "last", "limit")},

    {STR("GET"), STR("/api/config"), call_config_get, SCOPE_ADMIN, NULL},
    {STR("POST"), STR("/api/config/reload"), call_config_reload, SCOPE_ADMIN,
     NULL},
    {STR("GET"), STR("/api/me"), call_me, ANY_TOKEN, NULL},
    {STR("GET"), STR("/api/tokens"), call_tokens_list, ANY_TOKEN,
     ARGS("limit", "cursor", "user")},
    {STR("POST"), STR("/api/tokens"), call_tokens_post, ANY_TOKEN, NULL},
    {STR("DELETE"), STR("/api/tokens/:id"), call_tokens_delete, ANY_TOKEN,
     ARGS("confirm")},
    {STR("GET"), STR("/api/users"), call_users_list, SCOPE_ADMIN,
     ARGS("limit", "cursor")},
    {STR("POST"), STR("/api/users"), call_users_post, SCOPE_ADMIN, NULL},
    {STR("PATCH"), STR("/api/users/:name"), call_users_patch, SCOPE_ADMIN,
     NULL},
    {STR("DELETE"), STR("/api/users/:name"), call_users_delete, SCOPE_ADMIN,
     NULL},
};

enum { N_ROWS = sizeof(table) / sizeof(*table), SCRATCH_BYTES = 512 * 1024 };

bool calls_row(size_t i, struct call_info *out)
{
    if (i >= N_ROWS)
        return false;
    *out = (struct call_info){.method = table[i].method,
                              .path = table[i].path,
                              .is_public = table[i].who & PUBLIC,
                              .is_for_any = table[i].who == ANY_TOKEN,
                              .scope = table[i].who & SCOPE_ALL};
    return true;
}

/* Life. */

enum err calls_init(struct calls *c, const struct calls_opts *opts)
{
    *c = (struct calls){.loop = opts->loop,
                        .log = opts->log,
                        .net = opts->net,
                        .walk = opts->walk,
                        .store = opts->store,
                        .feed = opts->feed,
                        .access = opts->access,
                        .registry = opts->registry,
                        .lessons = opts->lessons,
                        .posting = opts->posting,
                        .traces = opts->traces,
                        .rulebook = opts->rulebook,
                        .fetch = opts->fetch,
                        .embeds = opts->embeds,
                        .n_embeds = opts->n_embeds,
                        .throttle = throttle_new(opts->seed),
                        .hub = opts->hub,
                        .house = opts->house,
                        .settings = opts->settings,
                        .started_mono_ms = loop_mono_ms(opts->loop),
                        .is_ready = true};
    buf_init(&c->body, ANSWER_BYTES);
    arena_init(&c->scratch, SCRATCH_BYTES);
    live_init(c, opts->seed);
    if (!c->throttle)
        return ERR_NOMEM;
    throttle_set(c->throttle, &opts->settings.limits);
    return OK;
}

void calls_fini(struct calls *c)
{
    live_fini(c);
    throttle_free(c->throttle);
    arena_fini(&c->scratch);
    buf_fini(&c->body);
}

void calls_set(struct calls *c, const struct calls_settings *s)
{
    c->settings = *s;
    c->by_id.limit = s->max_open;
    throttle_set(c->throttle, &s->limits);
}

/* Answers. */

/* One large answer is not kept in memory for ever. */
static void clear_body(struct calls *c)
{
    size_t limit = c->body.limit;

    if (c->body.cap > ANSWER_KEEP_BYTES) {
        buf_fini(&c->body);
        buf_init(&c->body, limit);
    }
    buf_clear(&c->body);
}

/* What is said to one person is kept nowhere in between, and no browser takes
 * it for anything but what it is said to be. */
enum { N_ALWAYS = 3 };
#define ALWAYS                                           \
    {STR("Cache-Control"), STR("no-store")},             \
        {STR("X-Content-Type-Options"), STR("nosniff")}, \
    {                                                    \
        STR("Vary"), STR("Origin")                       \
    }

void calls_answer_with(struct calls *c, uint64_t id, int status,
                       struct str type, const struct http_header *more,
                       size_t n)
{
    struct http_header headers[N_ALWAYS + CALLS_HEADERS_MAX] = {ALWAYS};
    struct http_reply r = {.status = status,
                           .content_type = type,
                           .headers = headers,
                           .n_headers = N_ALWAYS + n,
                           .body = buf_str(&c->body)};

    assert(n <= CALLS_HEADERS_MAX);
    for (size_t i = 0; i < n; i++)
        headers[N_ALWAYS + i] = more[i];
    if (c->body.over) {
        log_error(c->log, "calls.answer_too_large", LOG_I("status", status));
        calls_refuse(c, id, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    net_reply(c->net, id, &r);
    clear_body(c);
}

void calls_answer(struct calls *c, uint64_t id, int status, struct str type)
{
    calls_answer_with(c, id, status, type, NULL, 0);
}

/* What one would have to be upgraded to. */
static size_t put_upgrade(struct http_header headers[2])
{
    headers[0] = (struct http_header){STR("Upgrade"), STR("websocket")};
    headers[1] = (struct http_header){STR("Sec-WebSocket-Version"), STR("13")};
    return 2;
}

static void refuse_with(struct calls *c, uint64_t id, enum err e,
                        struct str message, struct str details,
                        const struct http_header *header)
{
    int status = err_row(e)->http_status;
    struct http_header headers[N_ALWAYS + 2] = {ALWAYS};
    struct http_header *more = headers + N_ALWAYS;
    struct http_reply r = {.status = status,
                           .content_type = SPEAK_JSON,
                           .headers = headers,
                           .n_headers = N_ALWAYS + 1};

    clear_body(c);
    speak_error(&c->body, e, message, details);
    /* Without memory even for that, the status alone has to do. */
    r.body = c->body.over ? STR("") : buf_str(&c->body);
    if (header)
        *more = *header;
    else if (status == 503 || status == 429)
        *more = (struct http_header){STR("Retry-After"), STR("1")};
    else if (status == 401)
        *more = (struct http_header){STR("WWW-Authenticate"), STR("Bearer")};
    else if (status == 426)
        r.n_headers = N_ALWAYS + put_upgrade(more);
    else
        r.n_headers = N_ALWAYS;
    net_reply(c->net, id, &r);
    clear_body(c); /* whoever is answered next begins with nothing */
}

void calls_refuse(struct calls *c, uint64_t id, enum err e, struct str message,
                  struct str details)
{
    refuse_with(c, id, e, message, details, NULL);
}

void call_answer(struct call *c, int status, struct str type)
{
    calls_answer(c->calls, c->id, status, type);
}

/* By the path's first part behind /api/. Private things of others are answered
 * in the same words, but for the id. */
void call_word_missing(const struct call *c, char out[CALL_MISSING_BYTES])
{
    static const struct {
        struct str part;
        const char *noun;
    } nouns[] = {
        {STR("conversations"), "conversation"},
        {STR("decisions"), "decision"},
        {STR("delegations"), "delegation"},
        {STR("escalations"), "escalation"},
        {STR("grants"), "grant"},
        {STR("tasks"), "task"},
        {STR("tokens"), "token"},
        {STR("users"), "user"},
    };
    struct str rest = str_sub(c->rq->path, strlen("/api/"), SIZE_MAX);
    struct str part = str_cut(&rest, '/');

    out[0] = '\0';
    for (size_t i = 0; c->param.n && i < sizeof(nouns) / sizeof(*nouns); i++)
        if (str_eq(part, nouns[i].part))
            snprintf(out, CALL_MISSING_BYTES,
                     "there is no %s %.*s, or it is not yours to see",
                     nouns[i].noun, STR_ARG(str_head(c->param, 64)));
    str_tame(out, strlen(out));
}

void call_refuse(struct call *c, enum err e, struct str message)
{
    char missing[CALL_MISSING_BYTES];

    if (e == ERR_NOT_FOUND && !message.n) {
        call_word_missing(c, missing);
        message = str_of(missing);
    }
    calls_refuse(c->calls, c->id, e, message, STR(""));
}

/* What every call may need. */

struct str call_arg(const struct call *c, const char *name)
{
    for (size_t i = 0; c->arg_names && c->arg_names[i]; i++)
        if (strcmp(c->arg_names[i], name) == 0)
            return c->args[i];
    return (struct str){NULL, 0};
}

bool call_limit(struct call *c, size_t *out)
{
    struct str arg = call_arg(c, "limit");
    int64_t limit = 50;

    if (arg.p && (str_to_i64(arg, &limit) || limit < 1 || limit > 500)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("limit must be a whole number from 1 to 500"));
        return false;
    }
    *out = (size_t)limit;
    return true;
}

bool call_wants_events(const struct call *c)
{
    return speak_accepts(http_header(c->rq, STR("Accept")), SPEAK_EVENTS);
}

/* Finding the row. */

/* HEAD is GET without its body, which net leaves out. */
static bool takes(const struct call_row *row, struct str method)
{
    return str_eq(row->method, method) ||
           (str_eq(row->method, STR("GET")) && str_eq(method, STR("HEAD")));
}

/* Whether the path is of the row's pattern; what stands for its ":x" is in
 * *param, not decoded. */
static bool fits(struct str pattern, struct str path, struct str *param)
{
    bool has_more;

    *param = (struct str){NULL, 0};
    do {
        struct str p, q;

        if (str_eq(pattern, STR("*")))
            return true;
        has_more = str_find(pattern, '/', 0) < pattern.n;
        if (has_more != (str_find(path, '/', 0) < path.n))
            return false;
        p = str_cut(&pattern, '/');
        q = str_cut(&path, '/');
        if (p.n && p.p[0] == ':' && q.n)
            *param = q;
        else if (!str_eq(p, q))
            return false;
    } while (has_more);
    return true;
}

/* Whether some row before this one has its method, and the path too. */
static bool is_said(size_t row, struct str path)
{
    struct str param;

    for (size_t i = 0; i < row; i++)
        if (str_eq(table[i].method, table[row].method) &&
            fits(table[i].path, path, &param))
            return true;
    return false;
}

static void refuse_method(struct call *c)
{
    struct buf allow;
    struct http_header h = {.name = STR("Allow")};
    struct str param;
    char message[320];

    buf_init(&allow, 256);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!fits(table[i].path, c->rq->path, &param) ||
            is_said(i, c->rq->path))
            continue;
        buf_add_str(&allow, allow.n ? STR(", ") : STR(""));
        buf_add_str(&allow, table[i].method);
        if (str_eq(table[i].method, STR("GET")))
            buf_add_str(&allow, STR(", HEAD"));
    }
    h.value = buf_str(&allow);
    snprintf(message, sizeof(message),
             "this path does not take that method; it takes %.*s",
             STR_ARG(h.value));
    refuse_with(c->calls, c->id, ERR_METHOD, str_of(message), STR(""), &h);
    buf_fini(&allow);
}

static void refuse_path(struct call *c)
{
    struct str path = str_sub(c->rq->path, 0, 200);
    char message[256];
    int n = snprintf(message, sizeof(message),
                     "there is no %.*s here; GET / says what there is",
                     STR_ARG(path));

    call_refuse(c, ERR_NOT_FOUND, (struct str){message, (size_t)n});
}

/* Before a call. Each says false when it has refused. */

static bool read_param(struct call *c, struct str raw)
{
    enum err e = OK;

    if (raw.n)
        e = speak_percent(&c->calls->scratch, raw, false, &c->param);
    if (e == ERR_NOMEM) {
        call_refuse(c, e, STR(""));
        return false;
    }
    if (e || c->param.n > CALL_PARAM_MAX) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("the name in the path must be up to 128 bytes of UTF-8 "
                        "without control characters, with %XX for what a path "
                        "cannot hold"));
        return false;
    }
    return true;
}

static bool refuse_arg(struct call *c, struct str name)
{
    char shown[48], all[256] = "";
    struct why why;
    size_t n = 0;
    int len = snprintf(shown, sizeof(shown), "%.*s",
                       STR_ARG(str_head(name, sizeof(shown) - 1)));

    str_tame(shown, len > 0 ? (size_t)len : 0);
    for (size_t i = 0; c->arg_names && c->arg_names[i] && n < sizeof(all); i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "",
                              c->arg_names[i]);
    why_err(&why, ERR_BAD_REQUEST, "there is no argument \"%s\" here; %s%s",
            shown, n ? "there are " : "this call takes none", all);
    call_refuse(c, ERR_BAD_REQUEST, str_of(why.text));
    return false;
}

static bool read_arg(struct call *c, struct str one)
{
    struct str value = one, name = str_cut(&value, '=');
    size_t i = 0;
    enum err e;

    while (c->arg_names && c->arg_names[i] &&
           !str_eq(str_of(c->arg_names[i]), name))
        i++;
    if (!c->arg_names || !c->arg_names[i])
        return refuse_arg(c, name);
    if (c->args[i].p) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("an argument of the query is given twice"));
        return false;
    }
    e = speak_percent(&c->calls->scratch, value, true, &c->args[i]);
    if (e)
        call_refuse(c, e == ERR_NOMEM ? e : ERR_BAD_REQUEST,
                    e == ERR_NOMEM
                        ? STR("")
                        : STR("an argument of the query must be UTF-8 without "
                              "control characters, with %XX for what a query "
                              "cannot hold"));
    return e == OK;
}

static bool read_args(struct call *c)
{
    struct str rest = c->rq->query;

    while (rest.n)
        if (!read_arg(c, str_cut(&rest, '&')))
            return false;
    return true;
}

bool call_has_twice(const struct call *c, struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < c->rq->n_headers; i++)
        n += str_eq_nocase(c->rq->headers[i].name, name);
    return n > 1;
}

static bool check_names(struct call *c)
{
    struct why why = {""};
    enum err e;

    if (call_has_twice(c, STR("Authorization")) ||
        call_has_twice(c, STR("Origin")) ||
        call_has_twice(c, STR("Idempotency-Key")) ||
        call_has_twice(c, STR("Last-Event-ID")) ||
        call_has_twice(c, STR("If-Match")) ||
        call_has_twice(c, STR("If-None-Match"))) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("Authorization, Origin, Idempotency-Key, "
                        "Last-Event-ID, If-Match and If-None-Match may each be "
                        "there only once"));
        return false;
    }
    e = access_names_check(&c->calls->settings.names,
                           http_header(c->rq, STR("Host")),
                           http_header(c->rq, STR("Origin")), &why);
    if (e)
        call_refuse(c, e, str_of(why.text));
    return e == OK;
}

/* Too often. */
static void refuse_rate(struct call *c, enum throttle_by by, int64_t wait_ms)
{
    static const struct {
        const char *limit, *words;
    } rows[N_THROTTLES] = {
        [THROTTLE_USER] = {"user", "you call more often than rate.perUser"},
        [THROTTLE_ADDRESS] = {"address", "more calls come from your address "
                                         "than rate.perAddress"},
        [THROTTLE_FAILURES] = {"failures",
                               "too many tokens that are not good came from "
                               "your address (rate.failuresPerMinute)"},
    };
    char seconds[24], details[96], message[192];
    struct http_header retry = {STR("Retry-After"), {seconds, 0}};
    int64_t s = wait_ms / 1000 + (wait_ms % 1000 != 0);

    retry.value.n =
        (size_t)snprintf(seconds, sizeof(seconds), "%lld", (long long)s);
    snprintf(details, sizeof(details),
             "{\"limit\":\"%s\",\"retry_after_ms\":%lld}", rows[by].limit,
             (long long)wait_ms);
    snprintf(message, sizeof(message), "%s; try again in %lld s",
             rows[by].words, (long long)s);
    refuse_with(c->calls, c->id, ERR_RATE_LIMITED, str_of(message),
                str_of(details), &retry);
}

static bool check_address(struct call *c)
{
    int64_t wait_ms = throttle_request(c->calls->throttle, c->rq->peer_addr,
                                       loop_mono_ms(c->calls->loop));

    if (wait_ms)
        refuse_rate(c, THROTTLE_ADDRESS, wait_ms);
    return wait_ms == 0;
}

/* Who says nothing at all guesses nothing. */
static void refuse_token(struct call *c, enum err e, struct str token,
                         struct str words)
{
    int64_t wait_ms = 0;

    if (e == ERR_UNAUTHENTICATED && token.n)
        wait_ms = throttle_bad_token(c->calls->throttle, c->rq->peer_addr,
                                     loop_mono_ms(c->calls->loop));
    if (wait_ms)
        refuse_rate(c, THROTTLE_FAILURES, wait_ms);
    else
        call_refuse(c, e, words);
}

/* As a header has it. */
static struct str token_of(struct call *c)
{
    struct str header = http_header(c->rq, STR("Authorization"));
    struct str offered = call_offered_token(c->rq);
    char *p;

    if (header.p || !offered.n || !str_eq(c->rq->path, STR("/hub")))
        return header;
    p = arena_array(&c->calls->scratch, offered.n + 8, 1);
    if (!p)
        return header;
    memcpy(p, "Bearer ", 7);
    memcpy(p + 7, offered.p, offered.n);
    return (struct str){p, offered.n + 7};
}

static bool check_token(struct call *c)
{
    struct why why = {""};
    int64_t wait_ms;
    struct str token = token_of(c);
    enum err e =
        access_judge(c->calls->access, token, c->now_ms, &c->caller, &why);

    if (e) {
        refuse_token(c, e, token, str_of(why.text));
        return false;
    }
    wait_ms = throttle_caller(c->calls->throttle, c->rq->peer_addr, &c->caller,
                              loop_mono_ms(c->calls->loop));
    if (wait_ms)
        refuse_rate(c, THROTTLE_USER, wait_ms);
    return wait_ms == 0;
}

static bool check_scope(struct call *c, unsigned who)
{
    struct str scope = scope_name((enum scope)who);
    char details[64], message[128];

    if (who == ANY_TOKEN || (c->caller.scopes & who))
        return true;
    snprintf(details, sizeof(details), "{\"scope\":\"%.*s\"}", STR_ARG(scope));
    snprintf(message, sizeof(message), "this needs a token with the scope %.*s",
             STR_ARG(scope));
    calls_refuse(c->calls, c->id, ERR_NOT_ALLOWED, str_of(message),
                 str_of(details));
    return false;
}

/* Who may see everything may see these, also with a token from before there
 * was a scope for them. */
static bool check_figures(struct call *c)
{
    if (!c->calls->settings.figures_need_token || c->rq->is_side ||
        PLANTED("calls.open_figures"))
        return true;
    return check_token(c) &&
           ((c->caller.scopes & SCOPE_ADMIN) || check_scope(c, SCOPE_METRICS));
}

/* What the address of metrics.listen has. */
static bool check_side(struct call *c, unsigned who)
{
    if (!c->rq->is_side || (who & (HEALTH | FIGURES)))
        return true;
    call_refuse(c, ERR_NOT_FOUND,
                STR("this address (metrics.listen) has /metrics, /healthz and "
                    "/readyz, and nothing else"));
    return false;
}

static void take(struct call *c, const struct call_row *row, struct str param)
{
    if (!(row->who & HEALTH) && (!check_address(c) || !check_names(c)))
        return;
    if (!check_side(c, row->who) || ((row->who & FIGURES) && !check_figures(c)))
        return;
    if (row->who & PUBLIC) {
        row->take(c);
        return;
    }
    if (!check_token(c) || !check_scope(c, row->who))
        return;
    if (!c->calls->is_ready) {
        call_refuse(c, ERR_STOPPING, STR(""));
        return;
    }
    c->arg_names = row->args;
    if (read_param(c, param) && read_args(c))
        row->take(c);
}

/* There is none that takes it. */
static void refuse_row(struct call *c)
{
    struct str param;

    for (size_t i = 0; i < N_ROWS; i++)
        if (fits(table[i].path, c->rq->path, &param)) {
            refuse_method(c);
            return;
        }
    refuse_path(c);
}

/* A page of our own never asks. */
static void take_cors(struct call *c)
{
    if (!check_address(c) || !check_names(c))
        return;
    if (c->is_cross)
        cors_answer(c);
    else
        refuse_row(c);
}

void calls_take(struct calls *calls, uint64_t id, const struct http_request *rq)
{
    struct call c = {.calls = calls,
                     .id = id,
                     .rq = rq,
                     .body = &calls->body,
                     .now_ms = loop_wall_ms(calls->loop)};

    clear_body(calls);
    arena_reset(&calls->scratch);
    cors_begin(&c);
    if (cors_is_asked(&c)) {
        take_cors(&c);
        return;
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        struct str param = {NULL, 0};

        if (fits(table[i].path, rq->path, &param) &&
            takes(&table[i], rq->method)) {
            take(&c, &table[i], param);
            return;
        }
    }
    if (check_address(&c))
        refuse_row(&c);
}
