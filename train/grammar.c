/* Templates and lists, in a file that people can read and extend: a heading in
 * brackets, then one entry a line. A template with a slot that no one fills is
 * found here and not in a text that has braces in it. */
#include "train/train.h"

#include <stdlib.h>

#include "train/slots.h"

enum { MAX_FILE_BYTES = 1 << 20 };

static const char *const headings[N_GRAMMAR_LISTS] = {
    [GRAMMAR_REQUESTS] = "[requests]",   [GRAMMAR_UTTERANCES] = "[utterances]",
    [GRAMMAR_PLACES] = "[places]",       [GRAMMAR_TIMES] = "[times]",
    [GRAMMAR_LANGUAGES] = "[languages]", [GRAMMAR_NUMBERS] = "[numbers]",
    [GRAMMAR_VERBS] = "[verbs]",
};

static enum grammar_list heading_of(struct str line)
{
    size_t i = 0;

    while (i < N_GRAMMAR_LISTS && !str_eq(line, str_of(headings[i])))
        i++;
    return (enum grammar_list)i;
}

bool slot_next(struct str *rest, struct str *before, struct str *slot)
{
    size_t open = str_find(*rest, '{', 0);
    size_t close = str_find(*rest, '}', open);

    *before = str_sub(*rest, 0, open);
    if (close == rest->n)
        return false;
    *slot = str_sub(*rest, open + 1, close);
    *rest = str_sub(*rest, close + 1, rest->n);
    return true;
}

/* Requests have one slot without a name, utterances have those of slots.h, and
 * nothing else has any. */
static bool is_good(struct str line, enum grammar_list list)
{
    struct str rest = line, before, slot;
    size_t n = 0;

    for (; slot_next(&rest, &before, &slot); n++) {
        if (list == GRAMMAR_REQUESTS && slot.n)
            return false;
        if (list == GRAMMAR_UTTERANCES && slot_find(slot) == N_SLOTS)
            return false;
    }
    if (list == GRAMMAR_REQUESTS)
        return n == 1;
    return n == 0 || list == GRAMMAR_UTTERANCES;
}

static void add(struct str_list *l, struct str s)
{
    l->all = train_grow(l->all, l->n, &l->cap, sizeof(l->all[0]));
    l->all[l->n++] = s;
}

static enum err read_lines(struct grammar *g, struct str lines,
                           const char *path, struct why *why)
{
    enum grammar_list list = N_GRAMMAR_LISTS;

    for (size_t n = 1; lines.n; n++) {
        struct str line = str_trim(str_cut(&lines, '\n'));

        if (!line.n || line.p[0] == '#')
            continue;
        if (line.p[0] == '[')
            list = heading_of(line);
        if (list == N_GRAMMAR_LISTS)
            return why_err(why, ERR_SYNTAX,
                           "%s, line %zu: not a heading that "
                           "there is",
                           path, n);
        if (line.p[0] == '[')
            continue;
        if (!is_good(line, list))
            return why_err(why, ERR_SYNTAX,
                           "%s, line %zu: a slot that there "
                           "is not under %s",
                           path, n, headings[list]);
        add(&g->lists[list], line);
    }
    for (size_t i = 0; i < N_GRAMMAR_LISTS; i++)
        if (g->lists[i].n == 0)
            return why_err(why, ERR_SYNTAX, "%s has nothing under %s", path,
                           headings[i]);
    return OK;
}

enum err grammar_read(struct grammar *g, const char *path, struct why *why)
{
    enum err e;

    *g = (struct grammar){.hash = ""};
    buf_init(&g->bytes, MAX_FILE_BYTES);
    e = file_read(path, &g->bytes, why);
    if (!e)
        e = read_lines(g, buf_str(&g->bytes), path, why);
    if (!e)
        train_hash(buf_str(&g->bytes), g->hash);
    return e;
}

void grammar_fini(struct grammar *g)
{
    for (size_t i = 0; i < N_GRAMMAR_LISTS; i++)
        free(g->lists[i].all);
    buf_fini(&g->bytes);
}
