/* The road "model:NAME": an agent that is a prompt and a model behind an
 * endpoint that the configuration names, of OpenAI's kind or Anthropic's.
 *
 *     start -> history of the conversation -> POST to the endpoint
 *           -> pieces of the answer, as chunks -> result
 *                   ^                \
 *                   '-- asked again --+-> calls of tools, used (round.c)
 *
 * The model remembers nothing, so it is told everything: the system prompt,
 * what was said before in this conversation, and the message. An answer that
 * has said why it ended is whole, whatever happens behind that.
 *
 * What not every endpoint knows is asked for and left out where it complains
 * of it by name: stream_options, without which OpenAI does not say what was
 * used, max_tokens, which newer models of theirs call otherwise, and tools,
 * which many small models cannot use. That
 * costs one request more, which fails at once, and is remembered until the next
 * settings, or until it turns out to be wrong.
 *
 * The key goes to the endpoint's own address and nowhere else: no redirect is
 * followed. Of what is there nobody but the log hears more than is needed. */
#include "deliver/talk.h"

#include <stdio.h>
#include <stdlib.h>

enum { STRINGS_SPARE_BYTES = 256 * 1024 };

/* Which model. */

static const struct model_def *find_model(const struct deliver *d,
                                          struct str id, struct str *model)
{
    return model_def_find(d->opts.settings.models, d->opts.settings.n_models,
                          id, model);
}

static enum err talk_reaches(const struct deliver *d, const struct agent *a,
                             const struct agent_url *url, struct why *why)
{
    struct str model, name = url->id;
    const struct model_def *m = find_model(d, name, &model);

    if (!d->opts.fetch)
        return why_err(why, ERR_NOT_IMPLEMENTED,
                       "this server calls nobody over HTTP");
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

/* Asking. */

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
    buf_init(&body, VISIT_BODY_MAX);
    chat_write(&body, &k->rq);
    rq.body = buf_str(&body);
    e = body.over || FAULT("deliver.chat") ? ERR_NOMEM
                                           : visit_send(&k->visit, &rq, why);
    buf_fini(&body);
    if (e && !why->text[0])
        why_err(why, e, "%s", err_row(e)->wording);
    return e;
}

/* What an endpoint is known not to know, by definition and model. Where two
 * have the same place, one of them is found out again now and then. */

static uint64_t habit_key(const struct talk *k)
{
    const uint64_t *seed = k->visit.d->opts.seed;

    return hash_bytes(k->name, seed) * 31 + hash_bytes(k->rq.model, seed);
}

static struct model_habit *habit_of(const struct talk *k)
{
    return &k->visit.d->habits[habit_key(k) % MODEL_HABITS];
}

static void heed_habit(struct talk *k)
{
    const struct model_habit *h = habit_of(k);

    k->is_habit = h->is_used && h->key == habit_key(k);
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
        *habit_of(k) = (struct model_habit){.key = habit_key(k),
                                            .is_used = true,
                                            .has_no_usage = !k->rq.wants_usage,
                                            .has_no_tools = k->lacks_tools,
                                            .has_long_max_tokens =
                                                k->rq.has_long_max_tokens};
}

void models_forget(struct deliver *d)
{
    memset(d->habits, 0, sizeof(d->habits));
}

/* Whether the endpoint does not know something that it can do without; then
 * that is left out. */
static bool may_ask_otherwise(struct talk *k, const char *message)
{
    /* They say so with any status: 400, 404 and 500 were seen. */
    if (k->rq.has_tools && !k->rounds.n && k->visit.status >= 400 &&
        k->visit.status != 401 && strstr(message, "tool")) {
        k->rq.has_tools = false;
        k->lacks_tools = true;
        return true;
    }
    if (k->rq.kind != MODEL_OPENAI ||
        (k->visit.status != 400 && k->visit.status != 422))
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

static const char *hint_of(int status)
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

static void talk_status(struct visit *a)
{
    struct talk *k = talk_of(a);
    struct delivery_failure f = {.code = STR("model_error"),
                                 .retry_ms = a->retry_ms};
    char message[VISIT_WORDS_BYTES];
    struct why why = {""};
    enum err e;

    talk_words(k, buf_str(&a->body), a->status, message);
    if (may_ask_otherwise(k, message)) {
        e = talk_send(k, &why);
        if (e)
            visit_not_sent(a, e, &why);
        return;
    }
    if (k->is_habit && (a->status == 400 || a->status == 422))
        *habit_of(k) = (struct model_habit){0};
    if (a->status == 429 || a->status == 503 || a->status == 529)
        f.code = STR("agent_busy");
    f.is_final = !talk_may_try_again(a->status);
    visit_failed(a, f, "the model's endpoint answered with status %d%s%s%s",
                 a->status, message[0] ? ": " : "", message,
                 hint_of(a->status));
}

static const struct visit_ops talk_ops = {
    .on_event = talk_event,
    .on_end = talk_end,
    .on_whole = talk_whole,
    .on_status = talk_status,
    .on_broken = talk_broken,
};

/* What was said before. */

static enum err keep_history(struct talk *k, const struct task_said *list,
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

/* A model that has forgotten everything would answer, and wrongly: better it
 * is asked a little later. */
static void on_history(void *ctx, enum err e, const struct task_said *list,
                       size_t n)
{
    struct talk *k = ctx;

    k->asks_history = false;
    k->why.text[0] = '\0';
    if (!e)
        e = keep_history(k, list, n);
    else
        e = ERR_BUSY;
    if (!e)
        e = talk_send(k, &k->why);
    k->sent = e;
    if (e && !k->is_starting)
        visit_not_sent(&k->visit, e, &k->why);
}

static enum err find_history(struct talk *k, const struct task *t,
                             const struct model_def *m)
{
    const struct deliver_opts *o = &k->visit.d->opts;

    if (!o->history || m->history_messages <= 0 || m->history_bytes <= 0) {
        on_history(k, OK, NULL, 0);
        return OK;
    }
    k->asks_history = true;
    if (!o->history(o->ctx, t, (size_t)m->history_messages,
                    (size_t)m->history_bytes, on_history, k,
                    &k->history_handle)) {
        k->asks_history = false;
        return ERR_NOMEM;
    }
    return OK;
}

/* Life. */

static bool copy(struct talk *k, struct str from, struct str *to)
{
    return arena_keep(&k->arena, from, to);
}

/* Everything that is needed, since settings and cards change. */
static bool copy_all(struct talk *k, const struct task *t,
                     const struct agent *a, const struct model_def *m,
                     struct str model)
{
    const struct deliver_opts *o = &k->visit.d->opts;

    k->rq.kind = m->kind;
    k->rq.streams = true;
    k->rq.max_tokens = m->max_tokens;
    k->rq.temperature = m->temperature;
    k->rq.wants_usage = true;
    k->rq.has_tools =
        m->tools && o->on_tool && o->has_tools && o->has_tools(o->ctx, t, a);
    return chat_reach(&k->arena, m->kind, m->base_url, m->key, true,
                      &k->reach) == OK &&
           copy(k, model, &k->rq.model) && copy(k, m->key, &k->key) &&
           copy(k, m->name, &k->name) && copy(k, t->text, &k->rq.message) &&
           copy(k,
                a->routing.system_prompt.n ? a->routing.system_prompt
                                           : m->system_prompt,
                &k->rq.system);
}

static void talk_free(struct delivery *y)
{
    struct talk *k = LIST_OF(y, struct talk, visit.delivery);

    rounds_fini(k);
    visit_fini(&k->visit);
    arena_fini(&k->arena);
    buf_fini(&k->usage);
    free(k);
}

static void talk_stop(struct delivery *y, enum stop_why why)
{
    struct talk *k = LIST_OF(y, struct talk, visit.delivery);
    const struct deliver_opts *o = &k->visit.d->opts;

    (void)why;
    if (k->asks_history)
        o->history_cancel(o->ctx, k->history_handle);
    k->asks_history = false;
    rounds_stop(k);
    visit_stop(&k->visit);
}

static struct talk *talk_new(struct deliver *d, const struct task *t,
                             const struct agent *a, const struct model_def *m,
                             struct str model)
{
    struct talk *k = FAULT("deliver.talk") ? NULL : calloc(1, sizeof(*k));
    int64_t whole_ms = visit_whole_ms(d, t);

    if (!k)
        return NULL;
    arena_init(&k->arena, (size_t)m->history_bytes + t->text.n +
                              AGENT_PROMPT_MAX + m->system_prompt.n +
                              STRINGS_SPARE_BYTES);
    buf_init(&k->usage, CHAT_USAGE_MAX);
    k->visit.who = "the model's endpoint";
    k->visit.is_operators = true;
    k->visit.silence_ms = m->silence_ms;
    k->visit.delivery.id = (struct delivery_id){t->id, t->turn, t->attempt};
    rounds_init(k);
    k->timeout_ms = m->timeout_ms > 0 ? m->timeout_ms : VISIT_LONGEST_MS;
    if (k->timeout_ms < whole_ms)
        whole_ms = k->timeout_ms;
    if (visit_init(&k->visit, d, &talk_ops, a, whole_ms) == OK &&
        copy_all(k, t, a, m, model)) {
        heed_habit(k);
        return k;
    }
    visit_stop(&k->visit);
    talk_free(&k->visit.delivery);
    return NULL;
}

/* The definition may have gone since the task was accepted. */
static enum err talk_start(struct deliver *d, const struct task *t,
                           const struct agent *a, const struct agent_url *url,
                           struct delivery **out)
{
    struct str model = STR("");
    const struct model_def *m = find_model(d, url->id, &model);
    struct talk *k;
    enum err e = talk_reaches(d, a, url, NULL);

    if (e)
        return e;
    k = talk_new(d, t, a, m, model);
    if (!k)
        return ERR_NOMEM;
    k->is_starting = true;
    e = find_history(k, t, m);
    k->is_starting = false;
    if (!e)
        e = k->sent;
    if (e == ERR_NOMEM || e == ERR_BUSY) {
        talk_stop(&k->visit.delivery, STOP_OVER);
        talk_free(&k->visit.delivery);
        return e;
    }
    if (e)
        visit_not_sent(&k->visit, e, &k->why);
    *out = &k->visit.delivery;
    return OK;
}

const struct road_row road_model = {.reaches = talk_reaches,
                                    .start = talk_start,
                                    .stop = talk_stop,
                                    .free = talk_free};
