/* What a start finds: rows, a snapshot of the index, and what is wrong with
 * either. */
#include <sys/stat.h>

#include "registry/internal.h"
#include "test/lib/registry_stage.h"

static void make_some(struct stage *s, int n)
{
    for (int i = 0; i < n; i++) {
        char card[512];

        snprintf(card, sizeof(card),
                 "{\"name\":\"agent-%d\",\"description\":\"d\",\"visibility\":"
                 "\"%s\",\"skills\":["
                 "{\"id\":\"a\",\"name\":\"word%d\",\"tags\":[\"even\"]},"
                 "{\"id\":\"b\",\"name\":\"other\",\"description\":"
                 "\"many words of no matter\"}]}",
                 i,
                 i % 3 == 0   ? "private"
                 : i % 3 == 1 ? "shared"
                              : "public",
                 i);
        CHECK(stage_put(s, i % 2 ? &stage_anna : &stage_carl, card) == OK);
    }
}

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
    make_some(&s, 20);
    CHECK(!has_snapshot(&s));
    registry_stop(s.r);
    registry_stop(s.r);
    CHECK(has_snapshot(&s));
    stage_end(&s);
    CHECK(start_was_restored(&s));
    CHECK(!has_snapshot(&s));
    /* It goes on as ever, its numbers still right. */
    CHECK(stage_remove(&s, NULL, "agent-3") == OK);
    make_some(&s, 22);
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
    make_some(&s, 5);
    registry_stop(s.r);
    bytes = read_snapshot(&s, &n);
    /* What is settled after it was written is not in it. */
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

TEST(a_damaged_snapshot_harms_nobody)
{
    struct stage s;
    char *bytes;
    size_t n, stride;

    stage_open(&s);
    make_some(&s, 6);
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
    make_some(&s, 6);
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
    make_some(&s, 5);
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

/* The vectors of agent-0 as its row has them, and for which revision. */
static struct str vectors_of(struct stage *s, struct query *q,
                             int64_t *revision)
{
    query_init(q, &vector_table, 1);
    query_if(q, VECTOR_AGENT, IS, value_text(STR("agent-0")));
    CHECK(store_look(s->store, q) == OK && q->rows);
    *revision = row_int(q->rows, VECTOR_REVISION);
    return row_str(q->rows, VECTOR_BYTES);
}

TEST(vectors_go_with_the_texts_they_were_made_from)
{
    struct stage s;
    struct query first, kept, changed;
    struct str bytes;
    int64_t revision;

    stage_prepare(&s);
    s.has_model = true;
    CHECK(stage_start(&s) == OK);
    make_some(&s, 1);
    bytes = vectors_of(&s, &first, &revision);
    CHECK_INT(revision, 1);
    CHECK(stage_patch(&s, NULL, "agent-0", "{\"visibility\":\"public\"}") ==
          OK);
    CHECK(str_eq(vectors_of(&s, &kept, &revision), bytes));
    CHECK_INT(revision, 2);
    CHECK(stage_patch(&s, NULL, "agent-0", "{\"description\":\"cheese\"}") ==
          OK);
    CHECK(!str_eq(vectors_of(&s, &changed, &revision), bytes));
    CHECK_INT(revision, 3);
    CHECK_INT(registry_stats(s.r).unembedded, 0);
    query_fini(&first);
    query_fini(&kept);
    query_fini(&changed);
    stage_restart(&s, false);
    /* Nobody can make new ones now: the old ones go all the same. */
    s.has_model = false;
    stage_restart(&s, false);
    CHECK(stage_patch(&s, NULL, "agent-0", "{\"description\":\"bread\"}") ==
          OK);
    query_init(&first, &vector_table, 1);
    CHECK(store_look(s.store, &first) == OK && !first.rows);
    query_fini(&first);
    stage_close(&s);
}

TEST(a_snapshot_that_cannot_be_written_is_no_error)
{
    static const char *const steps[] = {
        "registry.snapshot_open", "registry.snapshot_write",
        "registry.snapshot_sync", "registry.snapshot_rename", "registry.path"};
    struct stage s;

    stage_open(&s);
    make_some(&s, 3);
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

/* Rows that this version cannot read. */

static void spoil(struct stage *s, uint8_t column, struct value v)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_update(&tx, &agent_table);
    tx_if(op, AGENT_KEY, IS, value_text(STR("agent-0")));
    tx_set(op, column, v);
    store_submit(s->store, &tx, stage_on_done, NULL);
    store_turn(s->store);
    CHECK(tx.result == TX_COMMITTED);
    tx_fini(&tx);
}

TEST(a_row_that_is_not_understood_stops_the_start)
{
    const struct {
        uint8_t column;
        struct value value;
    } cases[] = {
        {AGENT_CARD, value_text(STR("{"))},
        {AGENT_CARD, value_text(STR("{\"name\":\"other\"}"))},
        {AGENT_SHOWN, value_text(STR("agent-9"))},
        {AGENT_NUMBER, value_int(-1)},
        {AGENT_NUMBER, value_int(INT64_MAX)},
        {AGENT_VISIBILITY, value_int(9)},
        {AGENT_KIND, value_int(0)},
        {AGENT_REVISION, value_int(0)},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage s;

        stage_open(&s);
        make_some(&s, 2);
        spoil(&s, cases[i].column, cases[i].value);
        CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
        stage_end(&s);
        CHECK(stage_start(&s) == ERR_BAD_CONFIG);
        CHECK(strstr(s.why.text, "newer"));
        stage_end(&s);
        stage_leave(&s);
    }
}

/* The checker, where memory or index are wrong in one way each. */
TEST(the_check_sees_what_does_not_agree)
{
    struct stage s;
    struct entry *e;

    stage_open(&s);
    make_some(&s, 4);
    CHECK(stage_grant(&s, &stage_anna, "agent-1", "x", "", 0) == OK);
    e = entry_find(s.r, STR("agent-1"));
    stage_check(&s);
    e->agent.revision++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    e->agent.revision--;
    e->agent.updated_ms++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    e->agent.updated_ms--;
    e->grants->list[0].expires_ms++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    e->grants->list[0].expires_ms--;
    s.r->seq++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    s.r->seq--;
    s.r->stats.skills++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    s.r->stats.skills--;
    stage_check(&s);
    /* It has the documents of another. */
    {
        struct index_change *c;

        CHECK(index_prepare(s.r->index, &entry_find(s.r, STR("agent-0"))->agent,
                            NULL, &c) == OK);
        index_put(s.r->index, e->number, c);
        CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
        CHECK(index_prepare(s.r->index, &e->agent, NULL, &c) == OK);
        index_put(s.r->index, e->number, c);
    }
    stage_check(&s);
    index_drop(s.r->index, e->number);
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    stage_end(&s);
    CHECK(stage_start(&s) == OK);
    stage_close(&s);
}
