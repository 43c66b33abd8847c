/* By digits and not by way of a real: 0.1 is 100000 and not one less. */
#include "cli/price.h"

#include <stdio.h>

#include "model/agent.h"

enum { DIGITS = 6, WHOLE_MAX = 13 };

#define MICROS INT64_C(1000000)

static enum err read_digits(struct str text, int64_t most, int64_t *micros)
{
    struct str rest = text, whole = str_cut(&rest, '.');
    bool has_point = whole.n < text.n;
    char digits[32];
    int64_t v;

    if (!whole.n || whole.n > WHOLE_MAX || whole.p[0] == '-' ||
        rest.n > DIGITS || (has_point && (!rest.n || rest.p[0] == '-')))
        return ERR_SYNTAX;
    snprintf(digits, sizeof(digits), "%.*s%.*s%.*s", STR_ARG(whole),
             STR_ARG(rest), (int)(DIGITS - rest.n), "000000");
    if (str_to_i64(str_of(digits), &v) || v > most)
        return ERR_SYNTAX;
    *micros = v;
    return OK;
}

enum err price_read(struct str text, int64_t *micros)
{
    return read_digits(text, AGENT_PRICE_MAX, micros);
}

/* What most likely went wrong, of what cannot be read. */
static const char *whats_wrong(struct str text)
{
    struct str rest = text, whole = str_cut(&rest, '.');

    if (text.n && text.p[0] == '-')
        return "it must be more than nothing";
    if (str_is_digits(whole) && str_is_digits(rest) && rest.n > DIGITS)
        return "there is nothing smaller than 0.000001: six digits behind the "
               "point at most";
    if (str_is_digits(whole) && (whole.n == text.n || str_is_digits(rest)))
        return "no more than 1000000000000 at once";
    return "write it like 1.50: digits, and a point between";
}

enum err amount_read(struct str text, int64_t *micros, struct why *why)
{
    int64_t v = 0;
    const char *wrong = NULL;

    if (read_digits(text, AMOUNT_MAX_UNITS * MICROS, &v))
        wrong = whats_wrong(text);
    else if (v == 0)
        wrong = "it must be more than nothing";
    if (wrong)
        return why_err(why, ERR_SYNTAX, "\"%.*s\" is no amount: %s",
                       STR_ARG(str_head(text, 48)), wrong);
    *micros = v;
    return OK;
}

struct price_text price_write(int64_t micros)
{
    struct price_text out = {"free"};
    char *last;

    if (micros <= 0)
        return out;
    out = amount_write(micros);
    for (last = strchr(out.text, '\0') - 1; *last == '0'; last--)
        *last = '\0';
    if (*last == '.')
        *last = '\0';
    return out;
}
