/* By digits and not by way of a real: 0.1 is 100000 and not one less. */
#include "cli/price.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/agent.h"

enum { DIGITS = 6 };

enum err price_read(struct str text, int64_t *micros)
{
    struct str rest = text, whole = str_cut(&rest, '.');
    bool has_point = whole.n < text.n;
    char digits[32];
    int64_t v;

    if (!whole.n || whole.n > 12 || whole.p[0] == '-' || rest.n > DIGITS ||
        (has_point && (!rest.n || rest.p[0] == '-')))
        return ERR_SYNTAX;
    snprintf(digits, sizeof(digits), "%.*s%.*s%.*s", STR_ARG(whole),
             STR_ARG(rest), (int)(DIGITS - rest.n), "000000");
    if (str_to_i64(str_of(digits), &v) || v > AGENT_PRICE_MAX)
        return ERR_SYNTAX;
    *micros = v;
    return OK;
}

struct price_text price_write(int64_t micros)
{
    struct price_text out = {"free"};
    size_t n;

    if (micros <= 0)
        return out;
    snprintf(out.text, sizeof(out.text), "%" PRId64 ".%06" PRId64,
             micros / 1000000, micros % 1000000);
    for (n = strlen(out.text); out.text[n - 1] == '0'; n--)
        ;
    out.text[out.text[n - 1] == '.' ? n - 1 : n] = '\0';
    return out;
}
