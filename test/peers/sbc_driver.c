/* The C client as a child of a test: commands in, one JSON object a line,
 * answers and events out, as sdk_driver.py does it for the Python client.
 * sdk_cases.py has the cases. It is linked with the server's own rooms and
 * with the client's library: names that both have do not meet. */
#include <fcntl.h>
#include <poll.h>
#include <signalbox_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/json.h"

enum { LINE_MAX = 8 << 20, HELD_MAX = 64, CONNECT_MS = 15000 };

static struct sbc *hub;
static char agent[160];
static bool is_closed;

static struct held {
    struct sbc_task *task;
    bool is_half;
} held[HELD_MAX];

struct sending {
    int64_t n;
    bool has_chunks, is_envelope;
    bool has_mark;     /* of a delegation: its result is followed by a call */
    const char *asked; /* likewise: its message */
    struct buf pieces; /* JSON, without brackets */
    struct buf heard;
};

/* Saying. */

static struct json_out out_open(struct buf *b)
{
    struct json_out o;

    buf_init(b, LINE_MAX);
    o = json_out(b);
    json_open(&o, '{');
    return o;
}

static void out_close(struct buf *b, struct json_out *o)
{
    json_close(o, '}');
    buf_add_char(b, '\n');
    for (size_t at = 0; at < b->n;) {
        ssize_t n = write(STDOUT_FILENO, b->p + at, b->n - at);
        if (n <= 0)
            exit(1);
        at += (size_t)n;
    }
    buf_fini(b);
}

static void put_str(struct json_out *o, const char *key, struct str value)
{
    json_key(o, str_of(key));
    if (value.p)
        json_put_str(o, value);
    else
        json_put_null(o);
}

static void ok(int64_t n, const char *json)
{
    struct buf b;
    struct json_out o = out_open(&b);

    json_member_int(&o, "n", n);
    json_member_raw(&o, "ok", str_of(json));
    out_close(&b, &o);
}

static void no(int64_t n, const char *code, const char *words, const char *data)
{
    struct buf b;
    struct json_out o = out_open(&b);

    json_member_int(&o, "n", n);
    json_key(&o, STR("error"));
    json_open(&o, '{');
    put_str(&o, "code", str_of(code));
    put_str(&o, "message", str_of(words));
    json_member_raw(&o, "data", str_of(data));
    json_close(&o, '}');
    out_close(&b, &o);
}

static void event(const char *kind, const char *key, const char *value)
{
    struct buf b;
    struct json_out o = out_open(&b);

    put_str(&o, "event", str_of(kind));
    if (key)
        put_str(&o, key, str_of(value));
    if (strcmp(kind, "cancelled") == 0)
        json_member_bool(&o, "is_set", true);
    out_close(&b, &o);
}

/* Working. */

static void say_task(const struct sbc_task *t)
{
    struct buf b;
    struct json_out o = out_open(&b);
    struct str text = {t->text, t->text_bytes};

    put_str(&o, "event", STR("task"));
    put_str(&o, "id", str_of(t->id));
    json_member_int(&o, "turn", t->turn);
    json_member_int(&o, "attempt", t->attempt);
    put_str(&o, "message", str_head(text, 100));
    json_member_int(&o, "n", (int64_t)text.n);
    put_str(&o, "skill_id", str_of(t->skill));
    put_str(&o, "session_id", str_of(t->conversation));
    json_member_int(&o, "deadline_ms", t->deadline_ms);
    json_member_raw(&o, "metadata", str_of(t->metadata));
    json_member_raw(&o, "envelope", str_of(t->envelope ? t->envelope : "null"));
    out_close(&b, &o);
}

static void hold(struct sbc_task *t, bool is_half)
{
    for (int i = 0; i < HELD_MAX; i++)
        if (!held[i].task) {
            held[i] = (struct held){t, is_half};
            sbc_keep(t);
            return;
        }
    sbc_fail(t, "full", "too many are held");
}

static void stream(struct sbc_task *t, struct str words)
{
    while (words.n) {
        size_t n = str_find(words, ' ', 0);

        n = n < words.n ? n + 1 : n;
        if (sbc_chunk_bytes(t, words.p, n) != SBC_OK)
            return;
        words = str_sub(words, n, words.n);
    }
}

static void big(struct sbc_task *t)
{
    size_t n = strtoul(t->text + 4, NULL, 10);
    char *text = malloc(n + 1);

    memset(text, 'x', n);
    text[n] = '\0';
    if (sbc_done(t, text, NULL) == SBC_LIMIT)
        sbc_fail(t, "too_large", sbc_why(hub));
    free(text);
}

static void shout(struct sbc_task *t)
{
    for (size_t i = 0; i < t->text_bytes; i++) {
        char c = t->text[i];
        c = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
        sbc_chunk_bytes(t, &c, 1);
    }
}

/* Ends that are none; a handler that ignores what is returned. */
static void bad(struct sbc_task *t, struct str what)
{
    static char large[1200000] = "{\"a\":\"";

    memset(large + 6, 'x', sizeof(large) - 9);
    memcpy(large + sizeof(large) - 3, "\"}", 3);
    sbc_done(t, str_eq(what, STR("text")) ? "half a \xf0\x9f\xa5 pair" : "good",
             str_eq(what, STR("text"))     ? NULL
             : str_eq(what, STR("string")) ? "\"pages\""
             : str_eq(what, STR("list"))   ? "[1]"
             : str_eq(what, STR("large"))  ? large
                                           : "{\"pages\":NaN}");
}

/* "hire AGENT SKILL WORDS" */
static void delegation(struct sbc_task *t, struct str rest)
{
    struct str who = str_cut(&rest, ' '), what = str_cut(&rest, ' ');
    char agent_name[64], skill[64], answer[4096], *text;
    struct sbc_delegation d = {.agent = agent_name,
                               .skill = skill,
                               .message = rest.p,
                               .message_bytes = rest.n};

    snprintf(agent_name, sizeof(agent_name), "%.*s", STR_ARG(who));
    snprintf(skill, sizeof(skill), "%.*s", STR_ARG(what));
    text = sbc_delegate_wait(hub, &d, NULL);
    if (text) {
        snprintf(answer, sizeof(answer), "%s said %s", agent_name, text);
        sbc_done(t, answer, NULL);
    } else {
        sbc_fail(t, sbc_code(hub), sbc_why(hub));
    }
    free(text);
}

static void on_passed(void *ctx, const struct sbc_news *n)
{
    struct sbc_task *t = ctx;
    char answer[4096];

    if (n->kind == SBC_FAILED)
        sbc_fail(t, n->code, n->error);
    if (n->kind != SBC_RESULT)
        return;
    snprintf(answer, sizeof(answer), "parrot said %s", n->text);
    sbc_done(t, answer, NULL);
}

/* "pass_on parrot WORDS", as a message */
static void pass_on(struct sbc_task *t, struct str rest)
{
    struct str who = str_cut(&rest, ' ');
    char to[64];
    struct sbc_message m = {
        .text = rest.p, .text_bytes = rest.n, .to = to, .parent_task = t->id};

    snprintf(to, sizeof(to), "%.*s", STR_ARG(who));
    sbc_keep(t); /* until its answer is there */
    if (sbc_send(hub, &m, on_passed, t) != SBC_OK)
        sbc_fail(t, sbc_code(hub), sbc_why(hub));
}

static void count_over(void *ctx, const struct sbc_news *n)
{
    *(int *)ctx += n->kind == SBC_RESULT;
}

/* "hireboth AGENT SKILL WORDS": twice at once, and once more */
static void delegation_both(struct sbc_task *t, struct str rest)
{
    struct str who = str_cut(&rest, ' '), what = str_cut(&rest, ' ');
    char agent_name[64], skill[64], answer[4096], *text[2] = {NULL, NULL};
    struct sbc_delegation d = {.agent = agent_name,
                               .skill = skill,
                               .message = rest.p,
                               .message_bytes = rest.n};
    int n_over = 0;

    snprintf(agent_name, sizeof(agent_name), "%.*s", STR_ARG(who));
    snprintf(skill, sizeof(skill), "%.*s", STR_ARG(what));
    if (sbc_delegate(hub, &d, count_over, &n_over) == SBC_OK)
        text[0] = sbc_delegate_wait(hub, &d, NULL);
    if (text[0] && n_over == 1)
        text[1] = sbc_delegate_wait(hub, &d, NULL);
    snprintf(answer, sizeof(answer), "%s %s", text[0] ? text[0] : "nothing",
             text[1] ? text[1] : "nothing");
    sbc_done(t, answer, NULL);
    free(text[0]);
    free(text[1]);
}

/* "consult AGENT WORDS", whose own words are shown */
static void consult(struct sbc_task *t, struct str rest)
{
    struct str who = str_cut(&rest, ' ');
    struct arena a;
    struct json *v;
    struct buf b;
    struct json_out o = out_open(&b);
    char *answer;

    sbc_chunk(t, "Let me ask. ");
    put_str(&o, "agentId", who);
    put_str(&o, "task", rest);
    json_member_bool(&o, "stream", true);
    json_close(&o, '}');
    buf_add_char(&b, '\0');
    answer = sbc_delegate_to_agent(hub, b.p);
    buf_fini(&b);
    arena_init(&a, LINE_MAX);
    v = answer ? json_parse(&a, str_of(answer), 0, NULL) : NULL;
    buf_init(&b, LINE_MAX);
    buf_add_str(&b, json_str_or(json_get(v, STR("status")), STR("nothing")));
    buf_add_str(&b, STR(": "));
    buf_add_str(&b, json_str_or(json_get(v, STR("response")), STR("")));
    sbc_chunk_bytes(t, b.p, b.n);
    buf_fini(&b);
    arena_fini(&a);
    free(answer);
}

static void on_task(void *ctx, struct sbc_task *t)
{
    struct str text = {t->text, t->text_bytes}, verb = str_cut(&text, ' ');

    (void)ctx;
    say_task(t);
    if (str_eq(verb, STR("echo")))
        sbc_chunk_bytes(t, text.p, text.n);
    else if (str_eq(verb, STR("stream")) || str_eq(verb, STR("write")))
        stream(t, text);
    else if (str_eq(verb, STR("half")) && sbc_chunk(t, "begun ") == SBC_OK)
        hold(t, true);
    else if (str_eq(verb, STR("hold")))
        hold(t, false);
    else if (str_eq(verb, STR("fail")))
        sbc_fail(t, strcmp(t->text, "fail coded") == 0 ? "out_of_paper" : NULL,
                 t->text);
    else if (str_eq(verb, STR("bad")))
        bad(t, text);
    else if (str_eq(verb, STR("hire")))
        delegation(t, text);
    else if (str_eq(verb, STR("pass_on")))
        pass_on(t, text);
    else if (str_eq(verb, STR("hireboth")))
        delegation_both(t, text);
    else if (str_eq(verb, STR("consult")))
        consult(t, text);
    else if (str_eq(verb, STR("broken")))
        sbc_chunk(t, "half a \xf0\x9f\xa5 pair");
    else if (str_eq(verb, STR("meta")))
        sbc_done(t, "with more", "{\"pages\":3}");
    else if (str_eq(verb, STR("big")))
        big(t);
    else if (str_eq(verb, STR("plain")))
        shout(t);
}

static void look_at_held(void)
{
    for (int i = 0; i < HELD_MAX; i++)
        if (held[i].task && sbc_is_cancelled(held[i].task)) {
            event("cancelled", "task", held[i].task->id);
            sbc_done(held[i].task, NULL, NULL);
            held[i].task = NULL;
        }
}

static void release(int64_t n, struct str message, struct str text)
{
    char answer[256];

    for (int i = 0; i < HELD_MAX; i++)
        if (held[i].task && str_eq(str_of(held[i].task->text), message)) {
            snprintf(answer, sizeof(answer), "%s%.*s",
                     held[i].is_half ? "begun " : "", STR_ARG(text));
            sbc_done(held[i].task, answer, NULL);
            held[i].task = NULL;
            ok(n, "null");
            return;
        }
    no(n, "not_held", "no such task is held", "{}");
}

/* Asking. */

static void piece(struct sending *g, struct str text)
{
    struct buf b;
    struct json_out o = out_open(&b), all = json_out(&g->pieces);

    put_str(&o, "event", STR("piece"));
    put_str(&o, "text", text);
    out_close(&b, &o);
    all.comma = g->pieces.n > 0;
    json_put_str(&all, text);
    buf_add_str(&g->heard, text);
}

static void sent_well(struct sending *g, const struct sbc_news *n)
{
    struct str text = {n->text, n->text_bytes}, heard = buf_str(&g->heard);
    struct buf b, more;

    if (g->has_chunks && text.n > heard.n && str_starts(text, heard))
        piece(g, str_sub(text, heard.n, text.n));
    buf_init(&b, LINE_MAX);
    buf_init(&more, LINE_MAX);
    buf_add_char(&more, '[');
    buf_add_str(&more, buf_str(&g->pieces));
    buf_add_char(&more, ']');
    if (json_splice(&b, str_of(n->json), STR("pieces"), buf_str(&more), NULL))
        abort();
    buf_add_char(&b, '\0');
    ok(g->n, b.p);
    buf_fini(&b);
    buf_fini(&more);
}

/* {"event":"routing", and what was decided. */
static void say_routing(const char *answer)
{
    struct str key = STR("routing"), found;
    struct buf b;

    buf_init(&b, LINE_MAX);
    if (json_scan(str_of(answer), &key, 1, &found, NULL) != OK || !found.n ||
        json_splice(&b, found, STR("event"), STR("\"routing\""), NULL) != OK)
        abort();
    buf_add_char(&b, '\n');
    if (write(STDOUT_FILENO, b.p, b.n) != (ssize_t)b.n)
        exit(1);
    buf_fini(&b);
}

/* {"event":KIND, and all that was said. */
static void say_news(const char *kind, const char *of, const struct sbc_news *n)
{
    struct buf b;
    struct json_out o = out_open(&b);
    struct arena a;
    struct json *v;

    arena_init(&a, 64 << 20);
    v = json_parse(&a, str_of(n->json), 0, NULL);
    put_str(&o, "event", str_of(kind));
    if (of)
        put_str(&o, "of", str_of(of));
    if (v)
        JSON_EACH(kid, v)
        {
            json_key(&o, kid->key);
            json_put(&o, kid);
        }
    out_close(&b, &o);
    arena_fini(&a);
}

static void hears(void *ctx, const struct sbc_news *n)
{
    struct sending *g = ctx;

    if (n->kind == SBC_ASIDE)
        say_news("aside", NULL, n);

    if (n->kind == SBC_ACCEPTED && g->is_envelope)
        say_routing(n->json);
    if (n->kind == SBC_ACCEPTED && g->has_chunks)
        event("accepted", "task", n->task_id);
    else if (n->kind == SBC_CHUNK && g->has_chunks)
        piece(g, (struct str){n->text, n->text_bytes});
    if (n->kind != SBC_RESULT && n->kind != SBC_FAILED)
        return;
    if (strcmp(n->status, "completed") == 0)
        sent_well(g, n);
    else
        no(g->n, n->code[0] ? n->code : n->status, n->error, n->json);
    buf_fini(&g->pieces);
    buf_fini(&g->heard);
    free(g);
}

static const char *option(const struct json *v, const char *key)
{
    static char kept[8][4096];
    static int next;
    struct str s = json_str_or(json_get(v, str_of(key)), (struct str){NULL, 0});
    char *to = kept[next++ % 8];

    if (!s.p)
        return NULL;
    snprintf(to, sizeof(kept[0]), "%.*s", STR_ARG(s));
    return to;
}

/* A value as it would be written; freed by no one, as this ends soon. */
static char *raw(const struct json *v)
{
    struct buf b;
    struct json_out o;

    buf_init(&b, LINE_MAX);
    o = json_out(&b);
    if (v)
        json_put(&o, v);
    else
        json_put_null(&o);
    buf_add_char(&b, '\0');
    return b.p;
}

/* As the client has it: zero is not said. */
static int64_t max_cost_in(const struct json *options)
{
    int64_t most = json_int_or(json_get(options, STR("max_cost_micros")), -1);

    return most < 0 ? 0 : most ? most : SBC_COSTS_NOTHING;
}

static void send_one(int64_t n, const struct json *v)
{
    const struct json *opts = json_get(v, STR("options"));
    const struct json *metadata = json_get(opts, STR("metadata"));
    struct str text = json_str_or(json_get(v, STR("text")), STR(""));
    struct sending *g = calloc(1, sizeof(*g));
    char *copy = strndup(text.p, text.n), *more = raw(metadata);
    struct sbc_message m = {.text = text.p,
                            .text_bytes = text.n,
                            .to = option(opts, "to"),
                            .skill = option(opts, "skill"),
                            .conversation = option(opts, "conversation"),
                            .priority = option(opts, "priority"),
                            .key = option(opts, "key"),
                            .max_cost_micros = max_cost_in(opts),
                            .metadata = metadata ? more : NULL};

    g->n = n;
    g->has_chunks = json_bool_or(json_get(v, STR("chunks")), false);
    buf_init(&g->pieces, LINE_MAX);
    buf_init(&g->heard, LINE_MAX);
    if (sbc_send(hub, &m, hears, g) != SBC_OK) {
        no(n, "overloaded", sbc_why(hub), "{}");
        free(g);
    }
    free(copy);
    free(more);
}

static void send_envelope(int64_t n, const struct json *v)
{
    struct sending *g = calloc(1, sizeof(*g));
    char *envelope = raw(json_get(v, STR("envelope")));

    g->n = n;
    g->is_envelope = true;
    buf_init(&g->pieces, LINE_MAX);
    buf_init(&g->heard, LINE_MAX);
    if (sbc_send_envelope(hub, envelope, hears, g) != SBC_OK) {
        no(n, "overloaded", sbc_why(hub), "{}");
        free(g);
    }
    free(envelope);
}

/* Delegating. */

static void delegated(void *ctx, const struct sbc_news *n)
{
    struct sending *g = ctx;

    if (n->kind == SBC_ACCEPTED)
        event("accepted", "task", n->task_id);
    else if (n->kind == SBC_CHUNK)
        say_news("words", g->asked, n);
    if (n->kind != SBC_RESULT && n->kind != SBC_FAILED)
        return;
    if (g->has_mark)
        free(sbc_call(hub, "mark", "{}"));
    if (strcmp(n->status, "completed") == 0)
        ok(g->n, n->json);
    else
        no(g->n, n->code[0] ? n->code : n->status, n->error, n->json);
    free((char *)g->asked);
    free(g);
}

static void delegate(int64_t n, const struct json *v)
{
    const struct json *opts = json_get(v, STR("options"));
    struct str text = json_str_or(json_get(v, STR("message")), STR(""));
    struct sending *g = calloc(1, sizeof(*g));
    struct sbc_delegation d = {
        .agent = option(v, "agent"),
        .skill = option(v, "skill"),
        .message = text.p,
        .message_bytes = text.n,
        .session = option(opts, "session_id"),
        .task = option(opts, "task_id"),
        .parent_task = option(opts, "parent_task_id"),
        .timeout_ms = json_int_or(json_get(opts, STR("timeout_ms")), 0),
        .stream = json_bool_or(json_get(opts, STR("chunks")), false),
        .max_cost_micros = max_cost_in(opts)};

    g->n = n;
    g->has_mark = json_bool_or(json_get(v, STR("mark")), false);
    g->asked = strndup(text.p, text.n);
    if (sbc_delegate(hub, &d, delegated, g) != SBC_OK) {
        no(n, "usage", sbc_why(hub), "{}");
        free((char *)g->asked);
        free(g);
    }
}

static int64_t n_fails;

static int takes(void *ctx, const struct sbc_news *n)
{
    (void)ctx;
    if (n->kind == SBC_CHUNK) {
        say_news("words", "", n);
        return 0;
    }
    say_news("delegated", NULL, n);
    return n_fails-- > 0;
}

static void hook(int64_t n, const struct json *v)
{
    n_fails = json_int_or(json_get(v, STR("fails")), 0);
    sbc_on_delegation(hub, takes, NULL);
    ok(n, "null");
}

/* Commands. */

static void failed(int64_t n)
{
    no(n, sbc_code(hub)[0] ? sbc_code(hub) : "failed", sbc_why(hub), "{}");
}

/* Until it is there, or its time is over. */
static void until_connected(int64_t n, int64_t turns)
{
    enum sbc_err e = SBC_OK;

    while (e == SBC_OK && !sbc_is_connected(hub) && turns-- > 0)
        e = sbc_turn(hub, 10);
    if (sbc_is_connected(hub))
        ok(n, "null");
    else
        failed(n);
}

/* Connections come and go in tests. */
static void log_delegations(void *ctx, const char *line)
{
    if (strstr(line, "delegation"))
        sbc_print(ctx, line);
}

static void connect_it(int64_t n, const struct json *v)
{
    int64_t ms = json_int_or(
        json_get(json_get(v, STR("options")), STR("connect_timeout_ms")),
        CONNECT_MS);

    hub = sbc_open(option(v, "url"), option(v, "token"));
    if (hub)
        sbc_log(hub, log_delegations, NULL);
    if (hub)
        until_connected(n, ms / 10 + 1);
    else
        no(n, "usage", "no such url", "{}");
}

static void say_answer(int64_t n, char *answer)
{
    if (answer)
        ok(n, answer);
    else
        failed(n);
    free(answer);
}

static void call(int64_t n, const char *method, const char *params)
{
    say_answer(n, sbc_call(hub, method, params));
}

static void tool(int64_t n, const struct json *v)
{
    char *what = raw(json_get(v, STR("order")));

    say_answer(n, sbc_delegate_to_agent(hub, what));
    free(what);
}

static void search(int64_t n, const struct json *v)
{
    struct str key = STR("agents"), items;
    char *answer =
        sbc_search(hub, option(v, "query"),
                   (int)json_int_or(
                       json_get(json_get(v, STR("options")), STR("limit")), 0));
    char *copy;

    if (!answer || json_scan(str_of(answer), &key, 1, &items, NULL) != OK) {
        failed(n);
        return;
    }
    copy = strndup(items.p, items.n);
    ok(n, copy);
    free(copy);
    free(answer);
}

static void call_with(int64_t n, const char *method, const char *key,
                      const struct json *value)
{
    char params[4096], *text = raw(value);

    snprintf(params, sizeof(params), "{\"%s\":%s}", key, text);
    free(text);
    call(n, method, params);
}

static void look(int64_t n)
{
    char text[256];

    snprintf(text, sizeof(text), "{\"agent\":\"%s\",\"is_connected\":%s}",
             agent, hub && sbc_is_connected(hub) ? "true" : "false");
    ok(n, text);
}

static void register_it(int64_t n, const struct json *v)
{
    const struct json *card = json_get(v, STR("card"));
    char *text = raw(card);

    snprintf(agent, sizeof(agent), "%.*s",
             STR_ARG(json_str_or(json_get(card, STR("name")), STR(""))));
    if (sbc_register(hub, text, on_task, NULL) == SBC_OK)
        until_connected(n, CONNECT_MS / 10);
    else
        failed(n);
    free(text);
}

static void close_it(int64_t n)
{
    sbc_close(hub);
    hub = NULL;
    ok(n, "null");
}

/* As if it had just been started. */
static void reset(int64_t n)
{
    memset(held, 0, sizeof(held));
    agent[0] = '\0';
    is_closed = false;
    close_it(n);
}

static void run(const struct json *v)
{
    int64_t n = json_int_or(json_get(v, STR("n")), 0);
    struct str what = json_str_or(json_get(v, STR("do")), STR(""));
    const struct json *id = json_get(v, STR("id"));
    char *params = raw(json_get(v, STR("params")));

    if (str_eq(what, STR("connect")))
        connect_it(n, v);
    else if (str_eq(what, STR("delegate")))
        delegate(n, v);
    else if (str_eq(what, STR("hook")))
        hook(n, v);
    else if (str_eq(what, STR("tool")))
        tool(n, v);
    else if (str_eq(what, STR("delegation")))
        say_answer(n, sbc_delegation_get(hub, option(v, "key")));
    else if (str_eq(what, STR("tools")))
        say_answer(n, sbc_tools(hub, option(v, "format")));
    else if (str_eq(what, STR("register")))
        register_it(n, v);
    else if (str_eq(what, STR("release")))
        release(n, json_str_or(json_get(v, STR("message")), STR("")),
                json_str_or(json_get(v, STR("text")), STR("")));
    else if (str_eq(what, STR("look")))
        look(n);
    else if (str_eq(what, STR("send")))
        send_one(n, v);
    else if (str_eq(what, STR("envelope")))
        send_envelope(n, v);
    else if (str_eq(what, STR("search")))
        search(n, v);
    else if (str_eq(what, STR("get")))
        call_with(n, "task.get", "task_id", id);
    else if (str_eq(what, STR("cancel")))
        call_with(n, "task.cancel", "task_id", id);
    else if (str_eq(what, STR("state")))
        call_with(n, "agent.state", "state", json_get(v, STR("state")));
    else if (str_eq(what, STR("update")))
        call_with(n, "agent.update", "card", json_get(v, STR("card")));
    else if (str_eq(what, STR("call")))
        call(n, option(v, "method"), params);
    else if (str_eq(what, STR("close")))
        close_it(n);
    else if (str_eq(what, STR("reset")))
        reset(n);
    else
        no(n, "usage", "no such command", "{}");
    free(params);
}

/* Whole lines of what came. */
static void run_lines(struct buf *in)
{
    for (;;) {
        struct str all = buf_str(in);
        size_t n = str_find(all, '\n', 0);
        struct arena a;
        struct json *v;

        if (n == all.n)
            return;
        arena_init(&a, 64 << 20);
        v = json_parse(&a, str_sub(all, 0, n), 0, NULL);
        if (v)
            run(v);
        arena_fini(&a);
        buf_drop(in, n + 1);
    }
}

int main(void)
{
    struct buf in;

#ifdef WITH_FAULTS
    fault_arm_at("sbc.late",
                 1); /* a delegation is booked when it is answered */
#endif
    /* Anyone who tests may be slow to read what is said. */
    (void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20);
    buf_init(&in, LINE_MAX);
    for (;;) {
        struct pollfd fds[2] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = hub ? sbc_fd(hub) : -1, .events = POLLIN}};
        char *to = buf_reserve(&in, 65536);
        ssize_t n = 1;

        if (!to || poll(fds, 2, 20) < 0)
            return 1;
        if (fds[0].revents)
            n = read(STDIN_FILENO, to, 65536);
        if (n <= 0)
            break;
        if (fds[0].revents)
            buf_commit(&in, (size_t)n);
        run_lines(&in);
        if (hub && sbc_turn(hub, 0) != SBC_OK && !is_closed) {
            is_closed = true;
            look_at_held();
            event("closed", "code", sbc_code(hub));
        }
        if (hub)
            look_at_held();
    }
    buf_fini(&in);
    sbc_close(hub);
    return 0;
}
