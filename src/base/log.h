#ifndef BASE_LOG_H
#define BASE_LOG_H

/* log: one line per event, for people on a terminal, JSON elsewhere.
 *
 *     log_info(log, "net.listening", LOG_C("url", url), LOG_I("port", port));
 *
 * An event is named room.what and carries fields: ids always, payloads and
 * secrets never. A line is at most 4 KB; a reader that does not keep up costs
 * lines (counted, and said in the next one that passes), never time.
 * Threads: the loop's. */

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
    bool never_colour; /* NO_COLOR; the owner sets it */
    struct clock clock;
    uint64_t n_dropped; /* since the last line that got through */
};

/* LOG_AUTO: text when fd is a terminal, JSON otherwise. Borrows fd. */
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
