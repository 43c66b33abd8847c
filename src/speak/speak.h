#ifndef SPEAK_SPEAK_H
#define SPEAK_SPEAK_H

/* speak: bytes to calls and back, the first room of the walk.
 *
 * Knows how things are said to clients and nothing about what they mean.
 * Pure: no socket, no clock. Threads: any. */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define SPEAK_JSON STR("application/json")

/* Write {"error":{"code","message","details"}}. An empty message is the
 * table's wording; details is a JSON object as it stands, {} when empty. */
void speak_error(struct buf *out, enum err e, struct str message,
                 struct str details);

/* The same with the table's wording and, if it is known, what exactly was
 * wrong: "the request is malformed: the Host header is missing". */
void speak_refusal(struct buf *out, enum err e, struct str what);

#endif
