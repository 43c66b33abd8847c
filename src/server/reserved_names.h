#ifndef SERVER_RESERVED_NAMES_H
#define SERVER_RESERVED_NAMES_H

/* reserved_names: names of agents that belong to the operator, because rules or
 * settings mention them.
 *
 * A name is reserved if agents.list, agents.default, the backup of an agent in
 * agents.list, or the rules mention it. (Bindings mention only names of
 * agents.list.) It may be held by the configuration, by admins, by a user of
 * role agent with that name and without an owner, and by the user that the
 * rules
 * (`owner`) or the settings (agents.owner) name. Another user who already holds
 * it keeps the agent, but rules and settings do not apply to it.
 *
 * Pure: the configuration and rules are read at each call, so a new one applies
 * at once. Threads: any. */

#include "gate/rules/rules.h"
#include "model/caller.h"
#include "server/config/config.h"

/* The place that mentions a name. */
enum name_place {
    NAME_NOWHERE,
    NAME_LISTED,  /* agents.list */
    NAME_DEFAULT, /* agents.default */
    NAME_BACKUP,  /* `backup` in agents.list */
    NAME_RULES,
};

struct names {
    const struct config *config;
    const struct gate_rules *rules;
};

/* The first place that mentions the name. *owner: the user who may hold it
 * besides admins; empty: none. */
enum name_place names_place(const struct names *n, struct str name,
                            struct str *owner);

/* A user, as far as names are concerned. */
struct name_user {
    struct str name; /* empty: the configuration */
    enum role role;  /* zero: there is no such user any more */
    bool has_owner;  /* role agent: it acts for a user */
};

/* Whether the name is reserved and the user may not hold it. */
bool names_keep(const struct names *n, struct str name,
                const struct name_user *u);

/* A reserved name that is held by a user who may not. */
struct name_taken {
    struct str name;   /* with the holder's case */
    struct str holder; /* the user who registered it */
    enum name_place place;
};

/* Whether the holder's agent conflicts with the configuration; then *out is
 * set.
 */
bool names_taken_by(const struct names *n, struct str name,
                    const struct name_user *holder, struct name_taken *out);

/* Describe the effect, and the command that frees the name, without a full
 * stop.
 */
void names_say(const struct name_taken *t, struct why *why);

/* Call `each` once for every mentioned name. */
void names_each(const struct names *n, void (*each)(void *ctx, struct str name),
                void *ctx);

#endif
