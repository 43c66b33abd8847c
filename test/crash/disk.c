/* Each file is the bytes that are certain and a list of what came after. Files
 * here are small (a database of some hundred KB), so an image is simply a copy
 * with the survivors applied; sharing pages between images was not needed to
 * make a hundred a second. */
#include "test/crash/disk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512, MAX_NAMES = 16, NAME_BYTES = 64 };

struct change {
    const struct record *r;
    const char *bytes;
    uint64_t number; /* of its record */
};

struct changes {
    struct change *list;
    size_t n, room;
};

struct file {
    struct file *next;
    uint64_t inode;
    char *bytes; /* what is certain */
    size_t n, room;
    struct changes unsynced;
};

struct name {
    char name[NAME_BYTES];
    struct file *file;
};

struct names {
    struct name list[MAX_NAMES];
    size_t n;
};

/* A change of names, with the file that a new name is for. */
struct renaming {
    struct change change;
    struct file *file;
};

struct disk {
    struct file *files; /* newest first: inode numbers are used again */
    struct names now, certain;
    struct renaming unsynced[256];
    size_t n_unsynced;
    uint64_t n_records;
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static void *grow(void *list, size_t *room, size_t n, size_t size)
{
    if (n <= *room)
        return list;
    *room = n * 2;
    list = realloc(list, *room * size);
    if (!list)
        die("memory");
    return list;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

struct disk *disk_new(void)
{
    struct disk *d = calloc(1, sizeof(*d));

    if (!d)
        die("memory");
    return d;
}

void disk_free(struct disk *d)
{
    while (d->files) {
        struct file *f = d->files;
        d->files = f->next;
        free(f->bytes);
        free(f->unsynced.list);
        free(f);
    }
    free(d);
}

/* Names. */

static struct name *find_name(struct names *names, const char *name, size_t n)
{
    for (size_t i = 0; i < names->n; i++)
        if (strlen(names->list[i].name) == n &&
            memcmp(names->list[i].name, name, n) == 0)
            return &names->list[i];
    return NULL;
}

static void drop_name(struct names *names, struct name *at)
{
    if (at)
        *at = names->list[--names->n];
}

static void set_name(struct names *names, const char *name, size_t n,
                     struct file *f)
{
    struct name *at = find_name(names, name, n);

    if (!at) {
        if (names->n == MAX_NAMES || n >= NAME_BYTES)
            die("too many names, or too long");
        at = &names->list[names->n++];
    }
    memcpy(at->name, name, n);
    at->name[n] = '\0';
    at->file = f;
}

static void rename_it(struct names *names, const struct renaming *r)
{
    const char *name = r->change.bytes;
    size_t n = r->change.r->n_bytes, n_old;
    struct name *old;

    switch (r->change.r->kind) {
    case RECORD_OPEN: set_name(names, name, n, r->file); break;
    case RECORD_UNLINK: drop_name(names, find_name(names, name, n)); break;
    case RECORD_RENAME:
        n_old = strlen(name);
        old = find_name(names, name, n_old);
        if (old) {
            struct file *f = old->file;
            drop_name(names, old);
            set_name(names, name + n_old + 1, n - n_old - 1, f);
        }
        break;
    }
}

static void change_names(struct disk *d, const struct record *r,
                         const char *bytes, struct file *f)
{
    struct renaming *to = &d->unsynced[d->n_unsynced++];

    if (d->n_unsynced == sizeof(d->unsynced) / sizeof(d->unsynced[0]))
        die("too many names changed without a sync");
    *to = (struct renaming){{r, bytes, d->n_records}, f};
    rename_it(&d->now, to);
}

/* A name that was opened: one that we know, or a new file. */
static void open_file(struct disk *d, const struct record *r, const char *bytes)
{
    struct name *at = find_name(&d->now, bytes, r->n_bytes);
    struct file *f;

    if (at && at->file->inode == r->file)
        return;
    f = calloc(1, sizeof(*f));
    if (!f)
        die("memory");
    f->inode = r->file;
    f->next = d->files;
    d->files = f;
    change_names(d, r, bytes, f);
}

/* Bytes. */

static struct file *find_file(struct disk *d, uint64_t inode)
{
    for (struct file *f = d->files; f; f = f->next)
        if (f->inode == inode)
            return f;
    fprintf(stderr, "a file that was never opened\n");
    exit(2);
}

static void set_size(struct file *f, size_t n)
{
    f->bytes = grow(f->bytes, &f->room, n, 1);
    if (n > f->n)
        memset(f->bytes + f->n, 0, n - f->n);
    f->n = n;
}

static void put(struct file *f, uint64_t at, const char *bytes, size_t n)
{
    if (at + n > f->n)
        set_size(f, at + n);
    memcpy(f->bytes + at, bytes, n);
}

static void change_file(struct file *f, const struct change *c)
{
    if (c->r->kind == RECORD_TRUNCATE)
        set_size(f, c->r->at);
    else
        put(f, c->r->at, c->bytes, c->r->n_bytes);
}

static void sync_file(struct file *f, uint64_t before)
{
    size_t n = 0;

    for (; n < f->unsynced.n && f->unsynced.list[n].number < before; n++)
        change_file(f, &f->unsynced.list[n]);
    f->unsynced.n -= n;
    memmove(f->unsynced.list, f->unsynced.list + n,
            f->unsynced.n * sizeof(f->unsynced.list[0]));
}

static void sync_names(struct disk *d, uint64_t before)
{
    size_t n = 0;

    for (; n < d->n_unsynced && d->unsynced[n].change.number < before; n++)
        rename_it(&d->certain, &d->unsynced[n]);
    d->n_unsynced -= n;
    memmove(d->unsynced, d->unsynced + n,
            d->n_unsynced * sizeof(d->unsynced[0]));
}

void disk_apply(struct disk *d, const struct record *r, const char *bytes)
{
    struct changes *u;

    switch (r->kind) {
    case RECORD_OPEN: open_file(d, r, bytes); break;
    case RECORD_UNLINK:
    case RECORD_RENAME: change_names(d, r, bytes, NULL); break;
    case RECORD_WRITE:
    case RECORD_TRUNCATE:
        u = &find_file(d, r->file)->unsynced;
        u->list = grow(u->list, &u->room, u->n + 1, sizeof(u->list[0]));
        u->list[u->n++] = (struct change){r, bytes, d->n_records};
        break;
    case RECORD_SYNC:
        if (r->file == RECORD_FOLDER)
            sync_names(d, d->n_records - r->at);
        else
            sync_file(find_file(d, r->file), d->n_records - r->at);
        break;
    }
    d->n_records++;
}

size_t disk_unsynced(const struct disk *d)
{
    size_t n = d->n_unsynced;

    for (const struct file *f = d->files; f; f = f->next)
        n += f->unsynced.n;
    return n;
}

/* Images. */

static void put_sectors(struct file *f, const struct change *c, uint64_t *seed)
{
    uint64_t at = c->r->at;
    size_t done = 0;

    if (c->r->kind == RECORD_TRUNCATE) {
        change_file(f, c);
        return;
    }
    while (done < c->r->n_bytes) {
        size_t n = SECTOR - (at + done) % SECTOR;
        if (n > c->r->n_bytes - done)
            n = c->r->n_bytes - done;
        if (next_random(seed) % 2)
            put(f, at + done, c->bytes + done, n);
        done += n;
    }
}

static void survive(struct file *f, const struct changes *u, enum survival how,
                    uint64_t *seed)
{
    size_t torn = how == SURVIVES_TORN ? next_random(seed) % (u->n + 1) : 0;

    for (size_t i = 0; i < u->n; i++) {
        const struct change *c = &u->list[i];
        if (how == SURVIVES_ALL || (how == SURVIVES_TORN && i < torn) ||
            (how == SURVIVES_SOME && next_random(seed) % 2))
            change_file(f, c);
        else if ((how == SURVIVES_TORN && i == torn) ||
                 (how == SURVIVES_SECTORS && next_random(seed) % 2))
            put_sectors(f, c, seed);
    }
}

static void write_image(const char *path, const struct name *name,
                        const char *bytes, size_t n)
{
    char whole[PATH_MAX];
    int fd;

    snprintf(whole, sizeof(whole), "%s/%s", path, name->name);
    fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        die(whole);
    close(fd);
}

void disk_image(const struct disk *d, enum survival how, uint64_t seed,
                const char *path)
{
    struct names names = d->certain;
    size_t n_names = how == SURVIVES_NOTHING ? 0
                     : how == SURVIVES_ALL
                         ? d->n_unsynced
                         : next_random(&seed) % (d->n_unsynced + 1);

    for (size_t i = 0; i < n_names; i++)
        rename_it(&names, &d->unsynced[i]);
    for (size_t i = 0; i < names.n; i++) {
        const struct file *f = names.list[i].file;
        struct file copy = {.n = f->n, .room = f->n};
        copy.bytes = malloc(f->n + 1);
        if (!copy.bytes)
            die("memory");
        if (f->n)
            memcpy(copy.bytes, f->bytes, f->n);
        survive(&copy, &f->unsynced, how, &seed);
        write_image(path, &names.list[i], copy.bytes, copy.n);
        free(copy.bytes);
    }
}
