/* What agents ask of people while they work: see model/input.h.
 *
 * One is known by two entries, often the same: the asker's, whose attempt it
 * ends with, and the root's. It hangs in a list of each, so whatever ends finds
 * its own; on the streams of both it is told, and who listens to one of them
 * may answer.
 *
 *     task_ask -> open -> task_input_end            somebody has said something
 *                      -> its timer: nobody listens, or the agent gave up
 *                      -> inputs_asked_end, inputs_told_end   it is withdrawn
 *
 * The timer has its place in the heap from the beginning, so moving it needs no
 * memory. Once it is over the words go; that it was, and how, stays with the
 * root for who answers late, for the last few.
 *
 * Turned down: a row in the store. The program that asks is gone with the
 * server, so nobody could be given the answer. */
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
    int64_t gives_up_ms; /* loop's monotonic time, as these; zero: never */
    int64_t alone_ms;    /* nobody listens since then */
};

static struct task_input *told_at(struct list_node *n)
{
    return LIST_OF(n, struct task_input, by_root);
}

static struct task_input *asked_at(struct list_node *n)
{
    return LIST_OF(n, struct task_input, by_asker);
}

static bool is_open(const struct task_input *i)
{
    return i->in.outcome == INPUT_OPEN;
}

static struct loop *loop_of(const struct task_input *i)
{
    return i->root->ts->opts.loop;
}

/* Its words. */

static bool keep(struct arena *a, struct str *s)
{
    char *p = FAULT("task.input_words") ? NULL : arena_strdup(a, *s);

    s->p = p;
    return p;
}

static bool keep_options(struct arena *a, struct input_ask *q)
{
    struct str *list = arena_array(a, q->n_options + 1, sizeof(*list));

    for (size_t i = 0; list && i < q->n_options; i++) {
        list[i] = q->options[i];
        if (!keep(a, &list[i]))
            return false;
    }
    q->options = list;
    return list;
}

static bool keep_ask(struct task_input *i)
{
    struct input_ask *q = &i->in.ask;
    struct arena *a = &i->arena;

    return keep(a, &q->title) && keep(a, &q->message) &&
           keep(a, &q->placeholder) && keep(a, &q->prefill) &&
           keep(a, &q->handle) && keep_options(a, q);
}

static void forget_ask(struct task_input *i)
{
    i->in.ask = (struct input_ask){.kind = i->in.ask.kind};
    arena_fini(&i->arena);
    arena_init(&i->arena, 0);
}

static void tell(struct task_input *i, enum task_event_kind kind)
{
    struct buf text;
    struct json_out o;

    buf_init(&text, 8 * INPUT_BYTES_MAX);
    o = json_out(&text);
    input_write(&o, &i->in);
    if (text.over) /* it is a gap then: who meets one is told what is open */
        buf_clear(&text);
    event_input(i->root, kind, str_of(i->in.agent), buf_str(&text));
    if (i->asker != i->root)
        event_input(i->asker, kind, str_of(i->in.agent), buf_str(&text));
    buf_fini(&text);
}

/* Time. */

static bool is_heard(const struct task_input *i)
{
    return i->root->n_hearers || (i->asker && i->asker->n_hearers);
}

static void set_timer(struct task_input *i)
{
    const struct tasks_limits *limits = &i->root->ts->opts.limits;
    int64_t now_ms = loop_mono_ms(loop_of(i));
    int64_t left_ms = NEVER_MS;
    enum err set;

    if (i->gives_up_ms)
        left_ms = i->gives_up_ms - now_ms;
    if (!is_heard(i) && i->alone_ms + limits->input_ms - now_ms < left_ms)
        left_ms = i->alone_ms + limits->input_ms - now_ms;
    set = loop_timer_set(loop_of(i), &i->timer, left_ms > 0 ? left_ms : 0);
    assert(set == OK); /* it has its place, or has just left it */
    (void)set;
}

static void on_time(struct timer *t)
{
    struct task_input *i = LIST_OF(t, struct task_input, timer);
    int64_t now_ms = loop_mono_ms(loop_of(i));

    if (i->gives_up_ms && now_ms >= i->gives_up_ms)
        task_input_end(i->root->ts, &i->in, INPUT_EXPIRED, STR(""));
    else if (!is_heard(i) &&
             now_ms - i->alone_ms >= i->root->ts->opts.limits.input_ms)
        task_input_end(i->root->ts, &i->in, INPUT_UNHEARD, STR(""));
    else
        set_timer(i);
}

static void begin_alone(struct task_input *i)
{
    i->alone_ms = loop_mono_ms(loop_of(i));
    set_timer(i);
}

void inputs_heard(struct task_entry *e)
{
    for (struct list_node *n = list_first(&e->inputs); n;
         n = list_next(&e->inputs, n))
        if (is_open(told_at(n)))
            begin_alone(told_at(n));
    for (struct list_node *n = list_first(&e->asks); n;
         n = list_next(&e->asks, n))
        begin_alone(asked_at(n));
}

/* Beginning. */

static size_t count(const struct task_entry *root, bool wants_open)
{
    size_t n = 0;

    for (struct list_node *at = list_first(&root->inputs); at;
         at = list_next(&root->inputs, at))
        n += is_open(told_at(at)) == wants_open;
    return n;
}

static struct task_input *first(const struct task_entry *root, bool wants_open)
{
    struct list_node *n = list_first(&root->inputs);

    while (n && is_open(told_at(n)) != wants_open)
        n = list_next(&root->inputs, n);
    return n ? told_at(n) : NULL;
}

/* Whose it is to ask: an attempt that goes on. */
static struct task_entry *asker_of(const struct tasks *ts, struct str id,
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
    struct task_input *i = FAULT("task.input") ? NULL : calloc(1, sizeof(*i));
    int64_t now_ms = loop_wall_ms(ts->opts.loop);

    if (!i)
        return NULL;
    i->root = root;
    i->asker = asker;
    i->timer.fire = on_time;
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
    if (keep_ask(i) && loop_timer_set(ts->opts.loop, &i->timer, NEVER_MS) == OK)
        return i;
    arena_fini(&i->arena);
    free(i);
    return NULL;
}

static enum err ask(struct task_entry *asker, const struct input_ask *q,
                    const struct input **out)
{
    struct task_entry *root = task_entry_find(asker->ts, task_root(&asker->t));
    enum err e = input_may_be_asked(q);
    struct task_input *i;

    if (e)
        return e;
    if (!root || entry_is_over(root))
        return ERR_NOT_FOUND;
    if (count(root, true) >= TASK_INPUTS_MAX || asker->n_asked >= TASK_ASKS_MAX)
        return ERR_LIMIT;
    i = input_new(root, asker, q);
    if (!i)
        return ERR_NOMEM;
    asker->n_asked++;
    list_append(&root->inputs, &i->by_root);
    list_append(&asker->asks, &i->by_asker);
    set_timer(i);
    tell(i, TASK_EVENT_INPUT);
    i->in.number = root->last_number;
    i->in.own_number = asker->last_number;
    *out = &i->in;
    return OK;
}

/* A program may go on asking for ever. */
static void log_unasked(struct task_entry *asker, const struct input_ask *q,
                        enum err e)
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
    struct task_entry *asker = asker_of(ts, id, turn, attempt);
    enum err e;

    if (!asker)
        return ERR_NOT_FOUND;
    e = ask(asker, q, out);
    if (e)
        log_unasked(asker, q, e);
    return e;
}

/* The end. */

static void input_free(struct task_input *i)
{
    loop_timer_cancel(loop_of(i), &i->timer);
    list_remove(&i->by_root);
    list_remove(&i->by_asker);
    arena_fini(&i->arena);
    free(i);
}

static void drop_oldest(struct task_entry *root)
{
    if (count(root, false) > TASK_INPUTS_KEPT)
        input_free(first(root, false));
}

void task_input_end(struct tasks *ts, const struct input *in,
                    enum input_outcome outcome, struct str by)
{
    struct task_input *i = LIST_OF(in, struct task_input, in);

    assert(is_open(i) && outcome != INPUT_OPEN);
    i->in.outcome = outcome;
    snprintf(i->in.by, sizeof(i->in.by), "%.*s", STR_ARG(by));
    loop_timer_cancel(ts->opts.loop, &i->timer);
    list_remove(&i->by_root); /* those that are over, by when they were */
    list_append(&i->root->inputs, &i->by_root);
    tell(i, TASK_EVENT_INPUT_OVER);
    list_remove(&i->by_asker);
    i->asker = NULL;
    if (ts->opts.on_input_over)
        ts->opts.on_input_over(ts->opts.ctx, &i->in);
    forget_ask(i);
    drop_oldest(i->root);
}

void inputs_asked_end(struct task_entry *e)
{
    struct list_node *n;

    while ((n = list_first(&e->asks)))
        task_input_end(e->ts, &asked_at(n)->in, INPUT_WITHDRAWN, STR(""));
    e->n_asked = e->n_unasked = 0;
}

void inputs_told_end(struct task_entry *e)
{
    struct task_input *i;

    while ((i = first(e, true)))
        task_input_end(e->ts, &i->in, INPUT_WITHDRAWN, STR(""));
}

void inputs_free(struct task_entry *e)
{
    struct list_node *n;

    while ((n = list_first(&e->asks))) {
        asked_at(n)->asker = NULL; /* its root may be there yet */
        list_remove(n);
    }
    while ((n = list_first(&e->inputs)))
        input_free(told_at(n));
}

/* Asking about them. */

size_t task_inputs(const struct tasks *ts, struct str id,
                   const struct input *out[TASK_INPUTS_MAX])
{
    const struct task_entry *e = task_entry_find(ts, id);
    const struct task_entry *root =
        e ? task_entry_find(ts, task_root(&e->t)) : NULL;
    size_t n = 0;

    for (struct list_node *at = root ? list_first(&root->inputs) : NULL; at;
         at = list_next(&root->inputs, at)) {
        const struct task_input *i = told_at(at);

        if (is_open(i) && (root == e || i->asker == e))
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
        const struct input *in = &told_at(at)->in;

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
        const struct task_input *i = told_at(n);

        if (i->root != e || is_open(i) != (i->asker != NULL) ||
            is_open(i) != list_has(&i->by_asker) ||
            is_open(i) != timer_is_set(&i->timer) ||
            (is_open(i) && (entry_is_over(e) || entry_is_over(i->asker))))
            return false;
    }
    return count(e, true) <= TASK_INPUTS_MAX &&
           count(e, false) <= TASK_INPUTS_KEPT;
}
