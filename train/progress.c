/* For people who wait: one line that is drawn over, or a line now and then
 * where no one watches a terminal. */
#include "train/train.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { TERMINAL_MS = 200, LOG_MS = 30000 };

static int64_t now_ms(void)
{
    struct clock clock = clock_system();

    return clock.mono_ms(clock.ctx);
}

void progress_begin(struct progress *p, const char *doing, bool is_quiet)
{
    *p = (struct progress){
        .doing = doing,
        .began_ms = now_ms(),
        .shown_ms = now_ms(),
        .is_quiet = is_quiet,
        .is_terminal = isatty(STDERR_FILENO),
    };
}

void progress_show(struct progress *p, size_t done, size_t of,
                   const char *figure)
{
    int64_t now = now_ms(), passed = now - p->began_ms, left;

    if (p->is_quiet || !done ||
        now - p->shown_ms < (p->is_terminal ? TERMINAL_MS : LOG_MS))
        return;
    p->shown_ms = now;
    left = (int64_t)((double)passed / (double)done * (double)(of - done));
    fprintf(stderr, "%s%s: %zu of %zu, %lld s left%s%s%s",
            p->is_terminal ? "\r" : "", p->doing, done, of,
            (long long)((left + 999) / 1000), *figure ? ", " : "", figure,
            p->is_terminal ? "\033[K" : "\n");
}

void progress_end(struct progress *p, const char *figure)
{
    if (!p->is_quiet)
        fprintf(stderr, "%s%s: %.1f s%s%s\n", p->is_terminal ? "\r\033[K" : "",
                p->doing, (double)(now_ms() - p->began_ms) / 1000,
                *figure ? ", " : "", figure);
}
