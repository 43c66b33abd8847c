/* Spans and their way to a collector. The collectors are real servers with
 * scripted answers. */
#include "watch/trace.h"

#include "base/json.h"
#include "test/lib/fetch_stage.h"

#define TAKEN "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define ANSWER(status, headers, body, length)                            \
    "HTTP/1.1 " status "\r\n" headers "Content-Length: " length "\r\n\r" \
    "\n" body

static struct buf out;
static struct arena arena;
static struct rand_seeded seed;

static struct task a_task(const char *id, const char *parent, int64_t turn)
{
    return (struct task){.id = id_from(str_of(id)),
                         .agent = STR("translator"),
                         .skill = STR("legal"),
                         .turn = turn,
                         .attempt = 2,
                         .text = STR("my-own-words"),
                         .root_user = STR("anna-the-user"),
                         .requester = STR("anna-the-user"),
                         .parent_id = str_of(parent),
                         .root_id = *parent ? STR("task_root") : STR(""),
                         .by_agent = *parent ? STR("concierge") : STR(""),
                         .depth = *parent ? 1 : 0,
                         .created_ms = 1700000000000,
                         .started_ms = 1700000000100,
                         .budget_ms = 1000,
                         .deadline_ms = 1700000005000,
                         .price_micros = 1500};
}

static const struct task_result completed = {.status = TASK_COMPLETED,
                                             .text = STR("an-answer")};

static const struct json *span_of(const struct task *t,
                                  const struct task_result *r, int64_t at_ms,
                                  const struct task *parent)
{
    const struct json *v;

    buf_fini(&out);
    arena_fini(&arena);
    buf_init(&out, TRACE_SPAN_MAX);
    arena_init(&arena, 1 << 20);
    trace_span(&out, t, r, at_ms, parent);
    CHECK(!out.over);
    v = json_parse(&arena, buf_str(&out), 0, NULL);
    CHECK(v);
    return v;
}

static struct str field(const struct json *v, const char *key)
{
    return json_str_or(json_get(v, str_of(key)), STR(""));
}

static const struct json *attribute(const struct json *span, const char *key)
{
    JSON_EACH(a, json_get(span, STR("attributes")))
    if (str_eq(field(a, "key"), str_of(key)))
        return json_get(a, STR("value"));
    return NULL;
}

TEST(a_span_field_for_field)
{
    struct task root = a_task("task_root", "", 1),
                kid = a_task("task_kid", "task_root", 1);
    const struct json *v = span_of(&kid, &completed, 1700000002345, &root);
    char trace[TRACE_ID_HEX + 1], span[SPAN_ID_HEX + 1];

    trace_id_of(STR("task_root"), trace);
    CHECK_STR(field(v, "traceId"), trace);
    span_id_of(STR("task_kid"), 1, span);
    CHECK_STR(field(v, "spanId"), span);
    span_id_of(STR("task_root"), 1, span);
    CHECK_STR(field(v, "parentSpanId"), span);
    CHECK_STR(field(v, "name"), "translator legal");
    CHECK_INT(json_int_or(json_get(v, STR("kind")), 0), 1);
    CHECK_STR(field(v, "startTimeUnixNano"), "1700000000000000000");
    CHECK_STR(field(v, "endTimeUnixNano"), "1700000002345000000");
    CHECK_INT(json_int_or(json_get(json_get(v, STR("status")), STR("code")), 0),
              1);
    CHECK_STR(field(attribute(v, "signalbox.task_id"), "stringValue"),
              "task_kid");
    CHECK_STR(field(attribute(v, "signalbox.by_agent"), "stringValue"),
              "concierge");
    CHECK_STR(field(attribute(v, "signalbox.attempts"), "intValue"), "2");
    CHECK_STR(field(attribute(v, "signalbox.price_micros"), "intValue"),
              "1500");
    CHECK_STR(field(attribute(v, "signalbox.depth"), "intValue"), "1");
}

TEST(nobodys_words_nor_names_are_in_a_span)
{
    static const struct task_result failed = {.status = TASK_FAILED,
                                              .text = STR("an-answer"),
                                              .error_code = STR("bad"),
                                              .error = STR("words-of-error")};
    struct task t = a_task("task_root", "", 1);
    const struct json *v = span_of(&t, &failed, 1700000002345, NULL);

    CHECK_STR(field(json_get(v, STR("status")), "message"), "bad");
    CHECK(!memmem(out.p, out.n, "my-own-words", 12));
    CHECK(!memmem(out.p, out.n, "an-answer", 9));
    CHECK(!memmem(out.p, out.n, "words-of-error", 14));
    CHECK(!memmem(out.p, out.n, "anna-the-user", 13));
}

TEST(a_root_has_no_parent_and_its_further_turns_hang_on_its_first)
{
    struct task t = a_task("task_root", "", 1);
    char first[SPAN_ID_HEX + 1];
    const struct json *v = span_of(&t, &completed, 1700000002345, NULL);

    span_id_of(STR("task_root"), 1, first);
    CHECK(!json_get(v, STR("parentSpanId")));
    CHECK_INT(json_int_or(json_get(v, STR("kind")), 0), 2);
    t.turn = 2;
    v = span_of(&t, &completed, 1700000005000, NULL);
    CHECK_STR(field(v, "parentSpanId"), first);
    CHECK_STR(field(v, "startTimeUnixNano"), "1700000004000000000");
}

TEST(a_child_hangs_on_the_turn_that_its_parent_was_in)
{
    struct task root = a_task("task_root", "", 3),
                kid = a_task("task_kid", "task_root", 1);
    char span[SPAN_ID_HEX + 1];

    /* The third turn began after the child. */
    span_id_of(STR("task_root"), 2, span);
    CHECK_STR(
        field(span_of(&kid, &completed, 1700000005000, &root), "parentSpanId"),
        span);
    kid.created_ms = 1700000004500;
    span_id_of(STR("task_root"), 3, span);
    CHECK_STR(
        field(span_of(&kid, &completed, 1700000005000, &root), "parentSpanId"),
        span);
    span_id_of(STR("task_root"), 1, span);
    CHECK_STR(
        field(span_of(&kid, &completed, 1700000005000, NULL), "parentSpanId"),
        span);
}

TEST(a_trace_that_began_elsewhere_goes_on)
{
    static const struct str trace =
        STR("4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7");
    struct task root = a_task("task_root", "", 1),
                kid = a_task("task_kid", "task_root", 1);
    char span[SPAN_ID_HEX + 1];
    const struct json *v;

    root.trace = kid.trace = trace;
    v = span_of(&root, &completed, 1700000002345, NULL);
    CHECK_STR(field(v, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
    CHECK_STR(field(v, "parentSpanId"), "00f067aa0ba902b7");
    v = span_of(&kid, &completed, 1700000002345, &root);
    CHECK_STR(field(v, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
    span_id_of(STR("task_root"), 1, span);
    CHECK_STR(field(v, "parentSpanId"), span);
}

TEST(an_end_is_not_before_its_beginning)
{
    struct task t = a_task("task_root", "", 1);
    const struct json *v = span_of(&t, &completed, 1600000000000, NULL);

    CHECK_STR(field(v, "endTimeUnixNano"), "1700000000000000000");
}

/* The way there. */

static struct traces *tr;

static struct traces_settings settings_for(const struct peer *p)
{
    return (struct traces_settings){
        .endpoint = p ? str_of(url_at(p, "/v1/traces?k=s3cret")) : STR(""),
        .headers = STR("x-key=top%20s3cret, x-more = 1"),
        .service = STR("signalbox"),
        .node = STR("main"),
        .max_waiting = 10,
        .batch = 4,
        .delay_ms = 1000,
        .timeout_ms = 100000};
}

static struct stage *begin(const struct peer *p, struct stage *s)
{
    tr = traces_new(&(struct traces_opts){.loop = &s->loop,
                                          .log = &s->log,
                                          .fetch = s->fetch,
                                          .rand = rand_seeded(&seed),
                                          .settings = settings_for(p)});
    CHECK(tr);
    return s;
}

static void on_stopped(void *ctx)
{
    *(bool *)ctx = true;
}

static void stop(struct stage *s)
{
    bool is_over = false;

    traces_stop(tr, on_stopped, &is_over);
    later(s, 0);
    UNTIL(s, is_over);
}

static void end(struct stage *s)
{
    stop(s);
    traces_free(tr);
    stage_free(s);
}

static void add(int from, int n)
{
    for (int i = from; i < from + n; i++) {
        char id[32];
        struct task t;

        snprintf(id, sizeof(id), "task_n%d", i);
        t = a_task(id, "", 1);
        traces_task(tr, &t, &completed, 1700000002000, NULL);
    }
}

static bool has(const struct peer *p, int i)
{
    char text[32];

    snprintf(text, sizeof(text), "\"task_n%d\"", i);
    return peer_heard(p, text);
}

TEST(a_full_batch_goes_at_once_and_the_rest_after_a_while)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, TAKEN);

    begin(p, s);
    add(0, 5);
    UNTIL(s, traces_stats(tr).sent_total == 4);
    CHECK_INT(p->n_asked, 1);
    CHECK_INT(traces_stats(tr).waiting, 1);
    later(s, 1000);
    UNTIL(s, traces_stats(tr).sent_total == 5);
    CHECK_INT(p->n_asked, 2);
    CHECK(peer_heard(p, "POST /v1/traces?k=s3cret HTTP/1.1\r\n"));
    CHECK(peer_heard(p, "x-key: top s3cret\r\n"));
    CHECK(peer_heard(p, "x-more: 1\r\n"));
    CHECK(peer_heard(p, "Content-Type: application/json\r\n"));
    end(s);
}

TEST(a_collector_that_was_down_gets_everything_when_it_is_back)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(
        s, ANSWER("503 Service Unavailable", "Retry-After: 30\r\n", "", "0"));

    begin(p, s);
    add(0, 4);
    UNTIL(s, traces_stats(tr).failures_total == 1);
    add(4, 2);
    turn(s, 20);
    CHECK_INT(p->n_asked, 1);
    later(s, 15000); /* the clock goes on by itself, too */
    turn(s, 20);
    CHECK_INT(p->n_asked, 1);
    p->reply = TAKEN;
    later(s, 30000);
    UNTIL(s, traces_stats(tr).sent_total >= 4);
    later(s, 1000);
    UNTIL(s, traces_stats(tr).sent_total == 6);
    CHECK_INT(traces_stats(tr).dropped_total, 0);
    for (int i = 0; i < 6; i++)
        CHECK(has(p, i));
    end(s);
}

TEST(nobody_listens_there)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, TAKEN);

    begin(p, s);
    peer_leave(p);
    add(0, 4);
    for (int i = 1; i <= 8; i++) {
        UNTIL(s, traces_stats(tr).failures_total == i);
        later(s, 72000);
    }
    CHECK_INT(traces_stats(tr).waiting, 4);
    end(s);
}

TEST(beyond_the_limit_the_oldest_are_dropped_and_counted)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL); /* which never answers */

    begin(p, s);
    add(0, 4); /* these are on their way */
    UNTIL(s, p->n_asked == 1);
    add(4, 10);
    CHECK_INT(traces_stats(tr).waiting, 14);
    CHECK_INT(traces_stats(tr).dropped_total, 0);
    add(14, 1);
    CHECK_INT(traces_stats(tr).waiting, 14);
    CHECK_INT(traces_stats(tr).dropped_total, 1);
    p->reply = TAKEN;
    later(s, 100000); /* it has failed: what is too much then goes, too */
    UNTIL(s, traces_stats(tr).failures_total == 1);
    CHECK_INT(traces_stats(tr).waiting, 10);
    CHECK_INT(traces_stats(tr).dropped_total, 5);
    later(s, 2000);
    UNTIL(s, traces_stats(tr).sent_total >= 8);
    later(s, 2000);
    UNTIL(s, traces_stats(tr).sent_total == 10);
    CHECK(!has(p, 4) && has(p, 5) && has(p, 14));
    end(s);
}

static bool is_logged(const struct stage *s, const char *text)
{
    static char all[64 * 1024];
    ssize_t n = pread(s->log.fd, all, sizeof(all), 0);

    return n > 0 && memmem(all, (size_t)n, text, strlen(text));
}

TEST(secrets_are_in_no_log_line)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, TAKEN);

    p->first_reply = ANSWER("401 Unauthorized",
                            "Content-Type: application/json"
                            "\r\n",
                            "{\"error\":\"bad key top s3cret\"}", "30");
    begin(p, s);
    add(0, 4);
    UNTIL(s, traces_stats(tr).refused_total == 4);
    CHECK(is_logged(s, "traces.refused") && is_logged(s, "bad key"));
    peer_leave(p);
    guest_reset(last_guest(p));
    add(4, 4);
    UNTIL(s, traces_stats(tr).failures_total == 1);
    CHECK(is_logged(s, "traces.failed"));
    CHECK(!is_logged(s, "s3cret") && !is_logged(s, "/v1/traces"));
    end(s);
}

TEST(what_a_collector_will_never_take_holds_nothing_up)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, TAKEN);

    p->first_reply = ANSWER("400 Bad Request", "", "no", "2");
    begin(p, s);
    add(0, 4);
    UNTIL(s, traces_stats(tr).refused_total == 4);
    add(4, 4);
    UNTIL(s, traces_stats(tr).sent_total == 4);
    CHECK_INT(traces_stats(tr).failures_total, 0);
    end(s);
}

TEST(those_that_it_rejected_are_counted)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(
        s, ANSWER("200 OK", "",
                  "{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}", "40"));

    begin(p, s);
    add(0, 4);
    UNTIL(s, traces_stats(tr).refused_total == 3);
    CHECK_INT(traces_stats(tr).sent_total, 1);
    end(s);
}

TEST(what_waits_at_the_end_is_still_posted)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, TAKEN);

    begin(p, s);
    add(0, 9);
    stop(s);
    CHECK_INT(traces_stats(tr).sent_total, 9);
    for (int i = 0; i < 9; i++)
        CHECK(has(p, i));
    traces_free(tr);
    stage_free(s);
}

TEST(the_end_does_not_wait_for_a_collector_that_says_nothing)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, NULL);
    bool is_over = false;

    begin(p, s);
    add(0, 3);
    traces_stop(tr, on_stopped, &is_over);
    UNTIL(s, p->n_asked == 1);
    CHECK(!is_over);
    later(s, TRACE_LAST_MS);
    UNTIL(s, is_over);
    traces_free(tr);
    stage_free(s);
}

TEST(without_an_endpoint_nothing_is_done_until_there_is_one)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, TAKEN);
    struct traces_settings on = settings_for(p), off = settings_for(NULL);

    begin(NULL, s);
    add(0, 20);
    CHECK_INT(traces_stats(tr).waiting, 0);
    CHECK_INT(traces_stats(tr).dropped_total, 0);
    CHECK(!traces_stats(tr).is_on);
    traces_set(tr, &on);
    add(20, 4);
    UNTIL(s, traces_stats(tr).sent_total == 4);
    add(24, 2);
    traces_set(tr, &off);
    CHECK_INT(traces_stats(tr).waiting, 0);
    CHECK_INT(traces_stats(tr).dropped_total, 2);
    end(s);
}

TEST(every_fault_loses_spans_at_most)
{
    long nth = 0;
    bool fired;

    do {
        struct stage *s = stage_new(test_opts());
        struct peer *p = peer_open(s, TAKEN);
        struct traces_settings on = settings_for(p);

        fault_arm(++nth);
        tr = traces_new(&(struct traces_opts){.loop = &s->loop,
                                              .log = &s->log,
                                              .fetch = s->fetch,
                                              .rand = rand_seeded(&seed),
                                              .settings = on});
        add(0, 6);
        turn(s, 5);
        fired = fault_fired();
        fault_arm(0);
        end(s);
    } while (fired);
}
