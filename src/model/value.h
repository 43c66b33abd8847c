#ifndef MODEL_VALUE_H
#define MODEL_VALUE_H

/* value: shared by tx and query: fields and conditions. */

#include "base/arena.h"
#include "model/table.h"

/* Whether the table has that column and v has its type. */
bool value_fits(const struct table *t, uint8_t column, struct value v);

/* Copy the bytes of v into the arena. False: no memory; v is unchanged. */
MUST_USE bool value_keep(struct arena *a, struct value *v);

/* Append a condition with its own copy of v at **last. False: no memory;
 * nothing was appended. */
MUST_USE bool condition_add(struct arena *a, struct condition ***last,
                            const struct table *t, const uint8_t *columns,
                            size_t n, enum compare compare, struct value v);

#endif
