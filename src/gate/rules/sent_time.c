/* The envelope's timestamp. An old envelope is accepted and reported as stale:
 * its sender may still mean it. Only the rules, or the operator, reject it. A
 * timestamp that lies ahead comes from a wrong clock or, up to 14 hours, from a
 * local time without its zone, which counts as UTC. */
#include "gate/rules/evaluation.h"

/* Smaller differences between clocks are not reported. */
#define CLOCKS_MS INT64_C(60000)

struct span_words {
    char text[48];
};

static struct span_words duration_words(int64_t ms)
{
    struct span_words s;
    struct phrase w = phrase_in(s.text, sizeof(s.text));

    phrase_add_age(&w, ms);
    return s;
}

/* Durations are rounded down, so one beyond a limit may read the same as it. */
static const char *more_than_words(struct span_words is,
                                   struct span_words may_be)
{
    return strcmp(is.text, may_be.text) == 0 ? "more than " : "";
}

int64_t gate_age_ms(int64_t at_ms, int64_t now_ms)
{
    int64_t age_ms;

    if (__builtin_sub_overflow(now_ms, at_ms, &age_ms) || age_ms == INT64_MIN)
        age_ms = now_ms < at_ms ? -INT64_MAX : INT64_MAX;
    return age_ms;
}

enum err gate_check_time(const struct gate_limits *l, int64_t at_ms,
                         int64_t now_ms, struct why *why)
{
    int64_t age_ms = gate_age_ms(at_ms, now_ms);
    struct span_words is = duration_words(age_ms < 0 ? -age_ms : age_ms);
    struct span_words future = duration_words(l->future_ms);
    struct span_words age = duration_words(l->age_ms);

    if (-age_ms > l->future_ms)
        return why_err(why, ERR_BAD_REQUEST,
                       "timestamp is %s%s ahead of the clock here, and may be "
                       "%s: is a clock wrong, or the time zone missing?",
                       more_than_words(is, future), is.text, future.text);
    if (l->age_ms && age_ms > l->age_ms)
        return why_err(why, ERR_BAD_REQUEST,
                       "timestamp is %s%s ago, and may be %s: leave it out, or "
                       "send what is still meant with one of now",
                       more_than_words(is, age), is.text, age.text);
    return OK;
}

void gate_note_time(const struct gate_limits *l, int64_t at_ms, int64_t now_ms,
                    struct gate_result *out)
{
    int64_t age_ms = gate_age_ms(at_ms, now_ms);
    struct phrase w = phrase_in(out->warning, sizeof(out->warning));

    out->is_stale = age_ms > l->stale_ms;
    if (out->is_stale)
        SAY(&w, STR("timestamp is "), str_of(duration_words(age_ms).text),
            STR(" ago"));
    else if (-age_ms > CLOCKS_MS)
        SAY(&w, STR("timestamp is "), str_of(duration_words(-age_ms).text),
            STR(" ahead of the clock here: is a clock wrong, or the time zone "
                "missing?"));
}
