/* base/amount.h reads amounts; this file has the error messages. */
#include "cli/price.h"

#include "model/agent.h"

enum { DIGITS = 6 };

#define MICROS INT64_C(1000000)

enum err price_read(struct str text, int64_t *micros)
{
    return amount_digits(text, AGENT_PRICE_MAX, micros);
}

/* The most likely mistake in an amount that cannot be read. */
static const char *price_diagnose(struct str text)
{
    struct str rest = text, whole = str_cut(&rest, '.');

    if (text.n && text.p[0] == '-')
        return "it must be more than zero";
    if (str_is_digits(whole) && str_is_digits(rest) && rest.n > DIGITS)
        return "at most six decimal places";
    if (str_is_digits(whole) && (whole.n == text.n || str_is_digits(rest)))
        return "at most 1000000000000";
    return "write it like 1.50";
}

enum err price_read_amount(struct str text, int64_t *micros, struct why *why)
{
    int64_t v = 0;
    const char *wrong = NULL;

    if (amount_digits(text, AMOUNT_MAX_UNITS * MICROS, &v))
        wrong = price_diagnose(text);
    else if (v == 0)
        wrong = "it must be more than zero";
    if (wrong)
        return why_err(why, ERR_SYNTAX, "\"%.*s\" is not a valid amount: %s",
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
