/* Lines to a child and from it, at their limits and beyond. */
#include "test/lib/child_stage.h"

#include <signal.h>
#include <sys/eventfd.h>

static void run_sh(struct kid *k, const char *script)
{
    start_sh(k->s, k, script);
    await_end(k);
}

TEST(output_comes_as_lines_whatever_is_in_them)
{
    static const struct {
        const char *script;
        struct str said;
    } cases[] = {
        {"printf ''", STR("")},
        {"printf 'a\\n'", STR("a|")},
        {"printf 'a\\nb\\n\\nc\\n'", STR("a|b||c|")},
        {"printf '\\n'", STR("|")},
        {"printf 'a\\r\\nb\\rc\\n'", STR("a\r|b\rc|")},
        {"printf 'a\\0b\\n\\0\\n'", STR("a\0b|\0|")},
        {"printf 'x\\342\\200\\250y\\302\\205z\\n'",
         STR("x\xe2\x80\xa8y\xc2\x85z|")},
        {"printf '\\377\\376\\n'", STR("\xff\xfe|")},
        {"printf 'no end'", STR("no end|")}, /* the last is one, too */
        {"printf 'a\\nno end'", STR("a|no end|")},
        {"printf 'a\\n\\r'", STR("a|\r|")},
        {"printf a; sleep 0; printf 'b\\nc'; sleep 0; printf 'd\\n'",
         STR("ab|cd|")},
    };
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_sh(&k, cases[i].script);
        CHECK(str_eq(kid_said(&k), cases[i].said));
        CHECK(k.end.why == CHILD_EXITED && k.end.exit_status == 0);
    }
    stage_fini(&s);
}

TEST(a_line_may_be_as_long_as_its_limit_and_no_longer)
{
    static const struct {
        const char *script; /* the limit is 4096 */
        int n_lines;
        enum child_end_why why;
    } cases[] = {
        {"echo first; printf '%04096d\\n' 0", 2, CHILD_EXITED},
        {"echo first; printf '%04096d' 0", 2, CHILD_EXITED},
        {"echo first; printf '%04097d\\n' 0", 1, CHILD_LONG_LINE},
        {"echo first; printf '%04097d' 0", 1, CHILD_LONG_LINE},
        {"echo first; printf '%090000d\\nx\\n' 0", 1, CHILD_LONG_LINE},
        {"echo first; tr '\\n' x </dev/zero", 1, CHILD_LONG_LINE},
        {"echo first; printf '%04097d' 0; exec sleep 1000", 1, CHILD_LONG_LINE},
    };
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_sh(&k, cases[i].script);
        CHECK_INT(k.n_lines, cases[i].n_lines);
        CHECK_INT(k.end.why, cases[i].why);
    }
    CHECK_INT(children_stats(s.all).killed_total, 0); /* asking was enough */
    stage_fini(&s);
}

TEST(a_line_that_is_too_long_is_told_also_of_who_had_ended)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "echo first; printf '%04097d' 0; exit 3");
    child_pause(s.all, k.id, true);
    UNTIL(&s, child_pid(s.all, k.id) == 0);
    child_pause(s.all, k.id, false);
    await_end(&k);
    CHECK(k.end.why == CHILD_LONG_LINE && k.end.exit_status == 3);
    CHECK_STR(kid_said(&k), "first|");
    stage_fini(&s);
}

TEST(a_limit_of_nothing_lets_empty_lines_through)
{
    struct child_opts o = opts_of(NULL, 0);
    struct stage s;
    struct kid k = {.s = &s};

    o.max_line_bytes = 0;
    stage_init(&s, 4);
    start_sh_opts(&s, &k, "printf '\\n\\n'", o);
    await_end(&k);
    CHECK(k.n_lines == 2 && k.end.why == CHILD_EXITED);
    start_sh_opts(&s, &k, "printf '\\nx\\n'", o);
    await_end(&k);
    CHECK(k.n_lines == 1 && k.end.why == CHILD_LONG_LINE);
    stage_fini(&s);
}

/* It ignores the signal and goes on: what it says is read and thrown away,
 * never kept. */
TEST(a_line_without_end_costs_no_more_than_its_limit)
{
    struct stage s;
    struct kid k = {.s = &s};
    struct child *c;

    stage_init(&s, 4);
    start_sh(&s, &k, "trap '' TERM; exec cat /dev/zero");
    c = children_find(s.all, k.id);
    UNTIL(&s, c->state == CHILD_IS_ASKED);
    for (int i = 0; i < 200; i++) {
        wait_turn(&s);
        CHECK(c->heard.cap <= 4096 + READ_BYTES);
    }
    later(&s, GRACE_MS);
    await_end(&k);
    CHECK(k.end.why == CHILD_LONG_LINE && k.end.signal == SIGKILL);
    CHECK_INT(children_stats(s.all).killed_total, 1);
    stage_fini(&s);
}

/* Much output. */

static void check_order(struct kid *k, struct str line)
{
    int64_t v;

    CHECK(str_to_i64(line, &v) == OK && v == k->n_lines);
}

TEST(many_lines_come_whole_and_in_order)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "exec seq 200000");
    k.act = check_order;
    await_end(&k);
    CHECK_INT(k.n_lines, 200000);
    CHECK(k.end.why == CHILD_EXITED);
    stage_fini(&s);
}

TEST(lines_longer_than_a_pipe_come_whole)
{
    struct child_opts o = opts_of(NULL, 0);
    struct stage s;
    struct kid k = {.s = &s};

    o.max_line_bytes = 3000000;
    stage_init(&s, 4);
    start_sh_opts(&s, &k, "printf '%03000000d\\n%03000000d\\nx\\n' 0 0", o);
    await_end(&k);
    CHECK(k.n_lines == 3 && k.n_bytes == 6000001);
    CHECK(k.end.why == CHILD_EXITED);
    stage_fini(&s);
}

TEST(who_never_stops_talking_leaves_others_their_turn)
{
    struct stage s;
    struct kid noisy = {.s = &s}, cat = {.s = &s};
    int most = 0;

    stage_init(&s, 4);
    start_sh(&s, &noisy, "exec yes");
    start_sh(&s, &cat, "exec cat");
    UNTIL(&s, noisy.n_lines > 1000);
    send_line(&cat, "here");
    while (cat.n_lines == 0) {
        int before = noisy.n_lines;

        wait_turn(&s);
        if (noisy.n_lines - before > most)
            most = noisy.n_lines - before;
    }
    for (int i = 0; i < 100; i++) {
        int before = noisy.n_lines;

        wait_turn(&s);
        if (noisy.n_lines - before > most)
            most = noisy.n_lines - before;
    }
    CHECK_INT(most, LINES_PER_TURN);
    CHECK(children_find(s.all, noisy.id)->heard.cap <= 4096 + READ_BYTES);
    stage_fini(&s);
}

static void on_ready_always(uv_poll_t *h, int status, int events)
{
    (void)h, (void)status, (void)events;
}

/* Then libuv looks again and again before the turn ends. */
TEST(who_is_ready_among_a_thousand_is_read_once_a_turn)
{
    enum { N = 1100 };
    static uv_poll_t polls[N];
    static int fds[N];
    struct rlimit files;
    struct stage s;
    struct kid k = {.s = &s};

    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    stage_init(&s, 4);
    start_sh(&s, &k, "exec yes $(printf '%04090d' 0)");
    for (int i = 0; i < N; i++) {
        fds[i] = eventfd(1, EFD_CLOEXEC);
        CHECK(uv_poll_init(&s.loop.uv, &polls[i], fds[i]) == 0);
        CHECK(uv_poll_start(&polls[i], UV_READABLE, on_ready_always) == 0);
    }
    for (int i = 0; i < 200; i++) {
        wait_turn(&s);
        CHECK(k.n_ends == 0);
        CHECK(children_find(s.all, k.id)->heard.cap <= 4096 + READ_BYTES);
    }
    CHECK(k.n_lines > 100);
    for (int i = 0; i < N; i++) {
        uv_close((uv_handle_t *)&polls[i], NULL);
        close(fds[i]);
    }
    stage_fini(&s);
}

/* Empty lines in a pipe that it has made larger than a read: the end waits for
 * all of them, though its time is up. */
TEST(what_was_in_the_pipe_at_its_end_is_read_however_long_it_takes)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_python(&s, &k,
                 "import fcntl, os\n"
                 "fcntl.fcntl(1, 1031, 1 << 20)\n" /* F_SETPIPE_SZ */
                 "os.write(1, b'\\n' * 600000)\n"
                 "fcntl.fcntl(2, 1031, 1 << 20)\n"
                 "os.write(2, b'x' * 600000 + b'end')",
                 opts_of(NULL, 0));
    child_pause(s.all, k.id, true);
    UNTIL(&s, child_pid(s.all, k.id) == 0);
    child_pause(s.all, k.id, false);
    turn(&s, 1);
    later(&s, LAST_WORDS_MS * 10);
    CHECK(k.n_lines < 600000 && k.n_ends == 0);
    await_end(&k);
    CHECK_INT(k.n_lines, 600000);
    CHECK(k.end.exit_status == 0);
    CHECK_STR(str_sub(k.end.stderr_tail, 997, 1000), "end");
    stage_fini(&s);
}

/* Standard error. */

TEST(the_end_of_its_standard_error_is_kept)
{
    struct stage s;
    struct kid k = {.s = &s};
    char want[2048];

    stage_init(&s, 4);
    run_sh(&k, "echo out; echo 'not found' >&2; printf 'x\\377' >&2; exit 3");
    CHECK_STR(k.end.stderr_tail, "not found\nx\xef\xbf\xbd");
    CHECK_STR(kid_said(&k), "out|");
    run_sh(&k, "exec 2>&1; echo out");
    CHECK_STR(k.end.stderr_tail, "");
    /* At its limit of 1000 and beyond. */
    run_sh(&k, "printf '%01000d' 7 >&2");
    snprintf(want, sizeof(want), "%01000d", 7);
    CHECK_STR(k.end.stderr_tail, want);
    run_sh(&k, "printf 'x%01000d' 7 >&2");
    CHECK_STR(k.end.stderr_tail, want);
    run_sh(&k, "seq 100000 >&2; printf '%01000d' 7 >&2");
    CHECK_STR(k.end.stderr_tail, want);
    stage_fini(&s);
}

TEST(endless_standard_error_neither_blocks_nor_gathers)
{
    struct stage s;
    struct kid k = {.s = &s}, cat = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "yes complaint >&2 & read x; echo $x");
    start_sh(&s, &cat, "exec cat");
    UNTIL(&s, children_find(s.all, k.id)->tail.is_cut);
    send_line(&cat, "here");
    UNTIL(&s, cat.n_lines == 1);
    CHECK(children_find(s.all, k.id)->tail.n == 1000);
    send_line(&k, "enough");
    await_end(&k);
    CHECK_STR(kid_said(&k), "enough|");
    CHECK(k.end.stderr_tail.n == 1000);
    stage_fini(&s);
}

/* To it. */

TEST(what_is_sent_in_a_turn_leaves_in_one_write)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_python(&s, &k,
                 "import os\nprint(0, flush=True)\n"
                 "for i in range(3): print(len(os.read(0, 99999)), flush=True)",
                 opts_of(NULL, 0));
    UNTIL(&s, k.n_lines == 1); /* it waits for us */
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 100; j++)
            send_line(&k, "123456789");
        UNTIL(&s, k.n_lines == 2 + i);
    }
    await_end(&k);
    CHECK_STR(kid_said(&k), "0|1000|1000|1000|");
    stage_fini(&s);
}

TEST(lines_arrive_as_they_were_sent)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "exec cat");
    CHECK(child_send(s.all, k.id, STR("")) == OK);
    CHECK(child_send(s.all, k.id, (struct str){NULL, 0}) == OK);
    CHECK(child_send(s.all, k.id, STR("a\0b\r")) == OK);
    CHECK(child_send(s.all, k.id, STR("a\nb")) == ERR_BAD_REQUEST);
    CHECK(child_send(s.all, k.id, STR("\n")) == ERR_BAD_REQUEST);
    child_close_input(s.all, k.id);
    CHECK(child_send(s.all, k.id, STR("late")) == ERR_GONE);
    child_close_input(s.all, k.id);
    await_end(&k);
    CHECK(str_eq(kid_said(&k), STR("||a\0b\r|")));
    stage_fini(&s);
}

/* Stop the reader; returns when it has stopped. */
static void freeze(struct kid *k)
{
    pid_t pid = child_pid(k->s->all, k->id);
    siginfo_t info;

    send_line(k, "awake");
    UNTIL(k->s, k->n_lines > 0);
    kill(pid, SIGSTOP);
    CHECK(waitid(P_PID, (id_t)pid, &info, WSTOPPED) == 0);
}

static size_t n_unsent(const struct child *c)
{
    return c->unsent.n - c->unsent_at;
}

TEST(who_does_not_read_makes_us_wait_at_the_limit)
{
    static char piece[1000];
    struct child_opts o = opts_of(NULL, 0);
    struct stage s;
    struct kid k = {.s = &s};
    struct child *c;
    size_t n = 0;
    enum err e;

    o.max_unsent_bytes = 100000;
    memset(piece, 'p', sizeof(piece));
    stage_init(&s, 4);
    start_sh_opts(&s, &k, "exec cat", o);
    freeze(&k);
    c = children_find(s.all, k.id);
    while ((e = child_send(s.all, k.id, (struct str){piece, 999})) == OK) {
        turn(&s, 1);
        n++;
    }
    CHECK(e == ERR_BUSY && n_unsent(c) == 100000); /* to the byte */
    CHECK(c->unsent.cap <= 200000);
    CHECK(child_send(s.all, k.id, STR("")) == ERR_BUSY);
    turn(&s, 10);
    CHECK(k.n_room == 0);
    kill(child_pid(s.all, k.id), SIGCONT);
    UNTIL(&s, k.n_room == 1);
    CHECK(n_unsent(c) <= 50000);
    CHECK(child_send(s.all, k.id, STR("last")) == OK);
    child_close_input(s.all, k.id);
    await_end(&k);
    CHECK(k.n_room == 1 && k.n_bytes == n * 999 + 5 + 4);
    stage_fini(&s);
}

TEST(a_line_that_can_never_fit_is_told_from_one_that_must_wait)
{
    static char big[1001];
    struct child_opts o = opts_of(NULL, 0);
    struct stage s;
    struct kid k = {.s = &s};

    o.max_unsent_bytes = 1000;
    memset(big, 'b', sizeof(big));
    stage_init(&s, 4);
    start_sh_opts(&s, &k, "exec cat", o);
    CHECK(child_send(s.all, k.id, (struct str){big, 1000}) == ERR_LIMIT);
    CHECK(child_send(s.all, k.id, (struct str){big, 999}) == OK);
    CHECK(child_send(s.all, k.id, STR("")) == ERR_BUSY);
    UNTIL(&s, k.n_room == 1);
    CHECK(child_send(s.all, k.id, STR("a")) == OK);
    CHECK(child_send(s.all, k.id, (struct str){big, 998}) == ERR_BUSY);
    UNTIL(&s, k.n_room == 2); /* whatever fits at all fits in time */
    CHECK(child_send(s.all, k.id, (struct str){big, 998}) == OK);
    child_close_input(s.all, k.id);
    await_end(&k);
    CHECK(k.n_bytes == 999 + 1 + 998);
    stage_fini(&s);
}

TEST(no_byte_of_much_is_lost_on_the_way_there_and_back)
{
    struct stage s;
    struct kid k = {.s = &s};
    char line[700];
    size_t n_sent = 0, n = 0;

    memset(line, 'l', sizeof(line));
    stage_init(&s, 4);
    start_sh(&s, &k, "exec cat");
    while (n < 20000) {
        struct str part = {line, n % sizeof(line)};

        if (child_send(s.all, k.id, part) != OK) {
            int before = k.n_room;

            UNTIL(&s, k.n_room > before);
            continue;
        }
        n_sent += part.n;
        n++;
    }
    child_close_input(s.all, k.id);
    await_end(&k);
    CHECK_INT(k.n_lines, 20000);
    CHECK(k.n_bytes == n_sent);
    stage_fini(&s);
}

TEST(who_closes_its_input_is_sent_nothing_more)
{
    static char piece[100000];
    struct stage s;
    struct kid k = {.s = &s};
    enum err e;

    stage_init(&s, 4);
    memset(piece, 'p', sizeof(piece));
    start_sh(&s, &k, "read x; exec <&-; echo closed; exec sleep 1000");
    /* The pipe is full and more waits when it closes. */
    do
        e = child_send(s.all, k.id, (struct str){piece, sizeof(piece)});
    while (e == OK);
    CHECK(e == ERR_BUSY);
    UNTIL(&s, k.n_room == 1);
    CHECK(child_send(s.all, k.id, STR("x")) == OK);
    send_line(&k, ""); /* which it reads, or not; then it closes */
    UNTIL(&s, child_send(s.all, k.id, STR("x")) == ERR_GONE);
    UNTIL(&s, k.n_lines == 1);
    CHECK(k.n_ends == 0 && child_pid(s.all, k.id) > 0);
    stage_fini(&s);
    CHECK(k.end.why == CHILD_STOPPED);
}

TEST(who_waits_for_room_hears_that_there_is_nobody_left_to_read)
{
    static char piece[100000];
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "exec <&-; echo closed; exec sleep 1000");
    UNTIL(&s, k.n_lines == 1);
    while (child_send(s.all, k.id, (struct str){piece, sizeof(piece)}) == OK)
        ;
    CHECK(k.n_room == 0);
    UNTIL(&s, k.n_room == 1);
    CHECK(child_send(s.all, k.id, STR("x")) == ERR_GONE);
    stage_fini(&s);
}

/* Output that waits. */

TEST(nothing_is_taken_of_who_is_paused)
{
    struct stage s;
    struct kid k = {.s = &s};
    int before;

    stage_init(&s, 4);
    start_sh(&s, &k, "exec yes");
    UNTIL(&s, k.n_lines > 500);
    child_pause(s.all, k.id, true);
    child_pause(s.all, k.id, true);
    before = k.n_lines;
    for (int i = 0; i < 50; i++)
        wait_turn(&s);
    CHECK_INT(k.n_lines, before);
    CHECK(children_find(s.all, k.id)->out.watched == 0);
    child_pause(s.all, k.id, false);
    UNTIL(&s, k.n_lines > before + 500);
    stage_fini(&s);
}

static void pause_self(struct kid *k, struct str line)
{
    (void)line;
    child_pause(k->s->all, k->id, true);
}

TEST(a_pause_in_a_line_holds_the_next)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "printf '1\n2\n3'");
    k.act = pause_self;
    for (int i = 1; i <= 3; i++) {
        UNTIL(&s, k.n_lines == i);
        turn(&s, 5);
        CHECK_INT(k.n_lines, i);
        child_pause(s.all, k.id, false);
    }
    await_end(&k);
    CHECK_STR(kid_said(&k), "1|2|3|");
    stage_fini(&s);
}

TEST(who_ended_while_paused_is_over_when_it_was_heard)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "echo last words; echo of it >&2; exit 4");
    child_pause(s.all, k.id, true);
    UNTIL(&s, child_pid(s.all, k.id) == 0);
    later(&s, LAST_WORDS_MS * 100);
    turn(&s, 10);
    CHECK(k.n_lines == 0 && k.n_ends == 0);
    CHECK_INT(children_stats(s.all).running, 1);
    child_pause(s.all, k.id, false);
    await_end(&k);
    CHECK_STR(kid_said(&k), "last words|");
    CHECK_STR(k.end.stderr_tail, "of it\n");
    CHECK_INT(k.end.exit_status, 4);
    stage_fini(&s);
}

TEST(who_is_stopped_while_paused_is_over_in_a_moment)
{
    struct stage s;
    struct kid ended = {.s = &s}, runs = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &ended, "echo last words; exit 4");
    start_sh(&s, &runs, "echo words; exec sleep 1000");
    child_pause(s.all, ended.id, true);
    child_pause(s.all, runs.id, true);
    UNTIL(&s, child_pid(s.all, ended.id) == 0);
    child_stop(s.all, ended.id);
    child_stop(s.all, runs.id);
    UNTIL(&s, child_pid(s.all, runs.id) == 0);
    later(&s, LAST_WORDS_MS - 1);
    CHECK(ended.n_ends == 0 && runs.n_ends == 0);
    later(&s, 1);
    CHECK(ended.n_ends == 1 && ended.n_lines == 0);
    CHECK(ended.end.why == CHILD_EXITED && ended.end.exit_status == 4);
    CHECK(runs.n_ends == 1 && runs.end.why == CHILD_STOPPED);
    stage_fini(&s);
}

TEST(who_closes_its_output_is_given_a_moment)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "printf 'bye'; exec >&- 2>&-; read x; exit 6");
    UNTIL(&s, k.n_lines == 1);
    later(&s, CLOSED_MS - 1);
    CHECK(k.n_ends == 0);
    send_line(&k, "now");
    await_end(&k);
    CHECK_STR(kid_said(&k), "bye|");
    CHECK_INT(k.end.exit_status, 6);
    CHECK(k.end.why == CHILD_EXITED);
    stage_fini(&s);
}

TEST(who_closes_its_output_and_lives_on_is_stopped)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "printf 'bye'; exec >&-; exec sleep 1000");
    UNTIL(&s, k.n_lines == 1);
    later(&s, CLOSED_MS);
    await_end(&k);
    CHECK_STR(kid_said(&k), "bye|");
    CHECK(k.end.why == CHILD_CLOSED && k.end.signal == SIGTERM);
    stage_fini(&s);
}

TEST(who_closes_its_input_before_it_has_all_is_stopped)
{
    struct stage s;
    struct kid k = {.s = &s};

    stage_init(&s, 4);
    start_sh(&s, &k, "exec <&-; echo closed; exec sleep 1000");
    UNTIL(&s, k.n_lines == 1);
    later(&s, CLOSED_MS * 10); /* that alone is its own affair */
    CHECK(k.n_ends == 0);
    send_line(&k, "a task");
    UNTIL(&s, child_send(s.all, k.id, STR("x")) == ERR_GONE);
    later(&s, CLOSED_MS);
    await_end(&k);
    CHECK(k.end.why == CHILD_CLOSED);
    stage_fini(&s);
}
