/* The table of roads, and the table of errands.
 *
 * An errand is known by its task's id; an id that is not in the table is one
 * that is over, so a cancel that comes too late finds nothing and harms
 * nobody. A delivery that is over keeps its memory until the end of the turn: a
 * road that is in the middle of telling something looks at it once more after
 * the callback in which it was cancelled. */
#include "deliver/deliver.h"

#include <assert.h>
#include <stdlib.h>

#include "deliver/internal.h"

/* One row per road, in the order of enum road. */
static const struct road_row *const roads[N_ROADS] = {
    [ROAD_ECHO] = &road_echo,
    [ROAD_HUB] = &road_line,
};

const struct road_row *road_of(const struct agent_url *url)
{
    return roads[url->road];
}

/* Life. */

static void free_all(struct list *l)
{
    struct list_node *n;

    while ((n = list_pop(l))) {
        struct delivery *y = LIST_OF(n, struct delivery, node);

        buf_fini(&y->gathered);
        y->road->free(y);
    }
}

static void reap(struct loop_job *job)
{
    free_all(&LIST_OF(job, struct deliver, reaper)->over);
}

struct deliver *deliver_new(const struct deliver_opts *opts)
{
    struct deliver *d = FAULT("deliver.new") ? NULL : calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->opts = *opts;
    d->reaper.run = reap;
    d->go_job.run = desks_on_end_of_turn;
    map_init(&d->errands, DELIVER_ERRANDS_MAX, opts->seed);
    map_init(&d->desks, DELIVER_DESKS_MAX, opts->seed);
    list_init(&d->on_the_way);
    list_init(&d->over);
    list_init(&d->ready);
    echoes_init(&d->echoes, opts->loop);
    d->lines = lines_new(d);
    d->wakes = wakes_new(d);
    if (d->lines && d->wakes)
        return d;
    deliver_free(d);
    return NULL;
}

void deliver_free(struct deliver *d)
{
    struct list_node *n;

    if (!d)
        return;
    while ((n = list_first(&d->on_the_way)))
        delivery_end(LIST_OF(n, struct delivery, node), STOP_CLOSING);
    loop_not_at_end(&d->go_job);
    loop_not_at_end(&d->reaper);
    free_all(&d->over);
    echoes_fini(&d->echoes);
    wakes_free(d);
    lines_free(d);
    desks_free(d);
    map_fini(&d->errands);
    map_fini(&d->desks);
    free(d);
}

void deliver_set(struct deliver *d, const struct deliver_settings *s)
{
    d->opts.settings = *s;
}

/* Errands. */

enum err deliver_reaches(const struct deliver *d, const struct agent *a,
                         struct why *why)
{
    struct agent_url url;
    enum err e = agent_url_read(a->url, &url, why);

    if (e)
        return e;
    if (road_of(&url))
        return road_of(&url)->reaches ? road_of(&url)->reaches(d, a, &url, why)
                                      : OK;
    return why_err(why, ERR_NOT_IMPLEMENTED,
                   "the agent \"%.*s\" is reached by %.*s, and this server "
                   "carries messages to echo: alone",
                   STR_ARG(a->name), STR_ARG(str_head(a->url, 64)));
}

static struct errand *errand_new(struct deliver *d, const struct task *t)
{
    struct errand *e = FAULT("deliver.errand") ? NULL : calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->task_id = t->id;
    if (map_put(&d->errands, str_of(e->task_id.text), e) == OK)
        return e;
    free(e);
    return NULL;
}

enum err deliver_offer(struct deliver *d, const struct task *t,
                       const struct agent *a)
{
    struct errand *e = map_get(&d->errands, str_of(t->id.text));
    struct desk *k = desk_of(d, a);

    if (e && e->state != ERRAND_RESTING)
        return OK;
    if (!e && k)
        e = errand_new(d, t);
    if (!e || !k)
        return ERR_NOMEM;
    e->priority = t->priority;
    e->place = t->place;
    desk_add(d, k, e);
    return OK;
}

bool deliver_has(const struct deliver *d, struct str task_id)
{
    const struct errand *e = map_get(&d->errands, task_id);

    return e && e->state != ERRAND_RESTING;
}

/* It is not heard of any more. */
static void forget(struct deliver *d, struct errand *e)
{
    assert(e->state != ERRAND_GOING);
    if (e->state == ERRAND_WAITING)
        desk_take(d, e);
    map_take(&d->errands, str_of(e->task_id.text));
    free(e);
}

void deliver_cancel(struct deliver *d, struct str task_id)
{
    struct errand *e = map_get(&d->errands, task_id);

    if (!e)
        return;
    if (e->state == ERRAND_GOING) {
        d->stats.cancelled_total++;
        delivery_end(e->delivery, STOP_CANCELLED);
    }
    forget(d, e);
}

/* One attempt. */

static enum err begin(struct deliver *d, struct errand *e, const struct task *t,
                      const struct agent *a)
{
    struct agent_url url;
    struct delivery *y;
    enum err err = agent_url_read(a->url, &url, NULL);

    if (!err && !road_of(&url))
        err = ERR_NOT_IMPLEMENTED;
    if (!err)
        err = road_of(&url)->start(d, t, a, &url, &y);
    if (err)
        return err;
    y->deliver = d;
    y->road = road_of(&url);
    y->errand = e;
    y->id = (struct delivery_id){t->id, t->turn, t->attempt};
    y->deadline_ms = t->deadline_ms;
    y->began_ms = loop_mono_ms(d->opts.loop);
    buf_init(&y->gathered, MSG_TEXT_MAX);
    e->delivery = y;
    e->state = ERRAND_GOING;
    list_append(&d->on_the_way, &y->node);
    d->n_on_the_way++;
    desk_begun(e->desk);
    d->stats.started_total++;
    return OK;
}

/* e was taken off its desk, and its time has come. */
void errand_go(struct deliver *d, struct errand *e)
{
    const struct deliver_opts *o = &d->opts;
    const struct task *t;
    const struct agent *a;
    enum err err;

    if (!o->on_go(o->ctx, str_of(e->task_id.text), &t, &a)) {
        forget(d, e);
        return;
    }
    err = begin(d, e, t, a);
    if (err)
        o->on_retry(o->ctx, &(struct delivery_id){t->id, t->turn, t->attempt},
                    o->settings.retry_ms, str_of(err_row(err)->wording));
}

/* Off its errand; nothing is heard of it any more. */
void delivery_end(struct delivery *y, enum stop_why why)
{
    struct deliver *d = y->deliver;
    struct errand *e = y->errand;

    assert(e && e->delivery == y);
    e->delivery = NULL;
    e->state = ERRAND_RESTING;
    y->errand = NULL;
    y->road->stop(y, why);
    y->is_over = true;
    list_remove(&y->node);
    d->n_on_the_way--;
    d->gathered_bytes -= y->gathered.n;
    list_append(&d->over, &y->node);
    loop_at_end(d->opts.loop, &d->reaper);
    desk_done(d, e->desk);
}

struct deliver_stats deliver_stats(const struct deliver *d)
{
    struct deliver_stats s = d->stats;

    s.on_the_way = (int64_t)d->n_on_the_way;
    s.gathered_bytes = (int64_t)d->gathered_bytes;
    return s;
}

/* For the roads. */

bool delivery_working(struct delivery *y)
{
    const struct deliver_opts *o = &y->deliver->opts;

    assert(!y->is_over);
    o->on_working(o->ctx, &y->id);
    return !y->is_over;
}

/* Gathered as far as there is room for it: the result may leave it out. */
static void gather(struct delivery *y, struct str text)
{
    struct deliver *d = y->deliver;
    size_t most = d->opts.settings.max_gathered_bytes;
    size_t before = y->gathered.n;

    if (!y->has_lost_chunks && text.n <= most &&
        d->gathered_bytes <= most - text.n)
        buf_add_str(&y->gathered, text);
    else
        y->has_lost_chunks = true;
    y->has_lost_chunks |= y->gathered.over;
    d->gathered_bytes += y->gathered.n - before;
}

bool delivery_chunk(struct delivery *y, struct str text)
{
    const struct deliver_opts *o = &y->deliver->opts;

    assert(!y->is_over);
    gather(y, text);
    o->on_chunk(o->ctx, &y->id, text);
    return !y->is_over;
}

void delivery_result(struct delivery *y, const struct task_result *r,
                     bool has_text, uint64_t receipt)
{
    static const struct task_result too_large = {
        .status = TASK_FAILED,
        .error_code = STR("too_large"),
        .error = STR("the agent's answer is larger than the limit"),
    };
    const struct deliver_opts *o = &y->deliver->opts;
    struct task_result told = *r;

    assert(!y->is_over);
    if (!has_text && r->status == TASK_COMPLETED) {
        told.text = buf_str(&y->gathered);
        if (y->has_lost_chunks)
            told = too_large;
    }
    delivery_end(y, STOP_OVER);
    y->deliver->stats.results_total++;
    o->on_result(o->ctx, &y->id, &told, receipt);
}

void delivery_failed(struct delivery *y, const struct delivery_failure *f)
{
    const struct deliver_opts *o = &y->deliver->opts;
    struct errand *e = y->errand;

    assert(!y->is_over);
    if (!f->is_innocent)
        e->n_failures++;
    delivery_end(y, STOP_OVER);
    if (!f->is_final && e->n_failures < o->settings.max_attempts) {
        y->deliver->stats.retries_total++;
        o->on_retry(o->ctx, &y->id, o->settings.retry_ms, f->words);
        return;
    }
    y->deliver->stats.failed_total++;
    o->on_result(o->ctx, &y->id,
                 &(struct task_result){.status = TASK_FAILED,
                                       .error_code = f->code,
                                       .error = f->words},
                 0);
}
