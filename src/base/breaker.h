#ifndef BASE_BREAKER_H
#define BASE_BREAKER_H

/* breaker: who fails again and again is left alone for a while.
 *
 *              as often as may be in a row, or it asked for a pause
 *     CLOSED ------------------------------------------------------> OPEN
 *        ^                                                            |  ^
 *        | the probe was answered                    the pause is over|  |
 *        '------------------------- PROBING <-------------------------'  |
 *                                      '---------------------------------'
 *                                                it was not
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
    bool is_probed; /* PROBING: somebody is out */
    int n_failures; /* in a row */
    int64_t until_ms;
};

/* Whether something may be asked now. */
bool breaker_may(struct breaker *b, int64_t now_ms);

/* Whether breaker_may would say no, for those who only look. */
bool breaker_is_shut(const struct breaker *b, int64_t now_ms);

/* It is; true: and that is the probe. */
bool breaker_ask(struct breaker *b);

/* What became of it. retry_ms: the pause that was asked for; zero: none was.
 * True where the breaker opened or closed by this. */
bool breaker_good(struct breaker *b, bool is_probe);
bool breaker_bad(struct breaker *b, bool is_probe, int64_t now_ms,
                 int64_t retry_ms);

/* Nobody waits for the answer any more. */
void breaker_forget(struct breaker *b, bool is_probe);

#endif
