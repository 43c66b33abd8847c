#ifndef TEST_LIB_FEED_STAGE_H
#define TEST_LIB_FEED_STAGE_H

/* The stage on which the feed is tested: a real store in a folder of its own,
 * inline, a loop under a fake clock, and readers that write down what they
 * get. The stage can be taken down and built again on the same folder. */

#include <fcntl.h>
#include <ftw.h>

#include "base/fault.h"
#include "test/t.h"
#include "watch/watch.h"

enum { TURNS = 200 };

struct stage {
    struct clock_fake time;
    struct loop loop;
    struct log log;
    char path[64];
    struct store_folder folder;
    struct store *store;
    struct feed *feed;
    size_t max_waiting;
    int n_given_back; /* txs */
    enum tx_result result;
    /* May be NULL. */
    void (*on_committed)(struct stage *s, const struct tx *tx);
};

static inline void stage_committed(void *ctx, const struct tx *tx)
{
    struct stage *s = ctx;

    if (s->feed)
        feed_committed(s->feed, tx);
    if (s->on_committed)
        s->on_committed(s, tx);
}

/* The store on its folder. False: it could not be opened (a fault). */
static inline bool stage_open_store(struct stage *s)
{
    static const struct schema *const schemas[] = {&watch_schema};
    struct store_opts opts = {.folder = s->folder.path,
                              .schemas = schemas,
                              .n_schemas = 1,
                              .max_waiting = s->max_waiting,
                              .is_inline = true,
                              .loop = &s->loop,
                              .on_committed = stage_committed,
                              .ctx = s};
    struct why why = {""};

    return store_open(&s->store, &opts, &why) == OK;
}

static inline bool stage_open_feed(struct stage *s)
{
    struct why why = {""};

    s->feed = feed_new(&s->loop, &s->log, s->store, &why);
    CHECK((s->feed != NULL) == (why.text[0] == '\0'));
    return s->feed != NULL;
}

static inline void stage_open(struct stage *s)
{
    struct why why = {""};

    *s = (struct stage){.time = {.wall_ms = 1700000000000, .mono_ms = 1000},
                        .max_waiting = 1000};
    CHECK(loop_init(&s->loop, clock_fake(&s->time)) == OK);
    log_init(&s->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_WARN,
             LOG_JSON, clock_fake(&s->time));
    /* In memory where there is such a place: that the disk keeps things is for
     * the store to show, and waiting for it would be most of these tests. */
    snprintf(s->path, sizeof(s->path), "%s/signalbox-feed-XXXXXX", t_above());
    CHECK(mkdtemp(s->path));
    CHECK(store_folder_open(&s->folder, str_of(s->path), &why) == OK);
    CHECK(stage_open_store(s));
    CHECK(stage_open_feed(s));
}

static inline void turns(struct stage *s, int n)
{
    while (n-- > 0)
        loop_turn(&s->loop);
}

/* Everybody has left. */
static inline void stage_down(struct stage *s)
{
    feed_free(s->feed);
    s->feed = NULL;
    store_close(s->store);
    s->store = NULL;
    turns(s, 3);
}

static inline void stage_again(struct stage *s)
{
    stage_down(s);
    CHECK(stage_open_store(s));
    CHECK(stage_open_feed(s));
}

static inline int stage_unlink(const char *path, const struct stat *st,
                               int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void stage_close(struct stage *s)
{
    stage_down(s);
    store_folder_close(&s->folder);
    loop_fini(&s->loop);
    close(s->log.fd);
    nftw(s->path, stage_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* Txs. */

static inline struct tx *new_tx(void)
{
    struct tx *tx = malloc(sizeof(*tx));

    CHECK(tx);
    tx_init(tx);
    return tx;
}

static inline void stage_tx_done(struct tx *tx, void *ctx)
{
    struct stage *s = ctx;

    s->n_given_back++;
    s->result = tx->result;
    tx_fini(tx);
    free(tx);
}

static inline void submit(struct stage *s, struct tx *tx)
{
    store_submit(s->store, tx, stage_tx_done, s);
}

/* And wait for what becomes of it. */
static inline enum tx_result submitted(struct stage *s, struct tx *tx)
{
    int before = s->n_given_back;

    submit(s, tx);
    for (int i = 0; i < TURNS && s->n_given_back == before; i++)
        loop_turn(&s->loop);
    CHECK_INT(s->n_given_back, before + 1);
    return s->result;
}

static inline void add_entry(struct stage *s, struct tx *tx,
                             const char *requester, const char *root_user)
{
    feed_append(tx, &(struct feed_entry){.at_ms = s->time.wall_ms,
                                         .type = STR("task.completed"),
                                         .task_id = STR("task_1"),
                                         .requester = str_of(requester),
                                         .root_user = str_of(root_user)});
}

/* n entries in one tx, committed. */
static inline void happen(struct stage *s, int n, const char *requester,
                          const char *root_user)
{
    struct tx *tx = new_tx();

    for (int i = 0; i < n; i++)
        add_entry(s, tx, requester, root_user);
    CHECK_INT(submitted(s, tx), TX_COMMITTED);
}

static inline void prune(struct stage *s, int64_t before_ms, int64_t rows,
                         size_t limit)
{
    struct tx *tx = new_tx();

    feed_prune(s->feed, tx, before_ms, rows, limit);
    CHECK_INT(submitted(s, tx), TX_COMMITTED);
}

/* Readers. */

static inline struct caller caller_of(const char *name, enum role role)
{
    struct caller c = {.role = role, .scopes = role_scopes(role)};

    snprintf(c.principal, sizeof(c.principal), "%s", name);
    return c;
}

struct follower {
    struct feed_reader r;
    struct stage *s;
    bool reads_at_once; /* all there is, in on_news */
    bool is_told;
    int n_news;
    int64_t *seqs;
    size_t n, cap;
};

static inline void follower_note(struct follower *l, int64_t seq)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->seqs = realloc(l->seqs, l->cap * sizeof(*l->seqs));
        CHECK(l->seqs);
    }
    l->seqs[l->n++] = seq;
}

/* One entry, if there is one. Holds the promise of on_news meanwhile. */
static inline bool follower_next(struct follower *l)
{
    struct feed_entry e;

    l->is_told = feed_next(l->s->feed, &l->r, &e);
    if (!l->is_told)
        return false;
    CHECK(feed_is_for(&e, &l->r.caller));
    CHECK_STR(e.type, "task.completed");
    CHECK_STR(e.data, "{}");
    CHECK_INT(e.seq, l->r.after);
    follower_note(l, e.seq);
    return true;
}

static inline void follower_news(struct feed_reader *r)
{
    struct follower *l = LIST_OF(r, struct follower, r);

    CHECK(!l->is_told); /* once, until it has read to the end */
    l->is_told = true;
    l->n_news++;
    while (l->reads_at_once && follower_next(l))
        ;
}

static inline void follow(struct follower *l, struct stage *s,
                          struct caller caller, int64_t after)
{
    *l = (struct follower){
        .s = s, .reads_at_once = true, .r.on_news = follower_news};
    feed_join(s->feed, &l->r, &caller, after);
}

static inline void unfollow(struct follower *l)
{
    feed_leave(l->s->feed, &l->r);
    free(l->seqs);
    l->seqs = NULL;
    l->n = l->cap = 0;
}

/* Exactly these, one after the other. */
static inline void check_got(const struct follower *l, int64_t from, int64_t to)
{
    CHECK_INT(l->n, to - from + 1);
    for (size_t i = 0; i < l->n; i++)
        CHECK_INT(l->seqs[i], from + (int64_t)i);
}

static inline struct caller admin(void)
{
    return caller_of("admin", ROLE_ADMIN);
}

static inline struct caller user(const char *name)
{
    return caller_of(name, ROLE_USER);
}

static inline void hear_nothing(struct feed_reader *r)
{
    (void)r;
}

#endif
