#ifndef SPEAK_INTERNAL_H
#define SPEAK_INTERNAL_H

#include "speak/fields.h"
#include "speak/speak.h"

/* Add s and its length. Fields written one after the other in a fixed order
 * then differ whenever their contents differ: the canonical form that an
 * idempotency key stands for. */
void canonical_add(struct buf *out, struct str s);

/* "error":{"code","message"}, or null for an empty code. */
void put_task_error(struct json_out *o, struct str code, struct str message);

/* Add a document without the whitespace between its tokens. */
void compact_json(struct buf *out, struct str document);

#endif
