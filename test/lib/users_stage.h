#ifndef TEST_LIB_USERS_STAGE_H
#define TEST_LIB_USERS_STAGE_H

/* Users on a stage with an inline store, for modules that ask access. They have
 * ids and chance of their own, so that they change nothing else. */

#include "access/access.h"
#include "test/t.h"

static struct {
    struct id_maker ids;
    struct rand_seeded seed;
} users_stage = {.seed = {.state = 8}};

static void users_stage_done(struct tx *tx, void *ctx)
{
    (void)tx, (void)ctx;
}

static inline void users_stage_add(struct access *a, struct store *store,
                                   int64_t now_ms, const char *name,
                                   const struct access_wish *wish)
{
    struct access_change c;
    struct why why;

    access_change_init(&c);
    if (access_user_create(a, &c, str_of(name), wish, STR(""), now_ms, &why))
        T_FAIL("%s", why.text);
    store_submit(store, &c.tx, users_stage_done, NULL);
    store_turn(store);
    CHECK_INT(access_settle(a, &c, &why), OK);
    access_change_fini(&c);
}

/* Those that the store has. */
static inline enum err users_stage_open(struct access **a, struct log *log,
                                        struct store *store, struct why *why)
{
    id_maker_init(&users_stage.ids, rand_seeded(&users_stage.seed));
    *a =
        access_new(&(struct access_opts){.log = log,
                                         .store = store,
                                         .rand = rand_seeded(&users_stage.seed),
                                         .ids = &users_stage.ids,
                                         .seed = {1, 2}});
    return *a ? access_load(*a, why) : ERR_NOMEM;
}

#endif
