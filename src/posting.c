/* The rules file is gate's and channels are watch's, which knows no gate: here
 * the one is told to the other. What an alert is about is read from the task's
 * row when it is posted. */
#include "posting.h"

#include <stdlib.h>

#include "base/fault.h"
#include "task/task.h"

/* One look at a task's text. */
struct glance {
    struct query q;
    void (*done)(void *ctx, struct str text);
    void *ctx;
};

static void on_row(struct query *q, void *ctx)
{
    struct glance *g = ctx;

    g->done(g->ctx, !q->err && q->rows ? row_str(q->rows, TASK_TEXT)
                                       : (struct str){NULL, 0});
    query_fini(&g->q);
    free(g);
}

static void read_context(void *ctx, struct str task_id,
                         void (*done)(void *ctx, struct str text),
                         void *done_ctx)
{
    struct posting *p = ctx;
    struct glance *g = FAULT("posting.glance") ? NULL : malloc(sizeof(*g));

    if (!g) {
        done(done_ctx, (struct str){NULL, 0});
        return;
    }
    g->done = done;
    g->ctx = done_ctx;
    query_init(&g->q, &task_table, 1);
    query_if(&g->q, TASK_ID, IS, value_text(task_id));
    store_read(p->store, &g->q, on_row, g);
}

void posting_set(struct posting *p, const struct gate_rules *rules)
{
    static const enum post_form forms[] = {[CHANNEL_JSON] = POST_JSON,
                                           [CHANNEL_SLACK] = POST_SLACK,
                                           [CHANNEL_DISCORD] = POST_DISCORD};
    const struct gate_about *about = gate_rules_about(rules);
    struct channel_settings list[CHANNELS_MAX + 1];
    size_t n = 0;

    if (!p->channels)
        return;
    for (; n < about->n_channels && n <= CHANNELS_MAX; n++) {
        const struct gate_channel *c = &about->channels[n];

        list[n] = (struct channel_settings){.name = c->name,
                                            .takes_feed = c->takes_feed,
                                            .takes_alerts = c->takes_alerts,
                                            .file = c->file,
                                            .rotate_bytes = c->rotate_bytes,
                                            .keep = c->keep,
                                            .webhook = c->webhook,
                                            .form = forms[c->form]};
    }
    channels_set(p->channels, list, n);
}

enum err posting_open(struct posting *p, const struct posting_opts *opts,
                      struct why *why)
{
    struct channels_opts channels = {.loop = p->loop,
                                     .log = opts->log,
                                     .store = p->store,
                                     .feed = opts->feed,
                                     .fetch = opts->fetch,
                                     .folder = opts->folder,
                                     .rand = rand_system(),
                                     .context = read_context,
                                     .ctx = p};
    struct audit_opts audit = {.loop = p->loop,
                               .log = opts->log,
                               .store = p->store,
                               .feed = opts->feed,
                               .tasks = opts->tasks,
                               .broker = opts->broker,
                               .retention_ms = opts->retention_ms,
                               .retention_rows = opts->retention_rows};

    p->channels = channels_new(&channels, why);
    p->figures = figures_new(p->loop, opts->feed, opts->seed);
    p->audit = audit_new(&audit);
    if (!p->channels || !p->figures || !p->audit)
        return why_err(why, ERR_NOMEM, "out of memory");
    return OK;
}

static void on_stopped(void *ctx)
{
    struct posting *p = ctx;

    p->has_stopped = true;
    loop_stop(p->loop);
}

void posting_stop(struct posting *p)
{
    audit_stop(p->audit);
    figures_stop(p->figures);
    if (!p->channels)
        return;
    channels_stop(p->channels, on_stopped, p);
    while (!p->has_stopped)
        loop_run(p->loop);
}

void posting_close(struct posting *p)
{
    channels_free(p->channels);
    figures_free(p->figures);
    audit_free(p->audit);
    *p = (struct posting){.loop = NULL};
}
