/* The text begins with "/agent", or with "/agent@bot" as Telegram's menus write
 * it in groups.
 *
 * A first word that is no agent's command is not a prefix: people send paths
 * ("/etc/hosts") and the commands of other programs, and the next layers may
 * know the right agent for these. So an agent that the sender does not see is
 * treated like one that does not exist.
 *
 * Menus allow fewer characters than names, so '-', '_' and '.' are equal, and a
 * command of the menus' maximum length also stands for the names that begin
 * with it. If several agents match a command, the exact spelling wins, then the
 * same length, then the name that sorts first. */
#include "choose/layers/internal.h"

enum { BOT_MAX = 64 };

/* The length of the blank at the beginning of s: those of ASCII, and the two
 * wide ones that keyboards produce (U+00A0, U+3000). */
static size_t blank(struct str s)
{
    if (s.n && (s.p[0] == ' ' || (s.p[0] >= '\t' && s.p[0] <= '\r')))
        return 1;
    if (str_starts(s, STR("\xc2\xa0")))
        return 2;
    return str_starts(s, STR("\xe3\x80\x80")) ? 3 : 0;
}

static struct str after_blanks(struct str s)
{
    size_t n;

    while ((n = blank(s)))
        s = str_sub(s, n, s.n);
    return s;
}

/* The word after the slash; empty: none, or too long. */
static struct str slash_word(struct str text)
{
    enum { MOST = 1 + AGENT_NAME_MAX + 1 + BOT_MAX };
    size_t n = 1;

    if (!text.n || text.p[0] != '/')
        return (struct str){0};
    while (n < text.n && n <= MOST && !blank(str_sub(text, n, text.n)))
        n++;
    return n > MOST ? (struct str){0} : str_sub(text, 1, n);
}

static bool is_bot(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(str_lower(s.p[i]) >= 'a' && str_lower(s.p[i]) <= 'z') &&
            !(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != '_')
            return false;
    return s.n > 0 && s.n <= BOT_MAX;
}

/* The agent name in a word; empty: none. */
static struct str name_in_word(struct str word)
{
    size_t at = str_find(word, '@', 0);
    struct str name = str_sub(word, 0, at);

    if (at < word.n && !is_bot(str_sub(word, at + 1, word.n)))
        return (struct str){0};
    return agent_name_is_valid(name) ? name : (struct str){0};
}

static char folded(char c)
{
    return c == '-' || c == '.' ? '_' : str_lower(c);
}

struct str choose_command(struct str agent, char out[AGENT_NAME_MAX + 1])
{
    size_t n = agent.n < AGENT_NAME_MAX ? agent.n : AGENT_NAME_MAX;

    for (size_t i = 0; i < n; i++)
        out[i] = folded(agent.p[i]);
    out[n] = '\0';
    return (struct str){out, n};
}

/* Whether name begins with `command`, which is folded already. */
static bool begins_with_command(struct str name, struct str command)
{
    for (size_t i = 0; i < command.n; i++)
        if (folded(name.p[i]) != command.p[i])
            return false;
    return true;
}

const struct agent *choose_by_command(const struct agents *agents,
                                      const struct eyes *eyes, struct str word)
{
    char room[AGENT_NAME_MAX + 1];
    struct str command = choose_command(word, room);
    const struct agent *cut = NULL, *exact = agent_find(agents, word);

    if (exact && !agent_is_visible(exact, eyes))
        exact = NULL;
    for (size_t i = 0; i < agents->n && !exact; i++) {
        const struct agent *a = agents->list[i];
        bool is_whole = a->name.n == command.n;

        if (!is_whole && (cut || command.n != COMMAND_MAX))
            continue;
        if (a->name.n < command.n || !begins_with_command(a->name, command) ||
            !agent_is_visible(a, eyes))
            continue;
        if (is_whole)
            exact = a;
        else
            cut = a;
    }
    return exact ? exact : cut;
}

struct str choose_behind_prefix(struct str text)
{
    struct str word = slash_word(text);

    return word.n ? after_blanks(str_sub(text, 1 + word.n, text.n)) : text;
}

enum err choose_prefix(const struct choose_view *v, struct msg *m)
{
    struct str word = slash_word(m->call.text);
    struct str name = name_in_word(word), rest;
    const struct agent *a =
        name.n ? choose_by_command(v->agents, v->eyes, name) : NULL;

    if (!a)
        return ERR_NO_ROUTE;
    rest = after_blanks(str_sub(m->call.text, 1 + word.n, m->call.text.n));
    if (!rest.n)
        return why_err(&m->why, ERR_BAD_REQUEST,
                       "\"/%.*s\" stands alone; write what \"%.*s\" is to do "
                       "behind it",
                       STR_ARG(name), STR_ARG(a->name));
    m->choice.text = rest;
    return choose_named(v, m, a, "the text begins with \"/%.*s\"",
                        STR_ARG(name));
}
