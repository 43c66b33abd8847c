/* Problems become lines of one text of fixed size, and a list that points into
 * it. The end of the text is kept free for the line that says how many did not
 * fit, and what is before it for errors: a crowd of warnings must not hide the
 * one thing that stands in the way. What a user wrote is quoted as JSON and
 * shortened, so that a line stays a line and cannot steer a terminal. */
#include "config/internal.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    WHERE_MAX = 200, /* a longer file name loses its beginning */
    TAIL_BYTES = 64, /* kept for the line that says how many more */
    LINE_BYTES = 96, /* less room than this is none */
    ERRORS_MIN = 2,  /* there is room for, whatever was warned of */
    ERRORS_BYTES = ERRORS_MIN * (WHERE_MAX + REPORT_WORDS_BYTES),
};

static unsigned left_out(const struct config_report *out)
{
    return out->n_errors + out->n_warnings - out->n_problems;
}

/* What is left of the text, its end taken off; zero: nothing. */
static size_t room_for(const struct config_report *out, bool is_warning)
{
    size_t end = sizeof(out->text) - TAIL_BYTES, most = CONFIG_PROBLEMS_MAX;

    if (is_warning) {
        end -= ERRORS_BYTES;
        most -= ERRORS_MIN;
    }
    return out->n_problems < most && out->text_bytes + LINE_BYTES < end
               ? end - out->text_bytes
               : 0;
}

bool report_is_full(const struct reporter *r)
{
    return left_out(r->out) > 0 && r->out->n_errors > ERRORS_MIN;
}

/* The end of a name that may be long, on one line whatever is in it. */
static void show_name(struct str name, char out[WHERE_MAX + 4])
{
    size_t cut;

    name.n = name.p ? strnlen(name.p, name.n) : 0;
    cut = name.n > WHERE_MAX ? name.n - WHERE_MAX : 0;
    snprintf(out, WHERE_MAX + 4, "%s%.*s", cut ? "..." : "",
             STR_ARG(str_sub(name, cut, name.n)));
    str_tame(out, strlen(out));
}

static void add_line(struct reporter *r, bool is_warning,
                     const struct config_spot *at, const char *words)
{
    struct config_report *out = r->out;
    char *to = out->text + out->text_bytes, pos[32] = "", where[WHERE_MAX + 4];
    size_t room = room_for(out, is_warning);
    int n;

    if (!room)
        return;
    show_name(at->name, where);
    if (at->line)
        snprintf(pos, sizeof(pos), ":%u:%u", at->line, at->col);
    n = snprintf(to, room, "%s%s: %s%s\n", where, pos,
                 is_warning ? "warning: " : "", words);
    if (n < 0 || (size_t)n >= room) {
        *to = '\0';
        return;
    }
    out->problems[out->n_problems++] = (struct config_problem){
        .is_warning = is_warning,
        .line = at->line,
        .col = at->col,
        .where = {to, strlen(where)},
        .what = {to + n - 1 - strlen(words), strlen(words)},
    };
    out->text_bytes += (size_t)n;
}

static void count_and_add(struct reporter *r, bool is_warning,
                          const struct config_spot *at, char *words)
{
    str_tame(words, strlen(words));
    r->out->n_errors += !is_warning;
    r->out->n_warnings += is_warning;
    add_line(r, is_warning, at, words);
}

static void add_problem(struct reporter *r, bool is_warning, struct place at,
                        const char *fmt, va_list ap) PRINTF_LIKE(4, 0);
static void add_problem(struct reporter *r, bool is_warning, struct place at,
                        const char *fmt, va_list ap)
{
    struct config_spot spot = {.name = at.name};
    char words[REPORT_WORDS_BYTES];

    if (at.has_line && room_for(r->out, is_warning))
        json_where(r->text, at.at, &spot.line, &spot.col);
    vsnprintf(words, sizeof(words), fmt, ap);
    count_and_add(r, is_warning, &spot, words);
}

void report_error(struct reporter *r, struct place at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_problem(r, false, at, fmt, ap);
    va_end(ap);
}

void report_warning(struct reporter *r, struct place at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_problem(r, true, at, fmt, ap);
    va_end(ap);
}

void report_no_memory(struct reporter *r, struct place at)
{
    report_error(r, at, "out of memory while reading the configuration");
}

static void put_tail(struct config_report *out)
{
    unsigned n = left_out(out);

    out->tail_bytes = 0;
    if (n)
        out->tail_bytes = (size_t)snprintf(out->text + out->text_bytes,
                                           sizeof(out->text) - out->text_bytes,
                                           "and %u more\n", n);
    out->text_bytes += out->tail_bytes;
}

void report_end(struct reporter *r)
{
    put_tail(r->out);
}

/* One more, after the end. */
static void add_behind(struct config_report *report, bool is_warning,
                       const struct config_spot *at, char *words)
{
    struct reporter r = {.out = report};

    report->text_bytes -= report->tail_bytes;
    report->text[report->text_bytes] = '\0';
    count_and_add(&r, is_warning, at, words);
    put_tail(report);
}

void config_report_add(struct config_report *report, const struct config *c,
                       const char *setting, bool is_warning, const char *what)
{
    const struct setting_table *t = &config_settings;
    struct str path = str_of(setting);
    const struct setting *s =
        setting_find(t, str_sub(path, 0, str_find(path, '[', 0)));
    char words[REPORT_WORDS_BYTES + 64];

    if (str_starts(str_of(what), path)) /* it is named already */
        snprintf(words, sizeof(words), "%s", what);
    else
        snprintf(words, sizeof(words), "%s: %s", setting, what);
    add_behind(report, is_warning, &c->spots[s - t->rows], words);
}

void config_report_whole(struct config_report *report, const struct config *c,
                         const char *what)
{
    struct config_spot at = {.name = c->has_file ? c->path : STR("signalbox")};
    char words[REPORT_WORDS_BYTES];

    snprintf(words, sizeof(words), "%s", what);
    add_behind(report, false, &at, words);
}

static void write_problem(struct json_out *o, const struct config_problem *p)
{
    json_open(o, '{');
    json_member_text(o, "severity",
                     p->is_warning ? STR("warning") : STR("error"));
    json_member_text(o, "where", p->where);
    if (p->line) {
        json_member_int(o, "line", p->line);
        json_member_int(o, "col", p->col);
    }
    json_member_text(o, "message", p->what);
    json_close(o, '}');
}

void config_report_write(struct json_out *o, const struct config_report *report)
{
    unsigned n_all = report->n_errors + report->n_warnings;

    json_key(o, STR("problems"));
    json_open(o, '[');
    for (unsigned i = 0; i < report->n_problems; i++)
        write_problem(o, &report->problems[i]);
    json_close(o, ']');
    json_member_int(o, "problems_left_out", n_all - report->n_problems);
}

struct quoted quote(struct str s)
{
    struct quoted q = {{0}};
    struct str shown = str_head(s, QUOTED_MAX);
    struct json_out o;
    struct buf out;

    buf_init(&out, sizeof(q.text) - 4);
    o = json_out(&out);
    json_put_str(&o, shown);
    if (out.n)
        memcpy(q.text, out.p, out.n);
    if (shown.n < s.n)
        memcpy(q.text + out.n, "...", 3);
    buf_fini(&out);
    return q;
}

struct quoted value_words(const struct json *v)
{
    struct quoted q = {{0}};
    const char *words = "";

    switch (v->type) {
    case JSON_STR: return quote(v->s);
    case JSON_INT:
        snprintf(q.text, sizeof(q.text), "%lld", (long long)v->i);
        return q;
    case JSON_REAL: snprintf(q.text, sizeof(q.text), "%.6g", v->d); return q;
    case JSON_NULL: words = "null"; break;
    case JSON_BOOL: words = v->b ? "true" : "false"; break;
    case JSON_ARR: words = "a list"; break;
    case JSON_OBJ: words = "an object"; break;
    }
    snprintf(q.text, sizeof(q.text), "%s", words);
    return q;
}
