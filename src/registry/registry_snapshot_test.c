/* The snapshot of the index that a start finds, and what is wrong with it. */
#include <sys/stat.h>

#include "registry/internal.h"
#include "test/lib/registry_stage.h"

static void snapshot_path(const struct stage *s, char out[128])
{
    snprintf(out, 128, "%s/index.snapshot", s->folder);
}

static bool has_snapshot(const struct stage *s)
{
    char path[128];

    snapshot_path(s, path);
    return access(path, F_OK) == 0;
}

/* The file, whole. Returns owned. */
static char *read_snapshot(const struct stage *s, size_t *n)
{
    char path[128];
    struct stat st;
    char *bytes;
    FILE *f;

    snapshot_path(s, path);
    f = fopen(path, "rb");
    CHECK(f && fstat(fileno(f), &st) == 0 && st.st_size > 0);
    *n = (size_t)st.st_size;
    bytes = malloc(*n);
    CHECK(bytes && fread(bytes, 1, *n, f) == *n);
    fclose(f);
    return bytes;
}

static void write_snapshot(const struct stage *s, const char *bytes, size_t n)
{
    char path[128];
    FILE *f;

    snapshot_path(s, path);
    f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* Whether this start took the snapshot: the log says so. */
static bool start_was_restored(struct stage *s)
{
    char path[128], line[4096];
    bool is_restored = false;
    FILE *f;

    snprintf(path, sizeof(path), "%s/log", s->folder);
    close(s->log.fd);
    log_init(&s->log, open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
             LOG_INFO, LOG_JSON, clock_system());
    CHECK(stage_start(s) == OK);
    stage_check(s);
    f = fopen(path, "r");
    CHECK(f);
    while (fgets(line, sizeof(line), f))
        is_restored = is_restored || strstr(line, "from its snapshot");
    fclose(f);
    return is_restored;
}

TEST(a_snapshot_is_taken_by_the_next_start_and_by_no_other)
{
    struct stage s;

    stage_prepare(&s);
    s.has_model = true;
    CHECK(stage_start(&s) == OK);
    stage_make_some(&s, 20);
    CHECK(!has_snapshot(&s));
    registry_stop(s.r);
    registry_stop(s.r);
    CHECK(has_snapshot(&s));
    stage_end(&s);
    CHECK(start_was_restored(&s));
    CHECK(!has_snapshot(&s));
    /* It goes on as ever, its numbers still right. */
    CHECK(stage_remove(&s, NULL, "agent-3") == OK);
    stage_make_some(&s, 22);
    stage_check(&s);
    stage_end(&s); /* as a crash would */
    CHECK(!start_was_restored(&s));
    stage_close(&s);
}

TEST(a_snapshot_of_another_state_is_passed_over)
{
    struct stage s;
    char *bytes;
    size_t n;

    stage_open(&s);
    stage_make_some(&s, 5);
    registry_stop(s.r);
    bytes = read_snapshot(&s, &n);
    /* A change settled after it was written is not in it. */
    CHECK(stage_remove(&s, NULL, "agent-1") == OK);
    stage_end(&s);
    CHECK(!start_was_restored(&s));
    /* The same sequence, but others have opened the database in between. */
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"agent-1\"}") == OK);
    stage_end(&s);
    write_snapshot(&s, bytes, n);
    CHECK(!start_was_restored(&s));
    free(bytes);
    stage_close(&s);
}

/* A snapshot that is not of these agents, in ways that no stamp tells. */

static void move_in_index(struct stage *s, const struct agent *a,
                          uint32_t number)
{
    struct index_change *c;

    CHECK(index_prepare(s->r->index, a, NULL, &c) == OK);
    index_put(s->r->index, number, c);
}

static void search_all(struct stage *s)
{
    struct index_query q = {.text = STR("even word0 word1 other matter"),
                            .sees_all = true};
    struct index_hit hit;
    size_t n = 0;

    CHECK(index_search_begin(s->r->index, &q) == OK);
    while (index_next(s->r->index, &hit)) {
        CHECK(hit.number < s->r->n_numbers && s->r->by_number[hit.number]);
        n++;
    }
    index_search_end(s->r->index);
    CHECK_INT(n, s->r->n);
}

TEST(a_snapshot_of_other_agents_is_passed_over)
{
    enum { TOO_MANY, TOO_FEW, OTHER_NUMBER, OTHER_NAME, OTHER_SKILLS, N };

    for (int i = 0; i < N; i++) {
        struct stage s;
        struct agent other;
        const struct agent *first;

        stage_open(&s);
        stage_make_some(&s, 4);
        first = &entry_find(s.r, STR("agent-0"))->agent;
        other = *first;
        if (i == TOO_MANY)
            move_in_index(&s, &other, 1000);
        if (i == TOO_FEW || i == OTHER_NUMBER)
            index_drop(s.r->index, agent_entry(first)->number);
        if (i == OTHER_NUMBER)
            move_in_index(&s, &other, 1000);
        if (i == OTHER_NAME) {
            other.name = STR("agent-9");
            move_in_index(&s, &other, agent_entry(first)->number);
        }
        if (i == OTHER_SKILLS) { /* one has what another has not */
            struct skill skills[3] = {first->skills[0], first->skills[1],
                                      first->skills[1]};
            const struct entry *e = entry_find(s.r, STR("agent-1"));

            other.skills = skills;
            other.n_skills = 3;
            move_in_index(&s, &other, agent_entry(first)->number);
            other = e->agent;
            other.n_skills = 1;
            move_in_index(&s, &other, e->number);
        }
        registry_stop(s.r);
        stage_end(&s);
        CHECK(!start_was_restored(&s));
        CHECK_INT(index_stats(s.r->index).agents, 4);
        search_all(&s);
        stage_close(&s);
    }
}

/* Two young databases have the same epoch, sequence and counts. */
TEST(a_snapshot_of_another_folder_is_passed_over)
{
    struct stage a, b;
    char *bytes;
    size_t n;

    stage_open(&a);
    stage_open(&b);
    stage_make_some(&a, 3);
    CHECK(stage_remove(&a, NULL, "agent-0") == OK);
    CHECK(stage_put(&b, &stage_anna, "{\"name\":\"x\"}") == OK);
    stage_make_some(&b, 2);
    CHECK(stage_remove(&b, NULL, "x") == OK);
    registry_stop(a.r);
    bytes = read_snapshot(&a, &n);
    stage_end(&a);
    stage_end(&b);
    write_snapshot(&b, bytes, n);
    CHECK(!start_was_restored(&b));
    search_all(&b);
    free(bytes);
    stage_leave(&a);
    stage_close(&b);
}

/* Those of a copy of the folder are the same to the last word, until the one
 * or the other is changed. */
TEST(a_snapshot_of_a_copy_that_went_its_own_way_is_passed_over)
{
    struct stage s;
    char command[256], *bytes;
    size_t n;

    stage_open(&s);
    stage_make_some(&s, 2);
    stage_end(&s);
    snprintf(command, sizeof(command), "cp -r %s %s.copy", s.folder, s.folder);
    CHECK(system(command) == 0);
    CHECK(stage_start(&s) == OK);
    CHECK(stage_patch(&s, NULL, "agent-1", "{\"description\":\"bread\"}") ==
          OK);
    registry_stop(s.r);
    bytes = read_snapshot(&s, &n);
    stage_end(&s);
    snprintf(command, sizeof(command), "rm -rf %s && mv %s.copy %s", s.folder,
             s.folder, s.folder);
    CHECK(system(command) == 0);
    CHECK(stage_start(&s) == OK);
    CHECK(stage_patch(&s, NULL, "agent-1", "{\"description\":\"salad\"}") ==
          OK);
    stage_end(&s);
    write_snapshot(&s, bytes, n);
    CHECK(!start_was_restored(&s));
    free(bytes);
    stage_close(&s);
}

TEST(a_damaged_snapshot_harms_nobody)
{
    struct stage s;
    char *bytes;
    size_t n, stride;

    stage_open(&s);
    stage_make_some(&s, 6);
    registry_stop(s.r);
    stage_end(&s);
    bytes = read_snapshot(&s, &n);
    stride = n / 25 + 1;
    for (size_t at = 0; at < n; at += stride) {
        /* One bit. */
        bytes[at] ^= (char)(1 << at % 8);
        write_snapshot(&s, bytes, n);
        CHECK(!start_was_restored(&s));
        stage_end(&s);
        bytes[at] ^= (char)(1 << at % 8);
        /* Cut off. */
        write_snapshot(&s, bytes, at);
        CHECK(!start_was_restored(&s));
        stage_end(&s);
    }
    /* The good one, whose epoch is long over. */
    write_snapshot(&s, bytes, n);
    CHECK(!start_was_restored(&s));
    free(bytes);
    stage_close(&s);
}

/* The same with the stamp made right again, so that it is the index that must
 * see it. */
TEST(a_snapshot_with_the_right_stamp_and_flipped_bits_harms_nobody)
{
    struct stage s;
    int n_restored = 0;

    stage_prepare(&s);
    s.has_model = true;
    CHECK(stage_start(&s) == OK);
    stage_make_some(&s, 6);
    for (unsigned i = 0; i < 40; i++) {
        char *bytes;
        size_t n, at;

        registry_stop(s.r);
        stage_end(&s);
        bytes = read_snapshot(&s, &n);
        at = (i * 7919u) % n;
        if (i % 4)
            bytes[at] ^= (char)(1 << i % 8);
        write_snapshot(&s, bytes, i % 5 == 2 ? at : n);
        free(bytes);
        n_restored += start_was_restored(&s); /* and checks it */
    }
    CHECK(n_restored >= 8);
    stage_close(&s);
}

TEST(a_snapshot_of_another_model_is_passed_over)
{
    struct stage s;

    stage_open(&s);
    stage_make_some(&s, 5);
    registry_stop(s.r);
    stage_end(&s);
    s.has_model = true;
    CHECK(!start_was_restored(&s));
    CHECK_INT(registry_stats(s.r).unembedded, 5);
    CHECK(stage_patch(&s, NULL, "agent-1", "{\"title\":\"x\"}") == OK);
    CHECK_INT(registry_stats(s.r).unembedded, 4);
    stage_restart(&s, true);
    CHECK_INT(registry_stats(s.r).unembedded, 4);
    stage_close(&s);
}

TEST(a_snapshot_that_cannot_be_written_is_no_error)
{
    static const char *const steps[] = {
        "registry.snapshot_open", "registry.snapshot_write",
        "registry.snapshot_sync", "registry.snapshot_rename"};
    struct stage s;

    stage_open(&s);
    stage_make_some(&s, 3);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        fault_arm_at(steps[i], 1);
        registry_stop(s.r);
        CHECK(fault_fired() && !has_snapshot(&s));
        stage_end(&s);
        CHECK(!start_was_restored(&s));
    }
    registry_stop(s.r);
    stage_end(&s);
    fault_arm_at("registry.snapshot_read", 1);
    CHECK(!start_was_restored(&s) && fault_fired());
    stage_close(&s);
}
