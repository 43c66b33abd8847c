/* The table of roads, the table of errands, and what becomes of an attempt.
 *
 * An errand is known by its task's id; an id that is not in the table is one
 * that is over, so a cancel that comes too late finds nothing and harms
 * nobody. A delivery that is over keeps its memory until the end of the turn: a
 * road that is in the middle of telling something looks at it once more after
 * the callback in which it was cancelled.
 *
 * After an attempt that came to nothing there is a pause, by chance between
 * nothing and a bound that doubles each time ("full jitter"): a thousand tasks
 * that failed together do not come back together. A pause that the agent asks
 * for is kept in any case, and none is longer than the time that the task has:
 * at its deadline it ends by that. */
#include "deliver/deliver.h"

#include <assert.h>
#include <stdlib.h>

#include "deliver/desk.h"
#include "model/advice.h"

enum {
    ASKED_MAX_MS = BREAKER_PAUSE_MAX_MS, /* of a pause asked for by an agent */
    GATHERED_PART = 4, /* one agent may have so much of what is gathered */
};

/* One row per road, in the order of enum road. */
static const struct road_row *const roads[N_ROADS] = {
    [ROAD_ECHO] = &road_echo,    [ROAD_HUB] = &road_line,
    [ROAD_PROCESS] = &road_pool, [ROAD_HTTP] = &road_http,
    [ROAD_MODEL] = &road_model,
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

static void on_stopped(struct loop_job *job);

struct deliver *deliver_new(const struct deliver_opts *opts)
{
    struct deliver *d = FAULT("deliver.new") ? NULL : calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->opts = *opts;
    d->chance = opts->seed[0] ^ opts->seed[1];
    d->reaper.run = reap;
    d->stop_job.run = on_stopped;
    map_init(&d->errands, DELIVER_ERRANDS_MAX, opts->seed);
    map_init(&d->desks, DELIVER_DESKS_MAX, opts->seed);
    map_init(&d->patrons, DELIVER_DESKS_MAX, opts->seed);
    map_init(&d->left, LEFT_MAX, opts->seed);
    list_init(&d->on_the_way);
    list_init(&d->over);
    list_init(&d->parts);
    list_init(&d->lefts);
    if (desks_init(d) != OK) {
        free(d);
        return NULL;
    }
    echoes_init(&d->echoes, opts->loop);
    restarts_init(d);
    d->lines = lines_new(d);
    d->wakes = wakes_new(d);
    d->pools = pools_new(d);
    if (d->lines && d->wakes && d->pools)
        return d;
    deliver_free(d);
    return NULL;
}

static void stop_all(struct deliver *d)
{
    struct list_node *n;

    d->is_stopping = true;
    while ((n = list_first(&d->on_the_way)))
        delivery_end(LIST_OF(n, struct delivery, node), STOP_CLOSING);
    loop_not_at_end(&d->go_job);
}

void deliver_free(struct deliver *d)
{
    if (!d)
        return;
    stop_all(d);
    loop_not_at_end(&d->stop_job);
    loop_not_at_end(&d->reaper);
    free_all(&d->over);
    echoes_fini(&d->echoes);
    restarts_free(d);
    pools_free(d);
    wakes_free(d);
    lines_free(d);
    desks_free(d);
    map_fini(&d->errands);
    map_fini(&d->desks);
    map_fini(&d->patrons);
    lefts_free(d);
    free(d);
}

void deliver_set(struct deliver *d, const struct deliver_settings *s)
{
    d->opts.settings = *s;
    pools_set(d);
    models_forget(d);
    desks_look_again(d);
}

/* Stopping. Each part takes its time; the last one to be done ends it. */

void deliver_part_add(struct deliver *d, struct deliver_part *p)
{
    list_append(&d->parts, &p->node);
}

void deliver_part_stopped(struct deliver *d, struct deliver_part *p)
{
    list_remove(&p->node);
    if (d->is_asked_to_stop && list_is_empty(&d->parts))
        loop_at_end(d->opts.loop, &d->stop_job);
}

/* Asked for also by a part that was done before the others were told to
 * stop: then it is too early, and the last of them asks again. */
static void on_stopped(struct loop_job *job)
{
    struct deliver *d = LIST_OF(job, struct deliver, stop_job);
    void (*done)(void *ctx) = d->on_stopped;

    if (!list_is_empty(&d->parts))
        return;
    d->on_stopped = NULL;
    if (done)
        done(d->stopped_ctx);
}

void deliver_stop(struct deliver *d, void (*done)(void *ctx), void *ctx)
{
    struct list stopping;
    struct list_node *n;

    d->on_stopped = done;
    d->stopped_ctx = ctx;
    stop_all(d);
    list_init(&stopping);
    list_append_all(&stopping, &d->parts);
    while ((n = list_pop(&stopping))) {
        struct deliver_part *p = LIST_OF(n, struct deliver_part, node);

        list_append(&d->parts, n); /* until it says that it has */
        p->stop(d, p);
    }
    d->is_asked_to_stop = true;
    if (list_is_empty(&d->parts))
        loop_at_end(d->opts.loop, &d->stop_job);
}

/* Errands. */

enum err deliver_reaches(const struct deliver *d, const struct agent *a,
                         struct why *why)
{
    struct agent_url url;
    enum err e = agent_url_read(a->url, &url, why);

    if (e)
        return e;
    return road_of(&url)->reaches ? road_of(&url)->reaches(d, a, &url, why)
                                  : OK;
}

bool deliver_uses_tools(const struct deliver *d, const struct agent *a)
{
    const struct deliver_settings *s = &d->opts.settings;
    const struct process_def *def;
    struct agent_url url;

    if (agent_url_read(a->url, &url, NULL) != OK)
        return false;
    if (url.road != ROAD_PROCESS)
        return url.road == ROAD_MODEL;
    def = process_def_find(s->processes, s->n_processes, url.id);
    return def && def->dialect == DIALECT_PI;
}

void deliver_against(const struct deliver *d, struct advice_against *out)
{
    *out = (struct advice_against){.models = d->opts.settings.models,
                                   .n_models = d->opts.settings.n_models};
    if (d->opts.fetch)
        out->guard = fetch_guard(d->opts.fetch);
}

/* One whose address is none counts as there: it fails on its way, with
 * words. */
enum presence agent_presence(const struct deliver *d, const struct agent *a)
{
    struct agent_url url;

    if (agent_url_read(a->url, &url, NULL) != OK || !road_of(&url)->presence)
        return PRESENT;
    return road_of(&url)->presence(d, a, &url);
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

/* It is not heard of any more. */
static void forget(struct deliver *d, struct errand *e)
{
    assert(e->state != ERRAND_GOING);
    if (e->state == ERRAND_WAITING)
        desk_take(d, e);
    map_take(&d->errands, str_of(e->task_id.text));
    free(e);
}

enum err deliver_offer(struct deliver *d, const struct task *t,
                       const struct agent *a)
{
    struct errand *e = map_get(&d->errands, str_of(t->id.text));
    struct desk *k = desk_of(d, a);
    bool is_new = !e;
    enum err err;

    if (e && e->state != ERRAND_RESTING)
        return OK;
    if (!e && k)
        e = errand_new(d, t);
    if (!e || !k)
        return ERR_NOMEM;
    if (e->turn != t->turn)
        e->n_failures = e->n_pauses = 0;
    e->turn = t->turn;
    e->attempt = t->attempt;
    e->deadline_ms = t->deadline_ms;
    e->priority = t->priority;
    e->is_below = t->depth > 0;
    e->place.at_ms = t->place;
    err = desk_add(d, k, e);
    if (err && is_new)
        forget(d, e);
    return err;
}

bool deliver_has(const struct deliver *d, struct str task_id)
{
    const struct errand *e = map_get(&d->errands, task_id);

    return e && e->state != ERRAND_RESTING;
}

void deliver_cancel(struct deliver *d, struct str task_id)
{
    struct errand *e = map_get(&d->errands, task_id);

    if (!e)
        return;
    if (e->state == ERRAND_GOING) {
        d->stats.cancelled_total++;
        desk_had_cancel(e->delivery);
        delivery_end(e->delivery, STOP_CANCELLED);
    }
    forget(d, e);
}

enum err deliver_answer(struct deliver *d, const struct delivery_id *id,
                        struct str handle, const struct input_answer *a)
{
    const struct errand *e = map_get(&d->errands, str_of(id->task_id.text));
    struct delivery *y = e && e->state == ERRAND_GOING ? e->delivery : NULL;

    if (!y || y->id.turn != id->turn || y->id.attempt != id->attempt ||
        !y->road->answer)
        return ERR_GONE;
    return y->road->answer(y, handle, a);
}

void deliver_recorded(struct deliver *d, uint64_t receipt, enum err e)
{
    const struct deliver_opts *o = &d->opts;

    if (receipt && !lines_recorded(d, receipt, e) && o->on_recorded)
        o->on_recorded(o->ctx, receipt, e);
}

void deliver_agents_changed(struct deliver *d)
{
    desks_look_again(d);
}

/* What came to nothing. */

/* splitmix64. */
static uint64_t by_chance(struct deliver *d)
{
    uint64_t z = (d->chance += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int64_t pause_of(struct deliver *d, const struct errand *e,
                        int64_t asked_ms)
{
    const struct deliver_settings *s = &d->opts.settings;
    int64_t most_ms = s->retry_ms, left_ms, pause_ms;

    for (int i = 1; i < e->n_pauses && most_ms < s->retry_max_ms; i++)
        most_ms *= 2;
    if (most_ms > s->retry_max_ms)
        most_ms = s->retry_max_ms;
    pause_ms = (int64_t)(by_chance(d) % ((uint64_t)most_ms + 1));
    if (asked_ms > ASKED_MAX_MS)
        asked_ms = ASKED_MAX_MS;
    if (pause_ms < asked_ms)
        pause_ms = asked_ms;
    left_ms = e->deadline_ms - loop_wall_ms(d->opts.loop);
    if (pause_ms > left_ms)
        pause_ms = left_ms > 0 ? left_ms : 0;
    return pause_ms;
}

static void retry(struct deliver *d, struct errand *e,
                  const struct delivery_id *id, int64_t asked_ms,
                  struct str because)
{
    const struct deliver_opts *o = &d->opts;

    e->n_pauses++;
    d->stats.retries_total++;
    o->on_retry(o->ctx, id, pause_of(d, e, asked_ms), because);
}

static void fail(struct deliver *d, const struct delivery_id *id,
                 const struct delivery_failure *f)
{
    const struct deliver_opts *o = &d->opts;

    d->stats.failed_total++;
    o->on_result(o->ctx, id,
                 &(struct task_result){.status = TASK_FAILED,
                                       .error_code = f->code,
                                       .error = f->words},
                 0);
}

void errand_fail(struct deliver *d, struct errand *e,
                 const struct delivery_failure *f)
{
    struct delivery_id id = {e->task_id, e->turn, e->attempt};

    fail(d, &id, f);
}

/* One attempt. */

static enum err begin(struct deliver *d, struct errand *e, struct desk *k,
                      const struct task *t, const struct agent *a)
{
    struct agent_url url;
    struct delivery *y;
    enum err err = agent_url_read(a->url, &url, NULL);

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
    e->desk = k;
    e->state = ERRAND_GOING;
    list_append(&d->on_the_way, &y->node);
    d->n_on_the_way++;
    desk_begun(y);
    d->stats.started_total++;
    return OK;
}

static bool may_be_tried_again(enum err e)
{
    return e == ERR_NOMEM || e == ERR_BUSY || e == ERR_OVERLOADED ||
           e == ERR_GONE;
}

void errand_go(struct deliver *d, struct errand *e, struct desk *k)
{
    const struct deliver_opts *o = &d->opts;
    struct delivery_failure f;
    struct delivery_id id;
    const struct task *t;
    const struct agent *a;
    enum err err;

    if (!o->on_go(o->ctx, str_of(e->task_id.text), &t, &a)) {
        forget(d, e);
        return;
    }
    e->attempt = t->attempt;
    id = (struct delivery_id){t->id, t->turn, t->attempt};
    err = begin(d, e, k, t, a);
    if (!err)
        return;
    f = (struct delivery_failure){.code = str_of(err_row(err)->code),
                                  .words = str_of(err_row(err)->wording)};
    desk_attempt_failed(k, &f, !may_be_tried_again(err));
    if (may_be_tried_again(err))
        retry(d, e, &id, 0, f.words);
    else
        fail(d, &id, &f);
}

/* Off its errand; nothing is heard of it any more. */
void delivery_end(struct delivery *y, enum stop_why why)
{
    struct deliver *d = y->deliver;
    struct errand *e = y->errand;
    struct desk *k = e->desk;

    assert(e->delivery == y);
    e->delivery = NULL;
    e->desk = NULL;
    e->state = ERRAND_RESTING;
    y->errand = NULL;
    y->road->stop(y, why);
    y->is_over = true;
    list_remove(&y->node);
    d->n_on_the_way--;
    d->gathered_bytes -= y->gathered.n;
    k->gathered_bytes -= y->gathered.n;
    list_append(&d->over, &y->node);
    loop_at_end(d->opts.loop, &d->reaper);
    desk_done(k, y);
}

struct deliver_stats deliver_stats(const struct deliver *d)
{
    struct deliver_stats s = d->stats;

    s.on_the_way = (int64_t)d->n_on_the_way;
    s.children = pools_n_children(d);
    s.gathered_bytes = (int64_t)d->gathered_bytes;
    return s;
}

/* For the roads. */

bool delivery_working(struct delivery *y)
{
    const struct deliver_opts *o = &y->deliver->opts;

    assert(!y->is_over);
    if (y->is_working)
        return true;
    y->is_working = true;
    o->on_working(o->ctx, &y->id);
    return !y->is_over;
}

/* Gathered as far as there is room for it: the result may leave it out. */
static void gather(struct delivery *y, struct str text)
{
    struct deliver *d = y->deliver;
    struct desk *k = y->errand->desk;
    size_t all = d->opts.settings.max_gathered_bytes;
    size_t own =
        all / GATHERED_PART > MSG_TEXT_MAX ? all / GATHERED_PART : MSG_TEXT_MAX;
    size_t before = y->gathered.n;

    if (y->lost)
        return;
    if (text.n > y->gathered.limit - before)
        y->lost = LOST_TOO_LARGE;
    else if (d->gathered_bytes + text.n > all ||
             k->gathered_bytes + text.n > own || FAULT("deliver.gather"))
        y->lost = LOST_NO_ROOM;
    else
        buf_add_str(&y->gathered, text);
    if (y->gathered.over) /* it is within its limit: memory is short */
        y->lost = LOST_NO_ROOM;
    d->gathered_bytes += y->gathered.n - before;
    k->gathered_bytes += y->gathered.n - before;
}

/* It said what it had to say, and we have not kept it: no fault of its. The
 * task is carried again, and who waits for a receipt hears so. */
static void chunks_are_lost(struct delivery *y, uint64_t receipt)
{
    struct deliver *d = y->deliver;

    delivery_failed(y, &(struct delivery_failure){
                           .code = str_of(err_row(ERR_OVERLOADED)->code),
                           .words = STR("there was no room for its answer"),
                           .is_innocent = true});
    deliver_recorded(d, receipt, ERR_GONE);
}

bool delivery_chunk(struct delivery *y, struct str text)
{
    const struct deliver_opts *o = &y->deliver->opts;

    if (!delivery_working(y))
        return false;
    gather(y, text);
    desk_had_chunk(y);
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
        if (y->lost == LOST_NO_ROOM) {
            chunks_are_lost(y, receipt);
            return;
        }
        told.text = buf_str(&y->gathered);
        if (y->lost)
            told = too_large;
    }
    desk_had_result(y, &told);
    delivery_end(y, STOP_OVER);
    y->deliver->stats.results_total++;
    o->on_result(o->ctx, &y->id, &told, receipt);
}

void delivery_failed(struct delivery *y, const struct delivery_failure *f)
{
    struct deliver *d = y->deliver;
    struct errand *e = y->errand;
    struct delivery_failure told = *f;
    bool is_last;

    assert(!y->is_over);
    if (f->detail.n && y->sees_details)
        told.words = f->detail;
    if (!f->is_innocent)
        e->n_failures++;
    is_last = f->is_final || e->n_failures >= d->opts.settings.max_attempts;
    desk_had_failure(y, f, is_last);
    delivery_end(y, f->is_to_be_told ? STOP_CANCELLED : STOP_OVER);
    if (is_last)
        fail(d, &y->id, &told);
    else
        retry(d, e, &y->id, f->retry_ms, told.words);
}
