#ifndef BASE_BREAKER_H
#define BASE_BREAKER_H

/* breaker: stop calling a peer that keeps failing, for a while.
 *
 *              max_failures in a row, or the peer asked for a pause
 *     CLOSED ------------------------------------------------------> OPEN
 *        ^                                                            |  ^
 *        | the probe succeeded                       the pause is over|  |
 *        '------------------------- PROBING <-------------------------'  |
 *                                      '---------------------------------'
 *                                              the probe failed
 *
 * Pure; the time is an argument. */

#include <stdbool.h>
#include <stdint.h>

enum { BREAKER_PAUSE_MAX_MS = 10 * 60 * 1000 };

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };

struct breaker {
    int max_failures;
    int64_t pause_ms;
    enum breaker_state state;
    bool is_probed; /* PROBING: the probe is running */
    int n_failures; /* in a row */
    int64_t until_ms;
};

/* Whether a request may be sent now. */
bool breaker_may(struct breaker *b, int64_t now_ms);

/* The opposite, without changing the state. */
bool breaker_is_shut(const struct breaker *b, int64_t now_ms);

/* A request is sent. True: it is the probe. */
bool breaker_ask(struct breaker *b);

/* The request succeeded or failed. retry_ms is the pause that the peer asked
 * for, or zero. True if this opened or closed the breaker. */
bool breaker_good(struct breaker *b, bool is_probe);
bool breaker_bad(struct breaker *b, bool is_probe, int64_t now_ms,
                 int64_t retry_ms);

/* The request was given up; its result will not be reported. */
void breaker_forget(struct breaker *b, bool is_probe);

#endif
