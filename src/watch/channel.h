#ifndef WATCH_CHANNEL_H
#define WATCH_CHANNEL_H

/* What the files of channels share.
 *
 *   channel.c        places, their cursors, who reads when
 *   channel_set.c    which places there are
 *   channel_file.c   a file of lines: append, rotate, find out how far it is
 *   channel_post.c   a webhook: one post at a time, and what the answer means
 *   channel_form.c   an entry in words, in the forms of others; pure
 */

#include "watch/internal.h"

/* A file of lines. Blocks, so it has a thread: everything here may be used by
 * one at a time, whichever it is. */

enum {
    CHANNEL_CONTEXT_MAX = 64 * 1024, /* of what an alert is about */
    LINE_MAX_BYTES = 512 * 1024, /* that and an entry's 8 KB, each byte escaped
                                  * as six */
    FILE_LINES_MAX = 128 * 1024, /* bytes of one write */
};

struct line_file {
    char path[CHANNEL_PATH_MAX];
    int64_t rotate_bytes, keep;
    int fd;              /* -1: not open */
    bool could_not_turn; /* old files could not be moved out of the way */
};

/* Open it, made if it is missing (mode 0600); cut off half a line that a crash
 * has left; and find the seq of the last line, which may be that of the file
 * before. Zero: there is none. ERR_NO_SPACE, ERR_NOT_ALLOWED, ERR_NOT_FOUND
 * (its folder), ERR_BAD_CONFIG (no file of JSON lines), ERR_IO. */
MUST_USE enum err line_file_open(struct line_file *f, int64_t *seq,
                                 struct why *why);

/* Whole lines at the end of it. Before a line with which it would become too
 * large it is turned over; if it was moved away, another is made. After an
 * error it is closed, and opening it says which lines it has. */
MUST_USE enum err line_file_append(struct line_file *f, struct str lines,
                                   struct why *why);

/* What was appended outlives a power cut. */
MUST_USE enum err line_file_sync(struct line_file *f, struct why *why);
void line_file_close(struct line_file *f);

/* Words. */

/* What is posted at once. */
struct post {
    enum post_form form;
    struct str channel;
    struct held *entries[CHANNEL_BATCH];
    size_t n;
    int64_t missed;     /* so many before them were removed by retention */
    struct str context; /* what the task of the last one is about; or empty */
};

/* One line of a file, as GET /api/feed has it, with what it is about where that
 * is not empty; and what stands there for those that are missing. */
void channel_line(struct buf *out, const struct feed_entry *e,
                  struct str context);
void channel_line_missed(struct buf *out, int64_t seq, int64_t at_ms,
                         int64_t missed);

/* A whole body, within the limits that the form's owner has published. */
void channel_body(struct buf *out, const struct post *p);

enum { POST_BODY_MAX = 256 * 1024 };

/* Whether whoever reads of it should see what it is about. */
bool channel_wants_context(struct str type);

/* Places. */

struct place {
    struct channels *owner;
    struct list_node node;
    struct channel_settings
        asked; /* its numbers; its strings are those below */
    char name[CHANNEL_NAME_MAX + 1];
    char url[CHANNEL_URL_MAX + 1]; /* a webhook's */
    bool is_file;
    bool is_leaving; /* freed as soon as it is not busy */
    bool is_busy;    /* something is under way that will come back */
    bool has_begun;  /* the cursor is known */

    struct feed_reader reader;
    int64_t cursor; /* everything up to here is outside, or not for it */
    int64_t upto;   /* with what is gathered, up to here */
    int64_t missed; /* of what is gathered, before it */

    /* The cursor in the store. */
    int64_t kept, keeping; /* keeping: in a tx that is under way; or -1 */
    int64_t synced;        /* a file's: it outlives a power cut up to here */
    bool is_unsynced, has_news; /* was put outside since */

    /* After a failure, or to be no nuisance. */
    struct timer pause;
    int n_failures;   /* in a row */
    int64_t since_ms; /* of the first of them */

    struct channel_stats stats;
    char problem[256];

    /* A file: what its thread has while is_busy. */
    struct line_file file;
    struct buf lines;
    int64_t n_lines;
    bool is_opening, is_syncing;
    int64_t tail; /* the seq that was found */
    enum err err;
    struct why why;
    uv_work_t work;
    struct loop_job after; /* to look what comes next */
    bool was_inline;       /* its work was done without a thread */

    /* A webhook; and a file's entry that waits for what it is about. */
    struct post post;
    char *context;
    struct buf body;
    uint64_t request; /* zero: none */
    size_t most;      /* entries of the next post */
};

/* What cannot be read, or kept, is gone without: the rest says enough to look
 * it up. False: everything ends, and place_failed was told. */
bool place_context(struct place *p, struct str text);

/* A post was gathered: send it. place_done or place_failed follows. */
void place_post(struct place *p);
void place_post_cancel(struct place *p);
void place_post_clear(struct place *p);

/* All that was gathered is outside. Rest before the next, perhaps. */
void place_done(struct place *p, int64_t rest_ms);

/* It is not: it is gathered again after a pause, of `least` at least, that
 * grows from `from` to `to` while it goes on. */
void place_failed(struct place *p, const char *because, int64_t from_ms,
                  int64_t to_ms, int64_t least_ms);

/* A place of the channel, among the others; NULL: memory. Its settings are
 * copied. */
MUST_USE struct place *place_new(struct channels *c, bool is_file,
                                 const struct channel_settings *s);
void place_set(struct place *p, const struct channel_settings *s);
/* Do what comes next. */
void place_look(struct place *p);
/* What leaves is freed, unless something of it is still under way: false. */
bool place_went(struct place *p);
/* Cursors into the store. False: there was nothing to write, or no memory. */
bool channels_keep(struct channels *c, bool is_last);

struct channels {
    struct channels_opts opts;
    struct list places;
    struct timer keep;
    bool is_keeping; /* a tx is under way */
    bool is_stopping, has_kept_last, has_stopped;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
    struct loop_job stop_job;
};

#endif
