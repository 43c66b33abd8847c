/* The rules file belongs to gate and channels belong to watch, which does not
 * know gate; this file connects them. The subject of an alert is read from the
 * task's row when it is posted. */
#include "gate/notifiers.h"

#include <stdlib.h>

#include "base/mem.h"
#include "task/task.h"

/* A pending read of a task's text. */
struct text_read {
    struct query q;
    void (*done)(void *ctx, struct str text);
    void *ctx;
};

static void on_task_text(struct query *q, void *ctx)
{
    struct text_read *g = ctx;

    g->done(g->ctx, !q->err && q->rows ? row_str(q->rows, TASK_TEXT)
                                       : (struct str){NULL, 0});
    query_fini(&g->q);
    free(g);
}

static void read_task_text(void *ctx, struct str task_id,
                           void (*done)(void *ctx, struct str text),
                           void *done_ctx)
{
    struct notifiers *p = ctx;
    struct text_read *g = mem_new(sizeof(*g));

    g->done = done;
    g->ctx = done_ctx;
    query_init(&g->q, &task_table, 1);
    query_if(&g->q, TASK_ID, IS, value_text(task_id));
    store_read(p->store, &g->q, on_task_text, g);
}

void notifiers_set(struct notifiers *p, const struct gate_rules *rules)
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

void notifiers_open(struct notifiers *p, const struct notifiers_opts *opts)
{
    struct channels_opts channels = {.loop = p->loop,
                                     .log = opts->log,
                                     .store = p->store,
                                     .feed = opts->feed,
                                     .fetch = opts->fetch,
                                     .folder = opts->folder,
                                     .rand = rand_system(),
                                     .context = read_task_text,
                                     .ctx = p};
    struct audit_opts audit = {.loop = p->loop,
                               .log = opts->log,
                               .store = p->store,
                               .feed = opts->feed,
                               .tasks = opts->tasks,
                               .gatekeeper = opts->gatekeeper,
                               .retention_ms = opts->retention_ms,
                               .retention_rows = opts->retention_rows};

    p->channels = channels_new(&channels);
    p->figures = figures_new(p->loop, opts->feed, opts->seed);
    p->audit = audit_new(&audit);
}

static void on_channels_stopped(void *ctx)
{
    struct notifiers *p = ctx;

    p->has_stopped = true;
    loop_stop(p->loop);
}

void notifiers_stop(struct notifiers *p)
{
    audit_stop(p->audit);
    figures_stop(p->figures);
    if (!p->channels)
        return;
    channels_stop(p->channels, on_channels_stopped, p);
    while (!p->has_stopped)
        loop_run(p->loop);
}

void notifiers_close(struct notifiers *p)
{
    channels_free(p->channels);
    figures_free(p->figures);
    audit_free(p->audit);
    *p = (struct notifiers){.loop = NULL};
}
