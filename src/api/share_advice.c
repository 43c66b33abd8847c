/* Warnings about a card that is likely to be chosen wrongly, for its author and
 * its readers. */
#include "api/share.h"

void share_advice(struct registry *r, const struct deliver *d,
                  const struct agent *a, const struct eyes *eyes,
                  struct advice *out)
{
    struct advice_against against;
    const struct agent *close;

    deliver_against(d, &against);
    close = registry_closest(r, a, eyes, &against.likeness);
    if (close)
        against.close = close->name;
    advice_of(a, &against, out);
}
