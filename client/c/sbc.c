/* Life, turns, and who is told what. A turn is: what is due, what is to be
 * said, what came; then, and only then, callbacks. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "client/c/internal.h"

enum { AGAIN_MS = 200, BYE_TURN_MS = 50 };

#define SBC_HERE "http://127.0.0.1:8787"

int64_t sbc_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum sbc_err sbc_err_of(struct sbc *s, enum sbc_err e, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->why, sizeof(s->why), fmt, ap);
    va_end(ap);
    s->code[0] = '\0';
    return e;
}

void sbc_set_code(struct sbc *s, const char *code)
{
    snprintf(s->code, sizeof(s->code), "%s", code);
}

void sbc_say_log(struct sbc *s, const char *fmt, ...)
{
    char line[SBC_WHY_BYTES + 128];
    va_list ap;

    if (!s->log)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    s->log(s->log_ctx, line);
}

char *sbc_dup(struct str s)
{
    char *p = FAULT("sbc.alloc") ? NULL : malloc(s.n + 1);

    if (!p)
        return NULL;
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

/* Opening and closing. */

/* Take the url apart; its path is /hub unless it says another. */
static bool read_url(struct sbc *s, struct str url, struct str token)
{
    s->strings = malloc(url.n + token.n + 1);
    if (!s->strings)
        return false;
    memcpy(s->strings, url.p, url.n);
    if (token.n)
        memcpy(s->strings + url.n, token.p, token.n);
    s->token = (struct str){s->strings + url.n, token.n};
    if (url_read((struct str){s->strings, url.n}, &s->url, NULL) != OK)
        return false;
    s->target = str_eq(s->url.target, STR("/")) ? STR("/hub") : s->url.target;
    s->host = sbc_dup(s->url.host);
    snprintf(s->port, sizeof(s->port), "%u", s->url.port);
    return s->host != NULL;
}

static bool make_tls(struct sbc *s)
{
    if (!s->url.is_tls)
        return true;
    s->tls = FAULT("sbc.tls") ? NULL : SSL_CTX_new(TLS_client_method());
    if (!s->tls || SSL_CTX_set_default_verify_paths(s->tls) != 1 ||
        SSL_CTX_set_min_proto_version(s->tls, TLS1_2_VERSION) != 1)
        return false;
    SSL_CTX_set_verify(s->tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(s->tls, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return true;
}

enum sbc_err sbc_trust(struct sbc *s, const char *ca_file)
{
    if (!s->tls)
        return sbc_err_of(s, SBC_USAGE, "the url is not https or wss");
    SSL_CTX_set_cert_store(s->tls, X509_STORE_new());
    if (SSL_CTX_load_verify_file(s->tls, ca_file) != 1)
        return sbc_err_of(s, SBC_USAGE, "no certificates in %s", ca_file);
    return SBC_OK;
}

static bool make_poll(struct sbc *s)
{
    struct epoll_event e = {.events = EPOLLIN};

    s->poll_fd = FAULT("sbc.epoll") ? -1 : epoll_create1(EPOLL_CLOEXEC);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e.data.fd = s->wake_fd;
    return s->poll_fd >= 0 && s->wake_fd >= 0 &&
           epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, s->wake_fd, &e) == 0;
}

static void sbc_free(struct sbc *s)
{
    sbc_link_fini(s);
    sbc_tasks_fini(s);
    sbc_asks_fini(s);
    sbc_had_fini(s);
    buf_fini(&s->scratch);
    SSL_CTX_free(s->tls);
    if (s->poll_fd >= 0)
        close(s->poll_fd);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    free(s->strings);
    free(s->host);
    free(s->card);
    free(s);
}

static const char *url_of_environment(void)
{
    const char *url = getenv("SIGNALBOX_URL");

    return url && *url ? url : SBC_HERE;
}

struct sbc *sbc_open(const char *url, const char *token)
{
    struct sbc *s = FAULT("sbc.alloc") ? NULL : calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    url = url ? url : url_of_environment();
    token = token ? token : getenv("SIGNALBOX_TOKEN");
    s->poll_fd = s->wake_fd = -1;
    s->heartbeat_ms = SBC_HEARTBEAT_MS;
    buf_init(&s->scratch, SBC_MESSAGE_MAX);
    sbc_link_init(s);
    for (int i = 0; i < SBC_N_PLACES; i++)
        list_init(&s->jobs[i]);
    list_init(&s->waits);
    list_init(&s->sent);
    list_init(&s->inbox);
    list_init(&s->had);
    if (!read_url(s, str_of(url), str_of(token)) || !make_tls(s) ||
        !make_poll(s) ||
        (s->tls && getenv("SIGNALBOX_CA") &&
         sbc_trust(s, getenv("SIGNALBOX_CA")) != SBC_OK)) {
        sbc_free(s);
        return NULL;
    }
    return s;
}

static enum sbc_err step(struct sbc *s, int timeout_ms);

void sbc_close(struct sbc *s)
{
    int64_t end;

    if (!s)
        return;
    end = sbc_now_ms() + SBC_LINGER_MS;
    /* Being stopped would wake every wait at once. */
    epoll_ctl(s->poll_fd, EPOLL_CTL_DEL, s->wake_fd, NULL);
    while (s->link.state == LINK_OPEN && !s->fatal && sbc_now_ms() < end &&
           (!sbc_tasks_are_told(s) || !list_is_empty(&s->had)))
        (void)step(s, BYE_TURN_MS);
    sbc_link_bye(s);
    while (s->link.state == LINK_CLOSING && sbc_now_ms() < end)
        (void)step(s, BYE_TURN_MS);
    sbc_free(s);
}

const char *sbc_why(const struct sbc *s)
{
    return s->why;
}

const char *sbc_code(const struct sbc *s)
{
    return s->code;
}

void sbc_log(struct sbc *s, sbc_logger *log, void *ctx)
{
    if (!s) {
        if (log)
            log(ctx, "no memory, or SIGNALBOX_URL is no url, or SIGNALBOX_CA "
                     "no file of certificates");
        return;
    }
    s->log = log;
    s->log_ctx = ctx;
}

void sbc_print(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "%s\n", line);
}

/* Saying. */

int sbc_is_connected(const struct sbc *s)
{
    return sbc_is_ready(s);
}

bool sbc_is_ready(const struct sbc *s)
{
    return s->link.state == LINK_OPEN && (!s->card || s->is_registered);
}

bool sbc_say(struct sbc *s, int64_t id, const char *method, struct str params)
{
    struct buf *b = &s->scratch;
    struct json_out o;

    buf_clear(b);
    o = json_out(b);
    json_open(&o, '{');
    json_member_text(&o, "jsonrpc", STR("2.0"));
    if (id)
        json_member_int(&o, "id", id);
    json_member_text(&o, "method", str_of(method));
    if (params.n)
        json_member_raw(&o, "params", params);
    json_close(&o, '}');
    return !b->over && sbc_link_send(s, buf_str(b));
}

/* "result" or "error", with the id as it came. */
static bool answer(struct sbc *s, struct str id, struct str kind,
                   struct str document)
{
    struct buf *b = &s->scratch;
    struct json_out o;

    buf_clear(b);
    o = json_out(b);
    json_open(&o, '{');
    json_member_text(&o, "jsonrpc", STR("2.0"));
    json_member_raw(&o, "id", id);
    json_key(&o, kind);
    json_put_raw(&o, document);
    json_close(&o, '}');
    return !b->over && sbc_link_send(s, buf_str(b));
}

bool sbc_answer(struct sbc *s, struct str id, struct str result)
{
    return answer(s, id, STR("result"), result);
}

bool sbc_refuse(struct sbc *s, struct str id, struct str error)
{
    return answer(s, id, STR("error"), error);
}

enum sbc_err sbc_register(struct sbc *s, const char *card, sbc_handler *on_task,
                          void *ctx)
{
    struct str name = {0}, raw = str_of(card), key = STR("name");
    char *copy;

    if (!card || !on_task || json_scan(raw, &key, 1, &name, NULL) != OK ||
        name.n < 3)
        return sbc_err_of(s, SBC_USAGE,
                          "a card is a JSON object with at least a name");
    copy = sbc_dup(raw);
    if (!copy)
        return sbc_err_of(s, SBC_NOMEM, "no memory");
    if (s->is_registered) { /* a connection is one agent */
        sbc_link_lose(s, "another card");
        s->link.at_ms = 0;
    }
    free(s->card);
    s->card = copy;
    s->on_task = on_task;
    s->task_ctx = ctx;
    s->is_registered = false;
    s->register_id = 0;
    if (s->fatal == SBC_REFUSED) {
        s->fatal = SBC_OK;
        s->link.at_ms = 0;
    }
    return SBC_OK;
}

static void say_who(struct sbc *s)
{
    struct buf params;

    if (!s->card || s->is_registered || s->register_id ||
        s->link.state != LINK_OPEN)
        return;
    buf_init(&params, SBC_MESSAGE_MAX);
    buf_add_str(&params, STR("{\"card\":"));
    buf_add_str(&params, str_of(s->card));
    buf_add_char(&params, '}');
    s->register_id = ++s->next_id;
    if (params.over ||
        !sbc_say(s, s->register_id, "agent.register", buf_str(&params)))
        sbc_link_lose(s, "no memory");
    buf_fini(&params);
}

void sbc_on_open(struct sbc *s)
{
    s->is_registered = false;
    s->register_id = 0;
}

void sbc_on_lost(struct sbc *s)
{
    sbc_on_open(s);
    sbc_tasks_lost(s);
    sbc_asks_lost(s);
    sbc_had_lost(s);
}

/* Hearing. */

bool sbc_is_passing(const char *code)
{
    static const char *const passing[] = {
        "busy",         "disconnected",  "internal",   "io_error",
        "no_space",     "out_of_memory", "overloaded", "outcome_unknown",
        "rate_limited", "stopping",      "timeout",
    };

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (strcmp(code, passing[i]) == 0)
            return true;
    return false;
}

static void say_here(struct sbc *s, struct str name)
{
    sbc_say_log(s, "%.*s is here", STR_ARG(str_head(name, 256)));
}

static void on_registered(struct sbc *s, const struct json *result,
                          const struct json *error)
{
    int64_t heartbeat_s = json_int_or(json_get(result, STR("heartbeat_s")), 0);
    char why[SBC_WHY_BYTES];

    s->register_id = 0;
    if (error) {
        (void)sbc_take_error(s, error);
        if (!sbc_is_passing(s->code)) {
            s->fatal = SBC_REFUSED;
            sbc_tasks_cancel_all(s);
        }
        sbc_say_log(s, "not registered: %s", s->why);
        memcpy(why, s->why, sizeof(why));
        sbc_link_lose(s, why);
        return;
    }
    s->is_registered = true;
    s->link.n_failures = 0;
    if (heartbeat_s > 0 && heartbeat_s < 24 * 3600)
        s->heartbeat_ms = heartbeat_s * 1000;
    say_here(s, json_str_or(json_get(result, STR("agent")), STR("the agent")));
}

/* An answer to something of ours; whose it is is known by its number. */
static bool on_answer(struct sbc *s, const struct json *id,
                      const struct json *v)
{
    const struct json *result = json_get(v, STR("result"));
    const struct json *error = json_get(v, STR("error"));
    int64_t n = json_int_or(id, 0);

    if (id->type == JSON_STR && str_to_i64(id->s, &n) != OK)
        return sbc_delegation_answered(s, id->s, result, error);
    if (!s->card)
        s->link.n_failures = 0;
    if (n && n == s->register_id) {
        on_registered(s, result, error);
        return true;
    }
    return sbc_task_answered(s, n, error) && sbc_had_answered(s, n) &&
           sbc_call_answered(s, n, result, error) &&
           sbc_send_answered(s, n, result, error);
}

static bool on_call(struct sbc *s, struct str method, struct str id,
                    const struct json *params)
{
    if (str_eq(method, STR("task.execute")))
        return sbc_task_came(s, id, params);
    if (str_eq(method, STR("task.cancel"))) {
        sbc_task_cancel(s, params);
        return id.n == 0 || sbc_answer(s, id, STR("{}"));
    }
    if (str_eq(method, STR("task.chunk")))
        return sbc_heard(s, SBC_CHUNK, params);
    if (str_eq(method, STR("task.gap")))
        return sbc_heard(s, SBC_GAP, params);
    if (str_eq(method, STR("task.result")))
        return sbc_heard(s, SBC_RESULT, params);
    if (str_eq(method, STR("delegation.result")))
        return sbc_delegation_heard(s, SBC_RESULT, params);
    if (str_eq(method, STR("delegation.chunk")))
        return sbc_delegation_heard(s, SBC_CHUNK, params);
    return id.n == 0 ||
           sbc_refuse(s, id,
                      STR("{\"code\":-32601,\"message\":\"not known here\"}"));
}

/* An id as it stands in the text: what is answered with. */
static struct str raw_id(struct str text, const struct json *id)
{
    struct str rest = str_sub(text, id->at, text.n);
    size_t n = 1;

    if (id->type == JSON_STR) {
        while (n < rest.n && rest.p[n] != '"')
            n += rest.p[n] == '\\' ? 2 : 1;
        return str_sub(rest, 0, n + 1);
    }
    while (n < rest.n && strchr("0123456789+-.eE", rest.p[n]) && rest.p[n])
        n++;
    return str_sub(rest, 0, n);
}

/* It could not read what was said, nor whose call it was. */
static bool not_understood(struct sbc *s, const struct json *v)
{
    const struct json *words =
        json_get(json_get(v, STR("error")), STR("message"));

    sbc_say_log(s, "the hub did not understand: %.*s",
                STR_ARG(json_str_or(words, STR("it does not say what"))));
    return true;
}

static bool on_one(struct sbc *s, struct str text, const struct json *v)
{
    const struct json *id = json_get(v, STR("id"));
    const struct json *method = json_get(v, STR("method"));
    struct str raw = {0};

    if (v->type != JSON_OBJ)
        return false;
    if (id && id->type == JSON_NULL)
        id = NULL;
    if (id && id->type != JSON_STR && id->type != JSON_INT)
        return false;
    if (!method)
        return id ? on_answer(s, id, v) : not_understood(s, v);
    if (id)
        raw = raw_id(text, id);
    return on_call(s, json_str_or(method, STR("")), raw,
                   json_get(v, STR("params")));
}

bool sbc_on_message(struct sbc *s, struct str text)
{
    struct arena a;
    struct json *v;
    bool ok;

    arena_init(&a, SBC_TREE_MAX);
    v = json_parse(&a, text, 0, NULL);
    ok = v != NULL;
    if (ok && v->type == JSON_ARR) {
        JSON_EACH(one, v)
        ok = ok && s->link.state >= LINK_OPEN && on_one(s, text, one);
    } else if (ok) {
        ok = on_one(s, text, v);
    }
    arena_fini(&a);
    return ok;
}

/* Turns. */

static void say_all(struct sbc *s)
{
    say_who(s);
    if (sbc_is_ready(s))
        sbc_tasks_say(s);
    if (sbc_is_ready(s))
        sbc_asks_say(s);
    if (sbc_is_ready(s))
        sbc_had_say(s);
    sbc_link_flush(s);
}

/* One step, whether it was stopped or not. */
static enum sbc_err step(struct sbc *s, int timeout_ms)
{
    struct epoll_event ready[2];
    int due = sbc_link_tick(s, sbc_now_ms()), n;
    int late = sbc_delegations_tick(s, sbc_now_ms());

    say_all(s);
    if (s->fatal)
        return s->fatal;
    if (sbc_tasks_say_again(s) && due > AGAIN_MS)
        due = AGAIN_MS;
    if (s->link.state == LINK_DOWN)
        due = sbc_link_tick(s, sbc_now_ms());
    if (late < due)
        due = late;
    if (timeout_ms >= 0 && timeout_ms < due)
        due = timeout_ms;
    n = epoll_wait(s->poll_fd, ready, 2, due);
    for (int i = 0; i < n; i++)
        if (ready[i].data.fd == s->link.pipe.fd)
            sbc_link_ready(s, ready[i].events);
    if (n > 0)
        say_all(s);
    return s->fatal;
}

enum sbc_err sbc_pump(struct sbc *s, int timeout_ms)
{
    if (atomic_load(&s->is_stopped))
        return SBC_STOPPED;
    if (s->fatal)
        return s->fatal;
    return step(s, timeout_ms);
}

enum sbc_err sbc_turn(struct sbc *s, int timeout_ms)
{
    bool is_told = sbc_tell(s);
    enum sbc_err e = sbc_pump(s, is_told ? 0 : timeout_ms);

    sbc_tell(s);
    if (e == SBC_OK && !s->is_in_handler)
        sbc_tasks_run(s);
    return e;
}

enum sbc_err sbc_run(struct sbc *s)
{
    enum sbc_err e;

    do
        e = sbc_turn(s, -1);
    while (e == SBC_OK);
    return e == SBC_STOPPED ? SBC_OK : e;
}

int sbc_fd(struct sbc *s)
{
    return s->poll_fd;
}

void sbc_stop(struct sbc *s)
{
    uint64_t one = 1;
    int e = errno;

    atomic_store(&s->is_stopped, true);
    if (write(s->wake_fd, &one, sizeof(one)) < 0) {
        /* It is full, and so awake. */
    }
    errno = e;
}
