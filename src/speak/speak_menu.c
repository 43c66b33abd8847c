/* Agents as commands in the menus of Telegram and Discord.
 *
 * Both platforms count characters without saying of which kind. UTF-16 units
 * are counted here, which are never fewer than characters. Besides its
 * documented limits, Telegram allows some 5700 bytes of names and descriptions
 * together and answers BOT_COMMANDS_TOO_MUCH beyond. There the longest
 * descriptions are cut until all of them fit. */
#include "base/utf8.h"
#include "speak/internal.h"

#include <stdio.h>

enum {
    TELEGRAM_UNITS = 256,
    TELEGRAM_BYTES = 5600, /* all names and descriptions */
    DISCORD_UNITS = 100,
    PLAIN_UNITS = 100,
    UNITS_MAX = 256,
    WORDS_BYTES = 3 * UNITS_MAX, /* a unit has at most three bytes */
};

#define DOTS "\xe2\x80\xa6" /* one unit */

_Static_assert(SPEAK_MENU_MAX *(SPEAK_COMMAND_MAX + 24) <= TELEGRAM_BYTES,
               "each description gets at least two dozen bytes");

/* One line of text, and the positions to cut it at. */
struct line {
    char text[WORDS_BYTES + sizeof(DOTS)];
    size_t n, units;
    size_t cut, word; /* bytes that leave room for the dots, and the part of
                       * them that ends with a word */
};

struct space {
    size_t units, bytes;
};

/* False: no room. */
static bool menu_line_add(struct line *w, struct str c, struct space room)
{
    size_t units = c.n == 4 ? 2 : 1;

    if (w->units + units > room.units || w->n + c.n > room.bytes)
        return false;
    memcpy(w->text + w->n, c.p, c.n);
    w->n += c.n;
    w->units += units;
    if (w->units < room.units && w->n + sizeof(DOTS) - 1 <= room.bytes)
        w->cut = w->n;
    return true;
}

/* The text on one line, without control characters, as far as it fits. */
static struct str menu_line_fit(struct line *w, struct str text,
                                struct space room)
{
    bool is_blank = false;
    size_t n;

    *w = (struct line){.n = 0};
    for (size_t at = 0; at < text.n; at += n) {
        struct str rest = str_sub(text, at, text.n);
        size_t steers = str_steers(rest);

        n = utf8_one(rest.p, rest.p + rest.n);
        if (steers || !n || rest.p[0] == ' ') {
            n = steers ? steers : 1;
            is_blank = w->n > 0;
            continue;
        }
        if (is_blank && w->n == w->cut)
            w->word = w->n;
        if ((is_blank && !menu_line_add(w, STR(" "), room)) ||
            !menu_line_add(w, str_sub(rest, 0, n), room)) {
            w->n = w->word > w->cut / 2 ? w->word : w->cut;
            memcpy(w->text + w->n, DOTS, sizeof(DOTS) - 1);
            w->n += sizeof(DOTS) - 1;
            break;
        }
        is_blank = false;
    }
    return (struct str){w->text, w->n};
}

/* The description, else the title, else "Ask NAME": never empty. */
static struct str menu_describe(struct line *w, const struct agent *a,
                                struct space room)
{
    struct str said = menu_line_fit(w, a->description, room);
    char words[AGENT_NAME_MAX + 32];

    if (!said.n)
        said = menu_line_fit(w, a->title, room);
    if (said.n)
        return said;
    snprintf(words, sizeof(words), "Ask %.*s", STR_ARG(a->name));
    return menu_line_fit(w, str_of(words), room);
}

/* The bytes that each description may have in the menu of Telegram. */
static size_t telegram_fair_bytes(const struct speak_command *list, size_t n)
{
    size_t lengths[SPEAK_MENU_MAX], bytes = WORDS_BYTES, all;
    struct line w;

    for (size_t i = 0; i < n; i++)
        lengths[i] = menu_describe(&w, list[i].agent,
                                   (struct space){TELEGRAM_UNITS, WORDS_BYTES})
                         .n;
    for (;; bytes--) {
        all = 0;
        for (size_t i = 0; i < n; i++)
            all += list[i].menu.n + (lengths[i] < bytes ? lengths[i] : bytes);
        if (all <= TELEGRAM_BYTES)
            return bytes;
    }
}

/* The first SPEAK_MENU_MAX agents that have a menu command. */
static size_t menu_pick(const struct speak_command *list, size_t n,
                        struct speak_command out[SPEAK_MENU_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < n && count < SPEAK_MENU_MAX; i++)
        if (list[i].menu.n)
            out[count++] = list[i];
    return count;
}

void speak_telegram_menu(struct json_out *o, const struct speak_command *list,
                         size_t n)
{
    struct speak_command menu[SPEAK_MENU_MAX];
    struct space room = {.units = TELEGRAM_UNITS};
    struct line w;

    n = menu_pick(list, n, menu);
    room.bytes = telegram_fair_bytes(menu, n);
    json_open(o, '{');
    json_key(o, STR("commands"));
    json_open(o, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(o, '{');
        json_member_text(o, "command", menu[i].menu);
        json_member_text(o, "description",
                         menu_describe(&w, menu[i].agent, room));
        json_close(o, '}');
    }
    json_close(o, ']');
    json_close(o, '}');
}

void speak_discord_menu(struct json_out *o, const struct speak_command *list,
                        size_t n)
{
    struct speak_command menu[SPEAK_MENU_MAX];
    struct line w;

    n = menu_pick(list, n, menu);
    json_open(o, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(o, '{');
        json_member_text(o, "name", menu[i].menu);
        json_member_int(o, "type", 1);
        json_member_text(
            o, "description",
            menu_describe(&w, menu[i].agent,
                          (struct space){DISCORD_UNITS, WORDS_BYTES}));
        json_member_raw(o, "options", /* one text, type 3 is a string */
                        STR("[{\"type\":3,\"name\":\"text\",\"description\":"
                            "\"What it is to do\",\"required\":true}]"));
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* The command that a user types: the name itself, which is unique. */
static struct str menu_typed_command(const struct speak_command *c,
                                     char out[1 + AGENT_NAME_MAX])
{
    struct str name = str_lowered(c->agent->name, out + 1, AGENT_NAME_MAX);

    out[0] = '/';
    return (struct str){out, 1 + name.n};
}

void speak_command_line(struct buf *out, const struct speak_command *c)
{
    char command[1 + AGENT_NAME_MAX];
    struct line w;

    buf_add_str(out, menu_typed_command(c, command));
    buf_add_str(out, STR(" - "));
    buf_add_str(out, menu_describe(&w, c->agent,
                                   (struct space){PLAIN_UNITS, WORDS_BYTES}));
    buf_add_char(out, '\n');
}

void speak_command(struct json_out *o, const struct speak_command *c)
{
    char command[1 + AGENT_NAME_MAX];
    struct line w;

    json_open(o, '{');
    json_member_text(o, "command", menu_typed_command(c, command));
    json_member_text(o, "agent", c->agent->name);
    json_member_text(
        o, "description",
        menu_describe(&w, c->agent,
                      (struct space){TELEGRAM_UNITS, WORDS_BYTES}));
    json_member_str(o, "menu", c->menu);
    if (!c->menu.n)
        json_member_text(o, "left_out", c->why);
    json_close(o, '}');
}
