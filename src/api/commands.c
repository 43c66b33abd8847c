/* The commands of agents, as a list or as menus of chat platforms. choose/
 * knows which command leads to which agent, and speak/ writes them; this file
 * filters them and limits the menu. */
#include "api/internal.h"

#include <stdio.h>

#include "choose/layers/choose.h"

_Static_assert((int)SPEAK_COMMAND_MAX == (int)COMMAND_MAX,
               "what is chosen by is what is said");

struct menu {
    struct arena arena;
    struct speak_command *list;
    size_t n;
};

enum { WHY_BYTES = AGENT_NAME_MAX + 64 };

_Static_assert(SPEAK_MENU_MAX == 100, "as the words below say");

/* Why the agent has no command; false: no memory. */
static bool menu_explain(struct arena *a, const struct choose_menu_item *item,
                         struct speak_command *c)
{
    char words[WHY_BYTES];

    if (!item->instead) {
        c->why = STR("a menu has at most 100 commands");
        return true;
    }
    snprintf(words, sizeof(words), "in a menu its command belongs to \"%.*s\"",
             STR_ARG(item->instead->name));
    c->why = str_of(arena_strdup(a, str_of(words)));
    return c->why.p != NULL;
}

static bool menu_wants_agent(const struct call *c, const struct agent *a)
{
    struct str tag = call_arg(c, "tag"), org = call_arg(c, "org");

    return (!tag.p || agent_has_tag(a, tag)) && (!org.p || str_eq(a->org, org));
}

/* Filter the agents, and decide which have a place in the menu. */
static enum err menu_gather(struct call *c, struct menu *m,
                            const struct choose_menu_item *items, size_t n)
{
    size_t n_placed = 0;

    m->list = arena_array(&m->arena, n + 1, sizeof(*m->list));
    if (!m->list)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct speak_command *one = &m->list[m->n];

        if (!menu_wants_agent(c, items[i].agent))
            continue;
        one->agent = items[i].agent;
        if (items[i].command.n && n_placed < SPEAK_MENU_MAX) {
            one->menu = items[i].command;
            n_placed++;
        } else if (!menu_explain(&m->arena, &items[i], one)) {
            return ERR_NOMEM;
        }
        m->n++;
    }
    return OK;
}

/* The caller frees m->arena in any case. */
static enum err menu_init(struct menu *m, struct call *c)
{
    struct agents all = registry_agents(c->api->registry);
    struct eyes eyes = call_eyes(c);
    struct choose_menu_item *items;
    size_t n;
    enum err e;

    *m = (struct menu){.n = 0};
    arena_init(&m->arena, (all.n + 1) * (CHOOSE_MENU_BYTES + WHY_BYTES +
                                         sizeof(struct speak_command) + 64));
    e = choose_menu(&m->arena, &all, &eyes, &items, &n);
    return e ? e : menu_gather(c, m, items, n);
}

/* Formats. */

static void menu_write_list(struct call *c, const struct menu *m, size_t limit)
{
    struct str cursor = call_arg(c, "cursor"), last = {NULL, 0};
    struct json_out out = json_out(c->body);
    bool has_more = false;
    size_t n = 0;

    speak_list_open(&out);
    for (size_t i = 0; i < m->n && !has_more; i++) {
        struct str name = m->list[i].agent->name;

        if (cursor.p && str_cmp_nocase(name, cursor) <= 0)
            continue;
        has_more = n == limit || c->body->n > PAGE_BYTES;
        if (has_more)
            break;
        speak_command(&out, &m->list[i]);
        last = name;
        n++;
    }
    speak_list_close(&out, has_more ? last : STR(""));
}

static void menu_write_plain(struct call *c, const struct menu *m)
{
    size_t i;

    for (i = 0; i < m->n && c->body->n < PAGE_BYTES; i++)
        speak_command_line(c->body, &m->list[i]);
    if (i < m->n)
        buf_addf(c->body, "and %zu more\n", m->n - i);
}

static void menu_answer_as(struct call *c, struct str format,
                           const struct menu *m)
{
    struct json_out out = json_out(c->body);

    if (str_eq(format, STR("plain"))) {
        menu_write_plain(c, m);
        call_answer(c, 200, STR("text/plain; charset=utf-8"));
        return;
    }
    if (str_eq(format, STR("telegram")))
        speak_telegram_menu(&out, m->list, m->n);
    else
        speak_discord_menu(&out, m->list, m->n);
    call_answer_json(c, 200);
}

/* A menu has no pages. False: an error was answered. */
static bool menu_check_args(struct call *c, struct str format)
{
    struct str cursor = call_arg(c, "cursor");

    if (format.p && (cursor.p || call_arg(c, "limit").p))
        call_bad_request(c,
                         "limit and cursor are only for the list, the answer "
                         "without format");
    else if (cursor.p && !agent_name_is_valid(cursor))
        call_bad_request(c, "cursor must be a next_cursor of this list");
    else
        return true;
    return false;
}

void call_commands_get(struct call *c)
{
    struct str format = call_arg(c, "format");
    struct menu m;
    enum err e;

    if (!menu_check_args(c, format))
        return;
    e = menu_init(&m, c);
    if (e) {
        call_refuse(c, e, STR(""));
    } else if (format.p) {
        menu_answer_as(c, format, &m);
    } else {
        menu_write_list(c, &m, call_limit(c));
        call_answer_json(c, 200);
    }
    arena_fini(&m.arena);
}
