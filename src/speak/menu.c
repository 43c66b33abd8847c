/* Agents as the commands of menus, as Telegram and Discord take them.
 *
 * Both count characters, and do not say of what kind; in units of UTF-16 the
 * count is never less than in characters. Telegram has a limit of its own
 * beside those it documents: some 5700 bytes of names and descriptions
 * together, beyond which it answers BOT_COMMANDS_TOO_MUCH. So there the longest
 * descriptions are cut until all of them fit. */
#include "base/utf8.h"
#include "speak/internal.h"

#include <stdio.h>

enum {
    TELEGRAM_UNITS = 256,
    TELEGRAM_BYTES = 5600, /* of all names and descriptions */
    DISCORD_UNITS = 100,
    PLAIN_UNITS = 100,
    UNITS_MAX = 256,
    WORDS_BYTES = 3 * UNITS_MAX, /* a unit is of three bytes at most */
};

#define DOTS "\xe2\x80\xa6" /* one unit */

_Static_assert(SPEAK_MENU_MAX *(SPEAK_COMMAND_MAX + 24) <= TELEGRAM_BYTES,
               "two dozen bytes are left for each description at the least");

/* One line of words, and where it could be cut. */
struct line {
    char text[WORDS_BYTES + sizeof(DOTS)];
    size_t n, units;
    size_t cut, word; /* bytes that leave room for the dots, and those of them
                       * that end with a word */
};

struct space {
    size_t units, bytes;
};

/* False: it does not fit. */
static bool add(struct line *w, struct str c, struct space most)
{
    size_t units = c.n == 4 ? 2 : 1;

    if (w->units + units > most.units || w->n + c.n > most.bytes)
        return false;
    memcpy(w->text + w->n, c.p, c.n);
    w->n += c.n;
    w->units += units;
    if (w->units < most.units && w->n + sizeof(DOTS) - 1 <= most.bytes)
        w->cut = w->n;
    return true;
}

static void end_with_dots(struct line *w)
{
    w->n = w->word > w->cut / 2 ? w->word : w->cut;
    memcpy(w->text + w->n, DOTS, sizeof(DOTS) - 1);
    w->n += sizeof(DOTS) - 1;
}

/* The text on one line, without what steers a terminal, as far as it fits. */
static struct str fit(struct line *w, struct str text, struct space most)
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
        if ((is_blank && !add(w, STR(" "), most)) ||
            !add(w, str_sub(rest, 0, n), most)) {
            end_with_dots(w);
            break;
        }
        is_blank = false;
    }
    return (struct str){w->text, w->n};
}

/* What there is to say about it: never nothing. */
static struct str describe(struct line *w, const struct agent *a,
                           struct space most)
{
    struct str said = fit(w, a->description, most);
    char words[AGENT_NAME_MAX + 32];

    if (!said.n)
        said = fit(w, a->title, most);
    if (said.n)
        return said;
    snprintf(words, sizeof(words), "Ask %.*s", STR_ARG(a->name));
    return fit(w, str_of(words), most);
}

/* How many bytes of description each may have in Telegram's menu. */
static size_t fair_bytes(const struct speak_command *list, size_t n)
{
    size_t lengths[SPEAK_MENU_MAX], bytes = WORDS_BYTES, all;
    struct line w;

    for (size_t i = 0; i < n; i++)
        lengths[i] = describe(&w, list[i].agent,
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

/* The first of those that have a place in a menu. */
static size_t in_menu(const struct speak_command *list, size_t n,
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
    struct space most = {.units = TELEGRAM_UNITS};
    struct line w;

    n = in_menu(list, n, menu);
    most.bytes = fair_bytes(menu, n);
    json_open(o, '{');
    json_key(o, STR("commands"));
    json_open(o, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(o, '{');
        json_member_text(o, "command", menu[i].menu);
        json_member_text(o, "description", describe(&w, menu[i].agent, most));
        json_close(o, '}');
    }
    json_close(o, ']');
    json_close(o, '}');
}

/* What is said behind the command is an option there, of type string. */
static void put_text_option(struct json_out *o)
{
    json_key(o, STR("options"));
    json_open(o, '[');
    json_open(o, '{');
    json_member_int(o, "type", 3);
    json_member_text(o, "name", STR("text"));
    json_member_text(o, "description", STR("What it is to do"));
    json_member_bool(o, "required", true);
    json_close(o, '}');
    json_close(o, ']');
}

void speak_discord_menu(struct json_out *o, const struct speak_command *list,
                        size_t n)
{
    struct speak_command menu[SPEAK_MENU_MAX];
    struct line w;

    n = in_menu(list, n, menu);
    json_open(o, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(o, '{');
        json_member_text(o, "name", menu[i].menu);
        json_member_int(o, "type", 1);
        json_member_text(o, "description",
                         describe(&w, menu[i].agent,
                                  (struct space){DISCORD_UNITS, WORDS_BYTES}));
        put_text_option(o);
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* What is typed: the name itself, which nobody shares. */
static struct str typed(const struct speak_command *c,
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

    buf_add_str(out, typed(c, command));
    buf_add_str(out, STR(" - "));
    buf_add_str(
        out, describe(&w, c->agent, (struct space){PLAIN_UNITS, WORDS_BYTES}));
    buf_add_char(out, '\n');
}

void speak_command(struct json_out *o, const struct speak_command *c)
{
    char command[1 + AGENT_NAME_MAX];
    struct line w;

    json_open(o, '{');
    json_member_text(o, "command", typed(c, command));
    json_member_text(o, "agent", c->agent->name);
    json_member_text(
        o, "description",
        describe(&w, c->agent, (struct space){TELEGRAM_UNITS, WORDS_BYTES}));
    json_member_str(o, "menu", c->menu);
    if (!c->menu.n)
        json_member_text(o, "left_out", c->why);
    json_close(o, '}');
}
