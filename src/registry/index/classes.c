/* Visibility classes. A class has a number as long as an agent or a prepared
 * change belongs to it. */
#include "registry/index/data.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

struct index_class index_class_of(const struct agent *a)
{
    if (a->visibility == VISIBILITY_PUBLIC)
        return (struct index_class){INDEX_PUBLIC, {NULL, 0}};
    if (a->visibility == VISIBILITY_SHARED && a->org.n > 0)
        return (struct index_class){INDEX_ORG, a->org};
    return (struct index_class){INDEX_CREATOR, a->creator};
}

static enum err classes_room(struct index *x)
{
    size_t more = x->classes_cap ? 2 * x->classes_cap : 16;

    if (x->n_free_classes > 0 || x->n_classes < x->classes_cap)
        return OK;
    if (!INDEX_GROW(x->classes, more) || !INDEX_GROW(x->free_classes, more))
        return ERR_NOMEM;
    x->classes_cap = more;
    return OK;
}

static enum err class_make(struct index *x, struct str key, struct class **out)
{
    enum err e = classes_room(x);
    struct class *c;

    if (!e)
        e = text_room(x->text, 0, (uint32_t)x->classes_cap);
    if (e)
        return e;
    c = FAULT("index.class") ? NULL : calloc(1, sizeof(*c) + key.n);
    if (!c)
        return ERR_NOMEM;
    memcpy(c + 1, key.p, key.n);
    c->key = (struct str){(char *)(c + 1), key.n};
    e = map_put(&x->by_class, c->key, c);
    if (e) {
        free(c);
        return e;
    }
    c->number = x->n_free_classes > 0 ? x->free_classes[--x->n_free_classes]
                                      : (uint32_t)x->n_classes++;
    x->classes[c->number] = c;
    text_class_is_aside(x->text, c->number, key.p[0] == '0' + INDEX_ASIDE);
    *out = c;
    return OK;
}

/* The key of a class: its kind, and the name. Free it. */
static char *class_key(struct index_class cls, struct str *out)
{
    char *p = mem_new(cls.name.n + 1);

    p[0] = (char)('0' + cls.kind);
    if (cls.name.n > 0)
        memcpy(p + 1, cls.name.p, cls.name.n);
    *out = (struct str){p, cls.kind == INDEX_PUBLIC || cls.kind == INDEX_ASIDE
                               ? 1
                               : cls.name.n + 1};
    return p;
}

uint32_t index_class_find(const struct index *x, struct index_class cls)
{
    struct str key;
    char *p = class_key(cls, &key);
    const struct class *c = map_get(&x->by_class, key);

    free(p);
    return c ? c->number : NO_CLASS;
}

enum err index_class_take(struct index *x, struct index_class cls,
                          uint32_t *out)
{
    struct str key;
    char *p = class_key(cls, &key);
    struct class *c = map_get(&x->by_class, key);
    enum err e = OK;

    if (!c)
        e = class_make(x, key, &c);
    free(p);
    if (e)
        return e;
    c->n_users++;
    *out = c->number;
    return OK;
}

void index_class_leave(struct index *x, uint32_t number)
{
    struct class *c = x->classes[number];

    if (--c->n_users > 0)
        return;
    map_take(&x->by_class, c->key);
    x->classes[number] = NULL;
    x->free_classes[x->n_free_classes++] = number;
    free(c->sum);
    free(c);
}

bool index_class_is_aside(const struct index *x, uint32_t number)
{
    return x->classes[number]->key.p[0] == (char)('0' + INDEX_ASIDE);
}
