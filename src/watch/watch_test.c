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

TEST(samples_are_written_as_prometheus_reads_them)
{
    struct buf out;

    buf_init(&out, 4096);
    metric_counter(&out, "a_total", "Things.", 3);
    metric_family(&out, "b", "gauge", "Others.");
    metric_int(&out, "b", "kind=\"x\"", -1);
    metric_real(&out, "b", "kind=\"y\"", 0.5);
    CHECK(str_eq(buf_str(&out),
                 STR("# HELP a_total Things.\n# TYPE a_total counter\n"
                     "a_total 3\n# HELP b Others.\n# TYPE b gauge\n"
                     "b{kind=\"x\"} -1\nb{kind=\"y\"} 0.5\n")));
    buf_fini(&out);
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
