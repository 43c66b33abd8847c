/* The index as a file, so that a start need not rebuild it.
 *
 * It is written at shutdown and used at the next start if it is of that very
 * state: the same sequence, the same model, and no other program opened the
 * database in between, which the epoch shows. A restored backup or another
 * writer makes it invalid, whatever the sequence. Two databases can share all
 * of that if they are young or one is a copy of the other, so each run of a
 * server draws a random mark and writes it with its changes. The file is read
 * once and then removed: after a crash there is none.
 *
 * Each agent in it must also match the database by number, name and number of
 * skills: an invalid number would crash the first search.
 *
 * Nothing depends on the file: any problem is logged, and the index is built
 * from the rows. A snapshot cannot know the present org of agents; that is set
 * after reading it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "registry/internal.h"

enum { STAMP_VERSION = 3 };

#define SNAPSHOT_BYTES_MAX (INT64_C(8) << 30)
#define SNAPSHOT_FILE      "index.snapshot"

/* Version, epoch, sequence, mark, the hash of the model, the hash of the
 * reference texts: 4 + 8 + 8 + 8 + 32 + 4 bytes. The index itself knows the
 * dimensions of the model. */
static void snapshot_stamp(const struct registry *r, int64_t epoch,
                           uint8_t out[INDEX_STAMP_BYTES])
{
    uint32_t version = STAMP_VERSION, texts = 0;
    struct embed_stamp model = {.dims = 0};

    if (r->opts.embed)
        model = embed_stamp(r->opts.embed);
    if (r->vectors)
        texts = r->vectors->levels.sum;
    memset(out, 0, INDEX_STAMP_BYTES);
    memcpy(out, &version, sizeof(version));
    memcpy(out + 4, &epoch, sizeof(epoch));
    memcpy(out + 12, &r->seq, sizeof(r->seq));
    memcpy(out + 20, &r->mark, sizeof(r->mark));
    memcpy(out + 60, &texts, sizeof(texts));
    for (size_t i = 0; i < EMBED_HASH_CHARS && model.hash[i]; i++) {
        char c = str_lower(model.hash[i]);
        int digit = c <= '9' ? c - '0' : c - 'a' + 10;

        out[28 + i / 2] |= (uint8_t)((digit & 15) << (i % 2 ? 0 : 4));
    }
}

static char *snapshot_path(const struct registry *r, const char *name)
{
    size_t n = strlen(r->opts.folder) + strlen(name) + 2;
    char *path = mem_new(n);

    snprintf(path, n, "%s/%s", r->opts.folder, name);
    return path;
}

static bool snapshot_read_all(int fd, char *to, size_t n)
{
    while (n) {
        ssize_t got = FAULT("registry.snapshot_read") ? -1 : read(fd, to, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        n -= (size_t)got;
    }
    return true;
}

/* Returns owned; NULL: no file, or unreadable. */
static char *snapshot_read_file(const char *path, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    char *bytes = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        st.st_size <= SNAPSHOT_BYTES_MAX) {
        *n = (size_t)st.st_size;
        bytes = FAULT("registry.snapshot_room") ? NULL : malloc(*n);
    }
    if (bytes && !snapshot_read_all(fd, bytes, *n)) {
        free(bytes);
        bytes = NULL;
    }
    close(fd);
    return bytes;
}

/* The index has exactly the agents of the mirror, each with as many
 * documents. */
static bool snapshot_matches_mirror(const struct registry *r)
{
    if (index_stats(r->index).agents != r->n)
        return false;
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *one = agent_entry(r->list[i]);
        struct str name;
        size_t n_docs;

        if (!index_agent(r->index, one->number, &name, &n_docs) ||
            !str_eq(name, one->agent.name) || n_docs != one->agent.n_skills + 1)
            return false;
    }
    return true;
}

/* Take the index over if it matches the mirror: mark embedded agents and set
 * their classes. */
static bool snapshot_adopt(struct registry *r)
{
    struct buf own;
    enum err e = OK;

    if (!snapshot_matches_mirror(r))
        return false;
    buf_init(&own, VECTORS_BYTES_MAX);
    for (size_t i = 0; i < r->n && !e; i++) {
        struct entry *one = agent_entry(r->list[i]);

        buf_clear(&own);
        one->is_embedded = index_vectors(r->index, one->number, &own) &&
                           !index_is_for_now(r->index, one->number);
        e = index_move(r->index, one->number, front_class(one));
    }
    buf_fini(&own);
    return e == OK;
}

static bool snapshot_restore(struct registry *r, struct str bytes,
                             struct why *why)
{
    uint8_t stamp[INDEX_STAMP_BYTES];
    uint32_t dims = index_dims(r->index), quick = index_quick(r->index);

    snapshot_stamp(r, store_epoch(r->opts.store) - 1, stamp);
    if (index_restore(r->index, stamp, bytes, why) != OK)
        return false;
    /* An unconfigured provider has no length yet: any will do. */
    if ((!dims ||
         (index_dims(r->index) == dims && index_quick(r->index) == quick)) &&
        snapshot_adopt(r))
        return true;
    why_err(why, ERR_BAD_CONFIG, "it does not match the database");
    index_set_parts(r->index, dims, quick);
    index_clear(r->index);
    for (size_t i = 0; i < r->n; i++)
        agent_entry(r->list[i])->is_embedded = false;
    return false;
}

bool snapshot_load(struct registry *r)
{
    struct why why = {""};
    char *path, *bytes;
    size_t n = 0;
    bool is_good;

    if (!r->opts.folder)
        return false;
    path = snapshot_path(r, SNAPSHOT_FILE);
    bytes = snapshot_read_file(path, &n);
    is_good = bytes && snapshot_restore(r, (struct str){bytes, n}, &why);
    if (bytes && !is_good)
        log_info(r->opts.log, "registry.snapshot_passed_over",
                 LOG_C("why", why.text));
    unlink(path);
    free(bytes);
    free(path);
    return is_good;
}

struct writer {
    int fd;
    struct buf gathered;
};

static bool snapshot_flush(struct writer *w)
{
    struct str rest = buf_str(&w->gathered);

    while (rest.n) {
        ssize_t put = FAULT("registry.snapshot_write")
                          ? -1
                          : write(w->fd, rest.p, rest.n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        rest = str_sub(rest, (size_t)put, rest.n);
    }
    buf_clear(&w->gathered);
    return true;
}

enum { WRITE_BYTES = 1024 * 1024 };

/* Small pieces are buffered. */
static bool snapshot_write_piece(void *ctx, struct str bytes)
{
    struct writer *w = ctx;

    while (bytes.n) {
        struct str now = str_sub(bytes, 0, WRITE_BYTES - w->gathered.n);

        buf_add_str(&w->gathered, now);
        if (w->gathered.over ||
            (w->gathered.n == WRITE_BYTES && !snapshot_flush(w)))
            return false;
        bytes = str_sub(bytes, now.n, bytes.n);
    }
    return true;
}

static bool snapshot_write_file(const struct registry *r, const char *path)
{
    uint8_t stamp[INDEX_STAMP_BYTES];
    struct writer w = {.fd = -1};
    bool is_whole;

    if (!FAULT("registry.snapshot_open"))
        w.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (w.fd < 0)
        return false;
    buf_init(&w.gathered, WRITE_BYTES);
    snapshot_stamp(r, store_epoch(r->opts.store), stamp);
    is_whole = index_save(r->index, stamp, snapshot_write_piece, &w) == OK &&
               snapshot_flush(&w);
    if (FAULT("registry.snapshot_sync") || fsync(w.fd) != 0)
        is_whole = false;
    if (close(w.fd) != 0)
        is_whole = false;
    buf_fini(&w.gathered);
    return is_whole;
}

void snapshot_save(struct registry *r)
{
    char *path, *next;
    bool is_done;

    if (!r->opts.folder || !r->opts.store || !r->is_loaded)
        return;
    if (!r->mark) /* of a version without marks: nothing to identify it by */
        return;
    path = snapshot_path(r, SNAPSHOT_FILE);
    next = snapshot_path(r, SNAPSHOT_FILE ".new");
    is_done = snapshot_write_file(r, next) &&
              !FAULT("registry.snapshot_rename") && rename(next, path) == 0;
    if (!is_done)
        unlink(next);
    if (is_done)
        log_info(r->opts.log, "registry.snapshot_written",
                 LOG_I("agents", (int64_t)r->n));
    else
        log_warn(r->opts.log, "registry.snapshot_not_written",
                 LOG_C("why", "the next start rebuilds the index"));
    free(path);
    free(next);
}
