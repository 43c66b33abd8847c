/* W3C Trace Context, its traceparent header: VERSION-TRACE-SPAN-FLAGS in lower
 * case. As the standard requires, a malformed header counts as absent; it never
 * causes a rejection. */
#include "speak/internal.h"

enum { VERSION_END = 2, TRACE_END = 35, SPAN_END = 52, WHOLE = 55 };

/* n hex digits from there on, not all zero unless may_be_zero. */
static bool traceparent_is_hex(struct str s, size_t from, size_t n,
                               bool may_be_zero)
{
    bool is_zero = true;

    for (size_t i = from; i < from + n; i++) {
        bool is_digit = s.p[i] >= '0' && s.p[i] <= '9';

        if (!is_digit && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
            return false;
        is_zero = is_zero && s.p[i] == '0';
    }
    return may_be_zero || !is_zero;
}

struct str speak_traceparent(struct str header)
{
    static const struct str none = {NULL, 0};
    bool is_first; /* later versions may append more */

    if (header.n < WHOLE || header.p[VERSION_END] != '-' ||
        header.p[TRACE_END] != '-' || header.p[SPAN_END] != '-' ||
        !traceparent_is_hex(header, 0, 2, true) ||
        !traceparent_is_hex(header, 3, 32, false) ||
        !traceparent_is_hex(header, 36, 16, false) ||
        !traceparent_is_hex(header, 53, 2, true))
        return none;
    is_first = header.p[0] == '0' && header.p[1] == '0';
    if ((header.p[0] == 'f' && header.p[1] == 'f') ||
        (is_first && header.n != WHOLE) ||
        (header.n > WHOLE && header.p[WHOLE] != '-'))
        return none;
    return str_sub(header, VERSION_END + 1, SPAN_END);
}
