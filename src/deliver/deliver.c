/* The table of transports, the table of jobs, and the outcome of an attempt.
 *
 * A job is found by its task's id. An id that is not in the table is of a
 * finished task, so a late cancel finds nothing and does no harm. A finished
 * delivery keeps its memory until the end of the loop turn, because a transport
 * still reads it after the callback that cancelled it.
 *
 * After a failed attempt there is a random pause between zero and a bound that
 * doubles each time ("full jitter"), so that a thousand tasks that failed
 * together do not return together. A pause that the agent asked for is the
 * minimum, and no pause is longer than the time that the task has left. */
#include "deliver/deliver.h"

#include <assert.h>
#include <stdlib.h>

#include "deliver/queue/agent_queue.h"
#include "model/advice.h"

enum {
    ASKED_MAX_MS =
        BREAKER_PAUSE_MAX_MS, /* longest pause an agent may ask for */
    GATHERED_PART = 4, /* an agent may have this part of all gathered bytes */
};

/* One row per transport, in the order of enum transport. */
static const struct transport_row *const transports[N_TRANSPORTS] = {
    [TRANSPORT_ECHO] = &transport_echo,    [TRANSPORT_HUB] = &transport_line,
    [TRANSPORT_PROCESS] = &transport_pool, [TRANSPORT_HTTP] = &transport_http,
    [TRANSPORT_MODEL] = &transport_model,
};

const struct transport_row *transport_of(const struct agent_url *url)
{
    return transports[url->transport];
}

/* Create and free. */

static void deliveries_free(struct list *l)
{
    struct list_node *n;

    while ((n = list_pop(l))) {
        struct delivery *y = LIST_OF(n, struct delivery, node);

        buf_fini(&y->gathered);
        y->transport->free(y);
    }
}

static void deliveries_reap(struct loop_job *job)
{
    deliveries_free(&LIST_OF(job, struct deliver, reaper)->over);
}

static void deliver_on_stopped(struct loop_job *job);

struct deliver *deliver_new(const struct deliver_opts *opts)
{
    struct deliver *d = mem_new(sizeof(*d));

    d->opts = *opts;
    d->chance = opts->seed[0] ^ opts->seed[1];
    d->reaper.run = deliveries_reap;
    d->stop_job.run = deliver_on_stopped;
    map_init(&d->deliver_jobs, DELIVER_JOBS_MAX, opts->seed);
    map_init(&d->agent_queues, DELIVER_QUEUES_MAX, opts->seed);
    shares_init(&d->owner_quotas, sizeof(struct owner_quota),
                DELIVER_QUEUES_MAX, opts->seed);
    map_init(&d->departures, DEPARTURES_MAX, opts->seed);
    list_init(&d->on_the_way);
    list_init(&d->over);
    list_init(&d->parts);
    list_init(&d->departure_list);
    agent_queues_init(d);
    echoes_init(&d->echoes, opts->loop);
    restarts_init(d);
    d->lines = lines_new(d);
    d->wakes = wakes_new(d);
    d->pools = pools_new(d);
    return d;
}

static void deliveries_stop(struct deliver *d)
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
    deliveries_stop(d);
    loop_not_at_end(&d->stop_job);
    loop_not_at_end(&d->reaper);
    deliveries_free(&d->over);
    echoes_fini(&d->echoes);
    restarts_free(d);
    pools_free(d);
    wakes_free(d);
    lines_free(d);
    agent_queues_free(d);
    map_fini(&d->deliver_jobs);
    map_fini(&d->agent_queues);
    shares_fini(&d->owner_quotas);
    departures_free(d);
    free(d);
}

void deliver_set(struct deliver *d, const struct deliver_settings *s)
{
    d->opts.settings = *s;
    pools_set(d);
    models_forget(d);
    agent_queues_look_again(d);
}

/* Stop. The last part that has stopped ends it. */

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

/* Also runs after a part that stopped before the others were told to; then it
 * is too early, and the last part schedules it again. */
static void deliver_on_stopped(struct loop_job *job)
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
    deliveries_stop(d);
    list_init(&stopping);
    list_append_all(&stopping, &d->parts);
    while ((n = list_pop(&stopping))) {
        struct deliver_part *p = LIST_OF(n, struct deliver_part, node);

        list_append(&d->parts, n); /* until it has stopped */
        p->stop(d, p);
    }
    d->is_asked_to_stop = true;
    if (list_is_empty(&d->parts))
        loop_at_end(d->opts.loop, &d->stop_job);
}

/* Jobs. */

enum err deliver_reaches(const struct deliver *d, const struct agent *a,
                         struct why *why)
{
    struct agent_url url;
    enum err e = agent_url_read(a->url, &url, why);

    if (e)
        return e;
    return transport_of(&url)->reaches
               ? transport_of(&url)->reaches(d, a, &url, why)
               : OK;
}

bool deliver_uses_tools(const struct deliver *d, const struct agent *a)
{
    const struct deliver_settings *s = &d->opts.settings;
    const struct process_def *def;
    struct agent_url url;

    if (agent_url_read(a->url, &url, NULL) != OK)
        return false;
    if (url.transport != TRANSPORT_PROCESS)
        return url.transport == TRANSPORT_MODEL;
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

/* An agent with a bad address counts as present, so that its tasks fail with an
 * explanation. */
enum presence agent_presence(const struct deliver *d, const struct agent *a)
{
    struct agent_url url;

    if (agent_url_read(a->url, &url, NULL) != OK ||
        !transport_of(&url)->presence)
        return PRESENT;
    return transport_of(&url)->presence(d, a, &url);
}

static struct deliver_job *deliver_job_new(struct deliver *d,
                                           const struct task *t)
{
    struct deliver_job *e = mem_new(sizeof(*e));

    e->task_id = t->id;
    if (map_put(&d->deliver_jobs, str_of(e->task_id.text), e) == OK)
        return e;
    free(e);
    return NULL;
}

static void deliver_job_forget(struct deliver *d, struct deliver_job *e)
{
    assert(e->state != DELIVER_JOB_GOING);
    if (e->state == DELIVER_JOB_WAITING)
        agent_queue_take(d, e);
    map_take(&d->deliver_jobs, str_of(e->task_id.text));
    free(e);
}

enum err deliver_offer(struct deliver *d, const struct task *t,
                       const struct agent *a)
{
    struct deliver_job *e = map_get(&d->deliver_jobs, str_of(t->id.text));
    struct agent_queue *k = agent_queue_of(d, a);

    if (e && e->state != DELIVER_JOB_RESTING)
        return OK;
    if (!e && k)
        e = deliver_job_new(d, t);
    if (!e || !k)
        return ERR_NOMEM;
    if (e->turn != t->turn) {
        e->n_failures = (int)t->interrupted;
        e->n_pauses = 0;
    }
    e->turn = t->turn;
    e->attempt = t->attempt;
    e->deadline_ms = t->deadline_ms;
    e->priority = t->priority;
    e->is_below = t->depth > 0;
    e->place.at_ms = t->place;
    agent_queue_add(d, k, e);
    return OK;
}

bool deliver_has(const struct deliver *d, struct str task_id)
{
    const struct deliver_job *e = map_get(&d->deliver_jobs, task_id);

    return e && e->state != DELIVER_JOB_RESTING;
}

void deliver_cancel(struct deliver *d, struct str task_id)
{
    struct deliver_job *e = map_get(&d->deliver_jobs, task_id);

    if (!e)
        return;
    if (e->state == DELIVER_JOB_GOING) {
        d->stats.cancelled_total++;
        agent_queue_had_cancel(e->delivery);
        delivery_end(e->delivery, STOP_CANCELLED);
    }
    deliver_job_forget(d, e);
}

enum err deliver_answer(struct deliver *d, const struct delivery_id *id,
                        struct str handle, const struct input_answer *a)
{
    const struct deliver_job *e =
        map_get(&d->deliver_jobs, str_of(id->task_id.text));
    struct delivery *y =
        e && e->state == DELIVER_JOB_GOING ? e->delivery : NULL;

    if (!y || y->id.turn != id->turn || y->id.attempt != id->attempt ||
        !y->transport->answer)
        return ERR_GONE;
    return y->transport->answer(y, handle, a);
}

void deliver_recorded(struct deliver *d, uint64_t receipt, enum err e)
{
    const struct deliver_opts *o = &d->opts;

    if (receipt && !lines_recorded(d, receipt, e) && o->on_recorded)
        o->on_recorded(o->ctx, receipt, e);
}

void deliver_agents_changed(struct deliver *d)
{
    agent_queues_look_again(d);
}

/* Failed attempts. */

/* splitmix64. */
static uint64_t deliver_random(struct deliver *d)
{
    uint64_t z = (d->chance += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int64_t deliver_job_pause_ms(struct deliver *d,
                                    const struct deliver_job *e,
                                    int64_t asked_ms)
{
    const struct deliver_settings *s = &d->opts.settings;
    int64_t most_ms = s->retry_ms, left_ms, pause_ms;

    for (int i = 1; i < e->n_pauses && most_ms < s->retry_max_ms; i++)
        most_ms *= 2;
    if (most_ms > s->retry_max_ms)
        most_ms = s->retry_max_ms;
    pause_ms = (int64_t)(deliver_random(d) % ((uint64_t)most_ms + 1));
    if (asked_ms > ASKED_MAX_MS)
        asked_ms = ASKED_MAX_MS;
    if (pause_ms < asked_ms)
        pause_ms = asked_ms;
    left_ms = e->deadline_ms - loop_wall_ms(d->opts.loop);
    if (pause_ms > left_ms)
        pause_ms = left_ms > 0 ? left_ms : 0;
    return pause_ms;
}

static void deliver_job_retry(struct deliver *d, struct deliver_job *e,
                              const struct delivery_id *id, int64_t asked_ms,
                              struct str because)
{
    const struct deliver_opts *o = &d->opts;

    e->n_pauses++;
    d->stats.retries_total++;
    o->on_retry(o->ctx, id, deliver_job_pause_ms(d, e, asked_ms), because);
}

static void delivery_report_failure(struct deliver *d,
                                    const struct delivery_id *id,
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

void deliver_job_fail(struct deliver *d, struct deliver_job *e,
                      const struct delivery_failure *f)
{
    struct delivery_id id = {e->task_id, e->turn, e->attempt};

    delivery_report_failure(d, &id, f);
}

/* One attempt. */

static enum err deliver_job_begin(struct deliver *d, struct deliver_job *e,
                                  struct agent_queue *k, const struct task *t,
                                  const struct agent *a)
{
    struct agent_url url;
    struct delivery *y;
    enum err err = agent_url_read(a->url, &url, NULL);

    if ((PLANTED("deliver.aborts") || PLANTED("deliver.aborts_uncounted")) &&
        str_eq(t->text, STR("abort the server")))
        abort();
    if (!err)
        err = transport_of(&url)->start(d, t, a, &url, &y);
    if (err)
        return err;
    y->deliver = d;
    y->transport = transport_of(&url);
    y->deliver_job = e;
    y->id = (struct delivery_id){t->id, t->turn, t->attempt};
    y->deadline_ms = t->deadline_ms;
    y->began_ms = loop_mono_ms(d->opts.loop);
    buf_init(&y->gathered, MSG_TEXT_MAX);
    e->delivery = y;
    e->agent_queue = k;
    e->state = DELIVER_JOB_GOING;
    list_append(&d->on_the_way, &y->node);
    d->n_on_the_way++;
    agent_queue_begun(y);
    d->stats.started_total++;
    return OK;
}

static bool err_allows_retry(enum err e)
{
    return e == ERR_NOMEM || e == ERR_BUSY || e == ERR_OVERLOADED ||
           e == ERR_GONE;
}

void deliver_job_go(struct deliver *d, struct deliver_job *e,
                    struct agent_queue *k)
{
    static const struct delivery_failure interrupted = {
        .code = STR("internal"),
        .words = STR("the server stopped during each attempt at this task"),
    };
    const struct deliver_opts *o = &d->opts;
    struct delivery_failure f;
    struct delivery_id id;
    const struct task *t;
    const struct agent *a;
    enum err err;

    if (e->n_failures && e->n_failures >= d->opts.settings.max_attempts &&
        !PLANTED("deliver.aborts_uncounted")) {
        deliver_job_fail(d, e, &interrupted);
        return;
    }
    if (!o->on_go(o->ctx, str_of(e->task_id.text), &t, &a)) {
        deliver_job_forget(d, e);
        return;
    }
    e->attempt = t->attempt;
    id = (struct delivery_id){t->id, t->turn, t->attempt};
    err = deliver_job_begin(d, e, k, t, a);
    if (!err)
        return;
    f = (struct delivery_failure){.code = str_of(err_row(err)->code),
                                  .words = str_of(err_row(err)->wording)};
    agent_queue_attempt_failed(k, &f, !err_allows_retry(err));
    if (err_allows_retry(err))
        deliver_job_retry(d, e, &id, 0, f.words);
    else
        delivery_report_failure(d, &id, &f);
}

void delivery_end(struct delivery *y, enum stop_why why)
{
    struct deliver *d = y->deliver;
    struct deliver_job *e = y->deliver_job;
    struct agent_queue *k = e->agent_queue;

    assert(e->delivery == y);
    e->delivery = NULL;
    e->agent_queue = NULL;
    e->state = DELIVER_JOB_RESTING;
    y->deliver_job = NULL;
    y->transport->stop(y, why);
    y->is_over = true;
    list_remove(&y->node);
    d->n_on_the_way--;
    d->gathered_bytes -= y->gathered.n;
    k->gathered_bytes -= y->gathered.n;
    list_append(&d->over, &y->node);
    loop_at_end(d->opts.loop, &d->reaper);
    agent_queue_done(k, y);
}

struct deliver_stats deliver_stats(const struct deliver *d)
{
    struct deliver_stats s = d->stats;

    s.on_the_way = (int64_t)d->n_on_the_way;
    s.children = pools_n_children(d);
    s.gathered_bytes = (int64_t)d->gathered_bytes;
    return s;
}

/* For the transports. */

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

/* Gather the chunks within the limits: a result may have no text of its own. */
static void delivery_gather(struct delivery *y, struct str text)
{
    struct deliver *d = y->deliver;
    struct agent_queue *k = y->deliver_job->agent_queue;
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
    if (y->gathered.over) /* below its limit, so memory ran out */
        y->lost = LOST_NO_ROOM;
    d->gathered_bytes += y->gathered.n - before;
    k->gathered_bytes += y->gathered.n - before;
}

/* The answer relies on chunks that we did not keep, which is not the agent's
 * fault. The task is delivered again, and the receipt is answered with an
 * error. */
static void delivery_chunks_lost(struct delivery *y, uint64_t receipt)
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
    delivery_gather(y, text);
    agent_queue_had_chunk(y);
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
    struct task_result reported = *r;

    assert(!y->is_over);
    if (!has_text && r->status == TASK_COMPLETED) {
        if (y->lost == LOST_NO_ROOM) {
            delivery_chunks_lost(y, receipt);
            return;
        }
        reported.text = buf_str(&y->gathered);
        if (y->lost)
            reported = too_large;
    }
    agent_queue_had_result(y, &reported);
    delivery_end(y, STOP_OVER);
    y->deliver->stats.results_total++;
    o->on_result(o->ctx, &y->id, &reported, receipt);
}

void delivery_failed(struct delivery *y, const struct delivery_failure *f)
{
    struct deliver *d = y->deliver;
    struct deliver_job *e = y->deliver_job;
    struct delivery_failure reported = *f;
    bool is_last;

    assert(!y->is_over);
    if (f->detail.n && y->sees_details)
        reported.words = f->detail;
    if (!f->is_innocent)
        e->n_failures++;
    is_last = f->is_final || e->n_failures >= d->opts.settings.max_attempts;
    agent_queue_had_failure(y, f, is_last);
    delivery_end(y, f->is_to_be_told ? STOP_CANCELLED : STOP_OVER);
    if (is_last)
        delivery_report_failure(d, &y->id, &reported);
    else
        deliver_job_retry(d, e, &y->id, f->retry_ms, reported.words);
}
