/* A group is found by its kind, a number and a scope, so a query visits only
 * things of its own scope. */
#include "learn/fold/internal.h"

#include <stdlib.h>

#include "base/mem.h"

static struct str group_key(enum group_kind kind, int64_t number,
                            struct str scope, char out[GROUP_KEY_MAX])
{
    out[0] = (char)kind;
    memcpy(out + 1, &number, sizeof(number));
    if (scope.n)
        memcpy(out + 1 + sizeof(number), scope.p, scope.n);
    return (struct str){out, 1 + sizeof(number) + scope.n};
}

struct str group_scope(const struct group *g)
{
    return str_sub(g->key, 1 + sizeof(int64_t), g->key.n);
}

struct group *group_find(const struct learn *l, enum group_kind kind,
                         int64_t number, struct str scope)
{
    char key[GROUP_KEY_MAX];

    return scope.n > SCOPE_MAX
               ? NULL
               : map_get(&l->groups, group_key(kind, number, scope, key));
}

struct group *group_take(struct learn *l, enum group_kind kind, int64_t number,
                         struct str scope)
{
    struct group *g = group_find(l, kind, number, scope);

    if (g || scope.n > SCOPE_MAX)
        return g;
    g = mem_new(sizeof(*g) + 1 + sizeof(number) + scope.n);
    g->key = group_key(kind, number, scope, (char *)(g + 1));
    list_init(&g->things);
    if (map_put(&l->groups, g->key, g))
        abort(); /* learn_reserve has made room */
    return g;
}

void group_add(struct group *g, struct list_node *n)
{
    list_append(&g->things, n);
    g->n++;
}

void group_tidy(struct learn *l, struct group *g)
{
    if (!g || g->n)
        return;
    map_take(&l->groups, g->key);
    free(g);
}

void group_remove(struct learn *l, struct group *g, struct list_node *n)
{
    if (!g)
        return;
    list_remove(n);
    g->n--;
    group_tidy(l, g);
}
