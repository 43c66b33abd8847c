/* What we ask of the hub. A call is waited for where it is made; when the
 * connection is lost meanwhile, the outcome is unknown, and the call is not
 * said again. A message has a key, so it is said again as often as it takes,
 * and is one task all the same; news of it go to the inbox, and from there to
 * its sender. */
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "client/c/internal.h"

/* The codes of JSON-RPC itself, as words. */
static const char *standard_code(int64_t code)
{
    switch (code) {
    case -32700: return "invalid_json";
    case -32600:
    case -32602: return "bad_request";
    case -32601: return "method_not_found";
    case -32603: return "internal";
    default: return "error";
    }
}

enum sbc_err sbc_take_error(struct sbc *s, const struct json *error)
{
    struct str words =
        json_str_or(json_get(error, STR("message")), STR("the hub refused it"));
    struct str code = json_str_or(
        json_get(json_get(error, STR("data")), STR("code")), STR(""));

    (void)sbc_err_of(s, SBC_ANSWER, "%.*s", STR_ARG(words));
    if (code.n)
        snprintf(s->code, sizeof(s->code), "%.*s", STR_ARG(code));
    else
        sbc_set_code(
            s, standard_code(json_int_or(json_get(error, STR("code")), 0)));
    return SBC_ANSWER;
}

/* A value as text of its own. */
static char *text_of(const struct json *v)
{
    struct buf b;
    struct json_out o;
    char *text = NULL;

    buf_init(&b, SBC_MESSAGE_MAX);
    o = json_out(&b);
    if (v)
        json_put(&o, v);
    else
        json_put_null(&o);
    if (!b.over)
        text = sbc_dup(buf_str(&b));
    buf_fini(&b);
    return text;
}

/* Calls. */

bool sbc_call_answered(struct sbc *s, int64_t id, const struct json *result,
                       const struct json *error)
{
    for (struct list_node *n = list_first(&s->waits); n;
         n = list_next(&s->waits, n)) {
        struct sbc_wait *w = LIST_OF(n, struct sbc_wait, node);
        if (w->id != id)
            continue;
        w->is_answered = true;
        if (error) {
            w->err = sbc_take_error(s, error);
        } else {
            w->answer = text_of(result);
            if (!w->answer)
                w->err = sbc_err_of(s, SBC_NOMEM, "no memory");
        }
        return true;
    }
    return true;
}

/* Until it is answered, or its time is over. */
static enum sbc_err wait_for(struct sbc *s, struct sbc_wait *w,
                             const char *method, struct str params)
{
    int64_t end = sbc_now_ms() + (w->wait_ms ? w->wait_ms : SBC_CALL_MS);
    enum sbc_err e = SBC_OK;

    while (!w->is_answered) {
        int64_t left = end - sbc_now_ms();

        if (!w->id && sbc_is_ready(s)) {
            w->id = ++s->next_id;
            if (!sbc_say(s, w->id, method, params))
                return sbc_err_of(s, SBC_LIMIT, "too long, or no memory");
            sbc_link_flush(s);
        }
        if (w->is_lost) {
            (void)sbc_err_of(s, SBC_OFFLINE,
                             "the connection was lost before "
                             "the answer came");
            sbc_set_code(s, "disconnected");
            return SBC_OFFLINE;
        }
        if (left <= 0)
            return w->id ? sbc_err_of(s, SBC_OFFLINE, "no answer came in time")
                         : SBC_OFFLINE; /* why is known */
        e = sbc_pump(s, left > INT32_MAX ? INT32_MAX : (int)left);
        if (w->is_telling)
            sbc_tell(s);
        if (e == SBC_STOPPED)
            return sbc_err_of(s, e, "it was stopped");
        if (e != SBC_OK)
            return e;
    }
    return w->err;
}

char *sbc_call_within(struct sbc *s, const char *method, struct str params,
                      struct sbc_wait w)
{
    list_append(&s->waits, &w.node);
    if (wait_for(s, &w, method, params) != SBC_OK) {
        free(w.answer);
        w.answer = NULL;
    }
    list_remove(&w.node);
    return w.answer;
}

char *sbc_call(struct sbc *s, const char *method, const char *params)
{
    struct str p = str_of(params);

    if (!method || (p.n && json_check(p, NULL) != OK)) {
        (void)sbc_err_of(s, SBC_USAGE, "params are JSON");
        return NULL;
    }
    return sbc_call_within(s, method, p, (struct sbc_wait){0});
}

char *sbc_search(struct sbc *s, const char *query, int limit)
{
    struct buf params;
    struct json_out o;
    char *answer = NULL;

    buf_init(&params, SBC_TEXT_MAX);
    o = json_out(&params);
    json_open(&o, '{');
    json_key(&o, STR("query"));
    sbc_put_text(&o, str_of(query));
    if (limit > 0)
        json_member_int(&o, "limit", limit);
    json_close(&o, '}');
    buf_add_char(&params, '\0');
    if (params.over)
        (void)sbc_err_of(s, SBC_LIMIT, "too long, or no memory");
    else
        answer = sbc_call(s, "agent.search", params.p);
    buf_fini(&params);
    return answer;
}

/* Messages. */

struct sbc_sent *sbc_sent_new(struct sbc *s, sbc_hears *hears, void *ctx)
{
    struct sbc_sent *m = FAULT("sbc.alloc") ? NULL : calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->hears = hears;
    m->ctx = ctx;
    buf_init(&m->params, SBC_MESSAGE_MAX - 1024);
    list_append(&s->sent, &m->node);
    s->n_sent++;
    return m;
}

void sbc_sent_free(struct sbc *s, struct sbc_sent *m)
{
    if (!m)
        return;
    list_remove(&m->node);
    s->n_sent--;
    buf_fini(&m->params);
    free(m->task_id);
    free(m->agent);
    free(m->session);
    free(m);
}

void sbc_put_if(struct json_out *o, struct str key, const char *value)
{
    if (!value)
        return;
    json_key(o, key);
    sbc_put_text(o, str_of(value));
}

void sbc_put_cost(struct json_out *o, int64_t most)
{
    if (most)
        json_member_int(o, "max_cost_micros", most > 0 ? most : 0);
}

bool sbc_fresh_key(char out[2 * SBC_KEY_BYTES + 1])
{
    unsigned char raw[SBC_KEY_BYTES];

    if (FAULT("sbc.random") || RAND_bytes(raw, sizeof(raw)) != 1)
        return false;
    str_hex(out, raw, sizeof(raw));
    return true;
}

static bool put_key(struct json_out *o, const char *key)
{
    char fresh[2 * SBC_KEY_BYTES + 1];

    if (!key && !sbc_fresh_key(fresh))
        return false;
    key = key ? key : fresh;
    sbc_put_if(o, STR("idempotency_key"), key);
    return true;
}

static struct str text_in(const struct sbc_message *m)
{
    return m->text_bytes ? (struct str){m->text, m->text_bytes}
                         : str_of(m->text);
}

/* The params of message.send. */
static bool put_message(struct buf *out, const struct sbc_message *m)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_key(&o, STR("text"));
    sbc_put_text(&o, text_in(m));
    if (m->to) {
        json_key(&o, STR("executor"));
        json_open(&o, '{');
        sbc_put_if(&o, STR("name"), m->to);
        json_close(&o, '}');
    }
    sbc_put_if(&o, STR("skill"), m->skill);
    sbc_put_if(&o, STR("conversation_id"), m->conversation);
    sbc_put_if(&o, STR("priority"), m->priority);
    sbc_put_if(&o, STR("parent_task_id"), m->parent_task);
    if (m->metadata)
        json_member_raw(&o, "metadata", str_of(m->metadata));
    sbc_put_cost(&o, m->max_cost_micros);
    if (!put_key(&o, m->key))
        return false;
    json_close(&o, '}');
    return !out->over;
}

enum sbc_err sbc_send(struct sbc *s, const struct sbc_message *m,
                      sbc_hears *hears, void *ctx)
{
    struct sbc_sent *sent;

    if (!m || !m->text ||
        (m->metadata && json_check(str_of(m->metadata), NULL) != OK))
        return sbc_err_of(s, SBC_USAGE, "a text, and metadata that are JSON");
    if (text_in(m).n > SBC_TEXT_MAX || s->n_sent >= SBC_SENDS_MAX)
        return sbc_err_of(s, SBC_LIMIT,
                          "a text has up to %d bytes, and up to %d messages "
                          "wait at once",
                          SBC_TEXT_MAX, SBC_SENDS_MAX);
    sent = sbc_sent_new(s, hears, ctx);
    if (!sent || !put_message(&sent->params, m)) {
        sbc_sent_free(s, sent);
        return sbc_err_of(s, SBC_NOMEM, "no memory");
    }
    return SBC_OK;
}

/* {"envelope":…}, with an id of its own or a fresh one. */
static bool put_envelope(struct buf *out, struct str envelope, bool has_id)
{
    struct buf with_id;
    char fresh[2 * SBC_KEY_BYTES + 1], quoted[2 * SBC_KEY_BYTES + 3];
    bool ok = has_id || sbc_fresh_key(fresh);

    buf_init(&with_id, SBC_MESSAGE_MAX);
    if (ok && !has_id) {
        snprintf(quoted, sizeof(quoted), "\"%s\"", fresh);
        ok = json_splice(&with_id, envelope, STR("message_id"), str_of(quoted),
                         NULL) == OK;
        envelope = buf_str(&with_id);
    }
    buf_add_str(out, STR("{\"envelope\":"));
    buf_add_str(out, envelope);
    buf_add_char(out, '}');
    buf_fini(&with_id);
    return ok && !out->over;
}

enum sbc_err sbc_send_envelope(struct sbc *s, const char *envelope,
                               sbc_hears *hears, void *ctx)
{
    struct str text = str_of(envelope), key = STR("message_id"), id;
    struct sbc_sent *sent;

    if (json_scan(text, &key, 1, &id, NULL) != OK)
        return sbc_err_of(s, SBC_USAGE, "an envelope is a JSON object");
    if (text.n > SBC_TEXT_MAX || s->n_sent >= SBC_SENDS_MAX)
        return sbc_err_of(s, SBC_LIMIT,
                          "an envelope has up to %d bytes, and up to %d "
                          "messages wait at once",
                          SBC_TEXT_MAX, SBC_SENDS_MAX);
    sent = sbc_sent_new(s, hears, ctx);
    if (!sent ||
        !put_envelope(&sent->params, text, id.n && !str_eq(id, STR("null")))) {
        sbc_sent_free(s, sent);
        return sbc_err_of(s, SBC_NOMEM, "no memory");
    }
    return SBC_OK;
}

int sbc_waiting(const struct sbc *s)
{
    return (int)s->n_sent;
}

bool sbc_note(struct sbc *s, struct sbc_sent *m, enum sbc_news_kind kind,
              const struct json *v)
{
    char *text = text_of(v);
    size_t n = text ? strlen(text) : 0;
    struct sbc_item *i =
        text && !FAULT("sbc.alloc") ? malloc(sizeof(*i) + n + 1) : NULL;

    if (i) {
        *i = (struct sbc_item){.sent = m, .kind = kind, .n = n};
        memcpy(i->json, text, n + 1);
        list_append(&s->inbox, &i->node);
        s->inbox_bytes += sizeof(*i) + n;
        if (m)
            m->is_over = kind == SBC_RESULT || kind == SBC_FAILED;
    }
    free(text);
    return i != NULL;
}

static bool is_over(const struct json *v)
{
    static const struct str over[] = {STR("completed"), STR("failed"),
                                      STR("cancelled"), STR("expired"),
                                      STR("dropped")};
    struct str status = json_str_or(json_get(v, STR("status")), STR(""));

    for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++)
        if (str_eq(status, over[i]))
            return true;
    return false;
}

bool sbc_on_accepted(struct sbc *s, struct sbc_sent *m,
                     const struct json *result)
{
    struct str id = json_str_or(json_get(result, STR("task_id")), STR(""));
    struct str agent = json_str_or(json_get(result, STR("agent")), STR(""));
    char *task_id, *name;

    if (!m->task_id) {
        task_id = sbc_dup(id);
        name = sbc_dup(agent);
        if (!task_id || !name || !sbc_note(s, m, SBC_ACCEPTED, result)) {
            free(task_id);
            free(name);
            return false;
        }
        m->task_id = task_id;
        m->agent = name;
    }
    return !is_over(result) || sbc_note(s, m, SBC_RESULT, result);
}

bool sbc_send_answered(struct sbc *s, int64_t id, const struct json *result,
                       const struct json *error)
{
    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);
        if (m->id != id || m->is_over || id == 0)
            continue;
        return error ? sbc_note(s, m, SBC_FAILED, error)
                     : sbc_on_accepted(s, m, result);
    }
    return true;
}

/* Words of an agent that this one has asked. */
static bool is_of_another(const struct sbc_sent *m, const struct json *chunk)
{
    struct str agent = json_str_or(json_get(chunk, STR("agent")), STR(""));

    return agent.n && m->agent && !str_eq(agent, str_of(m->agent));
}

/* Pushed by the hub. */
bool sbc_heard(struct sbc *s, enum sbc_news_kind kind,
               const struct json *params)
{
    struct str id = json_str_or(json_get(params, STR("task_id")), STR(""));

    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);
        if (m->is_over || m->key[0] || !m->task_id ||
            !str_eq(str_of(m->task_id), id))
            continue;
        if (kind == SBC_CHUNK && is_of_another(m, params))
            return sbc_note(s, m, SBC_ASIDE, params);
        if (kind != SBC_RESULT && m->has_gap)
            return true;
        m->has_parts |= kind == SBC_CHUNK;
        return sbc_note(s, m, kind, params);
    }
    return true;
}

void sbc_asks_lost(struct sbc *s)
{
    for (struct list_node *n = list_first(&s->waits); n;
         n = list_next(&s->waits, n)) {
        struct sbc_wait *w = LIST_OF(n, struct sbc_wait, node);
        w->is_lost = w->id != 0;
    }
    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);
        m->id = 0;
        m->has_gap |= m->has_parts;
    }
}

bool sbc_note_failure(struct sbc *s, struct sbc_sent *m, struct str code,
                      struct str words)
{
    struct json word = {.type = JSON_STR, .key = STR("code"), .s = code};
    struct json data = {
        .type = JSON_OBJ, .key = STR("data"), .kids = {.first = &word, .n = 1}};
    struct json message = {
        .type = JSON_STR, .key = STR("message"), .next = &data, .s = words};
    struct json error = {.type = JSON_OBJ, .kids = {.first = &message, .n = 2}};

    return sbc_note(s, m, SBC_FAILED, &error);
}

void sbc_asks_give_up_largest(struct sbc *s)
{
    struct sbc_sent *largest = NULL;

    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);
        if (m->id && !m->task_id && !m->is_over &&
            (!largest || m->params.n > largest->params.n))
            largest = m;
    }
    if (largest)
        (void)sbc_note_failure(s, largest, STR("too_large"),
                               STR("the message is larger than the hub takes"));
}

void sbc_asks_say(struct sbc *s)
{
    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);
        if (m->id || m->is_over)
            continue;
        if (m->key[0]) {
            if (!sbc_delegation_say(s, m))
                return;
            continue;
        }
        if (s->link.pipe.out.n > SBC_OUT_MARK ||
            !sbc_say(s, s->next_id + 1, "message.send", buf_str(&m->params)))
            return;
        m->id = ++s->next_id;
    }
}

/* Telling. */

/* NULL: no memory. */
static const char *string_at(struct arena *a, const struct json *v,
                             struct str key)
{
    struct str s = json_str_or(json_get(v, key), STR(""));

    return s.n ? arena_strdup(a, s) : "";
}

/* The error of a task is {"code","message"}; one of JSON-RPC has its code
 * among its data. */
static void read_error(struct arena *a, const struct json *v,
                       struct sbc_news *n)
{
    const struct json *error = json_get(v, STR("error"));

    if (n->kind == SBC_FAILED) {
        n->code = string_at(a, json_get(v, STR("data")), STR("code"));
        n->error = string_at(a, v, STR("message"));
    } else if (error && error->type == JSON_OBJ) {
        n->code = string_at(a, error, STR("code"));
        n->error = string_at(a, error, STR("message"));
    } else {
        n->code = string_at(a, v, STR("error_code"));
        n->error = string_at(a, v, STR("error"));
    }
}

static bool read_news(struct arena *a, const struct sbc_item *i,
                      struct sbc_news *out)
{
    struct json *v = json_parse(a, (struct str){i->json, i->n}, 0, NULL);

    if (!v)
        return false;
    *out = (struct sbc_news){
        .kind = i->kind,
        .json = i->json,
        .task_id = string_at(a, v, STR("task_id")),
        .agent = string_at(a, v, STR("agent")),
        .status = string_at(a, v, STR("status")),
        .text = string_at(a, v, STR("text")),
        .text_bytes = json_str_or(json_get(v, STR("text")), STR("")).n,
    };
    read_error(a, v, out);
    return out->task_id && out->agent && out->status && out->text &&
           out->code && out->error;
}

/* Tell one, unless there is no memory to read it: then it stays. It is out of
 * the inbox before the callback, which may do anything. */
static bool tell_one(struct sbc *s, struct sbc_item *i)
{
    sbc_hears *hears = i->sent ? i->sent->hears : NULL;
    void *ctx = i->sent ? i->sent->ctx : NULL;
    bool is_other = !i->sent;
    bool is_had = i->sent && i->sent->key[0] && i->kind == SBC_RESULT;
    struct sbc_news news;
    struct arena a;
    bool ok;

    arena_init(&a, SBC_TREE_MAX);
    ok = read_news(&a, i, &news);
    if (ok) {
        list_remove(&i->node);
        s->inbox_bytes -= sizeof(*i) + i->n;
        if (i->sent && (i->kind == SBC_RESULT || i->kind == SBC_FAILED))
            sbc_sent_free(s, i->sent);
        if (hears)
            hears(ctx, &news);
        if (is_had)
            sbc_had(s, (struct str){i->json, i->n});
        if (is_other)
            sbc_tell_other(s, &news);
        free(i);
    }
    arena_fini(&a);
    return ok;
}

bool sbc_tell(struct sbc *s)
{
    bool is_told = false;
    struct list_node *n;

    while ((n = list_first(&s->inbox)) &&
           tell_one(s, LIST_OF(n, struct sbc_item, node)))
        is_told = true;
    return is_told;
}

void sbc_asks_fini(struct sbc *s)
{
    struct list_node *n;

    while ((n = list_pop(&s->inbox)))
        free(LIST_OF(n, struct sbc_item, node));
    while ((n = list_first(&s->sent)))
        sbc_sent_free(s, LIST_OF(n, struct sbc_sent, node));
}
