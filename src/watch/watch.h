#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

/* watch: what can be seen from outside of what happens inside.
 *
 * The feed is the append-only story of everything that happened: an entry is
 * written in the same tx as what it tells of, so that neither is there without
 * the other. Whoever reads along has a cursor and asks for what comes next;
 * nothing is queued for anybody. The newest entries are in memory, older ones
 * come from the store. Channels are such readers, with a place outside to put
 * it.
 *
 * Metrics are Prometheus text (version 0.0.4), written when asked for from
 * figures that the rooms keep themselves. Threads: the loop's. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "fetch/fetch.h"
#include "model/caller.h"
#include "model/query.h"
#include "model/tx.h"
#include "store/store.h"
#include "watch/trace.h"

/* The feed. */

extern const struct schema watch_schema;
extern const struct table feed_table, cursor_table;

enum feed_column {
    FEED_SEQ,
    FEED_AT_MS,
    FEED_TYPE,
    FEED_TASK_ID,
    FEED_CONVERSATION_ID,
    FEED_AGENT,
    FEED_REQUESTER,
    FEED_ROOT_USER,
    FEED_DATA,
    FEED_AUDIENCE, /* "*": whoever sees its agent; NULL: nobody else */
    N_FEED_COLUMNS,
};

/* How far a channel's place is. */
enum cursor_column {
    CURSOR_CHANNEL,
    CURSOR_PLACE, /* "file", "webhook" */
    CURSOR_SEQ,
    CURSOR_AT_MS,
    N_CURSOR_COLUMNS,
};

/* What happened. Optional strings are empty. */
struct feed_entry {
    int64_t seq; /* given by the store */
    int64_t at_ms;
    struct str type; /* "task.completed" */
    struct str task_id, conversation_id, agent;
    struct str requester, root_user; /* besides admins, these may see it */
    struct str data;                 /* a small JSON object; {} when empty */
    bool is_for_seers; /* of its agent: they see that it happened */
};

enum {
    FEED_ENTRY_MAX = 8 * 1024, /* bytes of all its strings together */
};

size_t feed_entry_bytes(const struct feed_entry *e);

/* An entry at the end of the feed. Never more than FEED_ENTRY_MAX: data is a
 * few names and figures, and no payload. */
void feed_append(struct tx *tx, const struct feed_entry *e);

/* A row of feed_table as an entry, with the strings of the row. */
void feed_from_row(struct feed_entry *e, const struct row *r);

/* Whether c may see all of it: admins, its requester and its root user. */
bool feed_is_for(const struct feed_entry *e, const struct caller *c);

/* The condition that leaves in a query what may be for c. What it finds is for
 * feed_shows to judge: whether c sees an agent is not known to the store. */
void feed_query_for(struct query *q, const struct caller *c);

struct feed;

enum {
    FEED_RING_ENTRIES = 4096, /* in memory */
    FEED_RING_BYTES = 4 * 1024 * 1024,
    FEED_PAGE = 200, /* entries read from the store at once */
};

/* Finds out from the store how long the feed is. NULL: memory is gone, or the
 * store cannot be read; why says so. */
MUST_USE struct feed *feed_new(struct loop *loop, struct log *log,
                               struct store *store, struct why *why);

/* All readers have left, and did so before the store was closed, if it was.
 * What is still being read comes back to nobody. NULL is fine. */
void feed_free(struct feed *f);

/* Who says whether c sees the agent of an entry; NULL: nobody does. */
typedef bool feed_sees(void *ctx, const struct feed_entry *e,
                       const struct caller *c);
void feed_set_sees(struct feed *f, feed_sees *sees, void *ctx);

/* Whether c is shown e. Who only sees its agent is shown no names and no data:
 * *e is then without. (How an agent is, agent.state, is on its card, and is
 * shown with the data.) */
MUST_USE bool feed_shows(const struct feed *f, struct feed_entry *e,
                         const struct caller *c);

/* Look for entries in a tx that was committed: for store_opts.on_committed. */
void feed_committed(struct feed *f, const struct tx *tx);

/* The seq of the newest entry; zero when there is none. */
int64_t feed_newest(const struct feed *f);

/* Somebody who reads along; inside the reader's own struct, zeroed at the
 * beginning but for on_news and is_inside. */
struct feed_reader {
    struct list_node node; /* the room's, like state and page */
    enum feed_state {
        FEED_AWAY,   /* has not joined, or has left */
        FEED_IDLE,   /* hears when there is something */
        FEED_TOLD,   /* has heard; it is up to the reader */
        FEED_HUNGRY, /* waits for its turn with the store */
        FEED_READS,  /* older entries are on their way */
    } state;
    struct caller caller; /* sees only what is for it */
    int64_t after;        /* has everything up to here that it may see */
    struct feed_page *page;
    bool is_inside; /* ours, and not counted as one who reads along */
    void (*on_news)(struct feed_reader *r);
};

/* Read what comes after `after`; one that is not there yet counts as the
 * newest. on_news comes at the end of a turn when there is something, once,
 * until feed_next has said there is no more; feed_join, feed_next and
 * feed_leave may be called in it. */
void feed_join(struct feed *f, struct feed_reader *r,
               const struct caller *caller, int64_t after);

/* No on_news comes any more, and r may go. Harmless when it had left. */
void feed_leave(struct feed *f, struct feed_reader *r);

/* The next entry; false when there is none yet, and then r->after is
 * feed_newest; or when it must be read first. Either way on_news will come.
 * Need not wait for on_news. The strings live until the next call into this
 * room. Entries that retention has removed are skipped. When the store cannot
 * be read it is asked again, after a pause, until it can. */
MUST_USE bool feed_next(struct feed *f, struct feed_reader *r,
                        struct feed_entry *out);

/* Retention: append to tx what removes entries older than before_ms, and the
 * oldest beyond `rows`, `limit` of either at most. Zero: no such rule. */
void feed_prune(struct feed *f, struct tx *tx, int64_t before_ms, int64_t rows,
                size_t limit);

struct feed_stats {
    int64_t entries_total; /* since the start */
    int64_t newest;
    int64_t readers;
    int64_t pages_total; /* read from the store */
    int64_t pages;       /* of those in memory, or on their way */
    int64_t ring_entries, ring_bytes;
};

struct feed_stats feed_stats(const struct feed *f);

/* Channels: places outside that hear of the gate: a file of JSON lines, a
 * webhook. Each place follows the feed with a cursor of its own, which is kept
 * in the store. Nothing queues in memory: a place that is down leaves its
 * entries where they are, in the feed, and is tried again with growing pauses;
 * it holds up nobody, not even the other place of its channel.
 *
 * A cursor is written a moment after what it stands for, so after a crash a
 * webhook may get a post again; a file never has a line twice, since it says
 * itself how far it is. Only retention makes entries be left out, and then the
 * place is told how many. */

struct channels;

enum post_form { POST_JSON, POST_SLACK, POST_DISCORD };

enum {
    CHANNELS_MAX = 32,
    CHANNEL_NAME_MAX = 128,
    CHANNEL_PATH_MAX = 1024,
    CHANNEL_URL_MAX = 2048,
    CHANNEL_KEEP_MAX = 1000,
    CHANNEL_BATCH = 10,       /* entries of one post, at most */
    CHANNEL_CURSOR_MS = 1000, /* a cursor is behind by no more, when all is
                               * well */
};

/* What the rules say of one. Copied. */
struct channel_settings {
    struct str name;   /* "#alerts" */
    bool takes_feed;   /* decisions */
    bool takes_alerts; /* escalations, pauses, reminders */
    struct str file;   /* below the data folder unless it begins with a slash;
                        * empty: none */
    int64_t rotate_bytes; /* a new file before it is larger; zero: never */
    int64_t keep;         /* old ones: FILE.1 is the newest */
    struct str webhook;   /* empty: none */
    enum post_form form;
};

struct channels_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct feed *feed;
    struct fetch *fetch;
    const char *folder; /* of the data; borrowed */
    struct rand rand;   /* for jitter */
    bool is_inline;     /* files are written on the loop's own thread: for
                         * tests */

    /* The text of a task, for whoever must judge it: done once, perhaps before
     * this returns; empty where there is none. NULL: posts go without. */
    void (*context)(void *ctx, struct str task_id,
                    void (*done)(void *done_ctx, struct str text),
                    void *done_ctx);
    void *ctx;
};

/* Reads the cursors. NULL: memory is gone, or the store cannot be read. */
MUST_USE struct channels *channels_new(const struct channels_opts *opts,
                                       struct why *why);

/* These, from now on: a place that is new begins with what comes next, one
 * that was there goes on, one that is gone leaves its cursor behind for when
 * it comes back. What cannot be (two places with one file, names and paths
 * that are too long, more than CHANNELS_MAX) is logged and left out. */
void channels_set(struct channels *c, const struct channel_settings *list,
                  size_t n);

/* Everything under way ends, the cursors are submitted to the store; done is
 * called once, from the loop. Before fetch is stopped and the store closed. */
void channels_stop(struct channels *c, void (*done)(void *ctx), void *ctx);

/* After the store has given everything back, before the feed. NULL is fine. */
void channels_free(struct channels *c);

/* One place: a file or a webhook. */
struct channel_stats {
    struct str name; /* of its channel; borrowed */
    bool is_file;
    int64_t cursor;        /* has everything up to here */
    int64_t backlog;       /* entries of the feed behind that */
    int64_t written_total; /* lines, or entries that were posted */
    int64_t failures_total;
    int64_t missed_total; /* entries that retention removed first */
    int64_t failing_ms;   /* for so long now; zero: all is well */
    const char *problem;  /* in words; empty: none */
};

size_t channels_stats(const struct channels *c, struct channel_stats *out,
                      size_t max);

/* Whether an entry of that type is for a channel that takes these. */
bool channel_takes(struct str type, bool takes_feed, bool takes_alerts);

/* Figures of the gate, as the feed tells them: over the last hour, and over the
 * last day, to within five minutes. They survive a restart, since the last day
 * of the feed is read again; on a feed so busy that this would be too much, as
 * much of it as is bounded. */

enum {
    FIGURE_ROUTED,
    FIGURE_HELD,
    FIGURE_PAUSED,
    FIGURE_ESCALATED,
    FIGURE_DROPPED,
    N_FIGURES,
};

struct gate_figures {
    int64_t decisions[N_FIGURES]; /* that were written down: messages that no
                                   * rule has to do with are not among them */
    int64_t routed; /* messages, those and the released included */
    int64_t released, expired, late;
    int64_t holds; /* that ended: let go, expired or cancelled */
    int64_t hold_ms, hold_max_ms;
    int64_t normal_holds, normal_hold_ms; /* of priority NORMAL */
};

struct figures;

/* NULL: memory is gone. */
MUST_USE struct figures *figures_new(struct loop *loop, struct feed *feed,
                                     const uint64_t seed[2]);

/* It hears of nothing more. Before the store is closed. */
void figures_stop(struct figures *f);
void figures_free(struct figures *f);

struct gate_figures figures_of(const struct figures *f, bool is_hour);

/* Metrics. */

#define WATCH_METRICS_TYPE STR("text/plain; version=0.0.4; charset=utf-8")

enum { WATCH_FILES_MS = 1000 };

/* One family: its help and type line; then its samples, one by one. Names and
 * help are ours and constant. */
void metric_family(struct buf *out, const char *name, const char *type,
                   const char *help);

/* labels: `status="2xx",kind="x"` or NULL; ours too, and as they are. */
void metric_int(struct buf *out, const char *name, const char *labels,
                int64_t value);
void metric_real(struct buf *out, const char *name, const char *labels,
                 double value);

/* A family with one sample, the usual case. */
void metric_counter(struct buf *out, const char *name, const char *help,
                    int64_t value);
void metric_gauge(struct buf *out, const char *name, const char *help,
                  int64_t value);

/* The open files as last counted. Counting them takes a step for each, which
 * whoever may ask often must not cost every time. Zeroed at the beginning. */
struct watch_files {
    bool is_known;
    int64_t n, counted_at_ms;
};

/* The process_* families that Prometheus's own clients have: CPU time, memory,
 * open files (counted at most once in WATCH_FILES_MS), start time. What cannot
 * be read is left out. */
void metric_process(struct buf *out, struct watch_files *files, int64_t now_ms);

/* How much memory this process may use, by the machine, its control groups and
 * rlimits; what cannot be read counts as no limit. `root` is "" but in tests.
 */
int64_t watch_memory_bytes(const char *root);

#endif
