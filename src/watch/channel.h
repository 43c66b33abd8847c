#ifndef WATCH_CHANNEL_H
#define WATCH_CHANNEL_H

/* Internals that the files of channels share.
 *
 *   channel.c        outputs, their cursors, and when each one reads
 *   channel_set.c    the set of outputs
 *   channel_file.c   a file of lines: append, rotate, find its last seq
 *   channel_post.c   a webhook: one post at a time, and how its answer is
 *                    handled
 *   channel_form.c   an entry in words, in the formats of Slack and Discord;
 *                    pure */

#include "watch/internal.h"

/* A file of lines. Its functions block, so they run on a worker thread. Only
 * one thread may use a file at a time; it does not matter which. */

enum {
    CHANNEL_CONTEXT_MAX = 64 * 1024, /* of the text of an alert's task */
    LINE_MAX_BYTES = 512 * 1024,     /* that text and an entry's 8 KB, each byte
                                      * escaped as six */
    FILE_LINES_MAX = 128 * 1024,     /* bytes of one write */
};

struct line_file {
    char path[CHANNEL_PATH_MAX];
    int64_t rotate_bytes, keep;
    int fd;              /* -1: not open */
    bool could_not_turn; /* rotation failed */
};

/* Open the file, or create it (mode 0600). Cut off half a line left by a
 * crash. *seq becomes the seq of the last line, which may be in the previous
 * file; zero: there is no line. ERR_NO_SPACE, ERR_NOT_ALLOWED, ERR_NOT_FOUND
 * (its folder), ERR_BAD_CONFIG (not a file of JSON lines), ERR_IO. */
MUST_USE enum err line_file_open(struct line_file *f, int64_t *seq,
                                 struct why *why);

/* Append whole lines. The file is rotated before a line that would make it too
 * large, and created again if it was moved away. After an error it is closed;
 * opening it again finds out which lines it has. */
MUST_USE enum err line_file_append(struct line_file *f, struct str lines,
                                   struct why *why);

/* Make appended lines survive a power cut. */
MUST_USE enum err line_file_sync(struct line_file *f, struct why *why);
void line_file_close(struct line_file *f);

/* Words. */

/* The content of one post. */
struct post {
    enum post_form form;
    struct str channel;
    struct held *entries[CHANNEL_BATCH];
    size_t n;
    int64_t missed;     /* entries that retention removed before these */
    struct str context; /* text of the last entry's task; or empty */
};

/* One line of a file in the format of GET /api/feed, with the text of its task
 * unless that is empty; and the line that replaces missing entries. */
void channel_line(struct buf *out, const struct feed_entry *e,
                  struct str context);
void channel_line_missed(struct buf *out, int64_t seq, int64_t at_ms,
                         int64_t missed);

/* A whole body, within the limits that Slack and Discord publish. */
void channel_body(struct buf *out, const struct post *p);

enum { POST_BODY_MAX = 256 * 1024 };

/* Whether a reader of such an entry needs the text of its task. */
bool channel_wants_context(struct str type);

/* Outputs. */

struct output {
    struct channels *owner;
    struct list_node node;
    struct channel_settings
        settings; /* the numbers; the strings are those below */
    char name[CHANNEL_NAME_MAX + 1];
    char url[CHANNEL_URL_MAX + 1]; /* a webhook's */
    bool is_file;
    bool is_leaving; /* freed as soon as it is not busy */
    bool is_busy;    /* an operation is in flight */
    bool has_begun;  /* the cursor was read */

    struct feed_reader reader;
    int64_t cursor; /* everything up to here is written, or filtered out */
    int64_t upto;   /* end of the entries that were gathered */
    int64_t missed; /* entries that retention removed before those */

    /* The cursor in the store. */
    int64_t kept, keeping;      /* keeping: in a tx in flight; or -1 */
    int64_t synced;             /* a file's: survives a power cut up to here */
    bool is_unsynced, has_news; /* written since then */

    /* After a failure, or to respect a rate limit. */
    struct timer pause;
    int n_failures;   /* in a row */
    int64_t since_ms; /* of the first of them */

    struct channel_stats stats;
    char problem[256];

    /* A file. Its worker thread owns these while is_busy. */
    struct line_file file;
    struct buf lines;
    int64_t n_lines;
    bool is_opening, is_syncing;
    int64_t tail; /* the seq at the end of the file */
    enum err err;
    struct why why;
    uv_work_t work;
    struct loop_job after; /* runs output_look */
    bool was_inline;       /* its work ran without a thread */

    /* A webhook, or a file's entry that waits for the text of its task. */
    struct post post;
    char *context;
    struct buf body;
    uint64_t request; /* zero: none */
    size_t most;      /* entries of the next post */
};

/* Store the text for the entry that waits for it. False: the output is
 * closing, and output_failed was called. */
bool output_context(struct output *p, struct str text);

/* Send the gathered post. output_done or output_failed follows. */
void output_post(struct output *p);
void output_post_cancel(struct output *p);
void output_post_clear(struct output *p);

/* All gathered entries were written. Pause for rest_ms before the next ones. */
void output_done(struct output *p, int64_t rest_ms);

/* Writing failed. Gather the entries again after a pause of at least least_ms,
 * which grows from from_ms to to_ms with each failure. */
void output_failed(struct output *p, const char *because, int64_t from_ms,
                   int64_t to_ms, int64_t least_ms);

/* An output of a channel. Its settings are copied. */
MUST_USE struct output *output_new(struct channels *c, bool is_file,
                                   const struct channel_settings *s);
void output_set(struct output *p, const struct channel_settings *s);
/* Start the next step. */
void output_look(struct output *p);
/* Free an output that is leaving. False: it is not leaving, or an operation is
 * still in flight. */
bool output_went(struct output *p);
/* Write the cursors to the store. False: there was nothing to write. */
bool channels_keep(struct channels *c, bool is_last);

struct channels {
    struct channels_opts opts;
    struct list outputs;
    struct timer keep;
    bool is_keeping; /* a tx is in flight */
    bool is_stopping, has_kept_last, has_stopped;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
    struct loop_job stop_job;
};

#endif
