/* pi-coding-agent, `pi --mode rpc`: one JSON object a line, only '\n' ends it.
 *
 *     we                              pi
 *     get_state                    ->
 *                                  <- response: it is ready
 *     new_session                  ->                  if it had another one
 *                                  <- response
 *     prompt {message}             ->
 *                                  <- response, agent_start
 *                                  <- message_update {assistantMessageEvent:
 *                                       {type: text_delta, delta}}   a chunk
 *                                  <- message_end {message: {role, content,
 *                                       stopReason, errorMessage, usage}}
 *                                  <- agent_end
 *     abort                        ->                  when it is cancelled
 *
 * Input requests of its extensions are in pi_ask.c, our tools for it in
 * pi_tools.c.
 *
 * pi is done at agent_end. Later versions send agent_settled after that; once a
 * pi has sent it, we wait for it. After an error pi may retry by itself, and
 * says so (auto_retry_start, compaction_start) right after agent_end. So we ask
 * for its state once more: if no such event came before the reply, that was the
 * end.
 *
 * Each delta carries the whole message so far, so lines are long. They are
 * scanned for the few needed members and never parsed as a whole. The answer is
 * made of the complete messages, so a message that broke off and was repeated
 * is in it once. */
#include <stdlib.h>

#include "deliver/transports/pi.h"

enum { WORDS_MAX = 512, META_MAX = 4096 };

enum pi_state {
    PI_IDLE,
    PI_RENEWED,  /* new_session was sent, prompt waits for its reply */
    PI_PROMPTED, /* until pi accepts the prompt */
    PI_ACCEPTED, /* until agent_start */
    PI_RUNNING,
    PI_ASKED, /* it failed; the state was requested to see if it retries */
    PI_HELD,  /* it retries */
    PI_ENDED, /* agent_settled must follow */
};

struct pi {
    enum pi_state state;
    bool settles;         /* it has sent agent_settled before */
    struct arena scratch; /* of one line */
    struct str line;      /* the current one */
    struct buf prompt;    /* while it waits for new_session */
    /* The current task. */
    struct buf text; /* of the complete messages */
    bool has_chunks, is_new_message;
    bool is_too_large;      /* the text is over the limit */
    bool has_lost_text;     /* memory ran out for it */
    struct str stop_reason; /* a constant */
    char error[WORDS_MAX];
    size_t n_error;
    char model[AGENT_NAME_MAX];
    size_t n_model;
    double input, output, cache_read, cache_write, cost;
    struct pi_uses uses;
};

/* Scan an object for the raw values of these members. */
#define SCAN(text, keys, values)                                              \
    (json_scan(text, keys, sizeof(keys) / sizeof((keys)[0]), values, NULL) == \
     OK)

static bool raw_is(struct str raw, struct str quoted)
{
    return str_eq(raw, quoted);
}

static struct stint *pi_stint(struct pool_worker *h)
{
    return &h->stints[0];
}

/* Command line and start. */

static size_t pi_more_args(const struct process_def *def,
                           struct str out[DIALECT_ARGS_MAX])
{
    struct str rest = def->model, provider;
    size_t n = 0;

    if (def->tools) {
        out[n++] = STR("--extension");
        out[n++] = STR(CHILD_FILE_PATH);
    }
    if (!def->model.n)
        return n;
    if (str_find(def->model, '/', 0) < def->model.n) {
        provider = str_cut(&rest, '/');
        out[n++] = STR("--provider");
        out[n++] = provider;
    }
    out[n++] = STR("--model");
    out[n++] = rest;
    return n;
}

static enum err pi_greet(struct pool_worker *h)
{
    struct pi *pi = mem_new(sizeof(*pi));

    h->mind = pi;
    arena_init(&pi->scratch, 2 * (size_t)h->pool->def.max_line_bytes + 65536);
    buf_init(&pi->prompt, UNSENT_MAX);
    buf_init(&pi->text, MSG_TEXT_MAX);
    return pool_worker_send(h,
                            STR("{\"id\":\"state\",\"type\":\"get_state\"}"));
}

static void pi_forget(struct pool_worker *h)
{
    struct pi *pi = h->mind;

    if (!pi)
        return;
    arena_fini(&pi->scratch);
    buf_fini(&pi->prompt);
    buf_fini(&pi->text);
    free(pi);
}

/* Give and cancel. */

static void pi_word(struct buf *out, const struct task *t)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_key(&o, STR("id"));
    json_put_str(&o, STR("prompt"));
    json_key(&o, STR("type"));
    json_put_str(&o, STR("prompt"));
    json_key(&o, STR("message"));
    json_put_str(&o, t->text);
    json_close(&o, '}');
}

static void pi_begin_task(struct pi *pi)
{
    buf_clear(&pi->text);
    pi->has_chunks = pi->is_new_message = false;
    pi->is_too_large = pi->has_lost_text = false;
    pi->stop_reason = STR("");
    pi->n_error = pi->n_model = 0;
    pi->input = pi->output = pi->cache_read = pi->cache_write = pi->cost = 0;
    pi->uses.n_calls = 0;
}

static enum err pi_give(struct pool_worker *h, struct stint *s, bool is_other)
{
    struct pi *pi = h->mind;
    struct str prompt = buf_str(&s->carried->line);
    enum err e;

    pi_begin_task(pi);
    if (!is_other) {
        e = pool_worker_send(h, prompt);
        pi->state = e ? PI_IDLE : PI_PROMPTED;
        return e;
    }
    buf_clear(&pi->prompt);
    buf_add_str(&pi->prompt, prompt);
    if (pi->prompt.over)
        return ERR_NOMEM;
    e = pool_worker_send(h, STR("{\"id\":\"new\",\"type\":\"new_session\"}"));
    pi->state = e ? PI_IDLE : PI_RENEWED;
    return e;
}

static void pi_leave(struct pool_worker *h, struct stint *s, enum stop_why why)
{
    struct pi *pi = h->mind;

    (void)s;
    pi_uses_stop(h, &pi->uses);
    if (why != STOP_CANCELLED || pi->state == PI_IDLE)
        return;
    if (pool_worker_send(h, STR("{\"id\":\"abort\",\"type\":\"abort\"}")) != OK)
        log_debug(pool_worker_deliver(h)->opts.log, "deliver.cancel_unsaid",
                  LOG_S("process", h->pool->def.name));
}

/* The end of a task. */

static void pi_put_count(struct json_out *o, struct str key, double n)
{
    json_key(o, key);
    json_put_int(o, n > 0 && n < 1e15 ? (int64_t)n : 0);
}

static void pi_put_metadata(struct buf *out, const struct pi *pi)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_key(&o, STR("stop_reason"));
    json_put_str(&o, pi->stop_reason);
    if (pi->n_model) {
        json_key(&o, STR("model"));
        json_put_str(&o, (struct str){pi->model, pi->n_model});
    }
    if (pi->uses.n_calls)
        json_member_int(&o, "tool_calls", (int64_t)pi->uses.n_calls);
    json_key(&o, STR("usage"));
    json_open(&o, '{');
    pi_put_count(&o, STR("input_tokens"), pi->input);
    pi_put_count(&o, STR("output_tokens"), pi->output);
    pi_put_count(&o, STR("cache_read_tokens"), pi->cache_read);
    pi_put_count(&o, STR("cache_write_tokens"), pi->cache_write);
    json_key(&o, STR("cost"));
    json_put_real(&o, pi->cost);
    json_close(&o, '}');
    json_close(&o, '}');
}

static struct task_result pi_result(const struct pi *pi, struct str metadata)
{
    struct task_result r = {.status = TASK_COMPLETED,
                            .text = buf_str(&pi->text),
                            .metadata = metadata};

    if (str_eq(pi->stop_reason, STR("error")) ||
        str_eq(pi->stop_reason, STR("aborted"))) {
        r.status = TASK_FAILED;
        r.error_code = STR("agent_failed");
        r.error = pi->n_error ? (struct str){pi->error, pi->n_error}
                              : STR("pi says that it failed, and not why");
    } else if (pi->is_too_large) {
        r.status = TASK_FAILED;
        r.text = STR("");
        r.error_code = STR("too_large");
        r.error = STR("the agent's answer is larger than the limit");
    }
    return r;
}

static void pi_finish(struct pool_worker *h)
{
    struct pi *pi = h->mind;
    struct task_result r;
    struct buf metadata;

    pi->state = PI_IDLE;
    if (pi->has_lost_text) {
        stint_failed(pi_stint(h),
                     &(struct delivery_failure){
                         .code = STR("out_of_memory"),
                         .words = STR("there was no memory for what the agent "
                                      "answered"),
                         .is_innocent = true});
        return;
    }
    buf_init(&metadata, META_MAX);
    pi_put_metadata(&metadata, pi);
    r = pi_result(pi, metadata.over ? STR("") : buf_str(&metadata));
    stint_result(pi_stint(h), &r, true);
    buf_fini(&metadata);
    buf_clear(&pi->text);
    buf_shrink(&pi->text);
}

static void pi_refused(struct pool_worker *h, struct str code, struct str words)
{
    struct pi *pi = h->mind;

    pi->state = PI_IDLE;
    stint_result(
        pi_stint(h),
        &(struct task_result){.status = TASK_FAILED,
                              .error_code = code,
                              .error = words.n ? words : STR("pi refused it")},
        true);
}

/* Receive. */

enum { E_TYPE, E_ID, E_SUCCESS, E_ERROR, E_EVENT, E_MESSAGE, E_RETRY, N_E };

static const struct str event_keys[N_E] = {
    [E_TYPE] = STR("type"),
    [E_ID] = STR("id"),
    [E_SUCCESS] = STR("success"),
    [E_ERROR] = STR("error"),
    [E_EVENT] = STR("assistantMessageEvent"),
    [E_MESSAGE] = STR("message"),
    [E_RETRY] = STR("willRetry"),
};

static struct str pi_unquote(struct pi *pi, struct str raw)
{
    struct str out = STR("");

    return raw.n && json_unquote(&pi->scratch, raw, &out) ? out : STR("");
}

static void pi_on_renewed(struct pool_worker *h, bool is_success)
{
    struct pi *pi = h->mind;
    struct stint *s = pi_stint(h);
    enum err e;

    pi->state = PI_IDLE;
    if (!s->carried) { /* cancelled meanwhile */
        stint_empty(s);
        return;
    }
    e = is_success ? pool_worker_send(h, buf_str(&pi->prompt)) : ERR_GONE;
    buf_clear(&pi->prompt);
    if (!e) {
        pi->state = PI_PROMPTED;
        return;
    }
    stint_failed(s, &(struct delivery_failure){
                        .code = STR("agent_unreachable"),
                        .words = STR("pi could not begin a new session")});
    pool_worker_stop(h);
}

static void pi_on_prompted(struct pool_worker *h, bool is_success,
                           struct str error)
{
    struct pi *pi = h->mind;
    struct carried *c = pi_stint(h)->carried;

    if (!is_success) {
        pi_refused(h, STR("agent_refused"),
                   str_head(pi_unquote(pi, error), WORDS_MAX));
        return;
    }
    pi->state = PI_ACCEPTED;
    if (c)
        (void)!delivery_working(&c->delivery);
}

static void pi_on_response(struct pool_worker *h, const struct str e[N_E])
{
    struct pi *pi = h->mind;
    bool is_success = raw_is(e[E_SUCCESS], STR("true"));

    if (raw_is(e[E_ID], STR("\"state\""))) {
        pool_worker_ready(h, 1);
    } else if (raw_is(e[E_ID], STR("\"new\"")) && pi->state == PI_RENEWED) {
        pi_on_renewed(h, is_success);
    } else if (raw_is(e[E_ID], STR("\"asked\"")) && pi->state == PI_ASKED) {
        pi_finish(h);
    } else if (raw_is(e[E_ID], STR("\"prompt\"")) && pi->state == PI_PROMPTED) {
        pi_on_prompted(h, is_success, e[E_ERROR]);
    }
}

static void pi_on_update(struct pool_worker *h, const struct str e[N_E])
{
    static const struct str keys[] = {STR("type"), STR("delta")};
    struct pi *pi = h->mind;
    struct str values[2], delta;

    if (pi->state != PI_RUNNING || !SCAN(e[E_EVENT], keys, values) ||
        !raw_is(values[0], STR("\"text_delta\"")))
        return;
    delta = pi_unquote(pi, values[1]);
    if (!delta.n)
        return;
    if (pi->is_new_message && pi->has_chunks)
        stint_chunk(pi_stint(h), STR("\n\n"));
    pi->is_new_message = false;
    pi->has_chunks = true;
    stint_chunk(pi_stint(h), delta);
}

static void pi_add_text(struct pi *pi, struct str s)
{
    if (s.n > pi->text.limit - pi->text.n)
        pi->is_too_large = true;
    if (!pi->is_too_large)
        buf_add_str(&pi->text, s);
    pi->has_lost_text |= pi->text.over;
}

static void pi_add_content(struct pi *pi, struct str content)
{
    static const struct str keys[] = {STR("type"), STR("text")};
    struct str rest = content, part, values[2];
    bool has_begun = false;

    while (json_next(&rest, &part)) {
        struct str text;

        if (!SCAN(part, keys, values) || !raw_is(values[0], STR("\"text\"")))
            continue;
        text = pi_unquote(pi, values[1]);
        pi->has_lost_text |=
            !text.n && values[1].n > 2 && values[1].p[0] == '"';
        if (text.n && !has_begun && pi->text.n)
            pi_add_text(pi, STR("\n\n"));
        has_begun |= text.n > 0;
        pi_add_text(pi, text);
    }
}

static void pi_add_number(double *sum, struct str raw)
{
    double n;

    if (json_number(raw, &n) && n > 0)
        *sum += n;
}

static void pi_add_usage(struct pi *pi, struct str usage)
{
    static const struct str keys[] = {STR("input"), STR("output"),
                                      STR("cacheRead"), STR("cacheWrite"),
                                      STR("cost")};
    static const struct str cost_keys[] = {STR("total")};
    struct str v[5], total[1];

    if (!SCAN(usage, keys, v))
        return;
    pi_add_number(&pi->input, v[0]);
    pi_add_number(&pi->output, v[1]);
    pi_add_number(&pi->cache_read, v[2]);
    pi_add_number(&pi->cache_write, v[3]);
    if (SCAN(v[4], cost_keys, total))
        pi_add_number(&pi->cost, total[0]);
}

static void pi_keep_words(char *to, size_t max, size_t *n, struct str s)
{
    s = str_head(s, max);
    if (s.n)
        memcpy(to, s.p, s.n);
    *n = str_tame(to, s.n);
}

static struct str pi_stop_reason(struct str raw)
{
    static const struct str known[] = {STR("stop"), STR("length"),
                                       STR("toolUse"), STR("error"),
                                       STR("aborted")};
    struct str bare = raw.n > 2 ? str_sub(raw, 1, raw.n - 1) : raw;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_eq(known[i], bare))
            return known[i];
    return STR("other");
}

static void pi_on_message_end(struct pool_worker *h, const struct str e[N_E])
{
    static const struct str keys[] = {STR("role"),         STR("content"),
                                      STR("stopReason"),   STR("usage"),
                                      STR("errorMessage"), STR("model")};
    struct pi *pi = h->mind;
    struct str v[6];

    if (pi->state != PI_RUNNING || !SCAN(e[E_MESSAGE], keys, v) ||
        !raw_is(v[0], STR("\"assistant\"")))
        return;
    pi->is_new_message = true;
    pi->stop_reason = pi_stop_reason(v[2]);
    pi_add_usage(pi, v[3]);
    pi_keep_words(pi->error, sizeof(pi->error), &pi->n_error,
                  pi_unquote(pi, v[4]));
    pi_keep_words(pi->model, sizeof(pi->model), &pi->n_model,
                  pi_unquote(pi, v[5]));
    if (!str_eq(pi->stop_reason, STR("error")))
        pi_add_content(pi, v[1]);
}

static void pi_on_agent_end(struct pool_worker *h, const struct str e[N_E])
{
    struct pi *pi = h->mind;

    if (pi->state != PI_RUNNING && pi->state != PI_ACCEPTED)
        return;
    if (raw_is(e[E_RETRY], STR("true"))) {
        pi->state = PI_HELD;
    } else if (pi->settles) {
        pi->state = PI_ENDED;
    } else if (str_eq(pi->stop_reason, STR("error"))) {
        pi->state = PI_ASKED;
        if (pool_worker_send(h,
                             STR("{\"id\":\"asked\",\"type\":\"get_state\"}")))
            pi_finish(h);
    } else {
        pi_finish(h);
    }
}

/* The first one ever may belong to the previous task. */
static void pi_on_settled(struct pool_worker *h, const struct str e[N_E])
{
    struct pi *pi = h->mind;

    (void)e;
    pi->settles = true;
    if (pi->state == PI_ENDED || pi->state == PI_ASKED || pi->state == PI_HELD)
        pi_finish(h);
}

static void pi_on_start(struct pool_worker *h, const struct str e[N_E])
{
    struct pi *pi = h->mind;

    (void)e;
    if (pi->state != PI_IDLE && pi->state != PI_RENEWED)
        pi->state = PI_RUNNING;
}

static void pi_on_hold(struct pool_worker *h, const struct str e[N_E])
{
    struct pi *pi = h->mind;

    (void)e;
    if (pi->state == PI_ASKED)
        pi->state = PI_HELD;
}

/* The retry was given up. */
static void pi_on_hold_end(struct pool_worker *h, const struct str e[N_E])
{
    struct pi *pi = h->mind;

    if (pi->state == PI_HELD && !raw_is(e[E_SUCCESS], STR("true")) &&
        !raw_is(e[E_RETRY], STR("true")) && !pi->settles)
        pi_finish(h);
}

static void pi_on_dialog(struct pool_worker *h, const struct str e[N_E])
{
    struct pi *pi = h->mind;

    (void)e;
    pi_asked(h, &pi->uses, &pi->scratch, pi->line);
}

static const struct {
    struct str type;
    void (*heard)(struct pool_worker *h, const struct str e[N_E]);
} events[] = {
    {STR("\"message_update\""), pi_on_update},
    {STR("\"message_end\""), pi_on_message_end},
    {STR("\"response\""), pi_on_response},
    {STR("\"agent_start\""), pi_on_start},
    {STR("\"agent_end\""), pi_on_agent_end},
    {STR("\"agent_settled\""), pi_on_settled},
    {STR("\"auto_retry_start\""), pi_on_hold},
    {STR("\"compaction_start\""), pi_on_hold},
    {STR("\"auto_retry_end\""), pi_on_hold_end},
    {STR("\"compaction_end\""), pi_on_hold_end},
    {STR("\"extension_ui_request\""), pi_on_dialog},
};

/* The line in scratch, with U+FFFD where pi cut a text inside a character. */
static struct str pi_mend_line(struct pi *pi, struct str line)
{
    char *p = arena_strdup(&pi->scratch, line);

    return p && json_mend_halves(p, line.n) ? (struct str){p, line.n} : line;
}

static void pi_heard(struct pool_worker *h, struct str line)
{
    struct pi *pi = h->mind;
    struct str e[N_E];

    if (!line.n)
        return;
    arena_reset(&pi->scratch);
    if (!SCAN(line, event_keys, e)) {
        line = pi_mend_line(pi, line);
        if (!SCAN(line, event_keys, e)) {
            pool_worker_garbage(h, line);
            return;
        }
    }
    if (!e[E_TYPE].n) {
        pool_worker_garbage(h, line);
        return;
    }
    h->n_garbage = 0;
    pi->line = line;
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (str_eq(e[E_TYPE], events[i].type)) {
            events[i].heard(h, e);
            break; /* other events are ignored */
        }
}

static void pi_room(struct pool_worker *h)
{
    struct pi *pi = h->mind;

    pi_uses_room(&pi->uses);
}

const struct dialect dialect_pi = {
    .name = "pi",
    .form = "what pi --mode rpc writes",
    .has_one_mind = true,
    .more_args = pi_more_args,
    .file = pi_tools_file,
    .word = pi_word,
    .greet = pi_greet,
    .give = pi_give,
    .leave = pi_leave,
    .heard = pi_heard,
    .answer = pi_answer,
    .room = pi_room,
    .forget = pi_forget,
};
