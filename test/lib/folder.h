#ifndef TEST_LIB_FOLDER_H
#define TEST_LIB_FOLDER_H

/* A folder of a test's own, and everything in it, goes; as rm -rf would do it,
 * without a shell. What is gone already is no matter. */

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#include "test/t.h"

static inline int folder_drop(const char *path, const struct stat *st, int type,
                              struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static inline void folder_remove(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0)
        CHECK(nftw(path, folder_drop, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

#endif
