#ifndef TEST_LIB_FIND_STAGE_H
#define TEST_LIB_FIND_STAGE_H

/* The stage on which vectors and searching are tested: a registry over a real
 * store without its thread, and the model inside the binary or a provider that
 * is a socket of this process (embed_stage.h). A turn of the loop takes a
 * millisecond, whatever it really took.
 *
 * A user's org is what stands behind the dot in their name: "anna.acme". */

#include "registry/registry.h"
#include "test/lib/control.h"
#include "test/lib/embed_stage.h"
#include "test/lib/folder.h"
#include "watch/watch.h"

enum { FIND_WALL_MS = 1700000000 };

struct find {
    struct estage *e;
    char folder[64];
    struct store_folder held;
    struct store *store;
    struct registry *r;
    struct registry_opts opts;
    struct id_maker ids;
    struct rand_seeded chance;
    int64_t mono_ms;
    struct why why; /* of the last refusal */
};

static const struct schema *const find_schemas[] = {&registry_schema,
                                                    &watch_schema};

static inline int64_t find_wall(void *ctx)
{
    (void)ctx;
    return FIND_WALL_MS;
}

/* Read once a turn. */
static inline int64_t find_mono(void *ctx)
{
    return ((struct find *)ctx)->mono_ms++;
}

static inline struct str find_org_of(void *ctx, struct str user)
{
    size_t dot = str_find(user, '.', 0);

    (void)ctx;
    return str_sub(user, dot + 1, user.n);
}

/* A folder of its own: in memory where there is such a place; in find_root if
 * someone means to clear up after us. */
static char find_root[32];

static inline void find_folder(char out[64])
{
    const char *const roots[] = {find_root, "/dev/shm", "/tmp"};

    for (int i = find_root[0] ? 0 : 1; i < 3; i++) {
        snprintf(out, 64, "%s/signalbox-XXXXXX", roots[i]);
        if (mkdtemp(out))
            return;
    }
    T_FAIL("there is no place for a folder");
}

/* Folder and loop; kind: of the model. Nothing else is open yet. */
static inline struct find *find_begin(enum embed_kind kind)
{
    struct find *f = calloc(1, sizeof(*f));

    CHECK(f);
    f->chance = (struct rand_seeded){7};
    f->mono_ms = 1000 * 1000;
    f->e = estage_begin();
    f->e->s->loop.clock =
        (struct clock){.wall_ms = find_wall, .mono_ms = find_mono, .ctx = f};
    f->e->opts.kind = kind;
    f->e->opts.max_waiting = 4096;
    f->e->opts.max_waiting_bytes = 16 << 20;
    f->e->opts.http.batch = 64;
    f->e->opts.http.max_text_bytes = 1000;
    f->e->opts.http.breaker_failures = 1000;
    find_folder(f->folder);
    CHECK(store_folder_open(&f->held, str_of(f->folder), &f->why) == OK);
    id_maker_init(&f->ids, rand_seeded(&f->chance));
    f->opts = (struct registry_opts){
        .loop = &f->e->s->loop,
        .log = &f->e->s->log,
        .ids = &f->ids,
        .seed = {5, 6},
        .limits = {.max_agents = 20000, .max_skills = 200000},
        .org_of = find_org_of,
    };
    return f;
}

/* Embed, store and registry as they were left; false: a fault hit. */
static inline bool find_try_open(struct find *f)
{
    struct store_opts opts = {.folder = f->folder,
                              .schemas = find_schemas,
                              .n_schemas = 2,
                              .max_waiting = 1000,
                              .is_inline = true,
                              .loop = &f->e->s->loop};

    f->e->n_stopped = 0;
    if (embed_new(&f->e->embed, &f->e->s->loop, &f->e->s->log, f->e->s->fetch,
                  &f->e->opts, &f->why) ||
        store_open(&f->store, &opts, &f->why))
        return false;
    f->opts.store = f->store;
    f->opts.embed = f->e->embed;
    f->r = registry_new(&f->opts);
    if (!f->r || registry_load(f->r, &f->why))
        return false;
    registry_begin(f->r);
    return true;
}

static inline void find_close(struct find *f)
{
    if (f->r)
        registry_stop(f->r);
    if (f->e->embed) {
        embed_stop(f->e->embed, estage_stopped, f->e);
        AWAIT(f->e, f->e->n_stopped == 1);
    }
    store_close(f->store);
    registry_free(f->r);
    embed_free(f->e->embed);
    f->store = NULL;
    f->r = NULL;
    f->e->embed = NULL;
}

static inline void find_open(struct find *f)
{
    if (!find_try_open(f))
        T_FAIL("%s", f->why.text);
}

static inline struct find *find_new(enum embed_kind kind)
{
    struct find *f = find_begin(kind);

    find_open(f);
    return f;
}

static inline void find_clear(const char *folder)
{
    folder_remove(folder);
}

static inline void find_free(struct find *f)
{
    find_close(f);
    store_folder_close(&f->held);
    estage_free(f->e);
    find_clear(f->folder);
    free(f);
}

/* With a folder that goes, however the body ended. */
static inline void find_control(const char *planted, void (*body)(void))
{
    char root[64];

    find_folder(root);
    snprintf(find_root, sizeof(find_root), "%.31s", root);
    check_control(planted, body);
    find_clear(root);
}

static inline void find_later(struct find *f, int64_t ms)
{
    f->mono_ms += ms;
    eturns(f->e, 8);
}

/* Changes. */

static inline struct caller find_caller(const char *user)
{
    struct caller c = {.role = ROLE_USER,
                       .scopes = SCOPE_READ | SCOPE_AGENTS | SCOPE_SEND};
    struct str org = find_org_of(NULL, str_of(user));

    if (strcmp(user, "admin") == 0) {
        c.role = ROLE_ADMIN;
        c.scopes = SCOPE_ALL;
    }
    snprintf(c.principal, sizeof(c.principal), "%s", user);
    snprintf(c.org, sizeof(c.org), "%.*s", STR_ARG(org));
    return c;
}

static inline void find_on_done(struct tx *tx, void *ctx)
{
    (void)tx;
    (void)ctx;
}

static inline enum err find_commit(struct find *f, struct registry_change *c,
                                   enum err e)
{
    if (!e && !c->is_same) {
        store_submit(f->store, &c->tx, find_on_done, NULL);
        store_turn(f->store);
    }
    if (!e)
        e = registry_settle(f->r, c, &f->why);
    registry_change_fini(c);
    return e;
}

/* Register a card, as that user. */
static inline enum err find_put(struct find *f, const char *user,
                                const char *card)
{
    struct caller caller = find_caller(user);
    struct registry_by by = {.caller = &caller, .now_ms = FIND_WALL_MS};
    struct card_problems problems = {.n = 0};
    struct registry_change c;
    struct arena arena;
    struct json *json;
    enum err e;

    arena_init(&arena, 8 << 20);
    json = json_parse(&arena, str_of(card), 0, NULL);
    if (!json) /* a fault that met us: it fires once */
        json = json_parse(&arena, str_of(card), 0, NULL);
    CHECK(json);
    registry_change_init(&c);
    e = registry_put(f->r, &c, STR(""), json, &by, &problems, &f->why);
    if (e == ERR_BAD_REQUEST || e == ERR_NOT_ALLOWED)
        card_problems_say(&problems, &f->why);
    e = find_commit(f, &c, e);
    arena_fini(&arena);
    return e;
}

static inline enum err find_remove(struct find *f, const char *user,
                                   const char *name)
{
    struct caller caller = find_caller(user);
    struct registry_by by = {.caller = &caller, .now_ms = FIND_WALL_MS};
    struct registry_change c;

    registry_change_init(&c);
    return find_commit(f, &c,
                       registry_remove(f->r, &c, str_of(name), &by, &f->why));
}

static inline enum err find_grant(struct find *f, const char *by_user,
                                  const char *agent, const char *user,
                                  const char *org, int64_t expires_ms)
{
    struct caller caller = find_caller(by_user);
    struct registry_by by = {.caller = &caller, .now_ms = FIND_WALL_MS};
    struct registry_grant g = {str_of(agent), str_of(user), str_of(org),
                               expires_ms};
    struct registry_change c;

    registry_change_init(&c);
    return find_commit(f, &c, registry_grant(f->r, &c, &g, &by, &f->why));
}

#define PUT(f, user, ...)                                \
    do {                                                 \
        if (find_put(f, user, __VA_ARGS__))              \
            T_FAIL("not registered: %s", (f)->why.text); \
    } while (0)

/* {"name":…,"description":…,"visibility":…}, with "skills" if there are any:
 * JSON. Until the next call but three. */
static inline const char *card(const char *name, const char *description,
                               const char *visibility, const char *skills)
{
    static char text[4][65536];
    static int at;
    char *out = text[at++ % 4];

    snprintf(out, sizeof(text[0]),
             "{\"name\":\"%s\",\"description\":\"%s\",\"visibility\":\"%s\","
             "\"url\":\"echo:\",\"skills\":[%s]}",
             name, description, visibility, skills);
    return out;
}

static inline const char *skill(const char *id, const char *name,
                                const char *description)
{
    static char text[8][4096];
    static int at;
    char *out = text[at++ % 8];

    snprintf(out, sizeof(text[0]),
             "{\"id\":\"%s\",\"name\":\"%s\",\"description\":\"%s\"}", id, name,
             description);
    return out;
}

/* Searching. */

struct found {
    uint64_t id;
    int n_done;
    enum err err;
    size_t n, total;
    enum index_mode mode;
    char note[512];
    struct {
        char name[AGENT_NAME_MAX + 1];
        float score;
        size_t n_matches;
        struct index_match matches[INDEX_MATCHES_MAX];
    } hits[SEARCH_LIMIT_MAX];
};

static inline void found_done(void *ctx, uint64_t id,
                              const struct search_result *r)
{
    struct found *o = ctx;

    CHECK(o->n_done++ == 0 && (!id || id == o->id));
    o->err = r->err;
    o->n = r->n;
    o->total = r->total;
    o->mode = r->mode;
    snprintf(o->note, sizeof(o->note), "%s", r->note.text);
    for (size_t i = 0; i < r->n; i++) {
        const struct search_hit *h = &r->hits[i];

        snprintf(o->hits[i].name, sizeof(o->hits[i].name), "%.*s",
                 STR_ARG(h->agent->name));
        o->hits[i].score = h->score;
        o->hits[i].n_matches = h->n_matches;
        memcpy(o->hits[i].matches, h->matches,
               h->n_matches * sizeof(h->matches[0]));
    }
}

static inline struct eyes find_eyes(const char *user)
{
    return (struct eyes){.user = str_of(user),
                         .org = find_org_of(NULL, str_of(user)),
                         .sees_all = strcmp(user, "admin") == 0,
                         .now_ms = FIND_WALL_MS};
}

static inline struct search find_query(const char *user, const char *text)
{
    return (struct search){.text = str_of(text),
                           .limit = 10,
                           .max_price = -1,
                           .eyes = find_eyes(user)};
}

static inline enum err find_try(struct find *f, const struct search *s,
                                struct found *o)
{
    *o = (struct found){.n_done = 0};
    f->why.text[0] = '\0';
    return registry_search(f->r, s, found_done, o, &o->id, &f->why);
}

static inline void find_search(struct find *f, const struct search *s,
                               struct found *o)
{
    enum err e = find_try(f, s, o);

    if (e)
        T_FAIL("not searched: %s", f->why.text);
    CHECK(!o->id == (o->n_done == 1));
    AWAIT(f->e, o->n_done);
}

/* Search, and the names that were found with a blank behind each. */
static inline const char *find_names(struct find *f, const struct search *s)
{
    static struct found o;
    static char text[SEARCH_LIMIT_MAX * (AGENT_NAME_MAX + 1) + 1];
    size_t at = 0;

    find_search(f, s, &o);
    CHECK_INT(o.err, OK);
    text[0] = '\0';
    for (size_t i = 0; i < o.n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s ",
                               o.hits[i].name);
    return text;
}

static inline bool find_is_embedded(struct find *f, const char *name)
{
    struct agents all = registry_agents(f->r);
    const struct agent *a = agent_find(&all, str_of(name));

    return a && registry_is_embedded(f->r, a);
}

/* How often something was logged. */
static inline int find_n_logged(struct find *f, const char *event)
{
    const char *at = log_text(f->e);
    int n = 0;

    for (; (at = strstr(at, event)); at += strlen(event))
        n++;
    return n;
}

static inline void find_check(struct find *f)
{
    if (registry_check(f->r, &f->why))
        T_FAIL("%s", f->why.text);
}

#endif
