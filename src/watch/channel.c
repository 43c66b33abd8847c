/* Each output is a reader of the feed with a cursor. It gathers its entries,
 * writes them in one piece, and only then moves its cursor:
 *
 *     begins -> reads -> busy -> reads ...
 *       ^                 |
 *       |   after a pause | failed: leaves the feed, gathered entries are
 * dropped
 *       +-- rests <-------+
 *
 * After a failure the entries are read from the store again. So an output that
 * is down for a week holds nothing in memory, and retention applies to it as
 * to every reader. A gap in the seqs means that retention removed entries, and
 * the output reports how many. (The feed has no other gaps: an uncommitted
 * entry takes no seq.)
 *
 * Files are written on libuv's threads, one write at a time for each, because
 * a disk may be slow and the loop may not wait. A line that needs the text of
 * its task is the last of its write, since that text must be read first. A
 * file's cursor is written only up to the last sync, so that a power cut loses
 * nothing.
 *
 * Rejected: a queue for each output (a crash would lose it, or it would be a
 * second feed), and one cursor for a channel's file and webhook (the one that
 * is down would delay the other). */
#include "watch/channel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum {
    FILE_SOON_MS = 1000,
    FILE_MOST_MS = 60 * 1000,
    GATHER_STEPS = 2000, /* entries read in one turn */
    SKIPPED_MOST = 1000, /* filtered entries before the cursor is written
                          * again */
    FILE_BATCH_BYTES = 64 * 1024,
};

static void channels_stop_step(struct channels *c);

static struct str output_name(const struct output *p)
{
    return str_of(p->name);
}

static struct str output_kind(const struct output *p)
{
    return p->is_file ? STR("file") : STR("webhook");
}

/* Cursors in the store. */

/* The cursor that is safe to store: a power cut may take unsynced lines. */
static int64_t cursor_to_keep(const struct output *p)
{
    return p->is_unsynced ? p->synced : p->cursor;
}

static bool cursor_is_due(const struct output *p, bool is_last)
{
    int64_t seq = cursor_to_keep(p);

    if (!p->has_begun || seq == p->kept)
        return false;
    return is_last || p->has_news || seq - p->kept >= SKIPPED_MOST;
}

static void output_free(struct output *p);

bool output_went(struct output *p)
{
    if (!p->is_leaving || p->is_busy || p->keeping >= 0)
        return false;
    output_free(p);
    return true;
}

static void on_cursors_written(struct tx *tx, void *ctx)
{
    struct channels *c = ctx;
    bool is_kept = tx->result == TX_COMMITTED;
    struct list_node *n = list_first(&c->outputs), *next;

    c->is_keeping = false;
    for (; n; n = next) {
        struct output *p = LIST_OF(n, struct output, node);

        next = list_next(&c->outputs, n);
        if (is_kept && p->keeping >= 0) {
            p->kept = p->keeping;
            p->has_news = p->has_news && cursor_to_keep(p) != p->kept;
        }
        p->keeping = -1;
        output_went(p);
    }
    if (!is_kept && tx->err != ERR_STOPPING)
        log_warn(c->opts.log, "channel.cursor_not_kept",
                 LOG_C("because", err_row(tx->err)->wording));
    tx_fini(tx);
    free(tx);
    if (c->is_stopping)
        channels_stop_step(c);
}

bool channels_keep(struct channels *c, bool is_last)
{
    struct tx *tx = mem_new(sizeof(*tx));
    int64_t now_ms = loop_wall_ms(c->opts.loop);
    size_t n = 0;

    tx_init(tx);
    LIST_EACH(l, &c->outputs)
    {
        struct output *p = LIST_OF(l, struct output, node);
        struct tx_op *op;

        if (!cursor_is_due(p, is_last || p->is_leaving))
            continue;
        op = tx_put(tx, &cursor_table);
        tx_set(op, CURSOR_CHANNEL, value_text(output_name(p)));
        tx_set(op, CURSOR_PLACE, value_text(output_kind(p)));
        tx_set(op, CURSOR_SEQ, value_int(cursor_to_keep(p)));
        tx_set(op, CURSOR_AT_MS, value_int(now_ms));
        p->keeping = cursor_to_keep(p);
        n++;
    }
    if (!n) {
        tx_fini(tx);
        free(tx);
        return false;
    }
    c->is_keeping = true;
    store_submit(c->opts.store, tx, on_cursors_written, c);
    return true;
}

static void channels_keep_soon(struct channels *c)
{
    if (!timer_is_set(&c->keep) && !c->is_stopping)
        loop_timer_set(c->opts.loop, &c->keep, CHANNEL_CURSOR_MS);
}

static void file_work_start(struct output *p);

static void on_cursor_timer(struct timer *t)
{
    struct channels *c = LIST_OF(t, struct channels, keep);
    bool is_behind = c->is_keeping;

    LIST_EACH(l, &c->outputs)
    {
        struct output *p = LIST_OF(l, struct output, node);

        if (p->is_unsynced && !p->is_busy && p->file.fd >= 0)
            file_work_start(p); /* no lines: it syncs */
    }
    if (!c->is_keeping)
        channels_keep(c, false);
    LIST_EACH(l, &c->outputs)
    {
        struct output *p = LIST_OF(l, struct output, node);

        is_behind |=
            p->is_unsynced || (cursor_is_due(p, false) && p->keeping < 0);
    }
    if (is_behind)
        channels_keep_soon(c);
}

/* Resting. */

static void output_forget_gathered(struct output *p)
{
    p->upto = p->cursor;
    p->missed = 0;
    p->n_lines = 0;
    buf_clear(&p->lines);
    output_post_clear(p);
}

static void output_pause(struct output *p, int64_t ms)
{
    feed_leave(p->owner->opts.feed, &p->reader);
    output_forget_gathered(p);
    if (p->owner->is_stopping || p->is_leaving)
        return;
    loop_timer_set(p->owner->opts.loop, &p->pause, ms);
}

void output_failed(struct output *p, const char *because, int64_t from_ms,
                   int64_t to_ms, int64_t least_ms)
{
    struct channels *c = p->owner;
    int64_t ms;

    if (c->is_stopping || p->is_leaving) {
        output_pause(p, 0);
        if (!output_went(p) && c->is_stopping)
            channels_stop_step(c);
        return;
    }
    if (!p->n_failures++)
        p->since_ms = loop_mono_ms(c->opts.loop);
    p->stats.failures_total++;
    snprintf(p->problem, sizeof(p->problem), "%s", because);
    ms = rand_backoff_ms(c->opts.rand, p->n_failures, from_ms, to_ms);
    if (ms < least_ms)
        ms = least_ms;
    log_warn(c->opts.log, "channel.failed", LOG_S("channel", output_name(p)),
             LOG_S("place", output_kind(p)), LOG_C("because", p->problem),
             LOG_I("times", p->n_failures), LOG_I("again_in_ms", ms));
    output_pause(p, ms);
}

static void output_recovered(struct output *p)
{
    if (p->n_failures)
        log_info(p->owner->opts.log, "channel.recovered",
                 LOG_S("channel", output_name(p)),
                 LOG_S("place", output_kind(p)),
                 LOG_I("failures", p->n_failures));
    p->n_failures = 0;
    p->problem[0] = '\0';
}

void output_done(struct output *p, int64_t rest_ms)
{
    struct channels *c = p->owner;

    output_recovered(p);
    p->cursor = p->upto;
    p->has_news = true;
    p->stats.missed_total += p->missed;
    p->stats.written_total += p->is_file ? p->n_lines : (int64_t)p->post.n;
    output_forget_gathered(p);
    channels_keep_soon(c);
    if (c->is_stopping) {
        channels_stop_step(c);
        return;
    }
    if (output_went(p))
        return;
    if (rest_ms)
        output_pause(p, rest_ms);
    else
        loop_next_turn(c->opts.loop, &p->after);
}

/* Files. */

static void file_work_run(struct output *p)
{
    p->err = OK;
    if (p->is_opening)
        p->err = line_file_open(&p->file, &p->tail, &p->why);
    else if (p->lines.n)
        p->err = line_file_append(&p->file, buf_str(&p->lines), &p->why);
    if (!p->err && p->is_syncing)
        p->err = line_file_sync(&p->file, &p->why);
}

/* The file's last line is the better cursor, unless the file belongs to an
 * earlier store. */
static void on_file_opened(struct output *p)
{
    if (p->tail > p->cursor && p->tail <= feed_newest(p->owner->opts.feed)) {
        p->cursor = p->upto = p->tail;
        p->has_news = true;
    }
    output_recovered(p);
    output_look(p);
}

static void on_file_written(struct output *p)
{
    if (p->is_syncing)
        p->synced = p->upto;
    else if (!p->is_unsynced)
        p->synced = p->cursor;
    p->is_unsynced = !p->is_syncing;
    if (p->file.could_not_turn)
        log_warn(p->owner->opts.log, "channel.not_rotated",
                 LOG_S("channel", output_name(p)), LOG_C("file", p->file.path));
    p->file.could_not_turn = false;
    output_done(p, 0);
}

static void on_file_work_done(struct output *p)
{
    p->is_busy = false;
    if (p->err)
        output_failed(p, p->why.text, FILE_SOON_MS, FILE_MOST_MS, 0);
    else if (p->owner->is_stopping && p->is_opening)
        channels_stop_step(p->owner);
    else if (p->is_opening && !output_went(p))
        on_file_opened(p);
    else if (!p->is_opening)
        on_file_written(p);
}

static void on_file_thread(uv_work_t *w)
{
    file_work_run(LIST_OF(w, struct output, work));
}

static void on_file_thread_done(uv_work_t *w, int status)
{
    struct output *p = LIST_OF(w, struct output, work);

    if (status) {
        p->err = ERR_STOPPING;
        why_err(&p->why, p->err, "the write was not started");
    }
    on_file_work_done(p);
}

static void file_work_start(struct output *p)
{
    struct channels *c = p->owner;

    /* Its thread owns these while it runs, so they change only here. */
    p->file.rotate_bytes = p->settings.rotate_bytes;
    p->file.keep = p->settings.keep;
    p->is_opening = p->file.fd < 0;
    p->is_syncing = !p->is_opening && !p->lines.n;
    p->is_busy = true;
    if (!c->opts.is_inline &&
        uv_queue_work(&c->opts.loop->uv, &p->work, on_file_thread,
                      on_file_thread_done) == 0)
        return;
    file_work_run(p);
    p->was_inline = true;
    loop_next_turn(c->opts.loop, &p->after);
}

/* Gathering. */

static bool output_is_full(const struct output *p)
{
    size_t n = p->post.n;

    if (p->is_file)
        return p->lines.n >= FILE_BATCH_BYTES || p->post.n;
    return n >= p->most ||
           (n && channel_wants_context(p->post.entries[n - 1]->e.type));
}

/* Alerts only: a person decides from the file. */
static bool output_adds_context(const struct output *p,
                                const struct feed_entry *e)
{
    return p->settings.takes_alerts && p->owner->opts.context && e->task_id.n &&
           channel_wants_context(e->type);
}

static void on_line_context(void *ctx, struct str text)
{
    struct output *p = ctx;

    if (!output_context(p, text))
        return;
    p->is_busy = false;
    channel_line(&p->lines, &p->post.entries[0]->e, str_of(p->context));
    p->n_lines++;
    output_post_clear(p);
    if (p->lines.over)
        output_failed(p, "out of memory", FILE_SOON_MS, FILE_MOST_MS, 0);
    else
        file_work_start(p);
}

static void output_gather_entry(struct output *p, const struct feed_entry *e)
{
    int64_t missed = e->seq - p->upto - 1;

    if (missed > 0 && p->is_file) {
        channel_line_missed(&p->lines, e->seq - 1, e->at_ms, missed);
        p->n_lines++;
    }
    p->missed += missed;
    p->upto = e->seq;
    if (!channel_takes(e->type, p->settings.takes_feed,
                       p->settings.takes_alerts))
        return;
    if (!p->is_file || output_adds_context(p, e)) {
        p->post.entries[p->post.n++] = feed_hold(e);
        return;
    }
    channel_line(&p->lines, e, (struct str){NULL, 0});
    p->n_lines++;
}

/* The output has joined the feed, and no operation is in flight. */
static void output_gather(struct output *p)
{
    struct channels *c = p->owner;
    size_t steps = GATHER_STEPS;
    struct feed_entry e;

    while (steps && !p->lines.over && !output_is_full(p) &&
           feed_next(c->opts.feed, &p->reader, &e)) {
        output_gather_entry(p, &e);
        steps--;
    }
    if (p->lines.over) {
        output_failed(p, "out of memory", FILE_SOON_MS, FILE_MOST_MS, 0);
    } else if (p->is_file && p->post.n) {
        p->is_busy = true;
        c->opts.context(c->opts.ctx, p->post.entries[0]->e.task_id,
                        on_line_context, p);
    } else if (p->lines.n) {
        file_work_start(p);
    } else if (p->post.n || p->missed) {
        output_post(p);
    } else {
        p->cursor = p->upto;
        if (cursor_is_due(p, false))
            channels_keep_soon(c);
        if (!steps)
            loop_next_turn(c->opts.loop, &p->after);
    }
}

static void on_output_news(struct feed_reader *r)
{
    struct output *p = LIST_OF(r, struct output, reader);

    if (!p->is_busy && !timer_is_set(&p->pause))
        output_gather(p);
}

/* Beginning. */

/* A new output begins with the next entry, and its cursor is stored before
 * anything is written. */
static enum err output_read_cursor(struct output *p)
{
    struct channels *c = p->owner;
    struct query q;
    enum err e;

    query_init(&q, &cursor_table, 1);
    query_if(&q, CURSOR_CHANNEL, IS, value_text(output_name(p)));
    query_if(&q, CURSOR_PLACE, IS, value_text(output_kind(p)));
    e = FAULT("channel.cursor") ? ERR_NOMEM : store_look(c->opts.store, &q);
    if (!e) {
        p->cursor =
            q.rows ? row_int(q.rows, CURSOR_SEQ) : feed_newest(c->opts.feed);
        p->kept = q.rows ? p->cursor : -1;
        p->has_begun = true;
        p->has_news = !q.rows;
        p->upto = p->synced = p->cursor;
    }
    query_fini(&q);
    if (!e && p->has_news && !c->is_keeping)
        channels_keep(c, false);
    if (!e && p->has_news)
        channels_keep_soon(c);
    return e;
}

void output_look(struct output *p)
{
    struct channels *c = p->owner;
    struct caller admin = {.role = ROLE_ADMIN,
                           .scopes = role_scopes(ROLE_ADMIN)};
    enum err e = p->has_begun ? OK : output_read_cursor(p);

    if (p->is_busy || c->is_stopping || p->is_leaving)
        return;
    if (e)
        output_failed(p, err_row(e)->wording, FILE_SOON_MS, FILE_MOST_MS, 0);
    else if (p->is_file && p->file.fd < 0)
        file_work_start(p);
    else if (p->reader.state == FEED_AWAY)
        feed_join(c->opts.feed, &p->reader, &admin, p->cursor);
    else
        output_gather(p);
}

static void on_output_pause_over(struct timer *t)
{
    output_look(LIST_OF(t, struct output, pause));
}

static void on_output_turn(struct loop_job *job)
{
    struct output *p = LIST_OF(job, struct output, after);

    if (p->was_inline) {
        p->was_inline = false;
        on_file_work_done(p);
    } else if (!p->is_busy && !timer_is_set(&p->pause)) {
        output_look(p);
    }
}

/* Life of an output. */

static void output_free(struct output *p)
{
    struct channels *c = p->owner;

    feed_leave(c->opts.feed, &p->reader);
    loop_timer_cancel(c->opts.loop, &p->pause);
    loop_not_at_end(&p->after);
    list_remove(&p->node);
    output_post_clear(p);
    line_file_close(&p->file);
    buf_fini(&p->lines);
    buf_fini(&p->body);
    free(p);
}

struct output *output_new(struct channels *c, bool is_file,
                          const struct channel_settings *s)
{
    struct output *p = mem_new(sizeof(*p));

    p->owner = c;
    p->is_file = is_file;
    p->file.fd = -1;
    p->kept = p->keeping = -1;
    p->most = CHANNEL_BATCH;
    p->reader.on_news = on_output_news;
    p->reader.is_inside = true;
    p->pause.fire = on_output_pause_over;
    p->after.run = on_output_turn;
    buf_init(&p->lines, FILE_BATCH_BYTES + 2 * LINE_MAX_BYTES);
    buf_init(&p->body, POST_BODY_MAX);
    snprintf(p->name, sizeof(p->name), "%.*s", STR_ARG(s->name));
    output_set(p, s);
    list_append(&c->outputs, &p->node);
    return p;
}

/* The end. */

static void on_channels_stopped(struct loop_job *job)
{
    struct channels *c = LIST_OF(job, struct channels, stop_job);

    if (c->has_stopped)
        return;
    c->has_stopped = true;
    c->stopped(c->stopped_ctx);
}

static void channels_stop_step(struct channels *c)
{
    bool is_busy = c->is_keeping;

    LIST_EACH(l, &c->outputs)
    {
        struct output *p = LIST_OF(l, struct output, node);

        if (!p->is_busy && p->is_unsynced && p->file.fd >= 0 &&
            !c->has_kept_last)
            file_work_start(p);
        is_busy |= p->is_busy;
    }
    if (is_busy)
        return;
    if (!c->has_kept_last) {
        c->has_kept_last = true;
        if (channels_keep(c, true))
            return;
    }
    loop_at_end(c->opts.loop, &c->stop_job);
}

void channels_stop(struct channels *c, void (*done)(void *ctx), void *ctx)
{
    c->is_stopping = true;
    c->stopped = done;
    c->stopped_ctx = ctx;
    loop_timer_cancel(c->opts.loop, &c->keep);
    LIST_EACH(l, &c->outputs)
    {
        struct output *p = LIST_OF(l, struct output, node);

        loop_timer_cancel(c->opts.loop, &p->pause);
        output_post_cancel(p);
        feed_leave(c->opts.feed, &p->reader);
    }
    channels_stop_step(c);
}

void channels_free(struct channels *c)
{
    struct list_node *n;

    if (!c)
        return;
    loop_timer_cancel(c->opts.loop, &c->keep);
    loop_not_at_end(&c->stop_job);
    while ((n = list_first(&c->outputs)))
        output_free(LIST_OF(n, struct output, node));
    free(c);
}

struct channels *channels_new(const struct channels_opts *opts)
{
    struct channels *c = mem_new(sizeof(*c));

    c->opts = *opts;
    list_init(&c->outputs);
    c->keep.fire = on_cursor_timer;
    c->stop_job.run = on_channels_stopped;
    return c;
}

size_t channels_stats(const struct channels *c, struct channel_stats *out,
                      size_t max)
{
    int64_t now_ms = loop_mono_ms(c->opts.loop);
    size_t n = 0;

    for (struct list_node *l = list_first(&c->outputs); l && n < max;
         l = list_next(&c->outputs, l)) {
        struct output *p = LIST_OF(l, struct output, node);

        if (p->is_leaving)
            continue;
        out[n] = p->stats;
        out[n].name = output_name(p);
        out[n].is_file = p->is_file;
        out[n].cursor = p->cursor;
        out[n].backlog = feed_newest(c->opts.feed) - p->cursor;
        out[n].failing_ms = p->n_failures ? now_ms - p->since_ms : 0;
        out[n].problem = p->problem;
        n++;
    }
    return n;
}
