#ifndef MODEL_NEAR_H
#define MODEL_NEAR_H

/* near: suggests names for one that does not exist: of agents, or of users and
 * orgs. Only agents that the caller may see are considered, and the result does
 * not depend on the others. Pure. Threads: any. */

#include "model/agent.h"

enum {
    NEAR_MAX = 3,
    NEAR_SHOWN_MAX = 64, /* bytes of the unknown name that are shown */
    NEAR_WORK_MAX = 2 * 1000 * 1000, /* pairs of letters that are compared */
};

/* Borrowed from the agents or from the caller that offered them. */
struct near {
    struct str names[NEAR_MAX]; /* the nearest first; ties by name */
    unsigned distances[NEAR_MAX];
    size_t n;
    bool sees_any; /* whether the caller sees any agent at all */
    size_t work;   /* pairs of letters that were compared */
};

/* Beyond NEAR_WORK_MAX the names that sort later are skipped. */
struct near near_find(const struct agents *all, const struct eyes *eyes,
                      struct str written);

/* The same for other names, one by one; ties go to the first one offered. A
 * name may be offered twice. Borrows written and the names. */
struct near_hunt {
    struct near near;
    struct str written;
    int left[256]; /* how often each letter occurs in it */
};
void near_begin(struct near_hunt *h, struct str written);
void near_offer(struct near_hunt *h, struct str name);

/* "there is no agent "x"; did you mean …?" Always ERR_AGENT_NOT_FOUND. */
enum err near_say(const struct near *near, struct str written, struct why *why);

/* "there is no org "x"; did you mean …?" Always ERR_NOT_FOUND. */
enum err near_say_other(const struct near *near, const char *what,
                        struct str written, struct why *why);

#endif
