/* What may be typed is what base/amount.h reads; the words are here. */
#include "cli/price.h"

#include "model/agent.h"

enum { DIGITS = 6 };

#define MICROS INT64_C(1000000)

enum err price_read(struct str text, int64_t *micros)
{
    return amount_digits(text, AGENT_PRICE_MAX, micros);
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

    if (amount_digits(text, AMOUNT_MAX_UNITS * MICROS, &v))
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
