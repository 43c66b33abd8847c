/* The progress bar shows nothing for the first second, then one line on stderr
 * that is redrawn. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/clock.h"

enum { PATIENCE_MS = 1000, CELLS = 30 };

static int64_t bar_mono_ms(void)
{
    struct clock clock = clock_system();

    return clock.mono_ms(clock.ctx);
}

void cli_bar_start(struct cli_bar *b, struct cli *c, const char *activity)
{
    *b = (struct cli_bar){
        .is_wanted = c->notices && !c->json,
        .activity = activity,
        .began_ms = bar_mono_ms(),
        .shown = -1,
    };
}

void cli_bar_move(void *bar, int permille)
{
    struct cli_bar *b = bar;
    char cells[CELLS + 1];
    int n = permille * CELLS / 1000;

    if (!b->is_wanted || permille / 10 == b->shown ||
        bar_mono_ms() - b->began_ms < PATIENCE_MS)
        return;
    for (int i = 0; i < CELLS; i++)
        cells[i] = i < n ? '#' : '.';
    cells[CELLS] = '\0';
    b->shown = permille / 10;
    fprintf(stderr, "\r%s [%s] %d%%\033[K", b->activity, cells, b->shown);
}

void cli_bar_count(struct cli_bar *b, struct cli *c, const char *activity,
                   size_t n)
{
    cli_bar_start(b, c, activity);
    b->n = n;
}

/* Not at every step: reading the clock takes as long as a short step. */
void cli_bar_step(struct cli_bar *b)
{
    if (++b->at % 16 == 0)
        cli_bar_move(b, (int)(b->at * 1000 / b->n));
}

void cli_bar_end(struct cli_bar *b)
{
    if (b->shown >= 0)
        fprintf(stderr, "\r\033[K");
    b->shown = -1;
}
