/* Users are read first, because their roles decide which names they may hold;
 * then the agents. */
#include "cli/names_held.h"

#include "access/access.h"
#include "base/map.h"
#include "gate/rules_file.h"
#include "registry/registry.h"
#include "store/store.h"

enum { USERS_MAX = 1000 * 1000, USERS_BYTES = 256 * 1024 * 1024 };

struct holding {
    struct names names;
    struct map users; /* lower-case name -> struct name_user */
    struct arena arena;
    void (*each)(void *ctx, const struct name_taken *t, const char *words);
    void *ctx;
};

static void keep_user(void *ctx, const struct str *v)
{
    struct holding *h = ctx;
    struct name_user *u = arena_alloc(&h->arena, sizeof(*u));
    struct str key;
    int64_t role;

    if (!u || v[2].n || str_to_i64(v[1], &role) != OK ||
        !arena_keep(&h->arena, v[0], &key))
        return; /* removed or unreadable */
    *u = (struct name_user){
        .role = (enum role)role, .has_owner = v[3].n > 0, .name = key};
    if (map_put(&h->users, key, u) != OK)
        u->role = 0;
}

static void look_at_agent(void *ctx, const struct str *v)
{
    struct holding *h = ctx;
    char lower[PRINCIPAL_NAME_MAX + 1];
    const struct name_user *known =
        map_get(&h->users, str_lowered(v[1], lower, PRINCIPAL_NAME_MAX));
    struct name_user holder = known ? *known : (struct name_user){.role = 0};
    struct name_taken t;
    struct why why;

    holder.name = v[1];
    if (str_eq(v[2], STR("1")) || !names_taken_by(&h->names, v[0], &holder, &t))
        return;
    names_say(&t, &why);
    h->each(h->ctx, &t, why.text);
}

void names_held(const struct config *c, const struct gate_rules *rules,
                void (*each)(void *ctx, const struct name_taken *t,
                             const char *words),
                void *ctx)
{
    static const uint8_t users[] = {USER_NAME, USER_ROLE, USER_REMOVED_MS,
                                    USER_OWNER};
    static const uint8_t agents[] = {AGENT_SHOWN, AGENT_CREATOR,
                                     AGENT_IS_CONFIGURED};
    static const uint64_t seed[2] = {1, 2}; /* only local data */
    struct holding h = {.names = {c, rules}, .each = each, .ctx = ctx};
    struct why why;
    enum err e;

    map_init(&h.users, USERS_MAX, seed);
    arena_init(&h.arena, USERS_BYTES);
    e = store_look_through(c->data, &user_table, users, 4, keep_user, &h, &why);
    if (!e)
        e = store_look_through(c->data, &agent_table, agents, 3, look_at_agent,
                               &h, &why);
    (void)e; /* there is no database yet, or doctor reports the problem */
    map_fini(&h.users);
    arena_fini(&h.arena);
}

const struct gate_rules *names_rules(const struct config *c,
                                     struct gate_rules **own)
{
    struct gate_problems problems = {.n = 0};
    char found[RULES_FILE_PATH_BYTES];
    const char *where;
    struct str path = rules_file_place(c, found, &where);

    *own = NULL;
    if (!path.n || rules_file_read(path.p, own, &problems) != OK)
        return gate_rules_none();
    return *own;
}
