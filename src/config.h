#ifndef CONFIG_H
#define CONFIG_H

/* config: everything a user can set, from the file, the environment and the
 * command line, in that order: the later wins.
 *
 *     signalbox.jsonc          JSON with comments and trailing commas
 *     SIGNALBOX_HTTP__IDLE_TIMEOUT_MS=5000
 *     --set http.idleTimeoutMs=5000
 *
 * One table in config.c has a row per setting: path, type, default, limits,
 * whether a reload takes it, and a sentence; docs/config.md is made from it.
 * A setting that is not there is an error that names the nearest one that is.
 * Nothing but config.c reads the configuration or the environment. */

#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"

/* Never changed after it was loaded: a reload makes a new one. Strings lie in
 * its arena. */
struct config {
    struct arena arena;
    struct str path; /* the file it came from; empty without one */

    struct str listen;     /* "127.0.0.1:8787" */
    struct str data;       /* the data folder */
    bool allow_plaintext;  /* listen beyond loopback without TLS */
    int64_t stop_grace_ms; /* open requests may take that long at the end */

    struct {
        int64_t level;  /* enum log_level */
        int64_t format; /* enum log_format */
    } log;

    struct {
        int64_t max_connections;
        int64_t max_request_line_bytes;
        int64_t max_header_bytes;
        int64_t max_headers;
        int64_t max_body_bytes;
        int64_t max_unsent_bytes;
        int64_t header_timeout_ms;
        int64_t body_timeout_ms;
        int64_t idle_timeout_ms;
        int64_t reply_timeout_ms;
        int64_t write_timeout_ms;
    } http;
};

/* Where to look. Borrowed for the call. */
struct config_source {
    const char *path;       /* NULL: $SIGNALBOX_CONFIG, else signalbox.jsonc
                             * in the current folder if it is there */
    char *const *environ;   /* "NAME=value", NULL at the end; may be NULL */
    const struct str *sets; /* "a.b=c" from the command line */
    size_t n_sets;
};

/* What was wrong, one line each, "FILE:LINE:COL: what and what to do". As many
 * as fit are given, so that one look finds all. */
struct config_report {
    char text[4096];
    unsigned n_errors;
    unsigned n_warnings; /* in text too, marked as such */
};

/* The configuration, or NULL with the report filled. Warnings alone do not
 * stand in the way. Returns owned: config_free. */
MUST_USE struct config *config_load(const struct config_source *src,
                                    struct config_report *report);
void config_free(struct config *c);

/* Name the settings that differ and that only a restart can apply, separated
 * by ", "; empty when there are none. */
void config_restart_needed(const struct config *now, const struct config *then,
                           struct buf *names);

/* The reference in Markdown: docs/config.md is exactly this. */
void config_write_reference(struct buf *out);

/* The whole configuration as JSON, defaults included. */
void config_write_json(const struct config *c, struct buf *out);

#endif
