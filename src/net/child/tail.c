/* The last bytes of a stream, in a ring that is allocated with the first of
 * them: most children write nothing to standard error. */
#include "net/child/internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"

void tail_init(struct tail *t, size_t cap)
{
    *t = (struct tail){.cap = cap};
}

void tail_fini(struct tail *t)
{
    free(t->p);
    tail_init(t, t->cap);
}

void tail_add(struct tail *t, const char *p, size_t n)
{
    if (!t->p && t->cap && n)
        t->p = mem_new(t->cap);
    if (!t->p)
        return;
    if (n > t->cap) {
        p += n - t->cap;
        n = t->cap;
        t->is_cut = true;
    }
    t->is_cut = t->is_cut || n > t->cap - t->n;
    t->n = n > t->cap - t->n ? t->cap : t->n + n;
    while (n) {
        size_t part = n < t->cap - t->at ? n : t->cap - t->at;

        memcpy(t->p + t->at, p, part);
        t->at = (t->at + part) % t->cap;
        p += part;
        n -= part;
    }
}

static void add_valid(struct buf *out, struct str s)
{
    while (s.n) {
        size_t n = utf8_one(s.p, s.p + s.n);

        if (n)
            buf_add(out, s.p, n);
        else
            buf_add_str(out, STR("\xef\xbf\xbd"));
        s = str_sub(s, n ? n : 1, s.n);
    }
}

/* Cutting may leave the rest of a character, at most three bytes. */
static struct str without_rest(struct str s)
{
    size_t i = 0;

    while (i < 3 && i < s.n && utf8_is_tail((unsigned char)s.p[i]))
        i++;
    return str_sub(s, i, s.n);
}

void tail_text(const struct tail *t, struct buf *out)
{
    struct buf line; /* the ring in order */
    struct str s;

    buf_init(&line, t->n);
    if (t->n) {
        size_t from = t->n < t->cap ? 0 : t->at;

        buf_add(&line, t->p + from, t->n - from);
        buf_add(&line, t->p, from);
    }
    s = buf_str(&line);
    if (!line.over)
        add_valid(out, t->is_cut ? without_rest(s) : s);
    if (out->over)
        buf_clear(out);
    buf_fini(&line);
}
