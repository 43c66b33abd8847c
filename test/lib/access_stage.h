#ifndef ACCESS_STAGE_H
#define ACCESS_STAGE_H

/* A stage for tests of access: a real store without its thread, in a folder
 * of its own, and what was told of revoked tokens. Time stands still unless a
 * test turns it. */

#include <fcntl.h>

#include "access/access.h"
#include "base/fault.h"
#include "test/lib/control.h"
#include "test/lib/folder.h"
#include "test/t.h"
#include "watch/watch.h"

enum { STAGE_REVOKED_MAX = 4096 };

struct stage {
    char folder[64];
    struct store_folder held;
    struct store *store;
    struct access *a;
    struct access_opts opts;
    struct log log;
    struct rand_seeded chance;
    struct id_maker ids;
    int64_t now_ms;
    struct id revoked[STAGE_REVOKED_MAX];
    size_t n_revoked;
    char moved[64][PRINCIPAL_NAME_MAX + 1];
    size_t n_moved;
    struct why why; /* of the last refusal */
};

static const struct schema *const stage_schemas[] = {&access_schema,
                                                     &watch_schema};

static inline void stage_on_revoked(void *ctx, const struct id *token_id)
{
    struct stage *s = ctx;

    CHECK(s->n_revoked < STAGE_REVOKED_MAX);
    s->revoked[s->n_revoked++] = *token_id;
}

static inline void stage_on_moved(void *ctx, struct str user)
{
    struct stage *s = ctx;

    CHECK(s->n_moved < sizeof(s->moved) / sizeof(*s->moved));
    snprintf(s->moved[s->n_moved++], sizeof(*s->moved), "%.*s", STR_ARG(user));
}

/* Open store and access as they were left. */
static inline enum err stage_start(struct stage *s)
{
    struct store_opts opts = {.folder = s->folder,
                              .schemas = stage_schemas,
                              .n_schemas = 2,
                              .max_waiting = 1000,
                              .is_inline = true};
    enum err e = store_open(&s->store, &opts, &s->why);

    if (e)
        return e;
    s->opts.store = s->store;
    s->a = access_new(&s->opts);
    return s->a ? access_load(s->a, &s->why) : ERR_NOMEM;
}

/* Close them; the folder stays. */
static inline void stage_end(struct stage *s)
{
    store_close(s->store);
    access_free(s->a);
    s->store = NULL;
    s->a = NULL;
}

static inline void stage_restart(struct stage *s)
{
    stage_end(s);
    CHECK(stage_start(s) == OK);
}

/* A folder of its own: in memory where there is such a place, since no power
 * cut is tried here; in `stage_root` if someone means to clear up after us. */
static char stage_root[32];

static inline void stage_folder(char out[64])
{
    const char *const roots[] = {stage_root, "/dev/shm", "/tmp"};

    for (int i = stage_root[0] ? 0 : 1; i < 3; i++) {
        snprintf(out, 64, "%s/signalbox-XXXXXX", roots[i]);
        if (mkdtemp(out))
            return;
    }
    T_FAIL("there is no place for a folder");
}

static inline void stage_clear(const char *folder)
{
    folder_remove(folder);
}

/* Make the folder; nothing is open yet. */
static inline void stage_prepare(struct stage *s)
{
    *s = (struct stage){.chance = {7}, .now_ms = 1700000000000};
    stage_folder(s->folder);
    CHECK(store_folder_open(&s->held, str_of(s->folder), &s->why) == OK);
    log_init(&s->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_ERROR,
             LOG_JSON, clock_system());
    id_maker_init(&s->ids, rand_seeded(&s->chance));
    s->opts = (struct access_opts){.log = &s->log,
                                   .rand = rand_seeded(&s->chance),
                                   .ids = &s->ids,
                                   .seed = {1, 2},
                                   .on_revoked = stage_on_revoked,
                                   .ctx = s};
}

static inline void stage_open(struct stage *s)
{
    stage_prepare(s);
    CHECK(stage_start(s) == OK);
}

static inline void stage_close(struct stage *s)
{
    stage_end(s);
    store_folder_close(&s->held);
    close(s->log.fd);
    stage_clear(s->folder);
}

/* Changes. */

static inline void stage_on_done(struct tx *tx, void *ctx)
{
    (void)tx;
    (void)ctx;
}

static inline void stage_submit(struct stage *s, struct access_change *c)
{
    store_submit(s->store, &c->tx, stage_on_done, NULL);
}

/* Commit one change that was prepared with `e`, and settle it. */
static inline enum err stage_commit(struct stage *s, struct access_change *c,
                                    enum err e)
{
    if (!e) {
        stage_submit(s, c);
        store_turn(s->store);
        e = access_settle(s->a, c, &s->why);
    }
    access_change_fini(c);
    return e;
}

static inline enum err stage_first_admin(struct stage *s,
                                         struct access_token *t)
{
    struct access_change c;

    access_change_init(&c);
    return stage_commit(s, &c,
                        access_first_admin(s->a, &c, s->now_ms, t, &s->why));
}

/* Make a user; org and owner may be NULL. */
static inline enum err stage_make(struct stage *s, const char *name,
                                  enum role role, const char *org,
                                  const char *owner)
{
    struct access_wish wish = {role, str_of(org ? org : ""),
                               str_of(owner ? owner : "")};
    struct access_change c;

    access_change_init(&c);
    return stage_commit(s, &c,
                        access_user_create(s->a, &c, str_of(name), &wish,
                                           STR("admin"), s->now_ms, &s->why));
}

static inline enum err stage_user(struct stage *s, const char *name,
                                  enum role role)
{
    return stage_make(s, name, role, NULL, NULL);
}

static inline struct str stage_str_or_null(const char *s)
{
    return s ? str_of(s) : (struct str){NULL, 0};
}

/* Change a user; role zero, and NULL, stay as they are. */
static inline enum err stage_change(struct stage *s, const char *name,
                                    enum role role, const char *org,
                                    const char *owner)
{
    struct access_wish wish = {role, stage_str_or_null(org),
                               stage_str_or_null(owner)};
    struct access_change c;

    access_change_init(&c);
    return stage_commit(s, &c,
                        access_user_change(s->a, &c, str_of(name), &wish,
                                           STR("admin"), s->now_ms, &s->why));
}

static inline enum err stage_role(struct stage *s, const char *name,
                                  enum role role)
{
    return stage_change(s, name, role, NULL, NULL);
}

static inline enum err stage_org(struct stage *s, const char *name,
                                 const char *org)
{
    return stage_change(s, name, 0, org, NULL);
}

static inline enum err stage_owner(struct stage *s, const char *name,
                                   const char *owner)
{
    return stage_change(s, name, 0, NULL, owner);
}

static inline enum err stage_remove(struct stage *s, const char *name)
{
    struct access_change c;

    access_change_init(&c);
    return stage_commit(s, &c,
                        access_user_remove(s->a, &c, str_of(name), STR("admin"),
                                           s->now_ms, &s->why));
}

/* Prepare, and no more, the removal of a user, or with a role another role. */
static inline enum err stage_begin(struct stage *s, struct access_change *c,
                                   const char *name, enum role role)
{
    access_change_init(c);
    return role ? access_user_change(s->a, c, str_of(name),
                                     &(struct access_wish){.role = role},
                                     STR("x"), s->now_ms, &s->why)
                : access_user_remove(s->a, c, str_of(name), STR("x"), s->now_ms,
                                     &s->why);
}

/* A token; *id (may be NULL) is its id. */
static inline enum err stage_token(struct stage *s, const char *user,
                                   unsigned scopes, int64_t expires_ms,
                                   struct access_token *t, struct id *id)
{
    struct access_change c;
    enum err e;

    access_change_init(&c);
    e = access_token_create(s->a, &c, str_of(user), scopes, STR("test"),
                            expires_ms, STR("admin"), s->now_ms, t, &s->why);
    if (id)
        *id = c.token_id;
    return stage_commit(s, &c, e);
}

static const struct caller stage_admin = {
    .principal = "admin", .role = ROLE_ADMIN, .scopes = SCOPE_ALL};

static inline enum err stage_revoke_by(struct stage *s, const struct id *id,
                                       const struct caller *by)
{
    struct access_change c;

    access_change_init(&c);
    return stage_commit(s, &c,
                        access_token_revoke(s->a, &c, str_of(id->text), by,
                                            s->now_ms, &s->why));
}

static inline enum err stage_revoke(struct stage *s, const struct id *id)
{
    return stage_revoke_by(s, id, &stage_admin);
}

/* Judge a token as it would come in a header. */
static inline enum err
stage_judge(struct stage *s, const struct access_token *t, struct caller *out)
{
    char header[sizeof("Bearer ") + sizeof(t->text)];
    struct caller ignored;

    snprintf(header, sizeof(header), "Bearer %.*s", ACCESS_TOKEN_CHARS,
             t->text);
    return access_judge(s->a, str_of(header), s->now_ms, out ? out : &ignored,
                        &s->why);
}

static inline bool stage_is_good(struct stage *s, const struct access_token *t)
{
    return stage_judge(s, t, NULL) == OK;
}

/* With a folder that goes, however the body ended. */
static inline void stage_control(const char *planted, void (*body)(void))
{
    char root[64];

    stage_folder(root);
    snprintf(stage_root, sizeof(stage_root), "%.31s", root);
    check_control(planted, body);
    stage_clear(root);
}

#endif
