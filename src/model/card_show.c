/* A value as text for messages. */
#include "model/card_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* With the fewest digits that identify the number: most likely as it was
 * written. */
static void show_real(char *to, size_t room, double d)
{
    for (int n = 15; n <= 17; n++) {
        snprintf(to, room, "%.*g", n, d);
        if (strtod(to, NULL) == d)
            return;
    }
}

/* NUL bytes are shown too. */
static void show_text(char *to, size_t room, struct str s)
{
    struct str head = str_head(s, 64);
    size_t n = head.n;

    if (n)
        memcpy(to + 1, head.p, n);
    to[0] = '"';
    n = 1 + str_tame(to + 1, n);
    snprintf(to + n, room - n, "\"%s", s.n > 64 ? "…" : "");
}

struct card_shown card_show(const struct json *v)
{
    struct card_shown shown = {""};
    char *to = shown.text;

    switch (v->type) {
    case JSON_NULL: snprintf(to, sizeof(shown.text), "null"); break;
    case JSON_BOOL:
        snprintf(to, sizeof(shown.text), "%s", v->b ? "true" : "false");
        break;
    case JSON_INT:
        snprintf(to, sizeof(shown.text), "%lld", (long long)v->i);
        break;
    case JSON_REAL: show_real(to, sizeof(shown.text), v->d); break;
    case JSON_STR: show_text(to, sizeof(shown.text), v->s); break;
    case JSON_ARR: snprintf(to, sizeof(shown.text), "a list"); break;
    case JSON_OBJ: snprintf(to, sizeof(shown.text), "an object"); break;
    }
    return shown;
}

static const char *const types[] = {
    [JSON_NULL] = "null",     [JSON_BOOL] = "true or false",
    [JSON_INT] = "a number",  [JSON_REAL] = "a number",
    [JSON_STR] = "text",      [JSON_ARR] = "a list",
    [JSON_OBJ] = "an object",
};

/* Private values are not repeated in messages: answers are kept, and shown to
 * people. */
static bool is_secret(const struct card_field *f)
{
    if (f->is_private)
        return true;
    for (size_t i = 0; f->inner && i < f->inner->n; i++)
        if (is_secret(&f->inner->list[i]))
            return true;
    return false;
}

struct card_shown card_show_as(const struct card_field *f, const struct json *v)
{
    struct card_shown shown = {""};

    if (!is_secret(f))
        return card_show(v);
    snprintf(shown.text, sizeof(shown.text), "%s", types[v->type]);
    return shown;
}
