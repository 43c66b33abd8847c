/* The list of the configuration has at most a thousand agents, so it is
 * searched linearly; the rules have an index. */
#include "server/reserved_names.h"

static bool name_is_listed(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->agents.n; i++)
        if (str_eq_nocase(c->agents.list[i].name, name))
            return true;
    return false;
}

static bool name_is_backup(const struct config *c, struct str name)
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
    if (name_is_listed(c, name))
        return NAME_LISTED;
    if (str_eq_nocase(c->default_agent, name))
        return NAME_DEFAULT;
    if (name_is_backup(c, name))
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

/* A name of the list is taken even if an admin registered it: the agent of the
 * list cannot be added. */
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
        [NAME_NOWHERE] = {"nothing mentions", "this has no effect"},
        [NAME_LISTED] = {"agents.list has",
                         "the server runs without the agent of the list"},
        [NAME_DEFAULT] = {"agents.default is",
                          "messages that fit no agent are rejected"},
        [NAME_BACKUP] = {"agents.list has the backup",
                         "that agent has no backup"},
        [NAME_RULES] = {"the rules name", "they count that agent as DEAD"},
    };

    why_err(why, ERR_NAME_RESERVED,
            "%s \"%.*s\", and %.*s registered that name: %s. Free it with "
            "\"signalbox agents remove %.*s\"%s",
            words[t->place].where, STR_ARG(t->name), STR_ARG(t->holder),
            words[t->place].follows, STR_ARG(t->name),
            t->place == NAME_LISTED ? ", then reload" : "");
}

/* Calls each only at the first place that mentions the name. */
static void names_visit(const struct names *n, struct str name,
                        enum name_place place,
                        void (*each)(void *ctx, struct str name), void *ctx)
{
    struct str owner;

    if (name.n && names_place(n, name, &owner) == place)
        each(ctx, name);
}

static bool is_earlier_backup(const struct config *c, size_t i)
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
        names_visit(n, c->agents.list[i].name, NAME_LISTED, each, ctx);
    names_visit(n, c->default_agent, NAME_DEFAULT, each, ctx);
    for (size_t i = 0; i < c->agents.n; i++)
        if (!is_earlier_backup(c, i))
            names_visit(n, c->agents.list[i].backup, NAME_BACKUP, each, ctx);
    for (size_t i = 0; i < declared->n; i++)
        names_visit(n, declared->list[i], NAME_RULES, each, ctx);
}
