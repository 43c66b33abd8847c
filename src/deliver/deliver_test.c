#include "deliver/internal.h"

#include "base/buf.h"
#include "base/fault.h"
#include "test/t.h"

enum { CHUNK_MAX = 16 * 1024, WORDS_MAX = 256, BYTES_MAX = 512 * 1024 };

/* The callbacks, a letter each: w(orking), c(hunk), r(esult). */
static struct {
    struct clock_fake time;
    struct loop loop;
    struct deliver *d;
    char words[64]; /* the first of them */
    size_t n_words, n_results, n_bytes;
    struct buf text; /* of all chunks */
    struct delivery_id last;
    char order[32][ID_BYTES]; /* of the first results */
    /* Called with each word, after it was noted. */
    void (*then)(char word, const struct delivery_id *d);
} s;

static void note(char word, const struct delivery_id *d)
{
    if (s.n_words < sizeof(s.words) - 1)
        s.words[s.n_words] = word;
    s.n_words++;
    s.last = *d;
    if (s.then)
        s.then(word, d);
}

static void on_working(void *ctx, const struct delivery_id *d)
{
    CHECK(ctx == &s);
    note('w', d);
}

static void on_chunk(void *ctx, const struct delivery_id *d, struct str text)
{
    CHECK(ctx == &s && text.n > 0 && text.n <= CHUNK_MAX);
    s.n_bytes += text.n;
    buf_add_str(&s.text, text);
    note('c', d);
}

static void on_result(void *ctx, const struct delivery_id *d,
                      const struct task_result *r, uint64_t receipt)
{
    CHECK(!receipt);
    CHECK(ctx == &s && r->status == TASK_COMPLETED);
    CHECK(!r->metadata.n && !r->error_code.n && !r->error.n);
    if (s.n_results < 32)
        memcpy(s.order[s.n_results], d->task_id.text, ID_BYTES);
    s.n_results++;
    s.n_bytes += r->text.n;
    deliver_cancel(s.d, str_of(d->task_id.text)); /* as the walk does */
    note('r', d);
}

/* The offered tasks, as the task module has them. */
static struct task offered;
static struct agent offered_to;

static bool on_go(void *ctx, struct str task_id, const struct task **t,
                  const struct agent **a)
{
    CHECK(ctx == &s && str_eq(task_id, str_of(offered.id.text)));
    *t = &offered;
    *a = &offered_to;
    return true;
}

static const struct agent *agent_of(void *ctx, struct str name)
{
    CHECK(ctx == &s && str_eq(name, STR("echo")));
    return &offered_to;
}

static void on_retry(void *ctx, const struct delivery_id *d, int64_t delay_ms,
                     struct str because)
{
    (void)delay_ms;
    CHECK(ctx == &s && because.n);
    deliver_cancel(s.d, str_of(d->task_id.text));
}

static struct deliver *make(size_t max)
{
    struct deliver_opts opts = {.loop = &s.loop,
                                .settings = {.max_in_flight = max,
                                             .in_flight = (int64_t)max,
                                             .max_attempts = 3,
                                             .max_gathered_bytes = 64 << 20},
                                .agent_of = agent_of,
                                .on_go = on_go,
                                .on_retry = on_retry,
                                .seed = {1, 2},
                                .on_working = on_working,
                                .on_chunk = on_chunk,
                                .on_result = on_result,
                                .ctx = &s};

    return deliver_new(&opts);
}

static void open_stage(size_t max)
{
    s.time = (struct clock_fake){.wall_ms = 5000, .mono_ms = 100};
    CHECK(loop_init(&s.loop, clock_fake(&s.time)) == OK);
    buf_init(&s.text, 64 << 20);
    s.d = make(max);
    CHECK(s.d);
}

static void close_stage(void)
{
    deliver_free(s.d);
    loop_turn(&s.loop);
    loop_fini(&s.loop);
    buf_fini(&s.text);
}

/* Offered, and it may go at once. */
static enum err start_text(const char *name, const char *url, struct str text)
{
    enum err e;

    offered_to = (struct agent){.name = STR("echo"), .url = str_of(url)};
    offered = (struct task){.turn = 2, .attempt = 3, .text = text};
    snprintf(offered.id.text, sizeof(offered.id.text), "%s", name);
    e = deliver_offer(s.d, &offered, &offered_to);
    s.d->n_gone = 0; /* the turn's share is another matter */
    agent_queues_on_end_of_turn(&s.d->go_job);
    memset(&offered, 0xee, sizeof(offered)); /* it was borrowed */
    if (!e && !deliver_has(s.d, str_of(name)))
        e = ERR_NOMEM;
    return e;
}

static enum err start(const char *name, const char *url)
{
    return start_text(name, url, STR("hello"));
}

static void turns(int n)
{
    while (n--)
        loop_turn(&s.loop);
}

TEST(an_echo_works_speaks_and_ends_with_what_it_was_told)
{
    open_stage(10);
    CHECK(start("task_a", "echo:") == OK);
    CHECK(s.n_words == 0); /* not before it has returned */
    CHECK(deliver_stats(s.d).on_the_way == 1);
    turns(1);
    CHECK(strcmp(s.words, "wcr") == 0);
    CHECK_STR(buf_str(&s.text), "hello");
    CHECK(s.n_bytes == 10);
    CHECK(strcmp(s.last.task_id.text, "task_a") == 0);
    CHECK(s.last.turn == 2 && s.last.attempt == 3);
    turns(3);
    CHECK(s.n_words == 3);
    close_stage();
}

TEST(a_delay_is_waited_for_by_the_clock_that_does_not_jump)
{
    open_stage(10);
    CHECK(start("task_a", "echo:250") == OK);
    turns(1);
    CHECK(strcmp(s.words, "w") == 0);
    s.time.mono_ms += 249;
    s.time.wall_ms += 1000 * 1000;
    turns(5);
    CHECK(strcmp(s.words, "w") == 0);
    s.time.mono_ms += 1;
    s.time.wall_ms = 0;
    turns(1);
    CHECK(strcmp(s.words, "wcr") == 0);
    close_stage();
}

TEST(working_is_said_first_even_when_time_has_flown)
{
    open_stage(10);
    CHECK(start("task_a", "echo:1") == OK);
    s.loop.is_fresh = false; /* and the clock is looked at again */
    s.time.mono_ms += 100;
    turns(1);
    CHECK(strcmp(s.words, "wcr") == 0);
    close_stage();
}

TEST(an_empty_message_is_answered_without_chunks)
{
    open_stage(10);
    CHECK(start_text("task_a", "echo:", (struct str){0}) == OK);
    turns(1);
    CHECK(strcmp(s.words, "wr") == 0 && s.n_bytes == 0);
    close_stage();
}

static void check_chunks(struct str text, size_t n_chunks)
{
    open_stage(10);
    CHECK(start_text("task_a", "echo:", text) == OK);
    for (int i = 0; i < 1000 && !s.n_results; i++)
        turns(1);
    CHECK(s.n_results == 1);
    CHECK_INT(s.n_words, n_chunks + 2);
    CHECK(str_eq(buf_str(&s.text), text));
    CHECK(s.n_bytes == 2 * text.n);
    close_stage();
    memset(&s, 0, sizeof(s));
}

static void check_whole(char word, const struct delivery_id *d)
{
    (void)d;
    /* The chunks so far end with a whole character. */
    if (word == 'c')
        CHECK(s.text.n % 3 == 0);
}

TEST(chunks_are_cut_at_16_kib)
{
    static char text[1024 * 1024];

    memset(text, 'x', sizeof(text));
    check_chunks((struct str){text, CHUNK_MAX - 1}, 1);
    check_chunks((struct str){text, CHUNK_MAX}, 1);
    check_chunks((struct str){text, CHUNK_MAX + 1}, 2);
    check_chunks((struct str){text, sizeof(text)}, 64);
}

TEST(chunks_are_cut_between_characters)
{
    static char text[99999];

    for (size_t i = 0; i < sizeof(text); i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3); /* the euro */
    s.then = check_whole;
    check_chunks((struct str){text, sizeof(text)}, 7);
}

/* Four bytes each: the cut goes back as far as it can have to. */
TEST(the_longest_characters_stay_whole_too)
{
    static char text[4 * CHUNK_MAX + 1];

    for (size_t off = 0; off < 4; off++) {
        memset(text, 'x', off);
        for (size_t i = off; i + 4 < sizeof(text); i += 4)
            memcpy(text + i, "\xf0\x9f\x90\x98", 4);
        check_chunks((struct str){text, 4 * CHUNK_MAX - 4 + off}, 4);
    }
}

/* Invalid UTF-8 is cut anywhere, and arrives whole. */
TEST(what_is_no_text_still_comes_through)
{
    static char text[3 * CHUNK_MAX];

    memset(text, 0x80, sizeof(text));
    check_chunks((struct str){text, sizeof(text)}, 3);
}

TEST(what_is_counted_adds_up)
{
    struct deliver_stats st;

    open_stage(10);
    CHECK(start("task_a", "echo:") == OK);
    CHECK(start("task_b", "echo:5") == OK);
    CHECK(start("task_c", "echo:5") == OK);
    turns(1);
    deliver_cancel(s.d, STR("task_b"));
    deliver_cancel(s.d, STR("task_b"));
    deliver_cancel(s.d, STR("task_a")); /* over already */
    deliver_cancel(s.d, STR("task_x"));
    st = deliver_stats(s.d);
    CHECK(st.on_the_way == 1 && st.started_total == 3);
    CHECK(st.results_total == 1 && st.cancelled_total == 1);
    close_stage();
}

/* Cancelling. */

TEST(nothing_is_heard_of_what_was_cancelled)
{
    open_stage(10);
    CHECK(start("task_a", "echo:") == OK);
    CHECK(start("task_b", "echo:5") == OK);
    deliver_cancel(s.d, STR("task_a"));
    turns(1);
    CHECK(strcmp(s.words, "w") == 0); /* b's */
    deliver_cancel(s.d, STR("task_b"));
    s.time.mono_ms += 10;
    turns(2);
    CHECK(strcmp(s.words, "w") == 0);
    CHECK(s.loop.timers.n == 1); /* the room's own */
    close_stage();
}

static char cancel_at;    /* the word in which to cancel */
static size_t cancel_nth; /* the how many-th of these */

static void cancel_in_word(char word, const struct delivery_id *d)
{
    if (word == cancel_at && cancel_nth-- == 0)
        deliver_cancel(s.d, str_of(d->task_id.text));
}

static void check_cancel(char word, size_t nth, const char *heard)
{
    static char text[3 * CHUNK_MAX];

    memset(&s, 0, sizeof(s));
    memset(text, 'x', sizeof(text));
    cancel_at = word;
    cancel_nth = nth;
    s.then = cancel_in_word;
    open_stage(10);
    CHECK(start_text("task_a", "echo:", (struct str){text, sizeof(text)}) ==
          OK);
    turns(5);
    CHECK(strcmp(s.words, heard) == 0);
    CHECK(deliver_stats(s.d).on_the_way == 0);
    CHECK(deliver_stats(s.d).cancelled_total == (word != 'r'));
    close_stage();
}

TEST(it_can_be_cancelled_from_inside_every_callback)
{
    check_cancel('w', 0, "w");
    check_cancel('c', 0, "wc");
    check_cancel('c', 1, "wcc");
    check_cancel('c', 2, "wccc");
    check_cancel('r', 0, "wcccr"); /* too late, and harmless */
}

static void cancel_all_others(char word, const struct delivery_id *d)
{
    if (word == 'c' && strcmp(d->task_id.text, "task_b") == 0) {
        deliver_cancel(s.d, STR("task_a"));
        deliver_cancel(s.d, STR("task_c"));
    }
}

TEST(others_can_be_cancelled_from_inside_a_callback)
{
    open_stage(10);
    s.then = cancel_all_others;
    CHECK(start("task_a", "echo:") == OK);
    CHECK(start("task_b", "echo:") == OK);
    CHECK(start("task_c", "echo:") == OK);
    turns(3);
    /* Each in its turn: all work, a speaks, b speaks and is alone then. */
    CHECK(strcmp(s.words, "wwwccr") == 0);
    CHECK(strcmp(s.order[0], "task_b") == 0);
    close_stage();
}

static int n_again;

static void start_again(char word, const struct delivery_id *d)
{
    if (word == cancel_at && n_again-- > 0) {
        if (word != 'r')
            deliver_cancel(s.d, str_of(d->task_id.text));
        CHECK(start(d->task_id.text, "echo:") == OK);
    }
}

TEST(a_task_can_be_started_again_from_inside_a_callback)
{
    static const char *const heard[] = {"wcrwcrwcr", "wwwcr", "wcwcwcr"};
    static const char at[] = "rwc";

    for (size_t i = 0; i < 3; i++) {
        memset(&s, 0, sizeof(s));
        open_stage(1);
        s.then = start_again;
        cancel_at = at[i];
        n_again = 2;
        CHECK(start("task_a", "echo:") == OK);
        turns(4);
        CHECK(strcmp(s.words, heard[i]) == 0);
        CHECK(deliver_stats(s.d).started_total == 3);
        close_stage();
    }
}

TEST(what_is_on_its_way_is_dropped_at_the_end)
{
    open_stage(10);
    CHECK(start("task_a", "echo:5") == OK);
    CHECK(start("task_b", "echo:") == OK);
    CHECK(start("task_c", "echo:") == OK);
    deliver_cancel(s.d, STR("task_c"));
    close_stage();
    CHECK(s.n_words == 0);
    deliver_free(NULL);
}

/* Much at once. */

/* One turn, and what was said in it keeps to its share. The last word of a
 * turn may be a result, which is as long as it is. */
static void small_turn(size_t longest)
{
    size_t words = s.n_words, bytes = s.n_bytes;

    turns(1);
    CHECK(s.n_words - words <= WORDS_MAX);
    CHECK(s.n_bytes - bytes < BYTES_MAX + longest);
}

TEST(thousands_at_once_come_in_order_and_in_small_turns)
{
    enum { N = 5000 };
    int n_turns = 0;

    open_stage(N);
    for (int i = 0; i < N; i++) {
        char name[32];

        snprintf(name, sizeof(name), "task_%05d", i);
        CHECK(start(name, i % 2 ? "echo:7" : "echo:") == OK);
    }
    s.time.mono_ms += 7;
    for (; s.n_results < N; n_turns++) {
        CHECK(n_turns < 3 * N / WORDS_MAX + 2);
        small_turn(5);
    }
    CHECK(s.n_words == 3 * N && n_turns > 3 * N / WORDS_MAX - 1);
    for (int i = 1; i < 32; i++)
        CHECK(strcmp(s.order[i - 1], s.order[i]) < 0);
    CHECK(deliver_stats(s.d).on_the_way == 0);
    close_stage();
}

TEST(megabytes_hold_up_neither_the_loop_nor_the_small)
{
    enum { LONG = 1024 * 1024, N = 8 };
    char *text = malloc(LONG);
    int n_turns = 0;

    CHECK(text);
    memset(text, 'x', LONG);
    open_stage(100);
    for (int i = 0; i < N; i++) {
        char name[32];

        snprintf(name, sizeof(name), "task_long%d", i);
        CHECK(start_text(name, "echo:", (struct str){text, LONG}) == OK);
    }
    CHECK(start("task_small", "echo:") == OK);
    for (; s.n_results < N + 1; n_turns++) {
        CHECK(n_turns < 100);
        small_turn(LONG);
    }
    CHECK(n_turns > 2 * N);
    CHECK(strcmp(s.order[0], "task_small") == 0);
    CHECK(s.n_bytes == 2 * (N * (size_t)LONG + 5));
    close_stage();
    free(text);
}

static struct loop_job starter;

static void start_one(struct loop_job *job)
{
    (void)job;
    CHECK(start("task_next", "echo:") == OK);
}

static void start_by_job(char word, const struct delivery_id *d)
{
    (void)d;
    if (word == 'r')
        loop_at_end(&s.loop, &starter);
}

/* An answer that leads to the next question, for ever. */
TEST(those_who_start_the_next_one_do_not_keep_the_turn)
{
    open_stage(10);
    starter.run = start_one;
    s.then = start_by_job;
    CHECK(start("task_next", "echo:") == OK);
    for (int i = 1; i <= 10; i++) {
        small_turn(5);
        CHECK_INT(s.n_words, WORDS_MAX * i);
    }
    s.then = NULL;
    turns(2);
    close_stage();
}

/* Any order of starting, cancelling and time: what was started is heard of to
 * its end, unless it was cancelled. */
TEST(everything_started_ends_once)
{
    enum { N = 64, STEPS = 30000 };
    struct rand_seeded state = {11};
    struct rand r = rand_seeded(&state);
    struct deliver_stats st;
    char name[32];

    open_stage(N);
    for (int i = 0; i < STEPS; i++) {
        unsigned which = (unsigned)(rand_u64(r) % (N + 10));

        snprintf(name, sizeof(name), "task_%u", which);
        switch (rand_u64(r) % 6) {
        case 0: turns(1); break;
        case 1: s.time.mono_ms += 3; break;
        case 2: deliver_cancel(s.d, str_of(name)); break;
        default: {
            char url[32];
            enum err e;

            deliver_cancel(s.d, str_of(name)); /* so that it is not there */
            snprintf(url, sizeof(url), "echo:%u", (unsigned)(rand_u64(r) % 20));
            e = start(name, url);
            st = deliver_stats(s.d);
            CHECK(e == OK || (e == ERR_OVERLOADED && st.on_the_way == N));
        }
        }
        st = deliver_stats(s.d);
        CHECK(st.started_total ==
              st.results_total + st.cancelled_total + st.on_the_way);
    }
    s.time.mono_ms += 100;
    turns(5);
    st = deliver_stats(s.d);
    CHECK(st.on_the_way == 0 && st.results_total > 1000);
    CHECK((size_t)st.results_total == s.n_results);
    CHECK(st.cancelled_total > 1000);
    close_stage();
}

TEST(delivering_survives_every_fault)
{
    long nth = 0;

    do {
        enum err a = ERR_NOMEM, b = ERR_NOMEM;
        bool has_fired;

        memset(&s, 0, sizeof(s));
        s.time = (struct clock_fake){.wall_ms = 5000, .mono_ms = 100};
        CHECK(loop_init(&s.loop, clock_fake(&s.time)) == OK);
        fault_arm(++nth);
        s.d = make(10);
        CHECK(s.d || fault_fired());
        if (s.d) {
            a = start("task_a", "echo:");
            b = start("task_b", "echo:5");
            CHECK(deliver_stats(s.d).on_the_way == (a == OK) + (b == OK));
        }
        has_fired = fault_fired();
        CHECK(has_fired || (a == OK && b == OK));
        CHECK((a == OK || a == ERR_NOMEM) && (b == OK || b == ERR_NOMEM));
        fault_arm(0);
        s.time.mono_ms += 5;
        turns(2);
        CHECK(s.n_results == (size_t)(a == OK) + (size_t)(b == OK));
        close_stage();
        if (!has_fired)
            break;
    } while (nth < 100);
    CHECK(nth > 2 && nth < 100);
}
