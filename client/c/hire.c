/* Work that this agent gives to others. In two phases: agent.send_task is
 * answered at once, and delegation.result says what came of it, whenever that
 * is; maybe before the answer was read. So a delegation is in the book of what
 * was sent before a byte of it is said, and under an id that is its own over
 * all restarts: chance, and a number. It is said again, as it was, on each
 * connection until it is answered, and stays until its result has come. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "client/c/internal.h"

enum { SAID = -1, SLACK_MS = SBC_CALL_MS };

static bool make_id(struct sbc *s, char out[SBC_ID_BYTES])
{
    char chance[2 * SBC_KEY_BYTES + 1];

    if (!s->own[0]) {
        if (!sbc_fresh_key(chance))
            return false;
        snprintf(s->own, sizeof(s->own), "%s-", chance);
    }
    snprintf(out, SBC_ID_BYTES, "%s%lld", s->own, (long long)++s->last_key);
    return true;
}

static struct str message_of(const struct sbc_delegation *d)
{
    return d->message_bytes ? (struct str){d->message, d->message_bytes}
                            : str_of(d->message);
}

static const char *parent_of(const struct sbc *s,
                             const struct sbc_delegation *d)
{
    return d->parent_task    ? d->parent_task
           : s->admin_config ? s->admin_config->task.id
                             : NULL;
}

/* A session takes one at a time, so what is given beside one has none. */
static bool is_talking(const struct sbc *s, const char *session)
{
    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        const struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);

        if (!m->is_over && m->session && strcmp(m->session, session) == 0)
            return true;
    }
    return false;
}

/* That which was said; else that of the task whose handler runs. False: no
 * memory. */
static bool choose_session(const struct sbc *s, struct sbc_sent *m,
                           const struct sbc_delegation *d, const char **out)
{
    const char *own =
        s->admin_config ? s->admin_config->task.conversation : NULL;

    *out = d->session && d->session[0] ? d->session : NULL;
    if (d->session || d->task || d->parent_task || !own || is_talking(s, own))
        return true;
    *out = m->session = sbc_dup(str_of(own));
    return m->session;
}

static bool put_delegation(struct sbc *s, struct sbc_sent *m,
                           const struct sbc_delegation *d)
{
    struct json_out o = json_out(&m->params);
    const char *session;

    if (!choose_session(s, m, d, &session))
        return false;
    json_open(&o, '{');
    sbc_put_if(&o, STR("agent_id"), d->agent);
    sbc_put_if(&o, STR("skill_id"), d->skill);
    json_key(&o, STR("message"));
    sbc_put_text(&o, message_of(d));
    sbc_put_if(&o, STR("session_id"), session);
    sbc_put_if(&o, STR("task_id"), d->task);
    sbc_put_if(&o, STR("parent_task_id"), parent_of(s, d));
    sbc_put_if(&o, STR("onDisconnect"), d->on_disconnect);
    if (d->timeout_ms > 0)
        json_member_int(&o, "timeoutMs", d->timeout_ms);
    if (d->stream)
        json_member_bool(&o, "stream", true);
    if (d->metadata)
        json_member_raw(&o, "metadata", str_of(d->metadata));
    sbc_put_cost(&o, d->max_cost_micros);
    json_close(&o, '}');
    return !m->params.over;
}

enum sbc_err sbc_delegate(struct sbc *s, const struct sbc_delegation *d,
                          sbc_hears *hears, void *ctx)
{
    struct sbc_sent *m;

    if (!d || !d->agent || !d->skill || !d->message ||
        (d->metadata && json_check(str_of(d->metadata), NULL) != OK))
        return sbc_err_of(s, SBC_USAGE,
                          "an agent, a skill and a message, and metadata that "
                          "are JSON");
    if (message_of(d).n > SBC_TEXT_MAX || s->n_sent >= SBC_SENDS_MAX)
        return sbc_err_of(s, SBC_LIMIT,
                          "a message has up to %d bytes, and up to %d wait at "
                          "once",
                          SBC_TEXT_MAX, SBC_SENDS_MAX);
    m = sbc_sent_new(s, hears, ctx);
    if (!m || !make_id(s, m->key) || !put_delegation(s, m, d)) {
        sbc_sent_free(s, m);
        return sbc_err_of(s, SBC_NOMEM, "no memory");
    }
    if (d->timeout_ms >= 0)
        m->until_ms =
            sbc_now_ms() + (d->timeout_ms ? d->timeout_ms : SBC_DELEGATION_MS);
    return SBC_OK;
}

/* Its id is a string, and the same each time. */
bool sbc_delegation_say(struct sbc *s, struct sbc_sent *m)
{
    struct buf *b = &s->scratch;
    struct json_out o;

    if (m->task_id || sbc_now_ms() < m->say_at_ms)
        return true; /* the hub has it, and will tell; or may have it */
    if (s->link.pipe.out.n > SBC_OUT_MARK)
        return false;
    buf_clear(b);
    o = json_out(b);
    json_open(&o, '{');
    sbc_put_if(&o, STR("jsonrpc"), "2.0");
    sbc_put_if(&o, STR("id"), m->key);
    sbc_put_if(&o, STR("method"), "agent.send_task");
    json_member_raw(&o, "params", buf_str(&m->params));
    json_close(&o, '}');
    if (b->over || !sbc_link_send(s, buf_str(b)))
        return false;
    m->id = SAID;
    return true;
}

static struct sbc_sent *find(const struct sbc *s, struct str key)
{
    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);

        if (key.n && str_eq(str_of(m->key), key))
            return m;
    }
    return NULL;
}

bool sbc_delegation_answered(struct sbc *s, struct str id,
                             const struct json *result,
                             const struct json *error)
{
    struct sbc_sent *m = find(s, id);

    if (!m || m->is_over)
        return true;
    if (!error)
        return sbc_on_accepted(s, m, result);
    (void)sbc_take_error(s, error);
    if (strcmp(s->code, "outcome_unknown") != 0)
        return sbc_note(s, m, SBC_FAILED, error);
    m->id = 0;
    m->say_at_ms = sbc_now_ms() + SBC_SAY_AGAIN_MS;
    return true;
}

bool sbc_delegation_heard(struct sbc *s, enum sbc_news_kind kind,
                          const struct json *params)
{
    struct str id = json_str_or(json_get(params, STR("original_id")), STR(""));
    struct sbc_sent *m = find(s, id);

    if (!params || params->type != JSON_OBJ)
        return true;
    if (m && PLANTED("sbc.late") && !m->task_id)
        m = NULL;
    /* What is over already is in the inbox, or was: this is the same again. */
    if (m && m->is_over)
        return true;
    return sbc_note(s, m, kind, params);
}

int sbc_delegations_tick(struct sbc *s, int64_t now_ms)
{
    int64_t left = INT32_MAX;

    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);

        if (!m->is_over && !m->id && m->say_at_ms > now_ms &&
            m->say_at_ms - now_ms < left)
            left = m->say_at_ms - now_ms;
        if (m->is_over || !m->until_ms)
            continue;
        if (m->until_ms <= now_ms &&
            sbc_note_failure(s, m, STR("timeout"),
                             STR("nothing came of the delegation in time"))) {
            sbc_late(s, m->key);
            left = 0;
        } else if (m->until_ms - now_ms < left) {
            left = m->until_ms - now_ms;
        }
    }
    return left < 0 ? 0 : (int)left;
}

/* Waiting. */

struct waited {
    bool is_over;
    char *text, *json; /* owned; NULL: it failed */
    char code[SBC_CODE_BYTES], words[SBC_WHY_BYTES];
};

static void on_news(void *ctx, const struct sbc_news *n)
{
    struct waited *w = ctx;

    if (n->kind != SBC_RESULT && n->kind != SBC_FAILED)
        return;
    w->is_over = true;
    if (strcmp(n->status, "completed") == 0) {
        w->text = sbc_dup((struct str){n->text, n->text_bytes});
        w->json = sbc_dup(str_of(n->json));
    }
    snprintf(w->code, sizeof(w->code), "%s",
             n->code[0]     ? n->code
             : n->status[0] ? n->status
                            : "error");
    snprintf(w->words, sizeof(w->words), "%s",
             n->error[0] ? n->error : "no memory");
}

/* The caller no longer waits for it; the delegation continues. */
static void leave(struct sbc *s, const struct waited *w)
{
    for (struct list_node *n = list_first(&s->sent); n;
         n = list_next(&s->sent, n)) {
        struct sbc_sent *m = LIST_OF(n, struct sbc_sent, node);

        if (m->ctx == w)
            m->hears = NULL;
    }
}

char *sbc_delegate_wait(struct sbc *s, const struct sbc_delegation *d,
                        char **json)
{
    struct waited w = {0};
    enum sbc_err e = sbc_delegate(s, d, on_news, &w);

    while (e == SBC_OK && !w.is_over) {
        e = sbc_pump(s, -1);
        sbc_tell(s);
    }
    if (!w.is_over) {
        leave(s, &w);
        return NULL; /* why is known */
    }
    if (!w.text || !w.json) {
        (void)sbc_err_of(s, SBC_ANSWER, "%s", w.words);
        sbc_set_code(s, w.code);
        free(w.text);
        w.text = NULL;
    }
    if (json && w.text)
        *json = w.json;
    else
        free(w.json);
    return w.text;
}

/* The tool. */

/* One order, with the task whose handler runs as its parent unless it says
 * another. How long it may take. */
static int64_t put_order(const struct sbc *s, struct json_out *o,
                         const struct json *v)
{
    struct str mode = json_str_or(json_get(v, STR("mode")), STR("sync"));

    if (v->type != JSON_OBJ) {
        json_put(o, v);
        return 0;
    }
    json_open(o, '{');
    if (s->admin_config && !json_get(v, STR("parent_task_id"))) {
        sbc_put_if(o, STR("parent_task_id"), s->admin_config->task.id);
        if (!json_get(v, STR("session_id")))
            sbc_put_if(o, STR("session_id"),
                       s->admin_config->task.conversation);
    }
    JSON_EACH(kid, v)
    {
        json_key(o, kid->key);
        json_put(o, kid);
    }
    json_close(o, '}');
    return str_eq(mode, STR("async"))
               ? 0
               : json_int_or(json_get(v, STR("timeoutMs")), SBC_TOOL_MS);
}

static int64_t put_orders(const struct sbc *s, struct buf *out,
                          const struct json *v)
{
    struct json_out o = json_out(out);
    int64_t most = 0;

    if (v->type != JSON_ARR)
        return put_order(s, &o, v);
    json_open(&o, '{');
    json_key(&o, STR("tasks"));
    json_open(&o, '[');
    JSON_EACH(kid, v)
    {
        int64_t ms = put_order(s, &o, kid);
        most = ms > most ? ms : most;
    }
    json_close(&o, ']');
    json_close(&o, '}');
    return most;
}

/* The member "results" of the answer alone. */
static char *results_of(struct sbc *s, char *answer)
{
    struct str key = STR("results"), found = {0};
    char *list = NULL;

    if (answer && json_scan(str_of(answer), &key, 1, &found, NULL) == OK &&
        found.n)
        list = sbc_dup(found);
    if (answer && !list)
        (void)sbc_err_of(s, SBC_NOMEM, "no memory, or no results");
    free(answer);
    return list;
}

char *sbc_delegate_to_agent(struct sbc *s, const char *what)
{
    struct sbc_wait w = {.is_telling = true};
    char *answer = NULL;
    struct json *v;
    struct buf params;
    struct arena a;

    arena_init(&a, SBC_TREE_MAX);
    buf_init(&params, SBC_MESSAGE_MAX);
    v = json_parse(&a, str_of(what), 0, NULL);
    if (!v || (v->type != JSON_OBJ && v->type != JSON_ARR)) {
        (void)sbc_err_of(s, SBC_USAGE, "a JSON object, or a list of those");
    } else {
        w.wait_ms = put_orders(s, &params, v) + SLACK_MS;
        if (params.over)
            (void)sbc_err_of(s, SBC_LIMIT, "too long, or no memory");
        else
            answer = sbc_call_within(s, "agent.delegate", buf_str(&params), w);
        if (v->type == JSON_ARR)
            answer = results_of(s, answer);
    }
    buf_fini(&params);
    arena_fini(&a);
    return answer;
}

char *sbc_delegation_get(struct sbc *s, const char *session_key)
{
    struct buf params;
    struct json_out o;
    char *answer = NULL;

    buf_init(&params, SBC_TEXT_MAX);
    o = json_out(&params);
    json_open(&o, '{');
    sbc_put_if(&o, STR("sessionKey"), session_key);
    json_close(&o, '}');
    if (params.over)
        (void)sbc_err_of(s, SBC_LIMIT, "too long, or no memory");
    else
        answer = sbc_call_within(s, "delegation.get", buf_str(&params),
                                 (struct sbc_wait){0});
    buf_fini(&params);
    return answer;
}
