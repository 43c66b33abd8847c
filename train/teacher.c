/* A teacher takes a millisecond for a text and there are a million of them, so
 * what it said is kept: one file for each teacher (its weights, and what its
 * arithmetic makes of a sentence), records one behind the other, found by a
 * hash of the text. Another recipe asks only for what is new
 * in it, and a run that was broken off goes on where it was. A record that is
 * not whole (the machine went down) is left out by its check; a text of the
 * same hash as another, of 128 bits, does not happen. */
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    D = TEACHER_DIMS,
    ROUND = 4096, /* texts between two writes to the file */
    PART = 32,    /* texts that one thread takes at once */
    PATH_MAX_BYTES = 4096,
};

struct record {
    uint64_t key[2]; /* of the text */
    int16_t vector[D];
    uint64_t check; /* of all before */
};

static const uint64_t seed_a[2] = {3, 5}, seed_b[2] = {7, 11};

static void key_of(struct str text, uint64_t key[2])
{
    key[0] = hash_bytes(text, seed_a);
    key[1] = hash_bytes(text, seed_b);
}

static uint64_t check_of(const struct record *r)
{
    return hash_bytes(
        (struct str){(const char *)r, offsetof(struct record, check)}, seed_a);
}

/* ---- what earlier runs have left ---- */

struct known {
    int fd;
    struct record *records; /* mapped, only to be read */
    size_t n;
    uint32_t *slots; /* number + 1 */
    size_t mask;
};

static void index_known(struct known *k)
{
    size_t n_slots = 16;

    while (n_slots < 2 * k->n)
        n_slots *= 2;
    k->mask = n_slots - 1;
    k->slots = train_alloc(n_slots, sizeof(k->slots[0]));
    for (size_t i = 0; i < k->n; i++) {
        size_t at = k->records[i].key[0] & k->mask;

        if (check_of(&k->records[i]) != k->records[i].check)
            continue;
        while (k->slots[at])
            at = (at + 1) & k->mask;
        k->slots[at] = (uint32_t)i + 1;
    }
}

static const int16_t *known_find(const struct known *k, struct str text)
{
    uint64_t key[2];

    if (!k->n)
        return NULL;
    key_of(text, key);
    for (size_t at = key[0] & k->mask; k->slots[at]; at = (at + 1) & k->mask) {
        const struct record *r = &k->records[k->slots[at] - 1];

        if (r->key[0] == key[0] && r->key[1] == key[1])
            return r->vector;
    }
    return NULL;
}

static void known_close(struct known *k)
{
    if (k->records)
        munmap(k->records, k->n * sizeof(k->records[0]));
    free(k->slots);
    if (k->fd >= 0)
        close(k->fd);
}

/* A change of how it reckons makes it another teacher, too. */
static enum err name_teacher(const struct teacher *t, char name[HASH_CHARS + 1],
                             struct why *why)
{
    static const char probe[] = "the quick brown fox jumps over the lazy dog";
    struct {
        char hash[HASH_CHARS + 1];
        float v[D];
    } said = {.v = {0}};
    void *scratch = t->scratch_new(t->ctx);

    if (!scratch)
        return why_err(why, ERR_NOMEM, "no memory for the teacher");
    memset(&said, 0, sizeof(said));
    memcpy(said.hash, t->hash, sizeof(said.hash));
    t->embed(t->ctx, scratch, &(struct str){probe, sizeof(probe) - 1}, 1,
             said.v);
    t->scratch_free(t->ctx, scratch);
    train_hash((struct str){(const char *)&said, sizeof(said)}, name);
    return OK;
}

/* For one run alone: two would write into each other's records, and one would
 * cut off what the other is just writing. */
static enum err known_lock(struct known *k, const char *path, struct why *why)
{
    struct stat st;
    off_t spare;

    if (flock(k->fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? why_err(why, ERR_BUSY, "%s is in use by another run", path)
                   : why_err(why, ERR_IO, "cannot lock %s: %s", path,
                             strerror(errno));
    if (fstat(k->fd, &st) != 0)
        return why_err(why, ERR_IO, "cannot look at %s: %s", path,
                       strerror(errno));
    k->n = (size_t)st.st_size / sizeof(struct record);
    spare = st.st_size % (off_t)sizeof(struct record);
    if (spare && ftruncate(k->fd, st.st_size - spare) != 0)
        return why_err(why, ERR_IO, "cannot cut %s: %s", path, strerror(errno));
    return OK;
}

static enum err known_open(struct known *k, const struct teacher *t,
                           const char *folder, struct why *why)
{
    char path[PATH_MAX_BYTES], name[HASH_CHARS + 1];
    void *map;
    enum err e;

    *k = (struct known){.fd = -1};
    if (!folder)
        return OK;
    e = name_teacher(t, name, why);
    if (e)
        return e;
    snprintf(path, sizeof(path), "%s/teacher-%.16s", folder, name);
    if (!FAULT("train.known"))
        k->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (k->fd < 0)
        return why_err(why, ERR_IO, "cannot open %s: %s", path,
                       strerror(errno));
    e = known_lock(k, path, why);
    if (e || !k->n)
        return e;
    map = mmap(NULL, k->n * sizeof(struct record), PROT_READ, MAP_PRIVATE,
               k->fd, 0);
    if (map == MAP_FAILED)
        return why_err(why, ERR_IO, "cannot map %s: %s", path, strerror(errno));
    k->records = map;
    index_known(k);
    return OK;
}

/* ---- what is new ---- */

struct lesson {
    const struct teacher *teacher;
    const struct str *texts;
    const uint32_t *todo;
    int16_t *out;
    void *scratch[CREW_MAX];
};

static void embed_part(void *ctx, unsigned worker, size_t from, size_t to)
{
    struct lesson *l = ctx;
    const struct teacher *t = l->teacher;
    struct str texts[PART] = {{NULL, 0}};
    float v[PART * D];

    for (size_t i = from; i < to; i++)
        texts[i - from] = l->texts[l->todo[i]];
    t->embed(t->ctx, l->scratch[worker], texts, to - from, v);
    for (size_t i = from; i < to; i++) {
        int16_t *out = l->out + (size_t)l->todo[i] * D;

        for (size_t j = 0; j < D; j++)
            out[j] = (int16_t)lrintf(v[(i - from) * D + j] * TEACHER_ONE);
    }
}

static enum err remember(const struct known *k, const struct lesson *l,
                         size_t from, size_t to, struct why *why)
{
    size_t bytes = (to - from) * sizeof(struct record);
    struct record *r;
    enum err e = OK;

    if (k->fd < 0)
        return OK;
    r = train_alloc(to - from, sizeof(*r));
    for (size_t i = from; i < to; i++) {
        struct record *one = &r[i - from];

        key_of(l->texts[l->todo[i]], one->key);
        memcpy(one->vector, l->out + (size_t)l->todo[i] * D,
               sizeof(one->vector));
        one->check = check_of(one);
    }
    if (FAULT("train.remember") || write(k->fd, r, bytes) != (ssize_t)bytes)
        e = why_err(why, ERR_IO, "cannot keep the teacher's vectors: %s",
                    strerror(errno));
    free(r);
    return e;
}

static enum err ask(struct lesson *l, struct crew *crew, const struct known *k,
                    size_t n_todo, bool is_quiet, struct why *why)
{
    struct progress p;
    enum err e = OK;

    for (unsigned i = 0; i < crew_size(crew); i++) {
        l->scratch[i] = l->teacher->scratch_new(l->teacher->ctx);
        if (!l->scratch[i])
            e = why_err(why, ERR_NOMEM, "no memory for the teacher");
    }
    progress_begin(&p, "teacher", is_quiet);
    for (size_t at = 0; at < n_todo && !e; at += ROUND) {
        size_t n = n_todo - at < ROUND ? n_todo - at : ROUND;
        struct lesson part = *l;

        part.todo += at;
        crew_run(crew, n, PART, embed_part, &part);
        e = remember(k, &part, 0, n, why);
        progress_show(&p, at + n, n_todo, "");
    }
    progress_end(&p, "");
    for (unsigned i = 0; i < crew_size(crew); i++)
        if (l->scratch[i])
            l->teacher->scratch_free(l->teacher->ctx, l->scratch[i]);
    return e;
}

enum err teacher_embed(const struct teacher *t, struct crew *crew,
                       const char *folder, const struct str *texts, size_t n,
                       int16_t *out, bool is_quiet, struct why *why)
{
    uint32_t *todo = train_alloc(n, sizeof(todo[0]));
    struct lesson l = {.teacher = t, .texts = texts, .todo = todo, .out = out};
    struct known k;
    size_t n_todo = 0;
    enum err e = known_open(&k, t, folder, why);

    for (size_t i = 0; i < n && !e; i++) {
        const int16_t *v = known_find(&k, texts[i]);

        if (v)
            memcpy(out + i * D, v, D * sizeof(v[0]));
        else
            todo[n_todo++] = (uint32_t)i;
    }
    if (!e && n_todo)
        e = ask(&l, crew, &k, n_todo, is_quiet, why);
    known_close(&k);
    free(todo);
    return e;
}
