/* A line exists while messages are in it. When its first leaves, the next has
 * its turn at the end of the loop's turn, not at once: it may leave
 * immediately, and so may a thousand behind it. */
#include "choose/conversation_order.h"

#include <stdlib.h>

#include "base/mem.h"

enum { TURNS_AT_ONCE = 256 };

struct inorder_line {
    struct list places;
    struct list_node ready; /* its first must be called */
    struct str key;
    char bytes[];
};

struct inorder {
    struct loop *loop;
    struct map lines; /* key -> struct inorder_line */
    struct list ready;
    struct loop_job job;
    bool is_calling; /* in line_on_ready, which calls new ready lines itself */
};

static void lines_on_ready(struct loop_job *job)
{
    struct inorder *o = LIST_OF(job, struct inorder, job);
    struct list_node *n;

    o->is_calling = true;
    for (int i = 0; i < TURNS_AT_ONCE && (n = list_pop(&o->ready)); i++) {
        struct inorder_line *line = LIST_OF(n, struct inorder_line, ready);
        struct inorder_place *first =
            LIST_OF(list_first(&line->places), struct inorder_place, node);

        first->turn(first);
    }
    o->is_calling = false;
    if (!list_is_empty(&o->ready))
        loop_next_turn(o->loop, &o->job);
}

struct inorder *inorder_new(struct loop *loop, size_t max,
                            const uint64_t seed[2])
{
    struct inorder *o = mem_new(sizeof(*o));

    o->loop = loop;
    map_init(&o->lines, max, seed);
    list_init(&o->ready);
    o->job.run = lines_on_ready;
    return o;
}

void inorder_free(struct inorder *o)
{
    if (!o)
        return;
    assert(o->lines.n == 0);
    loop_not_at_end(&o->job);
    map_fini(&o->lines);
    free(o);
}

static struct inorder_line *line_new(struct inorder *o, struct str owner,
                                     struct str name, enum err *e)
{
    size_t n = owner.n + 1 + name.n;
    struct inorder_line *line = mem_new(sizeof(*line) + n);

    memcpy(line->bytes, owner.p, owner.n);
    line->bytes[owner.n] = '/';
    memcpy(line->bytes + owner.n + 1, name.p, name.n);
    line->key = (struct str){line->bytes, n};
    list_init(&line->places);
    *e = map_put(&o->lines, line->key, line);
    if (!*e)
        return line;
    free(line);
    if (*e == ERR_LIMIT)
        *e = ERR_OVERLOADED;
    return NULL;
}

/* Looked up before a line is made: in most conversations no message waits. */
static struct inorder_line *line_find(const struct inorder *o, struct str owner,
                                      struct str name)
{
    char key[512];

    if (owner.n + 1 + name.n > sizeof(key))
        return NULL;
    memcpy(key, owner.p, owner.n);
    key[owner.n] = '/';
    memcpy(key + owner.n + 1, name.p, name.n);
    return map_get(&o->lines, (struct str){key, owner.n + 1 + name.n});
}

enum err inorder_enter(struct inorder *o, struct inorder_place *p,
                       struct str owner, struct str name, bool *is_first)
{
    struct inorder_line *line = line_find(o, owner, name);
    enum err e = OK;

    assert(!p->line && owner.n && name.n);
    *is_first = line == NULL;
    if (!line)
        line = line_new(o, owner, name, &e);
    if (!line)
        return e;
    p->line = line;
    list_append(&line->places, &p->node);
    return OK;
}

void inorder_leave(struct inorder *o, struct inorder_place *p)
{
    struct inorder_line *line = p->line;
    bool was_first;

    if (!line)
        return;
    was_first = list_first(&line->places) == &p->node;
    p->line = NULL;
    list_remove(&p->node);
    if (list_is_empty(&line->places)) {
        list_remove(&line->ready);
        map_take(&o->lines, line->key);
        free(line);
    } else if (was_first && !list_has(&line->ready)) {
        list_append(&o->ready, &line->ready);
        if (!o->is_calling)
            loop_at_end(o->loop, &o->job);
    }
}

size_t inorder_lines(const struct inorder *o)
{
    return o->lines.n;
}
