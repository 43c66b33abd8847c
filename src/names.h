#ifndef NAMES_H
#define NAMES_H

/* names: the names of agents that belong to the operator, because the rules or
 * the settings mention them, and who may hold them.
 *
 * A name that agents.list, agents.default, the backup of an agent in
 * agents.list or the rules mention is for the configuration, for admins, for a
 * user of role agent without an owner who has that very name, and for the user
 * whom the rules (`owner`) or the settings (agents.owner) name. Bindings
 * mention only names of agents.list. A stranger who holds such a name keeps the
 * agent, but neither rules nor settings mean it.
 *
 * Pure: the configuration and the rules are asked each time, so that another
 * one counts as soon as it is there. Threads: any. */

#include "config/config.h"
#include "gate/gate.h"
#include "model/caller.h"

/* What mentions a name. */
enum name_place {
    NAME_NOWHERE,
    NAME_LISTED,  /* agents.list */
    NAME_DEFAULT, /* agents.default */
    NAME_BACKUP,  /* the backup of one in agents.list */
    NAME_RULES,
};

struct names {
    const struct config *config;
    const struct gate_rules *rules;
};

/* The first place that mentions the name; *owner: the user who may hold it
 * besides admins, empty: nobody. */
enum name_place names_place(const struct names *n, struct str name,
                            struct str *owner);

/* A user, as far as names are concerned. */
struct name_user {
    struct str name; /* empty: the configuration */
    enum role role;  /* zero: nobody has that name any more */
    bool has_owner;  /* of role agent: it acts for a user */
};

/* Whether a name is the operator's and not that user's to hold. */
bool names_keep(const struct names *n, struct str name,
                const struct name_user *u);

/* Somebody holds a name that rules or settings mention, and is not meant. */
struct name_taken {
    struct str name;   /* as its holder wrote it */
    struct str holder; /* who registered it */
    enum name_place place;
};

/* Whether that holder's agent stands in the operator's way: *out says how. */
bool names_taken_by(const struct names *n, struct str name,
                    const struct name_user *holder, struct name_taken *out);

/* What follows from it, and the command that frees the name, in words, without
 * a full stop. */
void names_say(const struct name_taken *t, struct why *why);

/* Call `each` with every name that is mentioned, once. */
void names_each(const struct names *n, void (*each)(void *ctx, struct str name),
                void *ctx);

#endif
