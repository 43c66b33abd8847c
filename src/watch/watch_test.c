#include "base/fault.h"
#include "test/t.h"
#include "watch/watch.h"

#include <time.h>

static bool has(const struct buf *b, const char *text)
{
    return memmem(b->p, b->n, text, strlen(text)) != NULL;
}

/* The value of a sample without labels. */
static double value_of(const struct buf *b, const char *name)
{
    const char *at = memmem(b->p, b->n, name, strlen(name));

    CHECK(at);
    return strtod(at + strlen(name), NULL);
}

struct things {
    int64_t all, by_kind[3], buckets[3], sum_ms;
    size_t bytes;
    bool is_full;
};

static struct str number_word(int i)
{
    return i == 0 ? STR("zero") : i == 2 ? STR("two") : STR("");
}

static void written_as(const struct metric *m, const struct metric_source *from,
                       const char *text)
{
    struct buf out;

    buf_init(&out, 4096);
    metrics_write(&out, m, 1, from);
    if (!str_eq(buf_str(&out), str_of(text)))
        T_FAIL("%.*s instead of %s", STR_ARG(buf_str(&out)), text);
    buf_fini(&out);
}

TEST(samples_are_written_as_prometheus_reads_them)
{
    static const int64_t bounds[] = {5, 2500};
    const struct things t = {3, {-1, 8, 7}, {1, 0, 2}, 7500, 9, true};
    const struct metric_series plain = {.values = &t},
                               two[] = {
                                   {{{"who", STR("a")}}, &t},
                                   {{{"who", STR("\"\\\n")}, {"how", STR("b")}},
                                    &t}};
    const struct metric_source from[] = {{&plain, 1}, {two, 2}, {two, 0}, {0}};
    struct metric m = {"a_total", "Things.", METRIC_AT(struct things, all)};

    written_as(&m, from,
               "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\n");
    m.source = 1;
    written_as(&m, from,
               "# HELP a_total Things.\n# TYPE a_total counter\n"
               "a_total{who=\"a\"} 3\n"
               "a_total{who=\"\\\"\\\\\\n\",how=\"b\"} 3\n");
    m.source = 2; /* none at the moment */
    written_as(&m, from, "# HELP a_total Things.\n# TYPE a_total counter\n");
    m.source = 3; /* not there */
    written_as(&m, from, "");
    m = (struct metric){"b", "B.", METRIC_AT(struct things, is_full)};
    written_as(&m, from, "# HELP b B.\n# TYPE b gauge\nb 1\n");
    m = (struct metric){"b", NULL, METRIC_AT(struct things, bytes)};
    written_as(&m, from, "b 9\n");
    m.per = 2;
    written_as(&m, from, "b 4.5\n");
    m = (struct metric){"b", NULL,
                        METRIC_BY("k", struct things, by_kind, "x", NULL, "z")};
    written_as(&m, from, "b{k=\"x\"} -1\nb{k=\"z\"} 7\n");
    m.words = NULL;
    m.word = number_word;
    m.source = 1;
    written_as(&m, (const struct metric_source[]){{0}, {two, 1}},
               "b{who=\"a\",k=\"zero\"} -1\nb{who=\"a\",k=\"two\"} 7\n");
    m = (struct metric){"s_s",
                        "S.",
                        METRIC_AT(struct things, buckets),
                        .per = 1e3,
                        .bounds = bounds,
                        .sum_at = offsetof(struct things, sum_ms)};
    written_as(&m, from,
               "# HELP s_s S.\n# TYPE s_s histogram\n"
               "s_s_bucket{le=\"0.005\"} 1\ns_s_bucket{le=\"2.5\"} 1\n"
               "s_s_bucket{le=\"+Inf\"} 3\ns_s_sum 7.5\ns_s_count 3\n");
    written_as(&(struct metric){"s", "S.", .at = 0}, from,
               "# HELP s S.\n# TYPE s summary\n");
}

TEST(the_process_tells_about_itself)
{
    struct buf out;
    struct watch_files files = {.is_known = false};
    double before, start_s;

    buf_init(&out, 65536);
    metric_process(&out, &files, 5);
    before = value_of(&out, "\nprocess_open_fds ");
    CHECK(value_of(&out, "\nprocess_resident_memory_bytes ") > 100 * 1024);
    start_s = value_of(&out, "\nprocess_start_time_seconds ");
    CHECK(start_s > 1.6e9 && start_s < (double)time(NULL) + 2);
    CHECK(dup(0) >= 0);
    for (int64_t later_ms = 0; later_ms <= 1; later_ms++) {
        double now;

        buf_clear(&out);
        metric_process(&out, &files, 5 + WATCH_FILES_MS - 1 + later_ms);
        now = value_of(&out, "\nprocess_open_fds ");
        CHECK(now - before == (double)later_ms); /* counted when it is time */
    }
    buf_fini(&out);
}

TEST(what_cannot_be_read_is_left_out)
{
    struct watch_files files = {.is_known = false};
    struct buf out;

    buf_init(&out, 65536);
    fault_arm_at("watch.fds", 1);
    metric_process(&out, &files, 0);
    CHECK(fault_fired() && !has(&out, "process_open_fds"));
    CHECK(has(&out, "process_resident_memory_bytes"));
    buf_clear(&out);
    fault_arm_at("watch.stat", 1);
    metric_process(&out, &files, 0); /* what failed is not remembered */
    CHECK(fault_fired() && !has(&out, "process_resident_memory_bytes"));
    CHECK(has(&out, "process_open_fds"));
    buf_fini(&out);
}
