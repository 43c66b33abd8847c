/* The table of roads, and the table of what is on its way.
 *
 * A delivery is known by its task's id; an id that is not in the table is one
 * that is over, so a cancel that comes too late finds nothing and harms
 * nobody. What is over keeps its memory until the end of the turn: a road that
 * is in the middle of telling something looks at it once more after the
 * callback in which it was cancelled. */
#include "deliver/deliver.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/map.h"
#include "deliver/internal.h"

/* One row per road, in the order of enum road. */
static const struct road_row *const roads[] = {
    [ROAD_ECHO] = &road_echo,
};

static struct str key_of(const struct delivery *y)
{
    return str_of(y->id.task_id.text);
}

static void free_all(struct list *l)
{
    struct list_node *n;

    while ((n = list_pop(l))) {
        struct delivery *y = LIST_OF(n, struct delivery, node);

        y->road->free(y);
    }
}

static void reap(struct loop_job *job)
{
    free_all(&LIST_OF(job, struct deliver, reaper)->over);
}

/* Out of the table; nothing is heard of it any more. */
static void end(struct delivery *y)
{
    struct deliver *d = y->deliver;
    const void *was = map_take(&d->by_task, key_of(y));

    assert(was == y);
    (void)was;
    y->road->stop(y);
    y->is_over = true;
    list_remove(&y->node);
    list_append(&d->over, &y->node);
    loop_at_end(d->opts.loop, &d->reaper);
}

struct deliver *deliver_new(const struct deliver_opts *opts)
{
    struct deliver *d = FAULT("deliver.new") ? NULL : calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->opts = *opts;
    d->reaper.run = reap;
    map_init(&d->by_task, opts->max_on_the_way, opts->seed);
    list_init(&d->on_the_way);
    list_init(&d->over);
    echoes_init(&d->echoes, opts->loop);
    return d;
}

void deliver_free(struct deliver *d)
{
    struct list_node *n;

    if (!d)
        return;
    while ((n = list_first(&d->on_the_way)))
        end(LIST_OF(n, struct delivery, node));
    loop_not_at_end(&d->reaper);
    free_all(&d->over);
    echoes_fini(&d->echoes);
    map_fini(&d->by_task);
    free(d);
}

static const struct road_row *road_of(const struct agent_url *url)
{
    return url->road < sizeof(roads) / sizeof(*roads) ? roads[url->road] : NULL;
}

enum err deliver_reaches(const struct agent *a, struct why *why)
{
    struct agent_url url;
    enum err e = agent_url_read(a->url, &url, why);

    if (e || road_of(&url))
        return e;
    if (url.road == ROAD_HUB)
        return why_err(why, ERR_AGENT_OFFLINE,
                       "the agent \"%.*s\" is not connected; it must be "
                       "running to be given work",
                       STR_ARG(a->name));
    return why_err(why, ERR_NOT_IMPLEMENTED,
                   "the agent \"%.*s\" is reached by %.*s, and this server "
                   "carries messages to echo: alone",
                   STR_ARG(a->name), STR_ARG(str_head(a->url, 64)));
}

enum err deliver_start(struct deliver *d, const struct task *t,
                       const struct agent *a)
{
    struct agent_url url;
    struct delivery *y;
    enum err e = deliver_reaches(a, NULL);

    assert(!map_get(&d->by_task, str_of(t->id.text)));
    if (!e)
        e = agent_url_read(a->url, &url, NULL);
    if (e)
        return e;
    if (d->by_task.n >= d->opts.max_on_the_way)
        return ERR_OVERLOADED;
    e = road_of(&url)->start(d, t, &url, &y);
    if (e)
        return e;
    y->deliver = d;
    y->road = road_of(&url);
    y->id = (struct delivery_id){t->id, t->turn, t->attempt};
    e = map_put(&d->by_task, key_of(y), y);
    if (e) {
        y->road->stop(y);
        y->road->free(y);
        return e;
    }
    list_append(&d->on_the_way, &y->node);
    d->started_total++;
    return OK;
}

void deliver_cancel(struct deliver *d, struct str task_id)
{
    struct delivery *y = map_get(&d->by_task, task_id);

    if (!y)
        return;
    d->cancelled_total++;
    end(y);
}

struct deliver_stats deliver_stats(const struct deliver *d)
{
    return (struct deliver_stats){.on_the_way = (int64_t)d->by_task.n,
                                  .started_total = d->started_total,
                                  .results_total = d->results_total,
                                  .cancelled_total = d->cancelled_total};
}

/* For the roads. */

bool delivery_working(struct delivery *y)
{
    const struct deliver_opts *o = &y->deliver->opts;

    assert(!y->is_over);
    o->on_working(o->ctx, &y->id);
    return !y->is_over;
}

bool delivery_chunk(struct delivery *y, struct str text)
{
    const struct deliver_opts *o = &y->deliver->opts;

    assert(!y->is_over);
    o->on_chunk(o->ctx, &y->id, text);
    return !y->is_over;
}

void delivery_result(struct delivery *y, const struct task_result *r)
{
    const struct deliver_opts *o = &y->deliver->opts;

    assert(!y->is_over);
    end(y);
    y->deliver->results_total++;
    o->on_result(o->ctx, &y->id, r);
}
