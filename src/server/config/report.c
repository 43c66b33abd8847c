/* Problems become lines of one text of fixed size, and a list that points into
 * it. The end of the text is reserved for the line that says how many did not
 * fit, and some room before it for errors, so that many warnings cannot hide
 * the one error. Values are quoted as JSON and shortened, so that each problem
 * stays one line and cannot send control sequences to a terminal. */
#include "server/config/internal.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    WHERE_MAX = 200, /* the beginning of a longer file name is cut off */
    TAIL_BYTES = 64, /* reserved for the last line */
    LINE_BYTES = 96, /* with less room than this no line is added */
    ERRORS_MIN = 2,  /* errors that fit after any number of warnings */
    ERRORS_BYTES = ERRORS_MIN * (WHERE_MAX + REPORT_WORDS_BYTES),
};

static unsigned n_problems_left_out(const struct config_report *out)
{
    return out->n_errors + out->n_warnings - out->n_problems;
}

/* The bytes left for one more line; zero: none. */
static size_t report_room(const struct config_report *out, bool is_warning)
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
    return n_problems_left_out(r->out) > 0 && r->out->n_errors > ERRORS_MIN;
}

/* The end of a name that may be long, without control characters. */
static void name_for_line(struct str name, char out[WHERE_MAX + 4])
{
    size_t cut;

    name.n = name.p ? strnlen(name.p, name.n) : 0;
    cut = name.n > WHERE_MAX ? name.n - WHERE_MAX : 0;
    snprintf(out, WHERE_MAX + 4, "%s%.*s", cut ? "..." : "",
             STR_ARG(str_sub(name, cut, name.n)));
    str_tame(out, strlen(out));
}

/* Counts a problem, and adds its line if there is room. */
static void report_add_line(struct config_report *out, bool is_warning,
                            const struct config_pos *at, char *words)
{
    char *to = out->text + out->text_bytes, pos[32] = "", where[WHERE_MAX + 4];
    size_t room = report_room(out, is_warning);
    int n;

    str_tame(words, strlen(words));
    out->n_errors += !is_warning;
    out->n_warnings += is_warning;
    if (!room)
        return;
    name_for_line(at->name, where);
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

static void report_problem(struct reporter *r, bool is_warning,
                           struct value_pos at, const char *fmt, va_list ap)
    PRINTF_LIKE(4, 0);
static void report_problem(struct reporter *r, bool is_warning,
                           struct value_pos at, const char *fmt, va_list ap)
{
    struct config_pos spot = {.name = at.name};
    char words[REPORT_WORDS_BYTES];

    if (at.has_line && report_room(r->out, is_warning))
        json_where(r->text, at.at, &spot.line, &spot.col);
    vsnprintf(words, sizeof(words), fmt, ap);
    report_add_line(r->out, is_warning, &spot, words);
}

void report_error(struct reporter *r, struct value_pos at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_problem(r, false, at, fmt, ap);
    va_end(ap);
}

void report_warning(struct reporter *r, struct value_pos at, const char *fmt,
                    ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_problem(r, true, at, fmt, ap);
    va_end(ap);
}

void report_no_memory(struct reporter *r, struct value_pos at)
{
    report_error(r, at, "out of memory while reading the configuration");
}

static void report_put_tail(struct config_report *out)
{
    unsigned n = n_problems_left_out(out);

    out->tail_bytes = 0;
    if (n)
        out->tail_bytes = (size_t)snprintf(out->text + out->text_bytes,
                                           sizeof(out->text) - out->text_bytes,
                                           "and %u more\n", n);
    out->text_bytes += out->tail_bytes;
}

void report_end(struct reporter *r)
{
    report_put_tail(r->out);
}

/* Adds a problem to a finished report. */
static void report_add_after_end(struct config_report *report, bool is_warning,
                                 const struct config_pos *at, char *words)
{
    report->text_bytes -= report->tail_bytes;
    report->text[report->text_bytes] = '\0';
    report_add_line(report, is_warning, at, words);
    report_put_tail(report);
}

void config_report_add(struct config_report *report, const struct config *c,
                       const char *setting, bool is_warning, const char *what)
{
    const struct setting_table *t = &config_settings;
    struct str path = str_of(setting);
    const struct setting *s =
        setting_find(t, str_sub(path, 0, str_find(path, '[', 0)));
    char words[REPORT_WORDS_BYTES + 64];

    if (str_starts(str_of(what), path)) /* the message names it */
        snprintf(words, sizeof(words), "%s", what);
    else
        snprintf(words, sizeof(words), "%s: %s", setting, what);
    report_add_after_end(report, is_warning, &c->positions[s - t->rows], words);
}

void config_report_whole(struct config_report *report, const struct config *c,
                         const char *what)
{
    struct config_pos at = {.name = c->has_file ? c->path : STR("signalbox")};
    char words[REPORT_WORDS_BYTES];

    snprintf(words, sizeof(words), "%s", what);
    report_add_after_end(report, false, &at, words);
}

static void config_problem_write(struct json_out *o,
                                 const struct config_problem *p)
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
    json_key(o, STR("problems"));
    json_open(o, '[');
    for (unsigned i = 0; i < report->n_problems; i++)
        config_problem_write(o, &report->problems[i]);
    json_close(o, ']');
    json_member_int(o, "problems_left_out", n_problems_left_out(report));
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
