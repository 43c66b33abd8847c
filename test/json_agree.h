#ifndef TEST_JSON_AGREE_H
#define TEST_JSON_AGREE_H

/* All ways of reading one text, held against each other. Used by the tests of
 * json and by its fuzz target: the ways must agree whatever the bytes are. */

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

enum json_verdict { JSON_REFUSED, JSON_ACCEPTED, JSON_DISAGREE };

enum { AGREE_BYTES = 64 << 20 };

/* Say which rule was broken, and go on to JSON_DISAGREE. */
static inline bool agree_rule(bool kept, const char *rule)
{
    if (!kept)
        fprintf(stderr, "json disagrees: %s\n", rule);
    return kept;
}

/* Same in all but where it stands. Reals are compared by their bits, so that
 * the sign of zero counts. */
static inline bool json_same(const struct json *a, const struct json *b)
{
    const struct json *x, *y;

    if (a->type != b->type || !str_eq(a->key, b->key))
        return false;
    switch (a->type) {
    case JSON_NULL: return true;
    case JSON_BOOL: return a->b == b->b;
    case JSON_INT: return a->i == b->i;
    case JSON_REAL: return memcmp(&a->d, &b->d, sizeof(a->d)) == 0;
    case JSON_STR: return str_eq(a->s, b->s);
    case JSON_ARR:
    case JSON_OBJ: break;
    }
    if (a->kids.n != b->kids.n)
        return false;
    for (x = a->kids.first, y = b->kids.first; x && y; x = x->next, y = y->next)
        if (!json_same(x, y))
            return false;
    return !x && !y;
}

static inline bool agree_errors(const struct json_error *a,
                                const struct json_error *b)
{
    return a->what && b->what && strcmp(a->what, b->what) == 0 &&
           a->at == b->at && a->line == b->line && a->col == b->col;
}

/* What is written from the tree reads back as the tree, and a buf that is one
 * byte short says so. */
static inline bool agree_written(struct arena *a, const struct json *tree)
{
    struct buf all, tight;
    struct json_out o = json_out(&all);
    struct json *again;
    bool ok;

    buf_init(&all, AGREE_BYTES);
    json_put(&o, tree);
    again = json_parse(a, buf_str(&all), 0, NULL);
    ok = agree_rule(!all.over && again && json_same(tree, again),
                    "the reader reads back what was written");
    for (size_t less = 0; ok && less < 2; less++) {
        buf_init(&tight, all.n - less);
        o = json_out(&tight);
        json_put(&o, tree);
        ok = agree_rule(tight.over == (less > 0), "over when it is too much");
        ok = ok && agree_rule(less || str_eq(buf_str(&tight), buf_str(&all)),
                              "a tight buf holds the same");
        buf_fini(&tight);
    }
    buf_fini(&all);
    return ok;
}

/* One member found by scanning is the one in the tree, and replacing it
 * changes it and nothing else. */
static inline bool agree_member(struct arena *a, struct str text,
                                struct json *tree, struct json *kid)
{
    struct str document = STR("[0, \"x\"]"), value;
    struct buf out;
    struct json *again, *now, was;
    bool ok;

    buf_init(&out, AGREE_BYTES);
    ok = json_scan(text, &kid->key, 1, &value, NULL) == OK &&
         value.p == text.p + kid->at;
    again = ok ? json_parse(a, value, 0, NULL) : NULL;
    if (again)
        again->key = kid->key;
    ok = agree_rule(again && json_same(again, kid), "scan finds the member");
    ok = ok &&
         agree_rule(json_splice(&out, text, kid->key, document, NULL) == OK,
                    "splice takes what the reader takes");
    again = ok ? json_parse(a, buf_str(&out), 0, NULL) : NULL;
    now = json_get(again, kid->key);
    ok = ok && agree_rule(now && now->type == JSON_ARR && now->kids.n == 2,
                          "splice puts the document in");
    if (ok) {
        was = *now;
        now->type = kid->type;
        now->s = kid->s; /* the larger of what the union may hold */
        ok = agree_rule(json_same(again, tree), "splice changes nothing else");
        *now = was;
    }
    buf_fini(&out);
    return ok;
}

static inline bool agree_added(struct arena *a, struct str text,
                               struct json *tree)
{
    struct str key = STR("not\nthere"), value;
    struct buf out;
    struct json *again;
    bool ok;

    if (json_get(tree, key))
        return true;
    buf_init(&out, AGREE_BYTES);
    ok = json_scan(text, &key, 1, &value, NULL) == OK && value.n == 0 &&
         json_splice(&out, text, key, STR("7"), NULL) == OK;
    again = ok ? json_parse(a, buf_str(&out), 0, NULL) : NULL;
    ok = agree_rule(again && again->kids.n == tree->kids.n + 1 &&
                        json_int_or(json_get(again, key), 0) == 7,
                    "splice adds what was not there");
    buf_fini(&out);
    return ok;
}

static inline bool agree_object(struct arena *a, struct str text,
                                struct json *tree)
{
    size_t n = 0;

    JSON_EACH(kid, tree)
    if (n++ < 4 && !agree_member(a, text, tree, kid))
        return false;
    return agree_added(a, text, tree);
}

/* The scanner refuses what is not an object, and leaves no trace. */
static inline bool agree_refused(struct str text)
{
    struct str key = STR("a"), value = STR("left over");
    struct buf out;
    bool ok;

    buf_init(&out, 100);
    ok = json_scan(text, &key, 1, &value, NULL) == ERR_SYNTAX && value.n == 0 &&
         json_splice(&out, text, key, STR("1"), NULL) == ERR_SYNTAX &&
         out.n == 0 && !out.over;
    buf_fini(&out);
    return agree_rule(ok, "the scanner refuses what the reader refuses");
}

static inline enum json_verdict agree_on(struct arena *a, struct str text)
{
    struct json_error by_reader = {0}, by_checker = {0};
    struct json *tree = json_parse(a, text, 0, &by_reader);
    enum err e = json_check(text, &by_checker);

    if (!agree_rule((tree != NULL) == (e == OK), "reader and checker"))
        return JSON_DISAGREE;
    if (!tree)
        return agree_rule(agree_errors(&by_reader, &by_checker),
                          "reader and checker about the error") &&
                       agree_refused(text)
                   ? JSON_REFUSED
                   : JSON_DISAGREE;
    if (!agree_written(a, tree) ||
        !(tree->type == JSON_OBJ ? agree_object(a, text, tree)
                                 : agree_refused(text)))
        return JSON_DISAGREE;
    return JSON_ACCEPTED;
}

/* Whether text is JSON, by all ways. The text is put into a block of exactly
 * its size, so that reading past its end is seen by AddressSanitizer. */
static inline enum json_verdict json_agree(struct str text)
{
    struct arena a;
    enum json_verdict v;
    char *block = malloc(text.n);

    if (!block && text.n)
        return JSON_DISAGREE;
    if (text.n)
        memcpy(block, text.p, text.n);
    arena_init(&a, AGREE_BYTES);
    v = agree_on(&a, (struct str){block, text.n});
    arena_fini(&a);
    free(block);
    return v;
}

#endif
