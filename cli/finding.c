/* Findings as text and as JSON. Their texts may quote outside input (a server's
 * name, a network error), so control characters are removed here, once. */
#include "cli/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

void finding_set(struct finding *f, enum mark mark, const char *fmt, ...)
{
    va_list ap;

    f->mark = mark;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    str_tame(f->text, strlen(f->text));
}

void finding_advise(struct finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->advice, sizeof(f->advice), fmt, ap);
    va_end(ap);
    str_tame(f->advice, strlen(f->advice));
}

void finding_show(struct cli *c, const char *name, const struct finding *f)
{
    static const struct {
        struct str unicode, plain;
        enum colour colour;
    } marks[] = {
        [GOOD] = {{"\u2713", 3}, {"ok  ", 4}, GREEN},
        [DOUBTFUL] = {{"!", 1}, {"warn", 4}, YELLOW},
        [BAD] = {{"\u2717", 3}, {"FAIL", 4}, RED},
        [NOTED] = {{"\u00b7", 2}, {"note", 4}, BOLD},
    };
    unsigned indent = (c->unicode ? 1 : 4) + 1 + 10;

    cli_coloured(c, marks[f->mark].colour,
                 c->unicode ? marks[f->mark].unicode : marks[f->mark].plain);
    buf_addf(&c->out, " %-10s", name);
    cli_wrapped(c, indent, indent, str_of(f->text));
    if (!f->advice[0])
        return;
    buf_addf(&c->out, "%*s%s ", (int)indent, "", c->unicode ? "\u2192" : "->");
    cli_wrapped(c, indent + (c->unicode ? 2 : 3), indent + (c->unicode ? 2 : 3),
                str_of(f->advice));
}

void finding_put(struct json_out *o, const char *name, const struct finding *f)
{
    static const char *const marks[] = {"ok", "warning", "failed", "note"};

    json_open(o, '{');
    json_member_text(o, "name", str_of(name));
    json_member_text(o, "status", str_of(marks[f->mark]));
    json_member_text(o, "message", str_of(f->text));
    json_member_text(o, "advice", str_of(f->advice));
    json_close(o, '}');
}
