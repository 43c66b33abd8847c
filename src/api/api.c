/* From a request to the function of its row in calls.c: who may call, the
 * arguments, and the answer. */
#include "api/api.h"

#include <assert.h>
#include <stdio.h>

#include "api/calls.h"
#include "api/internal.h"
#include "base/fault.h"

enum { SCRATCH_BYTES = 512 * 1024 };

/* Life. */

void api_init(struct api *c, const struct api_opts *opts)
{
    *c = (struct api){.loop = opts->loop,
                      .log = opts->log,
                      .net = opts->net,
                      .walk = opts->walk,
                      .store = opts->store,
                      .feed = opts->feed,
                      .access = opts->access,
                      .registry = opts->registry,
                      .learning = opts->learning,
                      .notifiers = opts->notifiers,
                      .traces = opts->traces,
                      .rules_file = opts->rules_file,
                      .fetch = opts->fetch,
                      .embeds = opts->embeds,
                      .n_embeds = opts->n_embeds,
                      .throttle = throttle_new(opts->seed),
                      .hub = opts->hub,
                      .config = opts->config,
                      .memory = opts->memory,
                      .settings = opts->settings,
                      .started_mono_ms = loop_mono_ms(opts->loop),
                      .is_ready = true};
    buf_init(&c->body, ANSWER_BYTES);
    arena_init(&c->scratch, SCRATCH_BYTES);
    requests_init(c, opts->seed);
    throttle_set(c->throttle, &opts->settings.limits);
}

void api_fini(struct api *c)
{
    requests_fini(c);
    throttle_free(c->throttle);
    arena_fini(&c->scratch);
    buf_fini(&c->openapi);
    buf_fini(&c->body);
}

void api_set(struct api *c, const struct api_settings *s)
{
    c->settings = *s;
    c->by_id.limit = s->max_open;
    throttle_set(c->throttle, &s->limits);
}

/* Answers. */

/* Free the memory of one large answer. */
static void api_clear_body(struct api *c)
{
    size_t limit = c->body.limit;

    if (c->body.cap > ANSWER_KEEP_BYTES) {
        buf_fini(&c->body);
        buf_init(&c->body, limit);
    }
    buf_clear(&c->body);
}

/* Headers of every answer: no cache keeps it, and no browser guesses another
 * type. */
enum { N_ALWAYS = 3 };
#define ALWAYS                                           \
    {STR("Cache-Control"), STR("no-store")},             \
        {STR("X-Content-Type-Options"), STR("nosniff")}, \
    {                                                    \
        STR("Vary"), STR("Origin")                       \
    }

void api_answer_with(struct api *c, uint64_t id, int status, struct str type,
                     const struct http_header *more, size_t n)
{
    struct http_header headers[N_ALWAYS + API_HEADERS_MAX] = {ALWAYS};
    struct http_reply r = {.status = status,
                           .content_type = type,
                           .headers = headers,
                           .n_headers = N_ALWAYS + n,
                           .body = buf_str(&c->body)};

    assert(n <= API_HEADERS_MAX);
    for (size_t i = 0; i < n; i++)
        headers[N_ALWAYS + i] = more[i];
    if (c->body.over) {
        log_error(c->log, "calls.answer_too_large", LOG_I("status", status));
        api_refuse(c, id, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    net_reply(c->net, id, &r);
    api_clear_body(c);
}

void api_answer(struct api *c, uint64_t id, int status, struct str type)
{
    api_answer_with(c, id, status, type, NULL, 0);
}

static void api_refuse_with(struct api *c, uint64_t id, enum err e,
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

    api_clear_body(c);
    speak_error(&c->body, e, message, details);
    /* If not even the error fits, the status alone is sent. */
    r.body = c->body.over ? STR("") : buf_str(&c->body);
    if (header)
        *more = *header;
    else if (status == 503 || status == 429)
        *more = (struct http_header){STR("Retry-After"), STR("1")};
    else if (status == 401)
        *more = (struct http_header){STR("WWW-Authenticate"), STR("Bearer")};
    else if (status == 426) {
        more[0] = (struct http_header){STR("Upgrade"), STR("websocket")};
        more[1] = (struct http_header){STR("Sec-WebSocket-Version"), STR("13")};
        r.n_headers++;
    } else
        r.n_headers = N_ALWAYS;
    net_reply(c->net, id, &r);
    api_clear_body(c); /* the next answer starts empty */
}

void api_refuse(struct api *c, uint64_t id, enum err e, struct str message,
                struct str details)
{
    api_refuse_with(c, id, e, message, details, NULL);
}

void call_answer(struct call *c, int status, struct str type)
{
    api_answer(c->api, c->id, status, type);
}

void call_answer_json(struct call *c, int status)
{
    buf_add_char(c->body, '\n');
    api_answer(c->api, c->id, status, SPEAK_JSON);
}

/* By the first part of the path after /api/. Private objects of others get the
 * same message. */
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
    api_refuse(c->api, c->id, e, message, STR(""));
}

bool call_bad_request(struct call *c, const char *message)
{
    call_refuse(c, ERR_BAD_REQUEST, str_of(message));
    return false;
}

/* Arguments. */

struct str call_arg(const struct call *c, const char *name)
{
    for (size_t i = 0; c->arg_rows && c->arg_rows[i].name; i++)
        if (strcmp(c->arg_rows[i].name, name) == 0)
            return c->args[i];
    return (struct str){NULL, 0};
}

/* The value was checked by its row. */
int64_t call_int(const struct call *c, const char *name, int64_t unset)
{
    struct str arg = call_arg(c, name);
    int64_t v = 0;

    return arg.p && str_to_i64(arg, &v) == OK ? v : unset;
}

double call_real(const struct call *c, const char *name, double unset)
{
    struct str arg = call_arg(c, name);
    double v = 0;

    return arg.p && json_number(arg, &v) ? v : unset;
}

bool call_yes(const struct call *c, const char *name)
{
    struct str value = call_arg(c, name);

    return str_eq(value, STR("true")) || str_eq(value, STR("1"));
}

size_t call_limit(const struct call *c)
{
    return (size_t)call_int(c, "limit", LIST_LIMIT);
}

bool call_has_no_body(struct call *c)
{
    struct why why = {""};
    enum err e = speak_nothing(c->rq->body, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    return e == OK;
}

bool call_wants_events(const struct call *c)
{
    return speak_accepts(http_header(c->rq, STR("Accept")), SPEAK_EVENTS);
}

/* Finding the row. */

/* HEAD is GET without the body, which net leaves out. */
static bool row_takes_method(const struct call_row *row, struct str method)
{
    return str_eq(row->method, method) ||
           (str_eq(row->method, STR("GET")) && str_eq(method, STR("HEAD")));
}

/* The path matches the pattern; the part for its ":x" is in *param, not
 * decoded. */
static bool path_matches(struct str pattern, struct str path, struct str *param)
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

/* An earlier row has the same method and matches the path. */
static bool row_is_repeated(size_t row, struct str path)
{
    struct str param;

    for (size_t i = 0; i < row; i++)
        if (str_eq(call_row(i)->method, call_row(row)->method) &&
            path_matches(call_row(i)->path, path, &param))
            return true;
    return false;
}

static void call_refuse_method(struct call *c)
{
    const struct call_row *row;
    struct buf allow;
    struct http_header h = {.name = STR("Allow")};
    struct str param;
    char message[320];

    buf_init(&allow, 256);
    for (size_t i = 0; (row = call_row(i)); i++) {
        if (!path_matches(row->path, c->rq->path, &param) ||
            row_is_repeated(i, c->rq->path))
            continue;
        buf_add_str(&allow, allow.n ? STR(", ") : STR(""));
        buf_add_str(&allow, row->method);
        if (str_eq(row->method, STR("GET")))
            buf_add_str(&allow, STR(", HEAD"));
    }
    h.value = buf_str(&allow);
    snprintf(message, sizeof(message),
             "this path does not have that method; it has %.*s",
             STR_ARG(h.value));
    api_refuse_with(c->api, c->id, ERR_METHOD, str_of(message), STR(""), &h);
    buf_fini(&allow);
}

/* Checks before a call. False: an error was answered. */

static bool call_read_param(struct call *c, struct str raw)
{
    enum err e = OK;

    if (raw.n)
        e = speak_percent(&c->api->scratch, raw, false, &c->param);
    if (e == ERR_NOMEM) {
        call_refuse(c, e, STR(""));
        return false;
    }
    if (e || c->param.n > CALL_PARAM_MAX)
        return call_bad_request(c,
                                "the name in the path must be up to 128 bytes "
                                "of UTF-8 without control characters, with %XX "
                                "for characters that a path cannot contain");
    return true;
}

static bool call_refuse_arg(struct call *c, struct str name)
{
    char shown[48], all[256] = "";
    struct why why;
    size_t n = 0;
    int len = snprintf(shown, sizeof(shown), "%.*s",
                       STR_ARG(str_head(name, sizeof(shown) - 1)));

    str_tame(shown, len > 0 ? (size_t)len : 0);
    for (size_t i = 0; c->arg_rows && c->arg_rows[i].name && n < sizeof(all);
         i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "",
                              c->arg_rows[i].name);
    why_err(&why, ERR_BAD_REQUEST, "unknown argument \"%s\"; %s%s", shown,
            n ? "known: " : "this call has none", all);
    return call_bad_request(c, why.text);
}

static bool call_read_arg(struct call *c, struct str one)
{
    struct str value = one, name = str_cut(&value, '=');
    union {
        struct str s;
        int64_t whole;
        double real;
        bool yes;
    } checked;
    const struct field *row;
    struct why why = {""};
    size_t i = 0;
    enum err e;

    while (c->arg_rows && c->arg_rows[i].name &&
           !str_eq(str_of(c->arg_rows[i].name), name))
        i++;
    if (!c->arg_rows || !c->arg_rows[i].name)
        return call_refuse_arg(c, name);
    row = &c->arg_rows[i];
    if (c->args[i].p) {
        why_err(&why, ERR_BAD_REQUEST, "%s is given twice in the query",
                row->name);
        return call_bad_request(c, why.text);
    }
    e = speak_percent(&c->api->scratch, value, true, &c->args[i]);
    if (e && e != ERR_NOMEM)
        e = why_err(&why, ERR_BAD_REQUEST,
                    "an argument of the query must be UTF-8 without control "
                    "characters, with %%XX for characters that a query cannot "
                    "contain");
    if (!e)
        e = field_arg(row, c->args[i], &checked, &why);
    if (!e && row->type == FIELD_WORD)
        c->args[i] = checked.s;
    if (e)
        call_refuse(c, e, str_of(why.text));
    return e == OK;
}

bool call_has_twice(const struct call *c, struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < c->rq->n_headers; i++)
        n += str_eq_nocase(c->rq->headers[i].name, name);
    return n > 1;
}

static bool call_check_names(struct call *c)
{
    struct why why = {""};
    enum err e;

    if (call_has_twice(c, STR("Authorization")) ||
        call_has_twice(c, STR("Origin")) ||
        call_has_twice(c, STR("Idempotency-Key")) ||
        call_has_twice(c, STR("Last-Event-ID")) ||
        call_has_twice(c, STR("If-Match")) ||
        call_has_twice(c, STR("If-None-Match")))
        return call_bad_request(
            c, "Authorization, Origin, Idempotency-Key, Last-Event-ID, "
               "If-Match and If-None-Match may each occur only once");
    e = access_names_check(&c->api->settings.names,
                           http_header(c->rq, STR("Host")),
                           http_header(c->rq, STR("Origin")), &why);
    if (e)
        call_refuse(c, e, str_of(why.text));
    return e == OK;
}

/* Rate limits. */
static void call_refuse_rate(struct call *c, enum throttle_by by,
                             int64_t wait_ms)
{
    static const struct {
        const char *limit, *words;
    } rows[N_THROTTLES] = {
        [THROTTLE_USER] = {"user", "you call more often than rate.perUser"},
        [THROTTLE_ADDRESS] = {"address", "your address calls more often than "
                                         "rate.perAddress"},
        [THROTTLE_FAILURES] = {"failures",
                               "your address sent too many invalid tokens "
                               "(rate.failuresPerMinute)"},
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
    api_refuse_with(c->api, c->id, ERR_RATE_LIMITED, str_of(message),
                    str_of(details), &retry);
}

static bool call_check_address(struct call *c)
{
    int64_t wait_ms = throttle_request(c->api->throttle, c->rq->peer_addr,
                                       loop_mono_ms(c->api->loop));

    if (wait_ms)
        call_refuse_rate(c, THROTTLE_ADDRESS, wait_ms);
    return wait_ms == 0;
}

/* A missing token is not a guess. */
static void call_refuse_token(struct call *c, enum err e, struct str token,
                              struct str words)
{
    int64_t wait_ms = 0;

    if (e == ERR_UNAUTHENTICATED && token.n)
        wait_ms = throttle_bad_token(c->api->throttle, c->rq->peer_addr,
                                     loop_mono_ms(c->api->loop));
    if (wait_ms)
        call_refuse_rate(c, THROTTLE_FAILURES, wait_ms);
    else
        call_refuse(c, e, words);
}

/* As in an Authorization header. */
static struct str call_token(struct call *c)
{
    struct str header = http_header(c->rq, STR("Authorization"));
    struct str offered = call_offered_token(c->rq);
    char *p;

    if (header.p || !offered.n || !str_eq(c->rq->path, STR("/hub")))
        return header;
    p = arena_array(&c->api->scratch, offered.n + 8, 1);
    if (!p)
        return header;
    memcpy(p, "Bearer ", 7);
    memcpy(p + 7, offered.p, offered.n);
    return (struct str){p, offered.n + 7};
}

static bool call_check_token(struct call *c)
{
    struct why why = {""};
    int64_t wait_ms;
    struct str token = call_token(c);
    enum err e =
        access_judge(c->api->access, token, c->now_ms, &c->caller, &why);

    if (e) {
        call_refuse_token(c, e, token, str_of(why.text));
        return false;
    }
    wait_ms = throttle_caller(c->api->throttle, c->rq->peer_addr, &c->caller,
                              loop_mono_ms(c->api->loop));
    if (wait_ms)
        call_refuse_rate(c, THROTTLE_USER, wait_ms);
    return wait_ms == 0;
}

static bool call_check_scope(struct call *c, unsigned who)
{
    struct str scope = scope_name((enum scope)who);
    char details[64], message[128];

    if (who == ANY_TOKEN || (c->caller.scopes & who))
        return true;
    snprintf(details, sizeof(details), "{\"scope\":\"%.*s\"}", STR_ARG(scope));
    snprintf(message, sizeof(message), "this needs a token with the scope %.*s",
             STR_ARG(scope));
    api_refuse(c->api, c->id, ERR_NOT_ALLOWED, str_of(message),
               str_of(details));
    return false;
}

/* An admin scope suffices: older tokens do not have the scope for metrics. */
static bool call_check_metrics(struct call *c)
{
    if (!c->api->settings.figures_need_token || c->rq->is_side ||
        PLANTED("calls.open_figures"))
        return true;
    return call_check_token(c) && ((c->caller.scopes & SCOPE_ADMIN) ||
                                   call_check_scope(c, SCOPE_METRICS));
}

/* The calls at metrics.listen. */
static bool call_check_side(struct call *c, unsigned who)
{
    if (!c->rq->is_side || (who & (HEALTH | FIGURES)))
        return true;
    call_refuse(c, ERR_NOT_FOUND,
                STR("this address (metrics.listen) only has /metrics, /healthz "
                    "and /readyz"));
    return false;
}

static void call_take_row(struct call *c, const struct call_row *row,
                          struct str param)
{
    if (!(row->who & HEALTH) &&
        (!call_check_address(c) || !call_check_names(c)))
        return;
    if (!call_check_side(c, row->who) ||
        ((row->who & FIGURES) && !call_check_metrics(c)))
        return;
    if (row->who & PUBLIC) {
        row->take(c);
        return;
    }
    if (!call_check_token(c) || !call_check_scope(c, row->who))
        return;
    if (!c->api->is_ready) {
        call_refuse(c, ERR_STOPPING, STR(""));
        return;
    }
    c->arg_rows = row->args;
    if (!call_read_param(c, param))
        return;
    for (struct str rest = c->rq->query; rest.n;)
        if (!call_read_arg(c, str_cut(&rest, '&')))
            return;
    row->take(c);
}

/* No row handles the request. */
static void call_refuse_row(struct call *c)
{
    const struct call_row *row;
    struct str param;
    struct why why;

    for (size_t i = 0; (row = call_row(i)); i++)
        if (path_matches(row->path, c->rq->path, &param)) {
            call_refuse_method(c);
            return;
        }
    why_err(&why, ERR_NOT_FOUND, "there is no %.*s here; GET / lists the paths",
            STR_ARG(str_head(c->rq->path, 200)));
    call_refuse(c, ERR_NOT_FOUND, str_of(why.text));
}

void api_take(struct api *api, uint64_t id, const struct http_request *rq)
{
    struct call c = {.api = api,
                     .id = id,
                     .rq = rq,
                     .body = &api->body,
                     .now_ms = loop_wall_ms(api->loop)};
    const struct call_row *row;

    api_clear_body(api);
    arena_reset(&api->scratch);
    cors_begin(&c);
    if (cors_is_asked(&c)) {
        if (!call_check_address(&c) || !call_check_names(&c))
            return;
        if (c.is_cross)
            cors_answer(&c);
        else /* our own pages never ask */
            call_refuse_row(&c);
        return;
    }
    for (size_t i = 0; (row = call_row(i)); i++) {
        struct str param = {NULL, 0};

        if (path_matches(row->path, rq->path, &param) &&
            row_takes_method(row, rq->method)) {
            call_take_row(&c, row, param);
            return;
        }
    }
    if (call_check_address(&c))
        call_refuse_row(&c);
}
