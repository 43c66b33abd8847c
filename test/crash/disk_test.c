#include "base/str.h"
#include "test/crash/disk.h"
#include "test/lib/folder.h"
#include "test/t.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { FILE_A = 7, FILE_B = 8, SEEDS = 200 };

static struct disk *disk;
static char folder[64];

static void remove_folder(void)
{
    folder_remove(folder);
}

static void did(enum record_kind kind, uint64_t file, uint64_t at,
                const char *bytes, size_t n)
{
    static struct record records[64]; /* the disk borrows them */
    static size_t n_records;
    struct record *r = &records[n_records++];

    if (!disk) {
        disk = disk_new();
        snprintf(folder, sizeof(folder), "/tmp/signalbox-test-XXXXXX");
        CHECK(mkdtemp(folder));
        atexit(remove_folder);
    }
    CHECK(n_records < 64);
    *r = (struct record){kind, (uint32_t)n, file, at};
    disk_apply(disk, r, bytes);
}

static void opens(uint64_t file, const char *name)
{
    did(RECORD_OPEN, file, 0, name, strlen(name));
}

static void writes(uint64_t file, uint64_t at, const char *bytes)
{
    did(RECORD_WRITE, file, at, bytes, strlen(bytes));
}

static void syncs(uint64_t file)
{
    did(RECORD_SYNC, file, 0, NULL, 0);
}

/* What is in the file after a cut; NULL when there is none. */
static const char *left(enum survival how, uint64_t seed, const char *name)
{
    static char bytes[65536];
    char path[128];
    ssize_t n;
    int fd;

    remove_folder();
    CHECK(mkdir(folder, 0700) == 0);
    disk_image(disk, how, seed, folder);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    n = read(fd, bytes, sizeof(bytes) - 1);
    close(fd);
    CHECK(n >= 0);
    bytes[n] = '\0';
    return bytes;
}

TEST(what_was_synced_is_always_there)
{
    opens(FILE_A, "a");
    writes(FILE_A, 0, "hello");
    syncs(FILE_A);
    syncs(RECORD_FOLDER);
    CHECK_INT(disk_unsynced(disk), 0);
    for (int how = 0; how < N_SURVIVAL; how++)
        for (uint64_t seed = 0; seed < 5; seed++)
            CHECK_STR(str_of(left(how, seed, "a")), "hello");
    disk_free(disk);
}

TEST(what_was_not_synced_may_be_lost_or_there)
{
    bool was[4] = {false};

    opens(FILE_A, "a");
    writes(FILE_A, 0, "aa");
    syncs(FILE_A);
    syncs(RECORD_FOLDER);
    writes(FILE_A, 0, "b");
    writes(FILE_A, 1, "b");
    CHECK_STR(str_of(left(SURVIVES_NOTHING, 0, "a")), "aa");
    CHECK_STR(str_of(left(SURVIVES_ALL, 0, "a")), "bb");
    for (uint64_t seed = 0; seed < 40; seed++) {
        const char *is = left(SURVIVES_SOME, seed, "a");
        was[(is[0] == 'b') * 2 + (is[1] == 'b')] = true;
    }
    CHECK(was[0] && was[1] && was[2] && was[3]); /* every order of two */
    disk_free(disk);
}

TEST(a_sync_covers_what_came_before_it_began)
{
    opens(FILE_A, "a");
    syncs(RECORD_FOLDER);
    writes(FILE_A, 0, "a");
    writes(FILE_A, 1, "b");
    did(RECORD_SYNC, FILE_A, 1, NULL, 0); /* the second came meanwhile */
    CHECK_STR(str_of(left(SURVIVES_NOTHING, 0, "a")), "a");
    CHECK_STR(str_of(left(SURVIVES_ALL, 0, "a")), "ab");
    disk_free(disk);
}

TEST(a_name_needs_a_sync_of_its_folder)
{
    opens(FILE_A, "a");
    writes(FILE_A, 0, "a");
    syncs(FILE_A);
    CHECK(!left(SURVIVES_NOTHING, 0, "a"));
    syncs(RECORD_FOLDER);
    CHECK(left(SURVIVES_NOTHING, 0, "a"));
    did(RECORD_UNLINK, 0, 0, "a", 1);
    CHECK(left(SURVIVES_NOTHING, 0, "a"));
    CHECK(!left(SURVIVES_ALL, 0, "a"));
    syncs(RECORD_FOLDER);
    CHECK(!left(SURVIVES_NOTHING, 0, "a"));
    disk_free(disk);
}

TEST(a_rename_is_there_or_not)
{
    opens(FILE_A, "a");
    opens(FILE_B, "b");
    writes(FILE_A, 0, "new");
    writes(FILE_B, 0, "old");
    syncs(FILE_A);
    syncs(FILE_B);
    syncs(RECORD_FOLDER);
    did(RECORD_RENAME, 0, 0, "a\0b", 3);
    CHECK_STR(str_of(left(SURVIVES_NOTHING, 0, "b")), "old");
    CHECK_STR(str_of(left(SURVIVES_ALL, 0, "b")), "new");
    CHECK(!left(SURVIVES_ALL, 0, "a"));
    disk_free(disk);
}

TEST(an_inode_that_is_used_again_is_another_file)
{
    opens(FILE_A, "a");
    writes(FILE_A, 0, "old bytes");
    syncs(FILE_A);
    did(RECORD_UNLINK, 0, 0, "a", 1);
    opens(FILE_A, "b");
    writes(FILE_A, 0, "new");
    syncs(FILE_A);
    syncs(RECORD_FOLDER);
    CHECK_STR(str_of(left(SURVIVES_NOTHING, 0, "b")), "new");
    CHECK(!left(SURVIVES_ALL, 0, "a"));
    disk_free(disk);
}

TEST(a_truncation_is_lost_like_a_write)
{
    opens(FILE_A, "a");
    writes(FILE_A, 0, "long");
    syncs(FILE_A);
    syncs(RECORD_FOLDER);
    did(RECORD_TRUNCATE, FILE_A, 1, NULL, 0);
    CHECK_STR(str_of(left(SURVIVES_NOTHING, 0, "a")), "long");
    CHECK_STR(str_of(left(SURVIVES_ALL, 0, "a")), "l");
    disk_free(disk);
}

/* Two sectors in one write: either may be missing. */
TEST(a_write_is_torn_at_sectors)
{
    static char two[1025], half[1025];
    bool was_torn = false;

    memset(two, 'n', 1024);
    memset(half, 'o', 1024);
    opens(FILE_A, "a");
    writes(FILE_A, 0, half);
    syncs(FILE_A);
    syncs(RECORD_FOLDER);
    writes(FILE_A, 0, two);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *is = left(SURVIVES_SECTORS, seed, "a");
        CHECK(strspn(is, is[0] == 'n' ? "n" : "o") % 512 == 0);
        was_torn |= is[0] != is[1023];
    }
    CHECK(was_torn);
    disk_free(disk);
}
