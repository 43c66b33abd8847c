#ifndef TEST_LIB_CHANNEL_STAGE_H
#define TEST_LIB_CHANNEL_STAGE_H

/* The stage on which channels are tested: fetch's own, with its servers and
 * its clock, and beside it a store in a folder, a feed and channels. All of
 * the latter can be taken down, politely or not, and built again. */

#include <ftw.h>
#include <sys/stat.h>

#include "base/json.h"
#include "test/lib/fetch_stage.h"
#include "watch/channel.h"

struct channel_stage {
    struct stage *s;
    char path[64];
    struct store_folder folder;
    struct store *store;
    struct feed *feed;
    struct channels *channels;
    struct rand_seeded rand;
    bool is_threaded;
    bool has_stopped;
    int n_done;
    int n_contexts;
    const char *context; /* the text of every task */
};

static inline void cs_committed(void *ctx, const struct tx *tx)
{
    struct channel_stage *c = ctx;

    if (c->feed)
        feed_committed(c->feed, tx);
}

static inline void cs_context(void *ctx, struct str task_id,
                              void (*done)(void *done_ctx, struct str text),
                              void *done_ctx)
{
    struct channel_stage *c = ctx;

    CHECK(task_id.n);
    c->n_contexts++;
    done(done_ctx, str_of(c->context));
}

/* False: a fault hit. */
static inline bool cs_up(struct channel_stage *c)
{
    static const struct schema *const schemas[] = {&watch_schema};
    struct store_opts opts = {.folder = c->folder.path,
                              .schemas = schemas,
                              .n_schemas = 1,
                              .max_waiting = 1000,
                              .is_inline = true,
                              .loop = &c->s->loop,
                              .on_committed = cs_committed,
                              .ctx = c};
    struct why why = {""};

    if (store_open(&c->store, &opts, &why) != OK)
        return false;
    c->feed = feed_new(&c->s->loop, &c->s->log, c->store, &why);
    if (!c->feed)
        return false;
    c->channels =
        channels_new(&(struct channels_opts){.loop = &c->s->loop,
                                             .log = &c->s->log,
                                             .store = c->store,
                                             .feed = c->feed,
                                             .fetch = c->s->fetch,
                                             .folder = c->folder.path,
                                             .rand = rand_seeded(&c->rand),
                                             .is_inline = !c->is_threaded,
                                             .context = cs_context,
                                             .ctx = c});
    return true;
}

static inline void cs_open(struct channel_stage *c)
{
    struct why why = {""};

    *c = (struct channel_stage){.context = ""};
    c->s = stage_new(test_opts());
    snprintf(c->path, sizeof(c->path), "%s/signalbox-channel-XXXXXX",
             t_above());
    CHECK(mkdtemp(c->path));
    CHECK(store_folder_open(&c->folder, str_of(c->path), &why) == OK);
    CHECK(cs_up(c));
}

/* As after a crash: nothing is said to anybody, and no cursor is written. */
static inline void cs_crash(struct channel_stage *c)
{
    struct list_node *n =
        c->channels ? list_first(&c->channels->outputs) : NULL;

    for (; n; n = list_next(&c->channels->outputs, n))
        output_post_cancel(LIST_OF(n, struct output, node));
    store_close(c->store);
    channels_free(c->channels);
    feed_free(c->feed);
    c->store = NULL;
    c->feed = NULL;
    c->channels = NULL;
    turn(c->s, 3);
}

static inline void cs_stopped(void *ctx)
{
    ((struct channel_stage *)ctx)->has_stopped = true;
}

static inline void cs_stop(struct channel_stage *c)
{
    c->has_stopped = false;
    channels_stop(c->channels, cs_stopped, c);
    UNTIL(c->s, c->has_stopped);
    cs_crash(c);
}

static inline int cs_unlink(const char *path, const struct stat *st, int kind,
                            struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline void cs_close(struct channel_stage *c)
{
    if (c->channels)
        cs_stop(c);
    store_folder_close(&c->folder);
    stage_free(c->s);
    nftw(c->path, cs_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* What happens. */

static inline void cs_tx_done(struct tx *tx, void *ctx)
{
    struct channel_stage *c = ctx;

    CHECK(tx->result == TX_COMMITTED);
    c->n_done++;
    tx_fini(tx);
    free(tx);
}

static inline void cs_submit(struct channel_stage *c, struct tx *tx)
{
    int before = c->n_done;

    store_submit(c->store, tx, cs_tx_done, c);
    UNTIL(c->s, c->n_done > before);
}

static inline void cs_happen(struct channel_stage *c, const char *type, int n,
                             const char *data)
{
    struct tx *tx = malloc(sizeof(*tx));

    CHECK(tx);
    tx_init(tx);
    for (int i = 0; i < n; i++)
        feed_append(tx, &(struct feed_entry){.at_ms = 5,
                                             .type = str_of(type),
                                             .task_id = STR("task_1"),
                                             .agent = STR("Z"),
                                             .requester = STR("Jay"),
                                             .data = str_of(data)});
    cs_submit(c, tx);
}

static inline struct channel_stats cs_stats(struct channel_stage *c, size_t i)
{
    struct channel_stats all[8] = {{.cursor = 0}};

    CHECK(channels_stats(c->channels, all, 8) > i);
    return all[i];
}

/* All outputs have everything. */
static inline bool cs_is_idle(struct channel_stage *c)
{
    struct channel_stats all[8];
    size_t n = channels_stats(c->channels, all, 8);

    for (size_t i = 0; i < n; i++)
        if (all[i].backlog)
            return false;
    return true;
}

/* Files. */

static inline const char *cs_path(const struct channel_stage *c,
                                  const char *name)
{
    static char text[4][256];
    static int at;
    char *out = text[at++ % 4];

    snprintf(out, sizeof(text[0]), "%s/%s", c->path, name);
    return out;
}

/* The whole file; empty when there is none. Until the next call. */
static inline struct str cs_read(const struct channel_stage *c,
                                 const char *name)
{
    static char text[1 << 20];
    int fd = open(cs_path(c, name), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

    if (fd >= 0)
        close(fd);
    return (struct str){text, n < 0 ? 0 : (size_t)n};
}

static inline bool cs_has(const struct channel_stage *c, const char *name,
                          const char *text)
{
    struct str s = cs_read(c, name);

    return s.n && memmem(s.p, s.n, text, strlen(text));
}

/* Check that its lines have these seqs, one after the other, and return the
 * last; `from` - 1 for an empty one. */
static inline int64_t cs_check_lines(const struct channel_stage *c,
                                     const char *name, int64_t from)
{
    struct str rest = cs_read(c, name);

    CHECK(!rest.n || rest.p[rest.n - 1] == '\n');
    while (rest.n) {
        static const struct str keys[] = {STR("seq")};
        struct str line = str_cut(&rest, '\n'), value;
        int64_t seq = 0;

        CHECK(json_check(line, NULL) == OK);
        CHECK(json_scan(line, keys, 1, &value, NULL) == OK);
        CHECK(str_to_i64(value, &seq) == OK);
        CHECK_INT(seq, from);
        from++;
    }
    return from - 1;
}

#endif
