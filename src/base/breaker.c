/* While a probe is running only its result counts. Results of requests that
 * were sent before the breaker opened arrive late and describe the past. */
#include "base/breaker.h"

bool breaker_may(struct breaker *b, int64_t now_ms)
{
    if (b->state == BREAKER_OPEN && now_ms >= b->until_ms) {
        b->state = BREAKER_PROBING;
        b->is_probed = false;
    }
    return b->state == BREAKER_CLOSED ||
           (b->state == BREAKER_PROBING && !b->is_probed);
}

bool breaker_is_shut(const struct breaker *b, int64_t now_ms)
{
    struct breaker copy = *b;

    return !breaker_may(&copy, now_ms);
}

bool breaker_ask(struct breaker *b)
{
    if (b->state != BREAKER_PROBING)
        return false;
    b->is_probed = true;
    return true;
}

static bool breaker_counts_result(const struct breaker *b, bool is_probe)
{
    return b->state == (is_probe ? BREAKER_PROBING : BREAKER_CLOSED);
}

bool breaker_good(struct breaker *b, bool is_probe)
{
    if (!breaker_counts_result(b, is_probe))
        return false;
    b->n_failures = 0;
    b->state = BREAKER_CLOSED;
    return is_probe;
}

bool breaker_bad(struct breaker *b, bool is_probe, int64_t now_ms,
                 int64_t retry_ms)
{
    int64_t most_ms =
        b->pause_ms > BREAKER_PAUSE_MAX_MS ? b->pause_ms : BREAKER_PAUSE_MAX_MS;
    int64_t pause_ms = retry_ms > 0 ? retry_ms : b->pause_ms;

    if (!breaker_counts_result(b, is_probe))
        return false;
    if (b->n_failures < INT32_MAX)
        b->n_failures++;
    if (!is_probe && retry_ms <= 0 && b->n_failures < b->max_failures)
        return false;
    /* The peer may ask for a shorter pause than ours, but not repeatedly. */
    if (b->n_failures >= b->max_failures && pause_ms < b->pause_ms)
        pause_ms = b->pause_ms;
    if (pause_ms > most_ms)
        pause_ms = most_ms;
    b->until_ms = now_ms + pause_ms;
    b->state = BREAKER_OPEN;
    return true;
}

void breaker_forget(struct breaker *b, bool is_probe)
{
    if (is_probe && b->state == BREAKER_PROBING)
        b->is_probed = false;
}
