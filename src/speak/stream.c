/* Server-sent events, and the small syntaxes around a request: stream
 * positions, percent-encoding, and Accept. */
#include "speak/internal.h"

#include <stdio.h>

#include "base/utf8.h"

struct speak_event speak_event_open(struct buf *out, struct str id,
                                    struct str type)
{
    if (id.n) {
        buf_add_str(out, STR("id: "));
        buf_add_str(out, id);
        buf_add_char(out, '\n');
    }
    buf_add_str(out, STR("event: "));
    buf_add_str(out, type);
    buf_add_str(out, STR("\ndata: "));
    return (struct speak_event){out, out->n};
}

/* In JSON a line end occurs only between tokens, where a space is equivalent. A
 * carriage return would end a line of the stream too. */
void speak_event_close(const struct speak_event *e)
{
    struct buf *out = e->out;

    for (size_t i = e->data_at; i < out->n; i++)
        if (out->p[i] == '\n' || out->p[i] == '\r')
            out->p[i] = ' ';
    buf_add_str(out, STR("\n\n"));
}

enum err speak_place_read(struct str s, struct speak_place *out)
{
    struct str number = s, epoch = str_cut(&number, '-');
    struct speak_place p;

    if (!str_is_digits(epoch) || !str_is_digits(number) ||
        str_to_i64(epoch, &p.epoch) || str_to_i64(number, &p.number) ||
        p.number == INT64_MAX)
        return ERR_SYNTAX;
    *out = p;
    return OK;
}

/* Write the digits of v, which is not negative, before `end`. Returns where
 * they begin. */
static char *digits_before(char *end, int64_t v)
{
    do
        *--end = (char)('0' + v % 10);
    while (v /= 10);
    return end;
}

/* Written backwards, without printf: every chunk of every stream has one. */
struct str speak_place_write(const struct speak_place *p,
                             char out[SPEAK_PLACE_BYTES])
{
    char *end = out + SPEAK_PLACE_BYTES;
    char *at = digits_before(end, p->number);

    *--at = '-';
    at = digits_before(at, p->epoch);
    return (struct str){at, (size_t)(end - at)};
}

static int percent_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = str_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum err speak_percent(struct arena *a, struct str s, bool plus_is_space,
                       struct str *out)
{
    char *to = arena_alloc(a, s.n + 1);
    size_t n = 0;

    if (!to)
        return ERR_NOMEM;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == '%') {
            int high = i + 2 < s.n ? percent_digit(s.p[i + 1]) : -1;
            int low = i + 2 < s.n ? percent_digit(s.p[i + 2]) : -1;

            if (high < 0 || low < 0)
                return ERR_SYNTAX;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        to[n++] = c;
    }
    if (str_has_any_control((struct str){to, n}) ||
        !utf8_is_valid((struct str){to, n}))
        return ERR_SYNTAX;
    *out = (struct str){to, n};
    return OK;
}

bool speak_accepts(struct str header, struct str type)
{
    while (header.n) {
        struct str one = str_cut(&header, ',');

        if (str_eq_nocase(str_trim(str_cut(&one, ';')), type))
            return true;
    }
    return false;
}
