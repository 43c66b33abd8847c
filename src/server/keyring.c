/* A new key is written under another name and then linked, so that two servers
 * that start together end up with one key. */
#include "server/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/paths.h"

enum { FILE_BYTES_MAX = 512 };

#define HOW "; a key is 64 hexadecimal digits: openssl rand -hex 32 > FILE"

static enum err keyring_set(struct keyring *k, struct str text,
                            const char *from, struct why *why)
{
    snprintf(k->from, sizeof(k->from), "%s", from);
    if (seal_key_read(text, &k->key) != OK)
        return why_err(why, ERR_BAD_CONFIG,
                       "seal: %.300s does not contain a key" HOW, from);
    k->has_key = true;
    return OK;
}

/* ERR_NOT_FOUND: it does not exist. ERR_NOT_ALLOWED: no permission. */
static enum err keyring_read_file(struct keyring *k, const char *path,
                                  struct why *why)
{
    int fd = FAULT("keyring.open") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    char text[FILE_BYTES_MAX];
    ssize_t n;

    if (fd < 0 && errno == EACCES)
        return why_err(why, ERR_NOT_ALLOWED,
                       "seal.keyFile: %.300s may not be read by this user",
                       path);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return why_err(why, ERR_NOT_FOUND,
                       "seal.keyFile: there is no file %.300s" HOW, path);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (n < 0)
        why_err(why, ERR_BAD_CONFIG, "seal.keyFile: %.300s cannot be read: %s",
                path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return n < 0 ? ERR_BAD_CONFIG
                 : keyring_set(k, (struct str){text, (size_t)n}, path, why);
}

static bool write_key_file(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_whole;

    if (fd < 0)
        return false;
    is_whole = !FAULT("keyring.write") && write(fd, text, n) == (ssize_t)n &&
               fsync(fd) == 0;
    return close(fd) == 0 && is_whole;
}

/* Creates the file's folder and the one above it (~/.config/signalbox), only
 * accessible to the owner. A missing home folder is not created. */
static void make_key_folders(const char *path)
{
    struct str folder = str_of(path);
    char part[KEYRING_PATH_BYTES];

    for (int above = 2; above >= 1; above--) {
        size_t end = folder.n;

        for (int up = 0; up < above; up++)
            while (end > 0 && folder.p[--end] != '/')
                ;
        snprintf(part, sizeof(part), "%.*s", (int)end, path);
        (void)mkdir(part, 0700); /* a failure shows when the file is written */
    }
}

/* If two servers start together, the first creates the file and both read it.
 */
static enum err keyring_make_file(struct keyring *k, const char *path,
                                  struct why *why)
{
    struct rand chance = rand_system();
    unsigned char bytes[SEAL_KEY_BYTES];
    char text[2 * SEAL_KEY_BYTES + 2], temp[KEYRING_PATH_BYTES + 32];
    bool is_made;
    int e;

    for (size_t i = 0; i < sizeof(bytes); i += sizeof(uint64_t)) {
        uint64_t bits = rand_u64(chance);

        memcpy(bytes + i, &bits, sizeof(bits));
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * SEAL_KEY_BYTES] = '\n';
    make_key_folders(path);
    snprintf(temp, sizeof(temp), "%s.%ld", path, (long)getpid());
    (void)unlink(temp);
    is_made = write_key_file(temp, text, 2 * SEAL_KEY_BYTES + 1) &&
              link(temp, path) == 0;
    e = errno;
    (void)unlink(temp);
    if (!is_made && e != EEXIST)
        return why_err(why, ERR_IO, "cannot write a key to %.300s: %s", path,
                       strerror(e));
    k->is_new = is_made;
    return keyring_read_file(k, path, why);
}

/* A key in the data folder would be part of every copy of the data. Both paths
 * are compared with links resolved; a missing one is compared by its name. */
static bool key_is_in_folder(const char *path, struct str folder)
{
    char key[PATH_MAX], data[PATH_MAX];

    return path_real(str_of(path), key) && path_real(folder, data) &&
           path_is_within(key, data);
}

static enum err keyring_find(struct keyring *k, const struct config *c,
                             bool may_make, struct why *why)
{
    const char *home = c->secrets.home_file.p;
    enum err e = ERR_NOT_FOUND;

    if (c->secrets.credential_file.n)
        e = keyring_read_file(k, c->secrets.credential_file.p, why);
    if (e != ERR_NOT_FOUND)
        return e == ERR_NOT_ALLOWED ? ERR_BAD_CONFIG : e;
    if (!c->secrets.home_file.n || key_is_in_folder(home, c->data)) {
        why_err(&k->why_not, ERR_NOT_FOUND,
                "there is no folder for a key outside the data folder: HOME is "
                "not set, or is inside it");
        return OK;
    }
    e = keyring_read_file(k, home, why);
    if (e == ERR_NOT_ALLOWED) /* a home that belongs to another user */
        k->why_not = *why;
    else if (e == ERR_NOT_FOUND && may_make)
        e = keyring_make_file(k, home, &k->why_not);
    else if (e == ERR_NOT_FOUND)
        why_err(&k->why_not, e, "there is no key yet; serve creates %.300s",
                home);
    return e == ERR_BAD_CONFIG ? e : OK;
}

enum err keyring_open(struct keyring *k, const struct config *c, bool may_make,
                      struct why *why)
{
    enum err e;

    *k = (struct keyring){.has_key = false};
    if (c->secrets.key.n)
        return keyring_set(k, c->secrets.key, c->secrets.key_variable.p, why);
    if (!c->secrets.key_file.n) {
        why_err(&k->why_not, ERR_NOT_FOUND, "seal.keyFile is empty");
        return OK;
    }
    if (str_eq(c->secrets.key_file, STR(CONFIG_RULES_AUTO)))
        return keyring_find(k, c, may_make, why);
    if (key_is_in_folder(c->secrets.key_file.p, c->data))
        return why_err(why, ERR_BAD_CONFIG,
                       "seal.keyFile: %.300s is in the data folder, next to "
                       "the sealed data; keep it elsewhere",
                       c->secrets.key_file.p);
    e = keyring_read_file(k, c->secrets.key_file.p, why);
    return e == ERR_NOT_FOUND || e == ERR_NOT_ALLOWED ? ERR_BAD_CONFIG : e;
}
