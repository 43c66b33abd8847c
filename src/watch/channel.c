/* Each place outside is a reader of the feed with a cursor. It gathers what is
 * for it, puts that outside in one piece, and only then moves its cursor:
 *
 *     begins -> reads -> busy -> reads ...
 *       ^                 |
 *       |   after a pause | failed: leaves the feed, what it had gathered goes
 *       +-- rests <-------+
 *
 * What failed is read anew from the store when its time has come, so a place
 * that is down for a week holds nothing in memory, and retention applies to it
 * as to everybody: where the numbers of the feed jump, so many were removed,
 * and the place is told. (The feed counts without holes: what is not committed
 * takes no number.)
 *
 * Files are written on libuv's threads, one write at a time for each, because
 * a disk may be slow and the loop may not. A line that says what it is about is
 * the last of its write, since that must be read first. A file's cursor is
 * written when the file was synced up to it, so that a power cut takes nothing.
 *
 * Turned down: a queue for each place (it would be lost in a crash, or have to
 * be a second feed), and one cursor for a channel's file and webhook (the one
 * that is down would hold up the other). */
#include "watch/channel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum {
    FILE_SOON_MS = 1000,
    FILE_MOST_MS = 60 * 1000,
    GATHER_STEPS = 2000, /* entries looked at in one turn */
    SKIPPED_MOST = 1000, /* entries that are not for it and not in the kept
                          * cursor */
    FILE_BATCH_BYTES = 64 * 1024,
};

static void stop_step(struct channels *c);

static struct str name_of(const struct place *p)
{
    return str_of(p->name);
}

static struct str kind_of(const struct place *p)
{
    return p->is_file ? STR("file") : STR("webhook");
}

/* Cursors in the store. */

/* How far it is for good: what is in a file and not synced may go. */
static int64_t to_keep(const struct place *p)
{
    return p->is_unsynced ? p->synced : p->cursor;
}

static bool is_due(const struct place *p, bool is_last)
{
    int64_t seq = to_keep(p);

    if (!p->has_begun || seq == p->kept)
        return false;
    return is_last || p->has_news || seq - p->kept >= SKIPPED_MOST;
}

static void place_free(struct place *p);

/* What left while it was busy goes when that is over. */
bool place_went(struct place *p)
{
    if (!p->is_leaving || p->is_busy || p->keeping >= 0)
        return false;
    place_free(p);
    return true;
}

static void on_kept(struct tx *tx, void *ctx)
{
    struct channels *c = ctx;
    bool is_kept = tx->result == TX_COMMITTED;
    struct list_node *n = list_first(&c->places), *next;

    c->is_keeping = false;
    for (; n; n = next) {
        struct place *p = LIST_OF(n, struct place, node);

        next = list_next(&c->places, n);
        if (is_kept && p->keeping >= 0) {
            p->kept = p->keeping;
            p->has_news = p->has_news && to_keep(p) != p->kept;
        }
        p->keeping = -1;
        place_went(p);
    }
    if (!is_kept && tx->err != ERR_STOPPING)
        log_warn(c->opts.log, "channel.cursor_not_kept",
                 LOG_C("because", err_row(tx->err)->wording));
    tx_fini(tx);
    free(tx);
    if (c->is_stopping)
        stop_step(c);
}

/* False: there was nothing to write, or no memory. */
bool channels_keep(struct channels *c, bool is_last)
{
    struct tx *tx = FAULT("channel.keep") ? NULL : malloc(sizeof(*tx));
    int64_t now_ms = loop_wall_ms(c->opts.loop);
    size_t n = 0;

    if (!tx)
        return false;
    tx_init(tx);
    for (struct list_node *l = list_first(&c->places); l;
         l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);
        struct tx_op *op;

        if (!is_due(p, is_last || p->is_leaving))
            continue;
        op = tx_put(tx, &cursor_table);
        tx_set(op, CURSOR_CHANNEL, value_text(name_of(p)));
        tx_set(op, CURSOR_PLACE, value_text(kind_of(p)));
        tx_set(op, CURSOR_SEQ, value_int(to_keep(p)));
        tx_set(op, CURSOR_AT_MS, value_int(now_ms));
        p->keeping = to_keep(p);
        n++;
    }
    if (!n) {
        tx_fini(tx);
        free(tx);
        return false;
    }
    c->is_keeping = true;
    store_submit(c->opts.store, tx, on_kept, c);
    return true;
}

static void keep_soon(struct channels *c)
{
    if (!timer_is_set(&c->keep) && !c->is_stopping &&
        loop_timer_set(c->opts.loop, &c->keep, CHANNEL_CURSOR_MS) != OK)
        log_warn(c->opts.log, "channel.cursor_not_kept",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

static void start_work(struct place *p);

static void on_keep(struct timer *t)
{
    struct channels *c = LIST_OF(t, struct channels, keep);
    bool is_behind = c->is_keeping;

    for (struct list_node *l = list_first(&c->places); l;
         l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);

        if (p->is_unsynced && !p->is_busy && p->file.fd >= 0)
            start_work(p); /* nothing is gathered: it syncs */
    }
    if (!c->is_keeping)
        channels_keep(c, false);
    for (struct list_node *l = list_first(&c->places); l;
         l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);

        is_behind |= p->is_unsynced || (is_due(p, false) && p->keeping < 0);
    }
    if (is_behind)
        keep_soon(c);
}

/* Resting. */

static void forget_gathered(struct place *p)
{
    p->upto = p->cursor;
    p->missed = 0;
    p->n_lines = 0;
    buf_clear(&p->lines);
    place_post_clear(p);
}

static void rest(struct place *p, int64_t ms)
{
    struct loop *loop = p->owner->opts.loop;

    feed_leave(p->owner->opts.feed, &p->reader);
    forget_gathered(p);
    if (p->owner->is_stopping || p->is_leaving)
        return;
    /* Without memory for a timer it looks again at the end of this turn. */
    if (loop_timer_set(loop, &p->pause, ms) != OK)
        loop_next_turn(loop, &p->after);
}

static int64_t growing(struct place *p, int64_t from, int64_t to)
{
    int64_t ms = from;
    int64_t spread;

    for (int i = 1; i < p->n_failures && ms < to; i++)
        ms *= 2;
    ms = ms < to ? ms : to;
    spread = ms / 5;
    if (spread)
        ms += (int64_t)(rand_u64(p->owner->opts.rand) % (uint64_t)spread);
    return ms;
}

void place_failed(struct place *p, const char *because, int64_t from_ms,
                  int64_t to_ms, int64_t least_ms)
{
    struct channels *c = p->owner;
    int64_t ms;

    if (c->is_stopping || p->is_leaving) {
        rest(p, 0);
        if (!place_went(p) && c->is_stopping)
            stop_step(c);
        return;
    }
    if (!p->n_failures++)
        p->since_ms = loop_mono_ms(c->opts.loop);
    p->stats.failures_total++;
    snprintf(p->problem, sizeof(p->problem), "%s", because);
    ms = growing(p, from_ms, to_ms);
    if (ms < least_ms)
        ms = least_ms;
    log_warn(c->opts.log, "channel.failed", LOG_S("channel", name_of(p)),
             LOG_S("place", kind_of(p)), LOG_C("because", p->problem),
             LOG_I("times", p->n_failures), LOG_I("again_in_ms", ms));
    rest(p, ms);
}

static void is_well(struct place *p)
{
    if (p->n_failures)
        log_info(p->owner->opts.log, "channel.recovered",
                 LOG_S("channel", name_of(p)), LOG_S("place", kind_of(p)),
                 LOG_I("failures", p->n_failures));
    p->n_failures = 0;
    p->problem[0] = '\0';
}

void place_done(struct place *p, int64_t rest_ms)
{
    struct channels *c = p->owner;

    is_well(p);
    p->cursor = p->upto;
    p->has_news = true;
    p->stats.missed_total += p->missed;
    p->stats.written_total += p->is_file ? p->n_lines : (int64_t)p->post.n;
    forget_gathered(p);
    keep_soon(c);
    if (c->is_stopping) {
        stop_step(c);
        return;
    }
    if (place_went(p))
        return;
    if (rest_ms)
        rest(p, rest_ms);
    else
        loop_next_turn(c->opts.loop, &p->after);
}

/* Files. */

static void do_work(struct place *p)
{
    p->err = OK;
    if (p->is_opening)
        p->err = line_file_open(&p->file, &p->tail, &p->why);
    else if (p->lines.n)
        p->err = line_file_append(&p->file, buf_str(&p->lines), &p->why);
    if (!p->err && p->is_syncing)
        p->err = line_file_sync(&p->file, &p->why);
}

/* It says itself how far it is, unless it is of another life of the store. */
static void opened(struct place *p)
{
    if (p->tail > p->cursor && p->tail <= feed_newest(p->owner->opts.feed)) {
        p->cursor = p->upto = p->tail;
        p->has_news = true;
    }
    is_well(p);
    place_look(p);
}

static void wrote(struct place *p)
{
    if (p->is_syncing)
        p->synced = p->upto;
    else if (!p->is_unsynced)
        p->synced = p->cursor;
    p->is_unsynced = !p->is_syncing;
    if (p->file.could_not_turn)
        log_warn(p->owner->opts.log, "channel.not_rotated",
                 LOG_S("channel", name_of(p)), LOG_C("file", p->file.path));
    p->file.could_not_turn = false;
    place_done(p, 0);
}

static void work_over(struct place *p)
{
    p->is_busy = false;
    if (p->err)
        place_failed(p, p->why.text, FILE_SOON_MS, FILE_MOST_MS, 0);
    else if (p->owner->is_stopping && p->is_opening)
        stop_step(p->owner);
    else if (p->is_opening && !place_went(p))
        opened(p);
    else if (!p->is_opening)
        wrote(p);
}

static void on_thread(uv_work_t *w)
{
    do_work(LIST_OF(w, struct place, work));
}

static void on_thread_done(uv_work_t *w, int status)
{
    struct place *p = LIST_OF(w, struct place, work);

    if (status) {
        p->err = ERR_STOPPING;
        why_err(&p->why, p->err, "it was not begun");
    }
    work_over(p);
}

static void start_work(struct place *p)
{
    struct channels *c = p->owner;

    /* What its thread has is changed only while it has nothing. */
    p->file.rotate_bytes = p->asked.rotate_bytes;
    p->file.keep = p->asked.keep;
    p->is_opening = p->file.fd < 0;
    p->is_syncing = !p->is_opening && !p->lines.n;
    p->is_busy = true;
    if (!c->opts.is_inline && uv_queue_work(&c->opts.loop->uv, &p->work,
                                            on_thread, on_thread_done) == 0)
        return;
    do_work(p);
    p->was_inline = true;
    loop_next_turn(c->opts.loop, &p->after);
}

/* Gathering. */

static void add_to_post(struct place *p, const struct feed_entry *e, bool *over)
{
    struct held *h = feed_hold(e);

    if (h)
        p->post.entries[p->post.n++] = h;
    else
        *over = true;
}

static bool is_full(const struct place *p)
{
    size_t n = p->post.n;

    if (p->is_file)
        return p->lines.n >= FILE_BATCH_BYTES || p->post.n;
    return n >= p->most ||
           (n && channel_wants_context(p->post.entries[n - 1]->e.type));
}

/* Of alerts: whoever reads the file is to judge by it. */
static bool tells_context(const struct place *p, const struct feed_entry *e)
{
    return p->asked.takes_alerts && p->owner->opts.context && e->task_id.n &&
           channel_wants_context(e->type);
}

static void on_context(void *ctx, struct str text)
{
    struct place *p = ctx;

    if (!place_context(p, text))
        return;
    p->is_busy = false;
    channel_line(&p->lines, &p->post.entries[0]->e, str_of(p->context));
    p->n_lines++;
    place_post_clear(p);
    if (p->lines.over)
        place_failed(p, "out of memory", FILE_SOON_MS, FILE_MOST_MS, 0);
    else
        start_work(p);
}

static void add_context(struct place *p)
{
    const struct channels_opts *o = &p->owner->opts;

    p->is_busy = true;
    o->context(o->ctx, p->post.entries[0]->e.task_id, on_context, p);
}

static void add(struct place *p, const struct feed_entry *e, bool *over)
{
    int64_t missed = e->seq - p->upto - 1;

    if (missed > 0 && p->is_file) {
        channel_line_missed(&p->lines, e->seq - 1, e->at_ms, missed);
        p->n_lines++;
    }
    p->missed += missed;
    p->upto = e->seq;
    if (!channel_takes(e->type, p->asked.takes_feed, p->asked.takes_alerts))
        return;
    if (p->is_file && tells_context(p, e)) {
        add_to_post(p, e, over);
    } else if (p->is_file) {
        channel_line(&p->lines, e, (struct str){NULL, 0});
        p->n_lines++;
        *over |= p->lines.over;
    } else {
        add_to_post(p, e, over);
    }
}

/* Nothing is under way and it is joined. */
static void gather(struct place *p)
{
    struct channels *c = p->owner;
    size_t steps = GATHER_STEPS;
    bool is_over = false;
    struct feed_entry e;

    while (steps && !is_over && !is_full(p) &&
           feed_next(c->opts.feed, &p->reader, &e)) {
        add(p, &e, &is_over);
        steps--;
    }
    if (is_over) {
        place_failed(p, "out of memory", FILE_SOON_MS, FILE_MOST_MS, 0);
    } else if (p->is_file && p->post.n) {
        add_context(p);
    } else if (p->lines.n) {
        start_work(p);
    } else if (p->post.n || p->missed) {
        place_post(p);
    } else {
        p->cursor = p->upto;
        if (is_due(p, false))
            keep_soon(c);
        if (!steps)
            loop_next_turn(c->opts.loop, &p->after);
    }
}

static void on_news(struct feed_reader *r)
{
    struct place *p = LIST_OF(r, struct place, reader);

    if (!p->is_busy && !timer_is_set(&p->pause))
        gather(p);
}

/* Beginning. */

/* Where it was; a new one begins with what comes next, and that is kept before
 * anything else is. */
static enum err find_cursor(struct place *p)
{
    struct channels *c = p->owner;
    struct query q;
    enum err e;

    query_init(&q, &cursor_table, 1);
    query_if(&q, CURSOR_CHANNEL, IS, value_text(name_of(p)));
    query_if(&q, CURSOR_PLACE, IS, value_text(kind_of(p)));
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
        keep_soon(c);
    return e;
}

/* Do what comes next. */
void place_look(struct place *p)
{
    struct channels *c = p->owner;
    struct caller admin = {.role = ROLE_ADMIN,
                           .scopes = role_scopes(ROLE_ADMIN)};
    enum err e = p->has_begun ? OK : find_cursor(p);

    if (p->is_busy || c->is_stopping || p->is_leaving)
        return;
    if (e)
        place_failed(p, err_row(e)->wording, FILE_SOON_MS, FILE_MOST_MS, 0);
    else if (p->is_file && p->file.fd < 0)
        start_work(p);
    else if (p->reader.state == FEED_AWAY)
        feed_join(c->opts.feed, &p->reader, &admin, p->cursor);
    else
        gather(p);
}

static void on_pause_over(struct timer *t)
{
    place_look(LIST_OF(t, struct place, pause));
}

static void on_after(struct loop_job *job)
{
    struct place *p = LIST_OF(job, struct place, after);

    if (p->was_inline) {
        p->was_inline = false;
        work_over(p);
    } else if (!p->is_busy && !timer_is_set(&p->pause)) {
        place_look(p);
    }
}

/* Life of a place. */

static void place_free(struct place *p)
{
    struct channels *c = p->owner;

    feed_leave(c->opts.feed, &p->reader);
    loop_timer_cancel(c->opts.loop, &p->pause);
    loop_not_at_end(&p->after);
    list_remove(&p->node);
    place_post_clear(p);
    line_file_close(&p->file);
    buf_fini(&p->lines);
    buf_fini(&p->body);
    free(p);
}

struct place *place_new(struct channels *c, bool is_file,
                        const struct channel_settings *s)
{
    struct place *p = FAULT("channel.place") ? NULL : calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->owner = c;
    p->is_file = is_file;
    p->file.fd = -1;
    p->kept = p->keeping = -1;
    p->most = CHANNEL_BATCH;
    p->reader.on_news = on_news;
    p->reader.is_inside = true;
    p->pause.fire = on_pause_over;
    p->after.run = on_after;
    buf_init(&p->lines, FILE_BATCH_BYTES + 2 * LINE_MAX_BYTES);
    buf_init(&p->body, POST_BODY_MAX);
    snprintf(p->name, sizeof(p->name), "%.*s", STR_ARG(s->name));
    place_set(p, s);
    list_append(&c->places, &p->node);
    return p;
}

/* The end. */

static void on_stop_job(struct loop_job *job)
{
    struct channels *c = LIST_OF(job, struct channels, stop_job);

    if (c->has_stopped)
        return;
    c->has_stopped = true;
    c->stopped(c->stopped_ctx);
}

static void stop_step(struct channels *c)
{
    bool is_busy = c->is_keeping;

    for (struct list_node *l = list_first(&c->places); l;
         l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);

        if (!p->is_busy && p->is_unsynced && p->file.fd >= 0 &&
            !c->has_kept_last)
            start_work(p);
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
    for (struct list_node *l = list_first(&c->places); l;
         l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);

        loop_timer_cancel(c->opts.loop, &p->pause);
        place_post_cancel(p);
        feed_leave(c->opts.feed, &p->reader);
    }
    stop_step(c);
}

void channels_free(struct channels *c)
{
    struct list_node *n;

    if (!c)
        return;
    loop_timer_cancel(c->opts.loop, &c->keep);
    loop_not_at_end(&c->stop_job);
    while ((n = list_first(&c->places)))
        place_free(LIST_OF(n, struct place, node));
    free(c);
}

struct channels *channels_new(const struct channels_opts *opts, struct why *why)
{
    struct channels *c = FAULT("channel.new") ? NULL : calloc(1, sizeof(*c));

    if (!c) {
        why_err(why, ERR_NOMEM, "out of memory");
        return NULL;
    }
    c->opts = *opts;
    list_init(&c->places);
    c->keep.fire = on_keep;
    c->stop_job.run = on_stop_job;
    return c;
}

size_t channels_stats(const struct channels *c, struct channel_stats *out,
                      size_t max)
{
    int64_t now_ms = loop_mono_ms(c->opts.loop);
    size_t n = 0;

    for (struct list_node *l = list_first(&c->places); l && n < max;
         l = list_next(&c->places, l)) {
        struct place *p = LIST_OF(l, struct place, node);

        if (p->is_leaving)
            continue;
        out[n] = p->stats;
        out[n].name = name_of(p);
        out[n].is_file = p->is_file;
        out[n].cursor = p->cursor;
        out[n].backlog = feed_newest(c->opts.feed) - p->cursor;
        out[n].failing_ms = p->n_failures ? now_ms - p->since_ms : 0;
        out[n].problem = p->problem;
        n++;
    }
    return n;
}
