/* The transport "model:NAME": an agent that is a prompt and a model behind a
 * configured endpoint, of OpenAI's or Anthropic's kind.
 *
 *     start -> history of the conversation -> POST to the endpoint
 *           -> pieces of the answer, as chunks -> result
 *                   ^                \
 *                   '-- asked again --+-> calls of tools, used (tool_rounds.c)
 *
 * The model has no memory, so each request has everything: the system prompt,
 * the earlier messages of the conversation, and the message. An answer with a
 * finish reason is complete, regardless of errors after it.
 *
 * Optional features are requested first and left out if the endpoint's error
 * names them: stream_options, without which OpenAI reports no usage;
 * max_tokens, which its newer models call max_completion_tokens; and tools,
 * which many small models do not support. That costs one failed request. The
 * result is kept until the next settings, or until it proves wrong.
 *
 * The key goes only to the endpoint's own address, so redirects are not
 * followed. Details about the endpoint go to the log only. */
#include "deliver/transports/model_stream.h"

#include <stdio.h>
#include <stdlib.h>

enum { STRINGS_SPARE_BYTES = 256 * 1024 };

/* The model. */

static const struct model_def *talk_find_model(const struct deliver *d,
                                               struct str id, struct str *model)
{
    return model_def_find(d->opts.settings.models, d->opts.settings.n_models,
                          id, model);
}

static enum err talk_reaches(const struct deliver *d, const struct agent *a,
                             const struct agent_url *url, struct why *why)
{
    struct str model, name = url->id;
    const struct model_def *m = talk_find_model(d, name, &model);

    if (!d->opts.fetch)
        return why_err(why, ERR_NOT_IMPLEMENTED,
                       "this server makes no HTTP calls");
    name = str_sub(name, 0, str_find(name, '/', 0));
    if (!m)
        return why_err(
            why, ERR_NOT_FOUND,
            "the agent \"%.*s\" is made of the model \"%.*s\", which "
            "is not configured: write \"models\": {\"%.*s\": "
            "{\"baseUrl\": \"https://…/v1\", \"model\": \"…\"}}",
            STR_ARG(a->name), STR_ARG(url->id), STR_ARG(name));
    if (!model.n)
        return why_err(why, ERR_NOT_FOUND,
                       "the agent \"%.*s\" is made of the model \"%.*s\", and "
                       "models.%.*s.model, which says what its endpoint calls "
                       "it, is not set",
                       STR_ARG(a->name), STR_ARG(url->id), STR_ARG(m->name));
    return OK;
}

/* Send the request. */

enum err talk_send(struct talk *k, struct why *why)
{
    struct fetch_header headers[CHAT_HEADERS_MAX];
    struct fetch_request rq = {.method = STR("POST"),
                               .url = k->reach.url,
                               .headers = headers,
                               .n_headers = k->reach.n_headers,
                               .is_trusted = true};
    struct buf body;
    enum err e;

    for (size_t i = 0; i < rq.n_headers; i++)
        headers[i] = (struct fetch_header){k->reach.headers[i].name,
                                           k->reach.headers[i].value};
    why->text[0] = '\0';
    buf_init(&body, EXCHANGE_BODY_MAX);
    chat_write(&body, &k->rq);
    rq.body = buf_str(&body);
    e = body.over || FAULT("deliver.chat")
            ? ERR_NOMEM
            : exchange_send(&k->exchange, &rq, why);
    buf_fini(&body);
    if (e && !why->text[0])
        why_err(why, e, "%s", err_row(e)->wording);
    return e;
}

/* Features that an endpoint does not support, by definition and model. If two
 * share a slot, one of them is learned again now and then. */

static uint64_t talk_habit_key(const struct talk *k)
{
    const uint64_t *seed = k->exchange.d->opts.seed;

    return hash_bytes(k->name, seed) * 31 + hash_bytes(k->rq.model, seed);
}

static struct model_habit *talk_habit(const struct talk *k)
{
    return &k->exchange.d->habits[talk_habit_key(k) % MODEL_HABITS];
}

static void talk_apply_habit(struct talk *k)
{
    const struct model_habit *h = talk_habit(k);

    k->is_habit = h->is_used && h->key == talk_habit_key(k);
    if (!k->is_habit)
        return;
    k->rq.wants_usage = !h->has_no_usage;
    k->lacks_tools = h->has_no_tools;
    k->rq.has_tools = k->rq.has_tools && !k->lacks_tools;
    k->rq.has_long_max_tokens = h->has_long_max_tokens;
}

void talk_went_well(const struct talk *k)
{
    if (!k->rq.wants_usage || k->rq.has_long_max_tokens || k->lacks_tools)
        *talk_habit(k) = (struct model_habit){
            .key = talk_habit_key(k),
            .is_used = true,
            .has_no_usage = !k->rq.wants_usage,
            .has_no_tools = k->lacks_tools,
            .has_long_max_tokens = k->rq.has_long_max_tokens};
}

void models_forget(struct deliver *d)
{
    memset(d->habits, 0, sizeof(d->habits));
}

/* Whether the error names an optional feature, which is then left out. */
static bool talk_may_ask_otherwise(struct talk *k, const char *message)
{
    /* Any status is possible: 400, 404 and 500 were seen. */
    if (k->rq.has_tools && !k->rounds.n && k->exchange.status >= 400 &&
        k->exchange.status != 401 && strstr(message, "tool")) {
        k->rq.has_tools = false;
        k->lacks_tools = true;
        return true;
    }
    if (k->rq.kind != MODEL_OPENAI ||
        (k->exchange.status != 400 && k->exchange.status != 422))
        return false;
    if (k->rq.max_tokens && !k->rq.has_long_max_tokens &&
        strstr(message, "max_completion_tokens")) {
        k->rq.has_long_max_tokens = true;
        return true;
    }
    if (k->rq.wants_usage && strstr(message, "stream_options")) {
        k->rq.wants_usage = false;
        return true;
    }
    return false;
}

static const char *model_status_hint(int status)
{
    if (status == 401 || status == 403)
        return "; it does not take our key, see models.NAME.keyVariable";
    if (status == 404 || status == 405)
        return "; are models.NAME.baseUrl and models.NAME.model right?";
    if (status >= 300 && status < 400)
        return "; it wants to be called elsewhere: set models.NAME.baseUrl to "
               "there";
    return "";
}

static void talk_status(struct exchange *a)
{
    struct talk *k = talk_of(a);
    struct delivery_failure f = {.code = STR("model_error"),
                                 .retry_ms = a->retry_ms};
    char message[EXCHANGE_WORDS_BYTES];
    struct why why = {""};
    enum err e;

    talk_words(k, buf_str(&a->body), a->status, message);
    if (talk_may_ask_otherwise(k, message)) {
        e = talk_send(k, &why);
        if (e)
            exchange_not_sent(a, e, &why);
        return;
    }
    if (k->is_habit && (a->status == 400 || a->status == 422))
        *talk_habit(k) = (struct model_habit){0};
    if (a->status == 429 || a->status == 503 || a->status == 529)
        f.code = STR("agent_busy");
    f.is_final = !talk_may_try_again(a->status);
    exchange_failed(a, f, "the model's endpoint answered with status %d%s%s%s",
                    a->status, message[0] ? ": " : "", message,
                    model_status_hint(a->status));
}

static const struct exchange_ops talk_ops = {
    .on_event = talk_event,
    .on_end = talk_end,
    .on_whole = talk_whole,
    .on_status = talk_status,
    .on_broken = talk_broken,
};

/* The history of the conversation. */

static enum err talk_keep_history(struct talk *k, const struct task_said *list,
                                  size_t n)
{
    struct task_said *copy =
        n ? arena_array(&k->arena, n, sizeof(*copy)) : NULL;

    if (n && !copy)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        char *text = arena_strdup(&k->arena, list[i].text);

        if (!text)
            return ERR_NOMEM;
        copy[i] = list[i];
        copy[i].text.p = text;
    }
    k->rq.history = copy;
    k->rq.n_history = n;
    return OK;
}

/* Without its history a model would give a wrong answer, so the attempt is
 * repeated a little later. */
static void talk_on_history(void *ctx, enum err e, const struct task_said *list,
                            size_t n)
{
    struct talk *k = ctx;

    k->asks_history = false;
    k->why.text[0] = '\0';
    if (!e)
        e = talk_keep_history(k, list, n);
    else
        e = ERR_BUSY;
    if (!e)
        e = talk_send(k, &k->why);
    k->sent = e;
    if (e && !k->is_starting)
        exchange_not_sent(&k->exchange, e, &k->why);
}

static void talk_read_history(struct talk *k, const struct task *t,
                              const struct model_def *m)
{
    const struct deliver_opts *o = &k->exchange.d->opts;

    if (!o->history || m->history_messages <= 0 || m->history_bytes <= 0) {
        talk_on_history(k, OK, NULL, 0);
        return;
    }
    k->asks_history = true;
    o->history(o->ctx, t, (size_t)m->history_messages, (size_t)m->history_bytes,
               talk_on_history, k, &k->history_handle);
}

/* Begin and end. */

static bool talk_keep_str(struct talk *k, struct str from, struct str *to)
{
    return arena_keep(&k->arena, from, to);
}

/* Copy everything, since settings and cards may change. */
static bool talk_keep_all(struct talk *k, const struct task *t,
                          const struct agent *a, const struct model_def *m,
                          struct str model)
{
    const struct deliver_opts *o = &k->exchange.d->opts;

    k->rq.kind = m->kind;
    k->rq.streams = true;
    k->rq.max_tokens = m->max_tokens;
    k->rq.temperature = m->temperature;
    k->rq.wants_usage = true;
    k->rq.has_tools =
        m->tools && o->on_tool && o->has_tools && o->has_tools(o->ctx, t, a);
    return chat_reach(&k->arena, m->kind, m->base_url, m->key, true,
                      &k->reach) == OK &&
           talk_keep_str(k, model, &k->rq.model) &&
           talk_keep_str(k, m->key, &k->key) &&
           talk_keep_str(k, m->name, &k->name) &&
           talk_keep_str(k, t->text, &k->rq.message) &&
           talk_keep_str(k,
                         a->routing.system_prompt.n ? a->routing.system_prompt
                                                    : m->system_prompt,
                         &k->rq.system);
}

static void talk_free(struct delivery *y)
{
    struct talk *k = LIST_OF(y, struct talk, exchange.delivery);

    rounds_fini(k);
    exchange_fini(&k->exchange);
    arena_fini(&k->arena);
    buf_fini(&k->usage);
    free(k);
}

static void talk_stop(struct delivery *y, enum stop_why why)
{
    struct talk *k = LIST_OF(y, struct talk, exchange.delivery);
    const struct deliver_opts *o = &k->exchange.d->opts;

    (void)why;
    if (k->asks_history)
        o->history_cancel(o->ctx, k->history_handle);
    k->asks_history = false;
    rounds_stop(k);
    exchange_stop(&k->exchange);
}

static struct talk *talk_new(struct deliver *d, const struct task *t,
                             const struct agent *a, const struct model_def *m,
                             struct str model)
{
    struct talk *k = mem_new(sizeof(*k));
    int64_t whole_ms = exchange_whole_ms(d, t);

    arena_init(&k->arena, (size_t)m->history_bytes + t->text.n +
                              AGENT_PROMPT_MAX + m->system_prompt.n +
                              STRINGS_SPARE_BYTES);
    buf_init(&k->usage, CHAT_USAGE_MAX);
    k->exchange.peer = "the model's endpoint";
    k->exchange.is_operators = true;
    k->exchange.silence_ms = m->silence_ms;
    k->exchange.delivery.id = (struct delivery_id){t->id, t->turn, t->attempt};
    rounds_init(k);
    k->timeout_ms = m->timeout_ms > 0 ? m->timeout_ms : EXCHANGE_LONGEST_MS;
    if (k->timeout_ms < whole_ms)
        whole_ms = k->timeout_ms;
    exchange_init(&k->exchange, d, &talk_ops, a, whole_ms);
    if (talk_keep_all(k, t, a, m, model)) {
        talk_apply_habit(k);
        return k;
    }
    exchange_stop(&k->exchange);
    talk_free(&k->exchange.delivery);
    return NULL;
}

/* The definition may have been removed since the task was accepted. */
static enum err talk_start(struct deliver *d, const struct task *t,
                           const struct agent *a, const struct agent_url *url,
                           struct delivery **out)
{
    struct str model = STR("");
    const struct model_def *m = talk_find_model(d, url->id, &model);
    struct talk *k;
    enum err e = talk_reaches(d, a, url, NULL);

    if (e)
        return e;
    k = talk_new(d, t, a, m, model);
    if (!k)
        return ERR_NOMEM;
    k->is_starting = true;
    talk_read_history(k, t, m);
    k->is_starting = false;
    e = k->sent;
    if (e == ERR_NOMEM || e == ERR_BUSY) {
        talk_stop(&k->exchange.delivery, STOP_OVER);
        talk_free(&k->exchange.delivery);
        return e;
    }
    if (e)
        exchange_not_sent(&k->exchange, e, &k->why);
    *out = &k->exchange.delivery;
    return OK;
}

const struct transport_row transport_model = {.reaches = talk_reaches,
                                              .start = talk_start,
                                              .stop = talk_stop,
                                              .free = talk_free};
