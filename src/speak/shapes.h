#ifndef SPEAK_SHAPES_H
#define SPEAK_SHAPES_H

/* The shapes of requests and answers, as JSON Schema for GET /openapi.json.
 *
 * A type is written in a few words:
 *
 *   string int number bool null any    a value
 *   "word"                             this string
 *   Task                               a shape of the table in shapes.c
 *   [T]                                an array
 *   {a: T; b?: T}                      an object; b may be absent
 *   {...Task; a: T}                    with the members of another shape
 *   {...}                              an object with any members
 *   {*: T}                             an object with members of one type
 *   A|B                                one of them */

#include "base/json.h"
#include "speak/fields.h"

void speak_put_type(struct json_out *o, const char *type);

/* A value of a row, and a body. */
void speak_put_field(struct json_out *o, const struct field *f);
void speak_put_fields(struct json_out *o, const struct fields *f);

/* All shapes, as members of an open object. */
void speak_put_shapes(struct json_out *o);

#endif
