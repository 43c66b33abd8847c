/* The command of each agent in a menu: its own, cut to the menus' length, if
 * that stands for this agent and no other. All are computed at once by sorting:
 * resolving each command by itself would be quadratic. */
#include "choose/layers/internal.h"

#include <stdlib.h>

struct entry {
    struct choose_menu_item item;
    unsigned rank; /* among those with one command: the lowest wins */
};

static int by_command(const void *a, const void *b)
{
    const struct entry *x = *(const struct entry *const *)a;
    const struct entry *y = *(const struct entry *const *)b;
    int c = str_cmp(x->item.command, y->item.command);

    if (!c && x->rank != y->rank)
        c = x->rank < y->rank ? -1 : 1;
    return c ? c : x < y ? -1 : x > y; /* rows are in the order of names */
}

static void menu_settle(struct entry **sorted, size_t n)
{
    const struct entry *first = NULL;

    for (size_t i = 0; i < n; i++) {
        struct choose_menu_item *item = &sorted[i]->item;

        if (first && str_eq(first->item.command, item->command)) {
            item->command = (struct str){0};
            item->instead = first->item.agent;
        } else {
            first = sorted[i];
        }
    }
}

static bool menu_fill(struct arena *a, const struct agent *agent,
                      struct entry *r)
{
    char room[AGENT_NAME_MAX + 1];
    struct str command =
        str_sub(choose_command(agent->name, room), 0, COMMAND_MAX);
    char *kept = arena_strdup(a, command);

    /* As choose_by_command: exact, of that length, longer. */
    *r = (struct entry){{agent, {kept, command.n}, NULL},
                        str_eq_nocase(agent->name, command) ? 0
                        : agent->name.n == command.n        ? 1
                                                            : 2};
    return kept != NULL;
}

enum err choose_menu(struct arena *a, const struct agents *agents,
                     const struct eyes *eyes, struct choose_menu_item **out,
                     size_t *n)
{
    struct entry *rows = arena_array(a, agents->n + 1, sizeof(*rows));
    struct entry **sorted =
        arena_array(a, agents->n + 1, sizeof(struct entry *));

    *n = 0;
    *out = arena_array(a, agents->n + 1, sizeof(**out));
    if (!rows || !sorted || !*out)
        return ERR_NOMEM;
    for (size_t i = 0; i < agents->n; i++) {
        if (!agent_is_visible(agents->list[i], eyes))
            continue;
        if (!menu_fill(a, agents->list[i], &rows[*n]))
            return ERR_NOMEM;
        sorted[*n] = &rows[*n];
        ++*n;
    }
    qsort(sorted, *n, sizeof(struct entry *), by_command);
    menu_settle(sorted, *n);
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = rows[i].item;
    return OK;
}
