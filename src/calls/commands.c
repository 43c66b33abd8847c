/* The commands that agents go by: as a list, or as the menus of chat platforms
 * take them. Whose command leads to whom is known to choose/ alone, how it is
 * said to speak/; here it is seen who is asked for, and how many there is room
 * for. */
#include "calls/internal.h"

#include <stdio.h>

#include "choose/choose.h"

_Static_assert((int)SPEAK_COMMAND_MAX == (int)COMMAND_MAX,
               "what is chosen by is what is said");

struct menu {
    struct arena arena;
    struct speak_command *list;
    size_t n;
};

enum { WHY_BYTES = AGENT_NAME_MAX + 64 };

_Static_assert(SPEAK_MENU_MAX == 100, "as the words below say");

/* Why it has none; false: no memory. */
static bool explain(struct arena *a, const struct choose_menu_item *item,
                    struct speak_command *c)
{
    char words[WHY_BYTES];

    if (!item->instead) {
        c->why = STR("menus have room for 100 commands");
        return true;
    }
    snprintf(words, sizeof(words), "in a menu its command is that of \"%.*s\"",
             STR_ARG(item->instead->name));
    c->why = str_of(arena_strdup(a, str_of(words)));
    return c->why.p != NULL;
}

static bool is_wanted(const struct call *c, const struct agent *a)
{
    struct str tag = call_arg(c, "tag"), org = call_arg(c, "org");

    return (!tag.p || agent_has_tag(a, tag)) && (!org.p || str_eq(a->org, org));
}

/* Those that are wanted, and which of them have a place. */
static enum err gather(struct call *c, struct menu *m,
                       const struct choose_menu_item *items, size_t n)
{
    size_t n_placed = 0;

    m->list = arena_array(&m->arena, n + 1, sizeof(*m->list));
    if (!m->list)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct speak_command *one = &m->list[m->n];

        if (!is_wanted(c, items[i].agent))
            continue;
        one->agent = items[i].agent;
        if (items[i].command.n && n_placed < SPEAK_MENU_MAX) {
            one->menu = items[i].command;
            n_placed++;
        } else if (!explain(&m->arena, &items[i], one)) {
            return ERR_NOMEM;
        }
        m->n++;
    }
    return OK;
}

/* menu_fini must follow in any case. */
static enum err menu_init(struct menu *m, struct call *c)
{
    struct agents all = registry_agents(c->calls->registry);
    struct eyes eyes = call_eyes(c);
    struct choose_menu_item *items;
    size_t n;
    enum err e;

    *m = (struct menu){.n = 0};
    arena_init(&m->arena, (all.n + 1) * (CHOOSE_MENU_BYTES + WHY_BYTES +
                                         sizeof(struct speak_command) + 64));
    e = choose_menu(&m->arena, &all, &eyes, &items, &n);
    return e ? e : gather(c, m, items, n);
}

static void menu_fini(struct menu *m)
{
    arena_fini(&m->arena);
}

/* In each of its shapes. */

static void write_list(struct call *c, const struct menu *m, size_t limit)
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

static void write_plain(struct call *c, const struct menu *m)
{
    size_t i;

    for (i = 0; i < m->n && c->body->n < PAGE_BYTES; i++)
        speak_command_line(c->body, &m->list[i]);
    if (i < m->n)
        buf_addf(c->body, "and %zu more\n", m->n - i);
}

static void answer_as(struct call *c, struct str format, const struct menu *m)
{
    struct json_out out = json_out(c->body);

    if (str_eq(format, STR("plain"))) {
        write_plain(c, m);
        call_answer(c, 200, STR("text/plain; charset=utf-8"));
        return;
    }
    if (str_eq(format, STR("telegram")))
        speak_telegram_menu(&out, m->list, m->n);
    else
        speak_discord_menu(&out, m->list, m->n);
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

/* A menu is whole or it is none; false: refused. */
static bool check_args(struct call *c, struct str format)
{
    struct str cursor = call_arg(c, "cursor");

    if (format.p && !str_eq(format, STR("telegram")) &&
        !str_eq(format, STR("discord")) && !str_eq(format, STR("plain")))
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("format must be \"telegram\", \"discord\" or "
                        "\"plain\"; without it the answer is a list"));
    else if (format.p && (cursor.p || call_arg(c, "limit").p))
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("limit and cursor are for the list, which is the "
                        "answer without format"));
    else if (cursor.p && !agent_name_is_valid(cursor))
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("cursor must be a next_cursor of this list"));
    else
        return true;
    return false;
}

void call_commands_get(struct call *c)
{
    struct str format = call_arg(c, "format");
    struct menu m;
    size_t limit;
    enum err e;

    if (!check_args(c, format) || !call_limit(c, &limit))
        return;
    e = menu_init(&m, c);
    if (e) {
        call_refuse(c, e, STR(""));
    } else if (format.p) {
        answer_as(c, format, &m);
    } else {
        write_list(c, &m, limit);
        buf_add_char(c->body, '\n');
        call_answer(c, 200, SPEAK_JSON);
    }
    menu_fini(&m);
}
