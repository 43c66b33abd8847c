/* A line is built completely and written with one call, so lines of two
 * processes on one file never mix. Before the write, poll says whether the
 * reader has room: a pipe that is ready takes 4 KB at once, so no line is
 * longer. Rejected: a logging thread (nothing else needs one, and the last
 * lines before a crash are the ones that matter). */
#include "base/log.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"

enum { LINE_BYTES = 4096, VALUE_BYTES = 1024 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *const level_colours[] = {"\033[2m", "", "\033[33m",
                                            "\033[31m"};

void log_set(struct log *l, enum log_level level, enum log_format format)
{
    bool on_terminal = isatty(l->fd);

    l->level = level;
    l->as_json = format == LOG_JSON || (format == LOG_AUTO && !on_terminal);
    l->colour = !l->as_json && on_terminal;
}

void log_init(struct log *l, int fd, enum log_level level,
              enum log_format format, struct clock clock)
{
    *l = (struct log){.fd = fd, .clock = clock};
    log_set(l, level, format);
}

static struct str log_field_text(const struct log_field *f)
{
    return str_sub(f->s, 0, VALUE_BYTES);
}

static void log_write_json(struct buf *line, const struct log *l,
                           enum log_level level, const char *event,
                           const struct log_field *f)
{
    struct json_out o = json_out(line);

    json_open(&o, '{');
    json_member_int(&o, "at_ms", l->clock.wall_ms(l->clock.ctx));
    json_member_text(&o, "level", str_of(level_names[level]));
    json_member_text(&o, "event", str_of(event));
    for (; f->key; f++) {
        json_key(&o, str_of(f->key));
        if (f->is_int)
            json_put_int(&o, f->i);
        else
            json_put_str(&o, log_field_text(f));
    }
    if (l->n_dropped)
        json_member_int(&o, "lines_dropped", (int64_t)l->n_dropped);
    json_close(&o, '}');
}

/* Unquoted if it is one plain word, otherwise a JSON string: a value from
 * outside can neither break the line nor control the terminal. */
static void log_write_value(struct buf *line, struct str s)
{
    bool plain = s.n > 0;
    struct json_out o = json_out(line);

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '\\')
            plain = false;
    if (plain)
        buf_add_str(line, s);
    else
        json_put_str(&o, s);
}

static void log_write_text(struct buf *line, const struct log *l,
                           enum log_level level, const char *event,
                           const struct log_field *f)
{
    int64_t now_ms = l->clock.wall_ms(l->clock.ctx);
    time_t now_s = (time_t)(now_ms / 1000);
    struct tm tm;
    bool colour = l->colour && !l->never_colour;

    localtime_r(&now_s, &tm);
    buf_addf(line, "%s%02d:%02d:%02d.%03d %-5s %s",
             colour ? level_colours[level] : "", tm.tm_hour, tm.tm_min,
             tm.tm_sec, (int)(now_ms % 1000), level_names[level], event);
    for (; f->key; f++) {
        buf_addf(line, " %s=", f->key);
        if (f->is_int)
            buf_add_i64(line, f->i);
        else
            log_write_value(line, log_field_text(f));
    }
    if (l->n_dropped)
        buf_addf(line, " lines_dropped=%llu", (unsigned long long)l->n_dropped);
    if (colour)
        buf_addf(line, "\033[0m");
}

void log_write(struct log *l, enum log_level level, const char *event,
               const struct log_field *fields)
{
    struct pollfd room = {.fd = l->fd, .events = POLLOUT};
    struct buf line;

    if (level < l->level)
        return;
    buf_init(&line, LINE_BYTES);
    (l->as_json ? log_write_json : log_write_text)(&line, l, level, event,
                                                   fields);
    buf_add_char(&line, '\n');
    if (!line.over && poll(&room, 1, 0) == 1 &&
        write(l->fd, line.p, line.n) == (ssize_t)line.n)
        l->n_dropped = 0;
    else
        l->n_dropped++;
    buf_fini(&line);
}
