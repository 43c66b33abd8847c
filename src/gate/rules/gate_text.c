/* The wording of the gate: text built in place, without printf, which would
 * cost more than the decision does. */
#include "gate/rules/evaluation.h"

struct phrase phrase_in(char *p, size_t max)
{
    p[0] = '\0';
    return (struct phrase){p, 0, max};
}

void phrase_add(struct phrase *w, struct str s)
{
    size_t left = w->max - 1 - w->n;

    if (s.n > left) {
        s = str_head(s, left);
        w->max = w->n + s.n + 1; /* add nothing after the cut */
    }
    if (s.n)
        memcpy(w->p + w->n, s.p, s.n);
    w->n += s.n;
    w->p[w->n] = '\0';
}

void phrase_put(struct phrase *w, const struct str *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        phrase_add(w, list[i]);
}

void phrase_add_int(struct phrase *w, int64_t v)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do
        digits[--at] = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0)
        digits[--at] = '-';
    phrase_add(w, (struct str){digits + at, sizeof(digits) - at});
}

void phrase_add_list(struct phrase *w, struct strs list, struct str anybody)
{
    if (!list.n)
        phrase_add(w, anybody);
    for (size_t i = 0; i < list.n && i < 4; i++)
        SAY(w, i ? STR(" or ") : STR(""), list.list[i]);
    if (list.n > 4)
        phrase_add(w, STR(" or another"));
}

static const struct {
    int64_t ms;
    struct str name;
} units[] = {
    {INT64_C(86400000), STR(" day")},  {INT64_C(3600000), STR(" hour")},
    {INT64_C(60000), STR(" minute")},  {INT64_C(1000), STR(" second")},
    {INT64_C(1), STR(" millisecond")},
};
enum { N_UNITS = sizeof(units) / sizeof(*units) };

static void phrase_add_units(struct phrase *w, int64_t n, struct str unit)
{
    phrase_add_int(w, n);
    phrase_add(w, unit);
    if (n != 1)
        phrase_add(w, STR("s"));
}

/* Rounded down to a whole unit. Exception: 30 hours next to a limit of one day
 * must not read "1 day". */
void phrase_add_age(struct phrase *w, int64_t ms)
{
    bool is_a_day_and_more = ms > units[0].ms && ms < 2 * units[0].ms;

    for (size_t i = is_a_day_and_more; i + 1 < N_UNITS; i++)
        if (ms >= units[i].ms) {
            phrase_add_units(w, ms / units[i].ms, units[i].name);
            return;
        }
    phrase_add(w, STR("less than a second"));
}

void phrase_add_exactly(struct phrase *w, int64_t ms)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (ms >= units[i].ms && ms % units[i].ms == 0) {
            phrase_add_units(w, ms / units[i].ms, units[i].name);
            return;
        }
    phrase_add(w, STR("no time"));
}

void gate_word_duration(struct buf *out, int64_t ms)
{
    char text[48];
    struct phrase w = phrase_in(text, sizeof(text));

    phrase_add_age(&w, ms);
    buf_add(out, w.p, w.n);
}
