/* The index as a file, so that a start need not build it anew.
 *
 * It is written when the server stops and taken at the next start if it is of
 * that very state: the same sequence, the same model, and the database not
 * opened by anybody in between, which its epoch tells. So a backup that was
 * put back, or another program that wrote, makes it worthless however its
 * sequence happens to stand. Two databases can have all of that in common, if
 * they are young or one is a copy of the other: so each run of a server draws a
 * mark, which is written with its changes. It is read once and then removed:
 * after a crash there is none.
 *
 * And then each agent in it must be the one that the database has, by number,
 * name and number of skills: a number that leads nowhere would be the end of
 * the first search.
 *
 * Nothing hangs on it: whatever is wrong with it is a line in the log, and the
 * index is built from the rows. What a snapshot cannot know is who belongs to
 * which org by now; that is set right after reading it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "registry/internal.h"

enum { STAMP_VERSION = 3 };

#define SNAPSHOT_BYTES_MAX (INT64_C(8) << 30)
#define SNAPSHOT_FILE      "index.snapshot"

/* Version, epoch, sequence, mark, the hash of the model, the sum of the
 * reference texts: 4 + 8 + 8 + 8 + 32 + 4 bytes, and of the model's dimensions
 * the index knows itself. */
static void make_stamp(const struct registry *r, int64_t epoch,
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

/* Room for the folder and the name. */
static char *path_of(const struct registry *r, const char *name)
{
    size_t n = strlen(r->opts.folder) + strlen(name) + 2;
    char *path = FAULT("registry.path") ? NULL : malloc(n);

    if (path)
        snprintf(path, n, "%s/%s", r->opts.folder, name);
    return path;
}

/* Reading. */

static bool read_all(int fd, char *to, size_t n)
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

/* Returns owned; NULL: there is none, or it cannot be read. */
static char *read_file(const char *path, size_t *n)
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
    if (bytes && !read_all(fd, bytes, *n)) {
        free(bytes);
        bytes = NULL;
    }
    close(fd);
    return bytes;
}

/* Every agent of the mirror is there, as many documents as it has, and none
 * besides. */
static bool is_of_mirror(const struct registry *r)
{
    if (index_stats(r->index).agents != r->n)
        return false;
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *one = entry_of(r->list[i]);
        struct str name;
        size_t n_docs;

        if (!index_agent(r->index, one->number, &name, &n_docs) ||
            !str_eq(name, one->agent.name) || n_docs != one->agent.n_skills + 1)
            return false;
    }
    return true;
}

/* Whether the index has just what the mirror has, and who has vectors. */
static bool adopt(struct registry *r)
{
    struct buf own;
    enum err e = OK;

    if (!is_of_mirror(r))
        return false;
    buf_init(&own, VECTORS_BYTES_MAX);
    for (size_t i = 0; i < r->n && !e; i++) {
        struct entry *one = entry_of(r->list[i]);

        buf_clear(&own);
        one->is_embedded = index_vectors(r->index, one->number, &own) &&
                           !index_is_for_now(r->index, one->number);
        e = index_move(r->index, one->number, index_class_of(&one->agent));
    }
    buf_fini(&own);
    return e == OK;
}

/* From the beginning, with nothing in it. */
static void empty_index(struct registry *r)
{
    index_clear(r->index);
    for (size_t i = 0; i < r->n; i++)
        entry_of(r->list[i])->is_embedded = false;
}

static bool restore(struct registry *r, struct str bytes, struct why *why)
{
    uint8_t stamp[INDEX_STAMP_BYTES];
    uint32_t dims = index_dims(r->index), quick = index_quick(r->index);

    make_stamp(r, store_epoch(r->opts.store) - 1, stamp);
    if (index_restore(r->index, stamp, bytes, why) != OK)
        return false;
    /* A provider that was told nothing has no length yet: any will do. */
    if ((!dims ||
         (index_dims(r->index) == dims && index_quick(r->index) == quick)) &&
        adopt(r))
        return true;
    why_err(why, ERR_BAD_CONFIG, "it has not what the database has");
    index_set_parts(r->index, dims, quick);
    empty_index(r);
    return false;
}

bool snapshot_load(struct registry *r)
{
    struct why why = {""};
    char *path = r->opts.folder ? path_of(r, SNAPSHOT_FILE) : NULL, *bytes;
    size_t n = 0;
    bool is_good;

    if (!path)
        return false;
    bytes = read_file(path, &n);
    is_good = bytes && restore(r, (struct str){bytes, n}, &why);
    if (bytes && !is_good)
        log_info(r->opts.log, "registry.snapshot_passed_over",
                 LOG_C("why", why.text));
    unlink(path);
    free(bytes);
    free(path);
    return is_good;
}

/* Writing. */

struct writer {
    int fd;
    struct buf gathered;
};

static bool flush(struct writer *w)
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

/* Small pieces gather first. */
static bool write_piece(void *ctx, struct str bytes)
{
    struct writer *w = ctx;

    while (bytes.n) {
        struct str now = str_sub(bytes, 0, WRITE_BYTES - w->gathered.n);

        buf_add_str(&w->gathered, now);
        if (w->gathered.over || (w->gathered.n == WRITE_BYTES && !flush(w)))
            return false;
        bytes = str_sub(bytes, now.n, bytes.n);
    }
    return true;
}

static bool write_file(const struct registry *r, const char *path)
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
    make_stamp(r, store_epoch(r->opts.store), stamp);
    is_whole = index_save(r->index, stamp, write_piece, &w) == OK && flush(&w);
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
    bool is_done = false;

    if (!r->opts.folder || !r->opts.store || !r->is_loaded)
        return;
    if (!r->mark) /* of a version that drew none: nothing to know it by */
        return;
    path = path_of(r, SNAPSHOT_FILE);
    next = path_of(r, SNAPSHOT_FILE ".new");
    if (path && next) {
        is_done = write_file(r, next) && !FAULT("registry.snapshot_rename") &&
                  rename(next, path) == 0;
        if (!is_done)
            unlink(next);
    }
    if (is_done)
        log_info(r->opts.log, "registry.snapshot_written",
                 LOG_I("agents", (int64_t)r->n));
    else
        log_warn(r->opts.log, "registry.snapshot_not_written",
                 LOG_C("why", "the next start builds the index anew"));
    free(path);
    free(next);
}
