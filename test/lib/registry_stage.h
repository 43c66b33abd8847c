#ifndef REGISTRY_STAGE_H
#define REGISTRY_STAGE_H

/* A stage for tests of the registry: a real store without its thread, in a
 * folder of its own, a few callers, and one function for each change that
 * prepares, commits and settles it. Time stands still unless a test turns it.
 *
 * A user's org is in stage.orgs; those who are not there have none. */

#include <fcntl.h>

#include "base/fault.h"
#include "registry/registry.h"
#include "test/lib/folder.h"
#include "test/t.h"
#include "watch/watch.h"

enum { STAGE_ORGS = 16 };

struct stage {
    char folder[64];
    struct store_folder held;
    struct store *store;
    struct registry *r;
    struct registry_opts opts;
    bool has_model; /* the one inside the binary; else by words alone */
    struct loop loop;
    struct embed *embed;
    struct log log;
    struct rand_seeded chance;
    struct id_maker ids;
    int64_t now_ms;
    struct {
        const char *user, *org;
    } orgs[STAGE_ORGS];
    int n_came;
    struct card_problems problems; /* of the last card; the words are gone */
    char problem[1024];            /* the first */
    struct why why;                /* of the last refusal */
    /* Of the last change. */
    bool is_same, is_new;
    int64_t revision;
    struct id grant_id;
};

static const struct schema *const stage_schemas[] = {&registry_schema,
                                                     &watch_schema};

/* Callers. */

static const struct caller stage_admin = {.token_id = {"tok_1"},
                                          .principal = "admin",
                                          .role = ROLE_ADMIN,
                                          .scopes = SCOPE_ALL};
static const struct caller stage_anna = {.token_id = {"tok_2"},
                                         .principal = "anna",
                                         .org = "acme",
                                         .role = ROLE_USER,
                                         .scopes = SCOPE_ALL & ~SCOPE_ADMIN};
static const struct caller stage_bob = {.token_id = {"tok_3"},
                                        .principal = "bob",
                                        .org = "acme",
                                        .role = ROLE_USER,
                                        .scopes = SCOPE_ALL & ~SCOPE_ADMIN};
static const struct caller stage_carl = {.token_id = {"tok_4"},
                                         .principal = "carl",
                                         .org = "zeta",
                                         .role = ROLE_USER,
                                         .scopes = SCOPE_ALL & ~SCOPE_ADMIN};

static inline struct str stage_org_of(void *ctx, struct str user)
{
    const struct stage *s = ctx;

    for (size_t i = 0; i < STAGE_ORGS && s->orgs[i].user; i++)
        if (str_eq_nocase(user, str_of(s->orgs[i].user)))
            return str_of(s->orgs[i].org);
    return (struct str){NULL, 0};
}

static inline void stage_on_new(void *ctx)
{
    ((struct stage *)ctx)->n_came++;
}

/* Open store and registry as they were left. */
static inline enum err stage_start(struct stage *s)
{
    struct store_opts opts = {.folder = s->folder,
                              .schemas = stage_schemas,
                              .n_schemas = 2,
                              .max_waiting = 1000,
                              .is_inline = true};
    enum err e = store_open(&s->store, &opts, &s->why);

    if (!e && s->has_model)
        e = embed_new(&s->embed, &s->loop, &s->log, NULL,
                      &(struct embed_opts){.kind = EMBED_TABLE,
                                           .max_waiting = 10,
                                           .max_waiting_bytes = 1 << 20,
                                           .timeout_ms = 1000},
                      &s->why);
    if (e)
        return e;
    s->opts.store = s->store;
    s->opts.embed = s->embed;
    s->r = registry_new(&s->opts);
    return s->r ? registry_load(s->r, &s->why) : ERR_NOMEM;
}

/* As a crash would: nothing is told that it ends. The folder stays. */
static inline void stage_end(struct stage *s)
{
    store_close(s->store);
    registry_free(s->r);
    if (s->embed)
        embed_free(s->embed);
    s->store = NULL;
    s->r = NULL;
    s->embed = NULL;
}

static inline void stage_check(struct stage *s)
{
    if (registry_check(s->r, &s->why) != OK)
        T_FAIL("%s", s->why.text);
}

/* With a snapshot, or without. */
static inline void stage_restart(struct stage *s, bool with_snapshot)
{
    if (with_snapshot)
        registry_stop(s->r);
    stage_end(s);
    CHECK(stage_start(s) == OK);
    stage_check(s);
}

static inline void stage_folder(char out[64])
{
    static const char *const roots[] = {"/dev/shm", "/tmp"};

    for (int i = 0; i < 2; i++) {
        snprintf(out, 64, "%s/signalbox-XXXXXX", roots[i]);
        if (mkdtemp(out))
            return;
    }
    T_FAIL("there is no place for a folder");
}

/* Make the folder; nothing is open yet. */
static inline void stage_prepare(struct stage *s)
{
    memset(s, 0, sizeof(*s));
    s->chance.state = 7;
    s->now_ms = 1700000000000;
    s->orgs[0].user = "anna", s->orgs[0].org = "acme";
    s->orgs[1].user = "bob", s->orgs[1].org = "acme";
    s->orgs[2].user = "carl", s->orgs[2].org = "zeta";
    stage_folder(s->folder);
    CHECK(store_folder_open(&s->held, str_of(s->folder), &s->why) == OK);
    log_init(&s->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_ERROR,
             LOG_JSON, clock_system());
    id_maker_init(&s->ids, rand_seeded(&s->chance));
    CHECK(loop_init(&s->loop, clock_system()) == OK);
    s->opts = (struct registry_opts){.loop = &s->loop,
                                     .log = &s->log,
                                     .ids = &s->ids,
                                     .folder = s->folder,
                                     .seed = {1, 2},
                                     .org_of = stage_org_of,
                                     .on_new = stage_on_new,
                                     .ctx = s};
}

static inline void stage_open(struct stage *s)
{
    stage_prepare(s);
    CHECK(stage_start(s) == OK);
}

static inline void stage_clear(const char *folder)
{
    folder_remove(folder);
}

/* Nothing is open any more. */
static inline void stage_leave(struct stage *s)
{
    loop_fini(&s->loop);
    store_folder_close(&s->held);
    close(s->log.fd);
    stage_clear(s->folder);
}

static inline void stage_close(struct stage *s)
{
    if (s->r)
        stage_check(s);
    stage_end(s);
    stage_leave(s);
}

/* Changes. */

static inline void stage_on_done(struct tx *tx, void *ctx)
{
    (void)tx;
    (void)ctx;
}

/* Commit one that was prepared with `e`, and settle it. */
static inline enum err stage_commit(struct stage *s, struct registry_change *c,
                                    enum err e)
{
    s->is_same = s->is_new = false;
    s->problem[0] = '\0';
    if (s->problems.n)
        snprintf(s->problem, sizeof(s->problem), "%.*s %.*s",
                 STR_ARG(s->problems.list[0].pointer),
                 STR_ARG(s->problems.list[0].message));
    if (!e) {
        s->is_same = c->is_same;
        s->is_new = c->is_new;
        s->revision = c->revision;
        s->grant_id = c->grant_id;
        if (!c->is_same) {
            store_submit(s->store, &c->tx, stage_on_done, NULL);
            store_turn(s->store);
        }
        e = registry_settle(s->r, c, &s->why);
    }
    registry_change_fini(c);
    return e;
}

static inline struct json *stage_json(struct arena *a, const char *text)
{
    struct json *tree = json_parse(a, str_of(text), 0, NULL);

    if (!tree && fault_fired()) /* it hit here, where no test means it to */
        tree = json_parse(a, str_of(text), 0, NULL);
    if (!tree)
        T_FAIL("no JSON: %s", text);
    return tree;
}

static inline struct registry_by stage_by(const struct stage *s,
                                          const struct caller *caller)
{
    return (struct registry_by){.caller = caller, .now_ms = s->now_ms};
}

/* The description that every card must have, where a test does not care. */
static inline void stage_fill_card(char *out, size_t n, const char *card)
{
    bool is_empty = strcmp(card, "{}") == 0;
    int len = strstr(card, "\"description\"")
                  ? snprintf(out, n, "%s", card)
                  : snprintf(out, n, "{\"description\":\"d\"%s%s",
                             is_empty ? "" : ",", card + 1);

    CHECK(len > 0 && (size_t)len < n);
}

/* Prepare, and no more. `name` may be empty. */
static inline enum err stage_begin_put(struct stage *s,
                                       struct registry_change *c,
                                       const char *name, const char *card,
                                       const struct registry_by *by)
{
    char full[8192];
    struct arena a;
    enum err e;

    registry_change_init(c);
    arena_init(&a, 16 << 20);
    stage_fill_card(full, sizeof(full), card);
    e = registry_put(s->r, c, str_of(name), stage_json(&a, full), by,
                     &s->problems, &s->why);
    arena_fini(&a);
    return e;
}

static inline enum err stage_put_if(struct stage *s, const char *name,
                                    const char *card,
                                    const struct registry_by *by)
{
    struct registry_change c;

    return stage_commit(s, &c, stage_begin_put(s, &c, name, card, by));
}

static inline enum err stage_put(struct stage *s, const struct caller *caller,
                                 const char *card)
{
    struct registry_by by = stage_by(s, caller);

    return stage_put_if(s, "", card, &by);
}

static inline enum err stage_patch(struct stage *s, const struct caller *caller,
                                   const char *name, const char *patch)
{
    struct registry_by by = stage_by(s, caller);
    struct registry_change c;
    struct arena a;
    enum err e;

    registry_change_init(&c);
    arena_init(&a, 16 << 20);
    e = registry_patch(s->r, &c, str_of(name), stage_json(&a, patch), &by,
                       &s->problems, &s->why);
    arena_fini(&a);
    return stage_commit(s, &c, e);
}

static inline enum err
stage_remove(struct stage *s, const struct caller *caller, const char *name)
{
    struct registry_by by = stage_by(s, caller);
    struct registry_change c;

    s->problems.n = 0;
    registry_change_init(&c);
    return stage_commit(s, &c,
                        registry_remove(s->r, &c, str_of(name), &by, &s->why));
}

static inline enum err stage_grant(struct stage *s, const struct caller *caller,
                                   const char *agent, const char *user,
                                   const char *org, int64_t expires_ms)
{
    struct registry_by by = stage_by(s, caller);
    struct registry_grant g = {str_of(agent), str_of(user), str_of(org),
                               expires_ms};
    struct registry_change c;

    s->problems.n = 0;
    registry_change_init(&c);
    return stage_commit(s, &c, registry_grant(s->r, &c, &g, &by, &s->why));
}

static inline enum err
stage_ungrant(struct stage *s, const struct caller *caller, const char *id)
{
    struct registry_by by = stage_by(s, caller);
    struct registry_change c;

    s->problems.n = 0;
    registry_change_init(&c);
    return stage_commit(s, &c,
                        registry_ungrant(s->r, &c, str_of(id), &by, &s->why));
}

static inline enum err stage_configure(struct stage *s,
                                       const struct agent *list, size_t n)
{
    struct registry_change c;

    s->problems.n = 0;
    registry_change_init(&c);
    return stage_commit(
        s, &c, registry_configure(s->r, &c, list, n, NULL, s->now_ms, &s->why));
}

/* Looking. */

static inline const struct agent *
stage_find(const struct stage *s, const struct caller *caller, const char *name)
{
    struct eyes eyes =
        caller ? eyes_of(caller, s->now_ms)
               : (struct eyes){.sees_all = true, .now_ms = s->now_ms};

    return registry_find(s->r, str_of(name), &eyes);
}

/* The names that a search by words finds, each with a blank behind it, in the
 * order of the answer. */
struct stage_found {
    char names[4096];
    size_t n;
};

static inline void stage_on_found(void *ctx, uint64_t id,
                                  const struct search_result *r)
{
    struct stage_found *f = ctx;

    (void)id;
    CHECK(r->err == OK);
    f->n = r->n;
    for (size_t i = 0; i < r->n; i++) {
        size_t n = strlen(f->names);

        snprintf(f->names + n, sizeof(f->names) - n, "%.*s ",
                 STR_ARG(r->hits[i].agent->name));
    }
}

static inline struct stage_found
stage_search(struct stage *s, const struct eyes *eyes, const char *text)
{
    struct stage_found f = {.n = 0};
    struct search q = {.text = str_of(text),
                       .limit = SEARCH_LIMIT_MAX,
                       .mode = INDEX_TEXT,
                       .max_price = -1,
                       .eyes = *eyes};
    uint64_t id = 0;

    CHECK(registry_search(s->r, &q, stage_on_found, &f, &id, &s->why) == OK);
    CHECK(id == 0);
    return f;
}

/* The feed, whole: "type agent requester root_user data" a line. Returns how
 * many entries there are. */
static inline size_t stage_feed(struct stage *s, struct buf *out)
{
    struct query q;
    size_t n;

    query_init(&q, &feed_table, 10000);
    query_order(&q, FEED_SEQ, false);
    CHECK(store_look(s->store, &q) == OK && !q.has_more);
    QUERY_EACH(row, &q)
    {
        struct feed_entry e;

        feed_from_row(&e, row);
        if (out)
            buf_addf(out, "%.*s %.*s %.*s %.*s %.*s\n", STR_ARG(e.type),
                     STR_ARG(e.agent), STR_ARG(e.requester),
                     STR_ARG(e.root_user), STR_ARG(e.data));
    }
    n = q.n_rows;
    query_fini(&q);
    return n;
}

/* agent-0 and so on, of all visibilities, with two skills each. */
static inline void stage_make_some(struct stage *s, int n)
{
    for (int i = 0; i < n; i++) {
        char card[512];

        snprintf(card, sizeof(card),
                 "{\"name\":\"agent-%d\",\"description\":\"d\",\"visibility\":"
                 "\"%s\",\"skills\":["
                 "{\"id\":\"a\",\"name\":\"word%d\",\"tags\":[\"even\"]},"
                 "{\"id\":\"b\",\"name\":\"other\",\"description\":"
                 "\"many words of no matter\"}]}",
                 i,
                 i % 3 == 0   ? "private"
                 : i % 3 == 1 ? "shared"
                              : "public",
                 i);
        CHECK(stage_put(s, i % 2 ? &stage_anna : &stage_carl, card) == OK);
    }
}

#endif
