#ifndef BASE_LOG_H
#define BASE_LOG_H

/* log: one line per event, as text on a terminal, as JSON elsewhere.
 *
 *     log_info(log, "net.listening", LOG_C("url", url), LOG_I("port", port));
 *
 * An event is named module.event and carries fields: ids always, payloads and
 * secrets never. A line has at most 4 KB. A reader that does not keep up loses
 * lines (they are counted, and the next line that gets through reports the
 * number) but never delays the server. Threads: the loop's. */

#include "base/clock.h"
#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_AUTO, LOG_TEXT, LOG_JSON };

struct log_field {
    const char *key; /* NULL ends the list */
    struct str s;
    int64_t i;
    bool is_int;
};

struct log {
    int fd;
    enum log_level level;
    bool as_json;
    bool colour;
    bool never_colour; /* NO_COLOR is set; set by the owner */
    struct clock clock;
    uint64_t n_dropped; /* lines since the last one that got through */
};

/* LOG_AUTO is text if fd is a terminal, JSON otherwise. Borrows fd. */
void log_init(struct log *l, int fd, enum log_level level,
              enum log_format format, struct clock clock);

/* Change level and format of a running log. */
void log_set(struct log *l, enum log_level level, enum log_format format);

void log_write(struct log *l, enum log_level level, const char *event,
               const struct log_field *fields);

#define LOG_S(k, v) ((struct log_field){.key = (k), .s = (v)})
#define LOG_C(k, v) ((struct log_field){.key = (k), .s = str_of(v)})
#define LOG_I(k, v) ((struct log_field){.key = (k), .i = (v), .is_int = true})

#define LOG_AT(l, level, event, ...) \
    log_write(l, level, event,       \
              (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}})
#define log_debug(l, event, ...) LOG_AT(l, LOG_DEBUG, event, __VA_ARGS__)
#define log_info(l, event, ...)  LOG_AT(l, LOG_INFO, event, __VA_ARGS__)
#define log_warn(l, event, ...)  LOG_AT(l, LOG_WARN, event, __VA_ARGS__)
#define log_error(l, event, ...) LOG_AT(l, LOG_ERROR, event, __VA_ARGS__)

#endif
