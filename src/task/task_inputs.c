/* Input requests: agents ask people while they work (model/input.h).
 *
 * A request belongs to two entries, often the same: the asking task, whose
 * attempt it ends with, and the root. It is in a list of each, so that either
 * end finds it. It is shown on both streams, and a listener of either may
 * answer.
 *
 *     task_ask -> open -> task_input_end                        answered
 *                      -> its timer: no listener, or the agent gave up
 *                      -> inputs_asked_end, inputs_told_end     withdrawn
 *
 * Its texts are freed when it is over. The root remembers the outcome of the
 * last few, for late answers.
 *
 * Rejected: a row in the store. The asking program ends with the server, so the
 * answer could not be delivered. */
#include "task/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEVER_MS = 20 * 24 * 3600 * 1000, UNASKED_LOGGED = 8 };

struct task_input {
    struct input in;
    struct arena arena;              /* of in.ask */
    struct task_entry *root, *asker; /* asker: NULL once it is over */
    struct list_node by_root, by_asker;
    struct timer timer;
    int64_t gives_up_ms; /* monotonic, as alone_ms; zero: never */
    int64_t alone_ms;    /* without listeners since then */
};

static struct task_input *input_at_root(struct list_node *n)
{
    return LIST_OF(n, struct task_input, by_root);
}

static struct task_input *input_at_asker(struct list_node *n)
{
    return LIST_OF(n, struct task_input, by_asker);
}

static bool input_is_open(const struct task_input *i)
{
    return i->in.outcome == INPUT_OPEN;
}

static struct loop *input_loop(const struct task_input *i)
{
    return i->root->ts->opts.loop;
}

/* The texts of a request. */

static bool input_keep_str(struct arena *a, struct str *s)
{
    s->p = arena_strdup(a, *s);
    return s->p;
}

static bool input_keep_options(struct arena *a, struct input_ask *q)
{
    struct str *list = arena_array(a, q->n_options + 1, sizeof(*list));

    for (size_t i = 0; list && i < q->n_options; i++) {
        list[i] = q->options[i];
        if (!input_keep_str(a, &list[i]))
            return false;
    }
    q->options = list;
    return list;
}

static bool input_keep_ask(struct task_input *i)
{
    struct input_ask *q = &i->in.ask;
    struct arena *a = &i->arena;

    return input_keep_str(a, &q->title) && input_keep_str(a, &q->message) &&
           input_keep_str(a, &q->placeholder) &&
           input_keep_str(a, &q->prefill) && input_keep_str(a, &q->handle) &&
           input_keep_options(a, q);
}

static void input_tell_listeners(struct task_input *i,
                                 enum task_event_kind kind)
{
    struct buf text;
    struct json_out o;

    buf_init(&text, 8 * INPUT_BYTES_MAX);
    o = json_out(&text);
    input_write(&o, &i->in);
    if (text.over) /* becomes a gap, after which a client asks for open ones */
        buf_clear(&text);
    event_input(i->root, kind, str_of(i->in.agent), buf_str(&text));
    if (i->asker != i->root)
        event_input(i->asker, kind, str_of(i->in.agent), buf_str(&text));
    buf_fini(&text);
}

/* Time. */

static bool input_is_heard(const struct task_input *i)
{
    return i->root->n_hearers || (i->asker && i->asker->n_hearers);
}

static void input_set_timer(struct task_input *i)
{
    const struct tasks_limits *limits = &i->root->ts->opts.limits;
    int64_t now_ms = loop_mono_ms(input_loop(i));
    int64_t left_ms = NEVER_MS;

    if (i->gives_up_ms)
        left_ms = i->gives_up_ms - now_ms;
    if (!input_is_heard(i) && i->alone_ms + limits->input_ms - now_ms < left_ms)
        left_ms = i->alone_ms + limits->input_ms - now_ms;
    loop_timer_set(input_loop(i), &i->timer, left_ms > 0 ? left_ms : 0);
}

static void input_on_timer(struct timer *t)
{
    struct task_input *i = LIST_OF(t, struct task_input, timer);
    int64_t now_ms = loop_mono_ms(input_loop(i));

    if (i->gives_up_ms && now_ms >= i->gives_up_ms)
        task_input_end(i->root->ts, &i->in, INPUT_EXPIRED, STR(""));
    else if (!input_is_heard(i) &&
             now_ms - i->alone_ms >= i->root->ts->opts.limits.input_ms)
        task_input_end(i->root->ts, &i->in, INPUT_UNHEARD, STR(""));
    else
        input_set_timer(i);
}

static void input_begin_alone(struct task_input *i)
{
    i->alone_ms = loop_mono_ms(input_loop(i));
    input_set_timer(i);
}

void inputs_heard(struct task_entry *e)
{
    for (struct list_node *n = list_first(&e->inputs); n;
         n = list_next(&e->inputs, n))
        if (input_is_open(input_at_root(n)))
            input_begin_alone(input_at_root(n));
    for (struct list_node *n = list_first(&e->asks); n;
         n = list_next(&e->asks, n))
        input_begin_alone(input_at_asker(n));
}

/* Begin. */

static size_t inputs_count(const struct task_entry *root, bool wants_open)
{
    size_t n = 0;

    for (struct list_node *at = list_first(&root->inputs); at;
         at = list_next(&root->inputs, at))
        n += input_is_open(input_at_root(at)) == wants_open;
    return n;
}

static struct task_input *inputs_first(const struct task_entry *root,
                                       bool wants_open)
{
    struct list_node *n = list_first(&root->inputs);

    while (n && input_is_open(input_at_root(n)) != wants_open)
        n = list_next(&root->inputs, n);
    return n ? input_at_root(n) : NULL;
}

/* The entry of an attempt, if that is the current one. */
static struct task_entry *input_asker(const struct tasks *ts, struct str id,
                                      int64_t turn, int64_t attempt)
{
    struct task_entry *e = task_entry_find(ts, id);

    if (!e || entry_is_over(e) || e->t.turn != turn ||
        e->t.attempt != attempt ||
        (e->t.status != TASK_DISPATCHED && e->t.status != TASK_WORKING))
        return NULL;
    return e;
}

static struct task_input *input_new(struct task_entry *root,
                                    struct task_entry *asker,
                                    const struct input_ask *q)
{
    struct tasks *ts = root->ts;
    struct task_input *i = mem_new(sizeof(*i));
    int64_t now_ms = loop_wall_ms(ts->opts.loop);

    i->root = root;
    i->asker = asker;
    i->timer.fire = input_on_timer;
    i->in = (struct input){.id = id_make(ts->opts.ids, "input", now_ms),
                           .task_id = asker->t.id,
                           .root_id = root->t.id,
                           .turn = asker->t.turn,
                           .attempt = asker->t.attempt,
                           .ask = *q,
                           .nth = asker->n_asked + 1,
                           .at_ms = now_ms,
                           .until_ms = asker->t.deadline_ms};
    snprintf(i->in.agent, sizeof(i->in.agent), "%.*s", STR_ARG(asker->t.agent));
    i->alone_ms = loop_mono_ms(ts->opts.loop);
    if (q->timeout_ms > 0 && q->timeout_ms < i->in.until_ms - now_ms) {
        i->in.until_ms = now_ms + q->timeout_ms;
        i->gives_up_ms = i->alone_ms + q->timeout_ms;
    }
    arena_init(&i->arena, 4 * INPUT_BYTES_MAX);
    if (input_keep_ask(i))
        return i;
    arena_fini(&i->arena);
    free(i);
    return NULL;
}

static enum err input_begin(struct task_entry *asker, const struct input_ask *q,
                            const struct input **out)
{
    struct task_entry *root = task_entry_find(asker->ts, task_root(&asker->t));
    enum err e = input_may_be_asked(q);
    struct task_input *i;

    if (e)
        return e;
    if (!root || entry_is_over(root))
        return ERR_NOT_FOUND;
    if (inputs_count(root, true) >= TASK_INPUTS_MAX ||
        asker->n_asked >= TASK_ASKS_MAX)
        return ERR_LIMIT;
    i = input_new(root, asker, q);
    if (!i)
        return ERR_LIMIT;
    asker->n_asked++;
    list_append(&root->inputs, &i->by_root);
    list_append(&asker->asks, &i->by_asker);
    input_set_timer(i);
    input_tell_listeners(i, TASK_EVENT_INPUT);
    i->in.number = root->last_number;
    i->in.own_number = asker->last_number;
    *out = &i->in;
    return OK;
}

/* A program may ask without end, so only the first few are logged. */
static void input_log_unasked(struct task_entry *asker,
                              const struct input_ask *q, enum err e)
{
    if (asker->n_unasked < UNASKED_LOGGED)
        log_info(asker->ts->opts.log, "task.not_asked",
                 LOG_C("task_id", asker->t.id.text),
                 LOG_S("kind", input_kind_name(q->kind)),
                 LOG_C("because", err_row(e)->wording));
    asker->n_unasked++;
}

enum err task_ask(struct tasks *ts, struct str id, int64_t turn,
                  int64_t attempt, const struct input_ask *q,
                  const struct input **out)
{
    struct task_entry *asker = input_asker(ts, id, turn, attempt);
    enum err e;

    if (!asker)
        return ERR_NOT_FOUND;
    e = input_begin(asker, q, out);
    if (e)
        input_log_unasked(asker, q, e);
    return e;
}

/* End. */

static void input_free(struct task_input *i)
{
    loop_timer_cancel(input_loop(i), &i->timer);
    list_remove(&i->by_root);
    list_remove(&i->by_asker);
    arena_fini(&i->arena);
    free(i);
}

void task_input_end(struct tasks *ts, const struct input *in,
                    enum input_outcome outcome, struct str by)
{
    struct task_input *i = LIST_OF(in, struct task_input, in);

    assert(input_is_open(i) && outcome != INPUT_OPEN);
    i->in.outcome = outcome;
    snprintf(i->in.by, sizeof(i->in.by), "%.*s", STR_ARG(by));
    loop_timer_cancel(ts->opts.loop, &i->timer);
    list_remove(&i->by_root); /* finished ones in the order of their end */
    list_append(&i->root->inputs, &i->by_root);
    input_tell_listeners(i, TASK_EVENT_INPUT_OVER);
    list_remove(&i->by_asker);
    i->asker = NULL;
    if (ts->opts.on_input_over)
        ts->opts.on_input_over(ts->opts.ctx, &i->in);
    i->in.ask = (struct input_ask){.kind = i->in.ask.kind};
    arena_fini(&i->arena);
    arena_init(&i->arena, 0);
    if (inputs_count(i->root, false) > TASK_INPUTS_KEPT)
        input_free(inputs_first(i->root, false));
}

void inputs_asked_end(struct task_entry *e)
{
    struct list_node *n;

    while ((n = list_first(&e->asks)))
        task_input_end(e->ts, &input_at_asker(n)->in, INPUT_WITHDRAWN, STR(""));
    e->n_asked = e->n_unasked = 0;
}

void inputs_told_end(struct task_entry *e)
{
    struct task_input *i;

    while ((i = inputs_first(e, true)))
        task_input_end(e->ts, &i->in, INPUT_WITHDRAWN, STR(""));
}

void inputs_free(struct task_entry *e)
{
    struct list_node *n;

    while ((n = list_first(&e->asks))) {
        input_at_asker(n)->asker = NULL; /* its root may still exist */
        list_remove(n);
    }
    while ((n = list_first(&e->inputs)))
        input_free(input_at_root(n));
}

/* Lookup. */

size_t task_inputs(const struct tasks *ts, struct str id,
                   const struct input *out[TASK_INPUTS_MAX])
{
    const struct task_entry *e = task_entry_find(ts, id);
    const struct task_entry *root =
        e ? task_entry_find(ts, task_root(&e->t)) : NULL;
    size_t n = 0;

    for (struct list_node *at = root ? list_first(&root->inputs) : NULL; at;
         at = list_next(&root->inputs, at)) {
        const struct task_input *i = input_at_root(at);

        if (input_is_open(i) && (root == e || i->asker == e))
            out[n++] = &i->in;
    }
    return n;
}

const struct input *task_input_find(const struct tasks *ts, struct str id,
                                    struct str input_id)
{
    const struct task_entry *e = task_entry_find(ts, id);
    const struct task_entry *root =
        e ? task_entry_find(ts, task_root(&e->t)) : NULL;

    for (struct list_node *at = root ? list_first(&root->inputs) : NULL; at;
         at = list_next(&root->inputs, at)) {
        const struct input *in = &input_at_root(at)->in;

        if (str_eq(str_of(in->id.text), input_id) &&
            (root == e || str_eq(str_of(in->task_id.text), id)))
            return in;
    }
    return NULL;
}

bool inputs_check(const struct task_entry *e)
{
    for (struct list_node *n = list_first(&e->inputs); n;
         n = list_next(&e->inputs, n)) {
        const struct task_input *i = input_at_root(n);

        if (i->root != e || input_is_open(i) != (i->asker != NULL) ||
            input_is_open(i) != list_has(&i->by_asker) ||
            input_is_open(i) != timer_is_set(&i->timer) ||
            (input_is_open(i) && (entry_is_over(e) || entry_is_over(i->asker))))
            return false;
    }
    return inputs_count(e, true) <= TASK_INPUTS_MAX &&
           inputs_count(e, false) <= TASK_INPUTS_KEPT;
}
