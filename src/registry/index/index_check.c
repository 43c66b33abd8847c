/* Consistency checks of the index, for tests. */
#include "registry/index/data.h"

#include <stdlib.h>

static bool agent_is_right(const struct index *x, uint32_t number, char *used)
{
    const struct index_entry *e = x->agents[number];

    if (e->number != number || e->n_docs == 0 || e->cls >= x->n_classes ||
        !x->classes[e->cls])
        return false;
    for (size_t i = 0; i < e->n_docs; i++) {
        uint32_t doc = e->docs[i];

        if (doc >= x->n_docs || used[doc]++ || x->docs[doc].number != number ||
            x->docs[doc].skill != (i ? i - 1 : INDEX_AGENT) ||
            x->doc_class[doc] != e->cls)
            return false;
    }
    return true;
}

static bool agents_are_right(const struct index *x, char *used)
{
    size_t n = 0, n_vectors = 0;

    for (uint32_t i = 0; i < x->agents_end; i++) {
        if (!x->agents[i])
            continue;
        n++;
        n_vectors += x->agents[i]->has_vectors ? x->agents[i]->n_docs : 0;
        if (!agent_is_right(x, i, used))
            return false;
    }
    return n == x->n_agents && n_vectors == x->n_vectors;
}

/* Every unused document is in the free list once. */
static bool docs_are_right(const struct index *x, char *used)
{
    for (size_t i = 0; i < x->n_free; i++)
        if (x->free_docs[i] >= x->n_docs || used[x->free_docs[i]]++ ||
            x->doc_class[x->free_docs[i]] != NO_CLASS)
            return false;
    for (size_t i = 0; i < x->n_docs; i++)
        if (used[i] != 1)
            return false;
    return x->n_docs +
               (x->n_promised > x->n_free ? x->n_promised - x->n_free : 0) <=
           x->docs_cap;
}

static bool classes_are_right(const struct index *x)
{
    size_t n = 0;

    for (size_t i = 0; i < x->n_classes; i++) {
        const struct class *c = x->classes[i];

        n += c != NULL;
        if (c && (c->number != i || c->n_users == 0 ||
                  map_get(&x->by_class, c->key) != c))
            return false;
    }
    return n == x->by_class.n && n + x->n_free_classes == x->n_classes;
}

bool index_check(const struct index *x)
{
    char *used = calloc(x->n_docs + 1, 1);
    bool is_right = used && agents_are_right(x, used) &&
                    docs_are_right(x, used) && classes_are_right(x) &&
                    text_check(x->text);

    for (size_t i = 0; i < x->search.cap; i++)
        is_right = is_right && !(x->search.texts[i] > 0);
    free(used);
    return is_right;
}
