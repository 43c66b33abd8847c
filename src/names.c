/* The configuration's list has a thousand agents at most, so it is simply
 * walked; the rules are looked up. */
#include "names.h"

static bool is_listed(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->agents.n; i++)
        if (str_eq_nocase(c->agents.list[i].name, name))
            return true;
    return false;
}

static bool is_backup(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->agents.n; i++)
        if (str_eq_nocase(c->agents.list[i].backup, name))
            return true;
    return false;
}

enum name_place names_place(const struct names *n, struct str name,
                            struct str *owner)
{
    const struct config *c = n->config;
    bool is_in_rules = gate_rules_name(n->rules, name, owner);

    if (!owner->n)
        *owner = c->agents_owner;
    if (!name.n)
        return NAME_NOWHERE;
    if (is_listed(c, name))
        return NAME_LISTED;
    if (str_eq_nocase(c->default_agent, name))
        return NAME_DEFAULT;
    if (is_backup(c, name))
        return NAME_BACKUP;
    return is_in_rules ? NAME_RULES : NAME_NOWHERE;
}

bool names_keep(const struct names *n, struct str name,
                const struct name_user *u)
{
    struct str owner;
    bool is_namesake =
        u->role == ROLE_AGENT && !u->has_owner && str_eq_nocase(u->name, name);

    if (!u->name.n || u->role == ROLE_ADMIN || is_namesake ||
        names_place(n, name, &owner) == NAME_NOWHERE)
        return false;
    return !owner.n || !str_eq_nocase(owner, u->name);
}

/* Of a name in the list even an admin's agent keeps the configuration's out. */
bool names_taken_by(const struct names *n, struct str name,
                    const struct name_user *holder, struct name_taken *out)
{
    struct str owner;
    enum name_place place = names_place(n, name, &owner);

    *out = (struct name_taken){
        .name = name, .holder = holder->name, .place = place};
    return holder->name.n && place != NAME_NOWHERE &&
           (place == NAME_LISTED || names_keep(n, name, holder));
}

void names_say(const struct name_taken *t, struct why *why)
{
    static const struct {
        const char *where, *follows;
    } words[] = {
        [NAME_NOWHERE] = {"nothing mentions", "nothing follows"},
        [NAME_LISTED] = {"agents.list has",
                         "the server runs without the agent of the list"},
        [NAME_DEFAULT] = {"agents.default is",
                          "messages that fit no agent are refused"},
        [NAME_BACKUP] = {"agents.list has the backup",
                         "no agent stands in there"},
        [NAME_RULES] = {"the rules name", "they count that agent as DEAD"},
    };

    why_err(why, ERR_NAME_RESERVED,
            "%s \"%.*s\", and %.*s registered that name: %s. Free it with "
            "\"signalbox agents remove %.*s\"%s",
            words[t->place].where, STR_ARG(t->name), STR_ARG(t->holder),
            words[t->place].follows, STR_ARG(t->name),
            t->place == NAME_LISTED ? ", then reload" : "");
}

/* A name that several places mention is told where names_place finds it. */
static void tell(const struct names *n, struct str name, enum name_place place,
                 void (*each)(void *ctx, struct str name), void *ctx)
{
    struct str owner;

    if (name.n && names_place(n, name, &owner) == place)
        each(ctx, name);
}

static bool is_said_before(const struct config *c, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq_nocase(c->agents.list[k].backup, c->agents.list[i].backup))
            return true;
    return false;
}

void names_each(const struct names *n, void (*each)(void *ctx, struct str name),
                void *ctx)
{
    const struct config *c = n->config;
    const struct strs *declared = &gate_rules_about(n->rules)->agents;

    for (size_t i = 0; i < c->agents.n; i++)
        tell(n, c->agents.list[i].name, NAME_LISTED, each, ctx);
    tell(n, c->default_agent, NAME_DEFAULT, each, ctx);
    for (size_t i = 0; i < c->agents.n; i++)
        if (!is_said_before(c, i))
            tell(n, c->agents.list[i].backup, NAME_BACKUP, each, ctx);
    for (size_t i = 0; i < declared->n; i++)
        tell(n, declared->list[i], NAME_RULES, each, ctx);
}
