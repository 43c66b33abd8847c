#ifndef CRASH_DISK_H
#define CRASH_DISK_H

/* disk: a folder on a disk that loses what was not synced.
 *
 * Fed with the records of a log, in order, it knows at each moment what is
 * certainly on the disk and what may be: writes and truncations of a file
 * until a sync of that file has ended, names (made, removed, renamed) until a
 * sync of the folder has. An image is what a power cut could leave: all that
 * is certain, and of the rest
 *
 *     nothing             the disk had not begun
 *     everything          as after kill -9
 *     some writes         each one whole or not at all, in any combination,
 *                         which is what reordering comes to
 *     a torn end          all up to some write, and of that one some sectors
 *     some sectors        any of them, of any write
 *
 * Of the names' changes the first few survive, in order, as on every file
 * system with a journal; no sync of a file makes its name certain. */

#include <stddef.h>
#include <stdint.h>

#include "test/crash/record.h"

struct disk;

enum survival {
    SURVIVES_NOTHING,
    SURVIVES_ALL,
    SURVIVES_SOME,
    SURVIVES_TORN,
    SURVIVES_SECTORS,
    N_SURVIVAL,
};

struct disk *disk_new(void);
void disk_free(struct disk *d);

/* The record and its bytes are borrowed for as long as the disk lives. */
void disk_apply(struct disk *d, const struct record *r, const char *bytes);

/* How much may or may not be there: writes and changes of names. */
size_t disk_unsynced(const struct disk *d);

/* Make `path`, an empty folder, what a power cut now could leave. The same
 * seed makes the same image. */
void disk_image(const struct disk *d, enum survival how, uint64_t seed,
                const char *path);

#endif
