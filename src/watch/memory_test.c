#include "watch/watch.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "test/lib/folder.h"
#include "test/t.h"

static char root[64];

static void remove_root(void)
{
    folder_remove(root);
}

static void make_root(void)
{
    snprintf(root, sizeof(root), "%s/signalbox-test-XXXXXX", t_above());
    CHECK(mkdtemp(root));
    atexit(remove_root);
}

/* A file and the folders it is in. */
static void put(const char *path, const char *text)
{
    char full[256];
    FILE *f;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        (void)mkdir(full, 0700);
        *p = '/';
    }
    f = fopen(full, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

TEST(the_least_of_a_group_and_those_above_it_counts)
{
    make_root();
    put("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.max", "70000\n");
    put("/sys/fs/cgroup/memory.max", "90000\n");
    put("/sys/fs/cgroup/x/memory.max", "10\n");
    CHECK_INT(watch_memory_bytes(root), 70000);
    put("/sys/fs/cgroup/a/b/memory.max", "6000\n");
    CHECK_INT(watch_memory_bytes(root), 6000);
}

TEST(groups_of_the_first_version_count_too)
{
    make_root();
    put("/proc/self/cgroup", "4:memory:/a\n3:cpu:/\n0::/\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK_INT(watch_memory_bytes(root), 8000);
}

TEST(nonsense_is_no_limit)
{
    static const char *const texts[] = {
        "", "max", "-1", "99999999999999999999999", "1x", "\n", "x"};
    int64_t machine;

    make_root();
    machine = watch_memory_bytes(root);
    CHECK(machine > 1 << 20 && machine < INT64_MAX);
    put("/proc/self/cgroup", "0::/a\n:::\n\n4:memory\n0::");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        put("/sys/fs/cgroup/a/memory.max", texts[i]);
        CHECK_INT(watch_memory_bytes(root), machine);
    }
}

TEST(an_rlimit_counts)
{
    struct rlimit before, r;
    int64_t n;

    make_root();
    n = watch_memory_bytes(root); /* what it allocates is there by then */
    CHECK(n > 1 << 30);
    CHECK(getrlimit(RLIMIT_DATA, &before) == 0);
    r = before;
    r.rlim_cur = 1 << 30;
    CHECK(setrlimit(RLIMIT_DATA, &r) == 0);
    n = watch_memory_bytes(root);
    CHECK(setrlimit(RLIMIT_DATA, &before) == 0); /* sanitizers need more */
    CHECK_INT(n, 1 << 30);
}

TEST(what_cannot_be_read_is_no_limit)
{
    long nth = 0;

    make_root();
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "5000\n");
    do {
        fault_arm(++nth);
        CHECK(watch_memory_bytes(root) >= 5000);
    } while (fault_fired());
    CHECK_INT(nth, 4);
    fault_arm(0);
    CHECK_INT(watch_memory_bytes(root), 5000);
}

TEST(what_is_left_shrinks_with_the_limit)
{
    struct watch_memory m;
    int64_t left;

    make_root();
    watch_memory_init(&m, root);
    CHECK(m.reserve_bytes >= 8 << 20 && m.reserve_bytes <= 64 << 20);
    left = watch_memory_left(&m, 1000);
    CHECK(left > 0 && left <= watch_memory_bytes(root));
    m.machine_bytes = 4 << 20;
    CHECK_INT(watch_memory_left(&m, 1009), left); /* it was plenty just now */
    CHECK(watch_memory_left(&m, 1010) < m.reserve_bytes);
    CHECK_INT(m.trimmed_at_ms, 1010);
    CHECK(watch_memory_left(&m, 1510) < m.reserve_bytes);
    CHECK_INT(m.trimmed_at_ms, 1010); /* at most once a second */
    watch_memory_init(&m, root);
    m.space_bytes = 4 << 20;
    CHECK(watch_memory_left(&m, 2000) < m.reserve_bytes);
    fault_arm_at("watch.statm", 1);
    CHECK(watch_memory_left(&m, 2000) == INT64_MAX);
}

TEST(free_memory_in_small_pieces_is_not_left)
{
    enum { PIECES = 64, PIECE_BYTES = 64 << 10 };
    struct watch_memory m;
    int64_t whole, in_pieces;
    void *p[PIECES];
    bool is_counted;

    make_root();
    for (int i = 0; i < PIECES; i++)
        CHECK((p[i] = malloc(PIECE_BYTES)) != NULL);
    for (int i = 0; i < PIECES - 1; i++)
        free(p[i]);
    is_counted = mallinfo2().fordblks > 0; /* not with a sanitizer's heap */
    watch_memory_init(&m, root);
    m.space_bytes = 4 << 20;
    m.trimmed_at_ms = 2000;
    whole = watch_memory_left(&m, 2000);
    fault_arm_at("watch.piece", 1);
    in_pieces = watch_memory_left(&m, 2000);
    CHECK(fault_fired());
    CHECK(is_counted ? in_pieces < whole : in_pieces <= whole);
    free(p[PIECES - 1]);
}
