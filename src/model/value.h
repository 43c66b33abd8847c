#ifndef MODEL_VALUE_H
#define MODEL_VALUE_H

/* value: what tx and query do alike with fields and conditions. */

#include "base/arena.h"
#include "model/table.h"

/* Whether the table has such a column and v may stand in it. */
bool value_fits(const struct table *t, uint8_t column, struct value v);

/* Copy the bytes of v into the arena. False: memory is gone, v is as it was.
 */
MUST_USE bool value_keep(struct arena *a, struct value *v);

/* Append a condition with its own copy of v at **last. False: memory is gone,
 * nothing was appended. */
MUST_USE bool condition_add(struct arena *a, struct condition ***last,
                            const struct table *t, const uint8_t *columns,
                            size_t n, enum compare compare, struct value v);

#endif
