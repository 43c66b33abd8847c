#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

/* watch: makes visible from outside what happens inside.
 *
 * The feed is the append-only history of all events. An entry is written in
 * the same tx as its event, so that neither exists without the other. A reader
 * has a cursor and asks for the next entry; nothing is queued for it. The
 * newest entries are in memory, older ones come from the store. Channels are
 * readers that write to an output outside the server.
 *
 * Metrics are Prometheus text (version 0.0.4), written on request from figures
 * that the modules keep themselves. Threads: the loop's. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "model/caller.h"
#include "model/feed.h"
#include "model/query.h"
#include "model/tx.h"
#include "net/client/fetch.h"
#include "store/store.h"
#include "watch/trace.h"

/* The feed. */

extern const struct schema watch_schema;
extern const struct table feed_table, cursor_table;

#define FEED_COLUMNS(C)                                                  \
    C(FEED_SEQ, "seq", 1, READ(seq))                                     \
    C(FEED_AT_MS, "at_ms", 1, BOTH(at_ms))                               \
    C(FEED_TYPE, "type", 1, BOTH(type))                                  \
    C(FEED_TASK_ID, "task_id", 1, BOTH(task_id), OR_NULL)                \
    C(FEED_CONVERSATION_ID, "conversation_id", 1, BOTH(conversation_id), \
      OR_NULL)                                                           \
    C(FEED_AGENT, "agent", 1, BOTH(agent), OR_NULL)                      \
    C(FEED_REQUESTER, "requester", 1, BOTH(requester), OR_NULL)          \
    C(FEED_ROOT_USER, "root_user", 1, BOTH(root_user), OR_NULL)          \
    C(FEED_DATA, "data", 1, BOTH(data), OR_NULL)                         \
    /* "*": users who see its agent; or NULL */                          \
    C(FEED_AUDIENCE, "audience", 3, COLUMN_TEXT)

enum feed_column { FEED_COLUMNS(COLUMN_NUMBER) N_FEED_COLUMNS };

/* The cursor of a channel's output. */
#define CURSOR_COLUMNS(C)                                            \
    C(CURSOR_CHANNEL, "channel", 1, COLUMN_TEXT)                     \
    C(CURSOR_PLACE, "place", 1, COLUMN_TEXT) /* "file", "webhook" */ \
    C(CURSOR_SEQ, "seq", 1, COLUMN_INT)                              \
    C(CURSOR_AT_MS, "at_ms", 1, COLUMN_INT)

enum cursor_column { CURSOR_COLUMNS(COLUMN_NUMBER) N_CURSOR_COLUMNS };

enum {
    FEED_ENTRY_MAX = 8 * 1024, /* bytes of all its strings together */
};

size_t feed_entry_bytes(const struct feed_entry *e);

/* Append an entry to the feed. It must not exceed FEED_ENTRY_MAX: data holds a
 * few names and figures, and no payload. */
void feed_append(struct tx *tx, const struct feed_entry *e);

/* Append an entry whose data was written to a buffer, and free the buffer. Data
 * that is over the buffer's limit fails the transaction. */
void feed_append_data(struct tx *tx, struct buf *data,
                      const struct feed_entry *e);

/* Read a row of feed_table. The strings belong to the row. */
void feed_from_row(struct feed_entry *e, const struct row *r);

/* Whether c may see all of e: admins, its requester and its root user. */
bool feed_is_for(const struct feed_entry *e, const struct caller *c);

/* Restrict q to entries that c may see. feed_shows must check the results: the
 * store does not know which agents c sees. */
void feed_query_for(struct query *q, const struct caller *c);

struct feed;

enum {
    FEED_RING_ENTRIES = 4096, /* in memory */
    FEED_RING_BYTES = 4 * 1024 * 1024,
    FEED_PAGE = 200, /* entries read from the store at once */
};

/* Reads the first and the last seq from the store. NULL: the store cannot be
 * read; why says so. */
MUST_USE struct feed *feed_new(struct loop *loop, struct log *log,
                               struct store *store, struct why *why);

/* All readers must have left, before the store was closed, if it was. Reads in
 * flight are discarded. NULL is fine. */
void feed_free(struct feed *f);

/* Whether c sees the agent of e. NULL: no caller does. */
typedef bool feed_sees(void *ctx, const struct feed_entry *e,
                       const struct caller *c);
void feed_set_sees(struct feed *f, feed_sees *sees, void *ctx);

/* Whether c may see e. Removes names and data from *e if c only sees its
 * agent, except the data of agent.state, which is on the agent's card
 * anyway. */
MUST_USE bool feed_shows(const struct feed *f, struct feed_entry *e,
                         const struct caller *c);

/* Take the entries of a committed tx: for store_opts.on_committed. */
void feed_committed(struct feed *f, const struct tx *tx);

/* The seq of the newest entry; zero: the feed is empty. */
int64_t feed_newest(const struct feed *f);

/* A reader, inside its owner's struct. The owner zeroes it and sets on_news
 * and is_inside. */
struct feed_reader {
    struct list_node node; /* the feed's, like state and page */
    enum feed_state {
        FEED_AWAY,   /* has not joined, or has left */
        FEED_IDLE,   /* is notified of the next entry */
        FEED_TOLD,   /* was notified; the reader must act */
        FEED_HUNGRY, /* waits to read from the store */
        FEED_READS,  /* a read of older entries is in flight */
    } state;
    struct caller caller; /* sees only entries for it */
    int64_t after;        /* everything visible up to here was read */
    struct feed_page *page;
    bool is_inside; /* our own; not counted in the statistics */
    void (*on_news)(struct feed_reader *r);
};

/* Start reading behind `after`; a seq that does not exist yet counts as the
 * newest. on_news is called at the end of a turn when there is an entry, once,
 * until feed_next has returned false. feed_join, feed_next and feed_leave may
 * be called from it. */
void feed_join(struct feed *f, struct feed_reader *r,
               const struct caller *caller, int64_t after);

/* Stop reading: no on_news comes any more, and r may be freed. Harmless when
 * it had left. */
void feed_leave(struct feed *f, struct feed_reader *r);

/* Get the next entry. False: there is none yet, and r->after is feed_newest;
 * or it must be read first. on_news follows in both cases. May be called
 * without on_news. The strings live until the next call into the feed. Entries
 * that retention removed are skipped. A failed read of the store is repeated
 * after a pause, until it works. */
MUST_USE bool feed_next(struct feed *f, struct feed_reader *r,
                        struct feed_entry *out);

/* Retention: add to tx the removal of entries older than before_ms, and of the
 * oldest beyond `rows`, at most `limit` of each. Zero: no such rule. */
void feed_prune(struct feed *f, struct tx *tx, int64_t before_ms, int64_t rows,
                size_t limit);

struct feed_stats {
    int64_t entries_total; /* since the start */
    int64_t newest;
    int64_t readers;
    int64_t pages_total; /* read from the store */
    int64_t pages;       /* in memory or being read */
    int64_t ring_entries, ring_bytes;
};

struct feed_stats feed_stats(const struct feed *f);

/* Channels write the gate's events to outputs: a file of JSON lines, a
 * webhook. Each output follows the feed with its own cursor, which is kept in
 * the store. Nothing queues in memory: entries for an output that is down stay
 * in the feed, and it is tried again with growing pauses. It delays no other
 * output, not even the other one of its channel.
 *
 * A cursor is written a moment after its entries, so a webhook may get a post
 * twice after a crash. A file never has a line twice, since its last line has
 * the seq. Only retention can make an output miss entries, and it then reports
 * how many. */

struct channels;

enum post_form { POST_JSON, POST_SLACK, POST_DISCORD };

enum {
    CHANNELS_MAX = 32,
    CHANNEL_NAME_MAX = 128,
    CHANNEL_PATH_MAX = 1024,
    CHANNEL_URL_MAX = 2048,
    CHANNEL_KEEP_MAX = 1000,
    CHANNEL_BATCH = 10,       /* entries of one post, at most */
    CHANNEL_CURSOR_MS = 1000, /* the most that a cursor is behind, without
                               * errors */
};

/* A channel in the rules. Copied. */
struct channel_settings {
    struct str name;      /* "#alerts" */
    bool takes_feed;      /* decisions */
    bool takes_alerts;    /* escalations, pauses, reminders */
    struct str file;      /* below the data folder, or absolute; empty: none */
    int64_t rotate_bytes; /* rotated before it is larger; zero: never */
    int64_t keep;         /* rotated files: FILE.1 is the newest */
    struct str webhook;   /* empty: none */
    enum post_form form;
};

struct channels_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct feed *feed;
    struct fetch *fetch;
    const char *folder; /* the data folder; borrowed */
    struct rand rand;   /* for jitter */
    bool is_inline;     /* write files on the loop's thread: for tests */

    /* Get the text of a task for the person who must decide: calls done once,
     * perhaps before it returns; empty: there is no text. NULL: posts go
     * without it. */
    void (*context)(void *ctx, struct str task_id,
                    void (*done)(void *done_ctx, struct str text),
                    void *done_ctx);
    void *ctx;
};

MUST_USE struct channels *channels_new(const struct channels_opts *opts);

/* Replace the channels. A new output begins with the next entry, an existing
 * one continues. The cursor of a removed one stays in the store, in case it
 * comes back. Invalid channels (two outputs with one file, long names and
 * paths, more than CHANNELS_MAX) are logged and left out. */
void channels_set(struct channels *c, const struct channel_settings *list,
                  size_t n);

/* Finish all operations and submit the cursors to the store; then call done,
 * once, from the loop. Call it before fetch is stopped and the store closed. */
void channels_stop(struct channels *c, void (*done)(void *ctx), void *ctx);

/* Call it after the store has returned every tx, and before feed_free. NULL is
 * fine. */
void channels_free(struct channels *c);

/* An output: a file or a webhook. */
struct channel_stats {
    struct str name; /* of its channel; borrowed */
    bool is_file;
    int64_t cursor;        /* everything up to here is written */
    int64_t backlog;       /* entries behind the cursor */
    int64_t written_total; /* lines, or posted entries */
    int64_t failures_total;
    int64_t missed_total; /* entries that retention removed first */
    int64_t failing_ms;   /* how long it has failed; zero: it works */
    const char *problem;  /* in words; empty: none */
};

size_t channels_stats(const struct channels *c, struct channel_stats *out,
                      size_t max);

/* Whether a channel with these settings takes entries of that type. */
bool channel_takes(struct str type, bool takes_feed, bool takes_alerts);

/* Figures of the gate over the last hour and the last day, to within five
 * minutes. They are computed from the feed. A restart reads the last day of
 * the feed again, up to a limit. */

enum {
    FIGURE_ROUTED,
    FIGURE_HELD,
    FIGURE_PAUSED,
    FIGURE_ESCALATED,
    FIGURE_DROPPED,
    N_FIGURES,
};

struct gate_figures {
    int64_t decisions[N_FIGURES]; /* recorded decisions: messages without a
                                   * matching rule are not among them */
    int64_t routed; /* messages, including those and the released */
    int64_t released, expired, late;
    int64_t holds; /* that ended: released, expired or cancelled */
    int64_t hold_ms, hold_max_ms;
    int64_t normal_holds, normal_hold_ms; /* of priority NORMAL */
};

struct figures;

MUST_USE struct figures *figures_new(struct loop *loop, struct feed *feed,
                                     const uint64_t seed[2]);

/* Stop reading. Call it before the store is closed. */
void figures_stop(struct figures *f);
void figures_free(struct figures *f);

struct gate_figures figures_of(const struct figures *f, bool is_hour);

/* Metrics. */

#define WATCH_METRICS_TYPE STR("text/plain; version=0.0.4; charset=utf-8")

enum { WATCH_FILES_MS = 1000 };

/* Metrics in a table: a new metric is a row. A row names the source of its
 * values, and where the value lies in the structs of that source. */
struct metric {
    const char *name;          /* "…_total": a counter; otherwise a gauge */
    const char *help;          /* NULL: a sample of the family above */
    size_t at, bytes;          /* METRIC_AT; no bytes: a summary */
    int source;                /* index of the source */
    double per;                /* divides the value; zero: a whole number */
    const char *label;         /* an array of values, one for each word */
    const char *const *words;  /* NULL, or an empty word: no sample */
    struct str (*word)(int i); /* instead of words */
    const int64_t *bounds;     /* a histogram: of its buckets but the last */
    size_t sum_at;             /* the sum of what is in the buckets */
};

/* An int64_t, a size_t or a bool. */
#define METRIC_AT(type, field) \
    .at = offsetof(type, field), .bytes = sizeof(((type *)0)->field)

/* An array of int64_t: the words follow. */
#define METRIC_BY(label_name, type, field, ...)                               \
    METRIC_AT(type, field),                                                   \
        .label = (label_name),                                                \
        .words =                                                              \
            (const char *const[sizeof(((type *)0)->field) / sizeof(int64_t)]) \
    {                                                                         \
        __VA_ARGS__                                                           \
    }

/* A struct with values, and what it describes. Values of labels may contain
 * any character. */
struct metric_series {
    struct {
        const char *name; /* NULL: no label */
        struct str value;
    } labels[2];
    const void *values;
};

struct metric_source {
    const struct metric_series *series; /* NULL: its families are left out */
    size_t n;
};

/* Write the table. sources: by the numbers that the rows have. */
void metrics_write(struct buf *out, const struct metric *table, size_t n,
                   const struct metric_source *sources);

/* The last count of open files. Counting takes a step for each file, and
 * frequent scrapes must not pay for that each time. Zeroed at the beginning. */
struct watch_files {
    bool is_known;
    int64_t n, counted_at_ms;
};

/* The process_* families of Prometheus's own clients: CPU time, memory, open
 * files (counted at most once in WATCH_FILES_MS), start time. Values that
 * cannot be read are left out. */
void metric_process(struct buf *out, struct watch_files *files, int64_t now_ms);

/* The memory that this process may use, by the machine, its control groups and
 * rlimits; a value that cannot be read counts as no limit. `root` is "" except
 * in tests. */
int64_t watch_memory_bytes(const char *root);

/* The limits of this process and its state against them. */
struct watch_memory {
    int64_t machine_bytes; /* of the machine and the control groups */
    int64_t space_bytes;   /* RLIMIT_AS */
    int64_t data_bytes;    /* RLIMIT_DATA */
    int64_t reserve_bytes; /* for work that was already admitted */
    int64_t left_bytes;    /* when it was measured last */
    int64_t measured_at_ms, trimmed_at_ms;
    bool is_short; /* the caller's */
};

/* Read the limits. The reserve is an eighth of the least, within bounds. Call
 * it before threads start: with RLIMIT_AS they share one heap. */
void watch_memory_init(struct watch_memory *m, const char *root);

/* The bytes that this process may still use; INT64_MAX if that cannot be read.
 * Free memory of the heap counts as left, unless it is all in small pieces.
 * When little is left, it is first given back to the system, at most once a
 * second. */
int64_t watch_memory_left(struct watch_memory *m, int64_t now_ms);

#endif
