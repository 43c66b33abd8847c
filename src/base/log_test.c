#include "base/json.h"
#include "base/log.h"
#include "test/t.h"

#include <fcntl.h>

static struct clock_fake noon = {.wall_ms = 1700000000123};

/* The text in the pipe, or an empty str. */
static struct str drain(int fd, char *into, size_t size)
{
    ssize_t n;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    n = read(fd, into, size);
    return (struct str){into, n > 0 ? (size_t)n : 0};
}

TEST(in_a_pipe_a_line_is_json)
{
    char text[8192];
    int p[2];
    struct log l;
    struct arena a;
    struct json *line;

    CHECK(pipe(p) == 0);
    arena_init(&a, 65536);
    log_init(&l, p[1], LOG_INFO, LOG_AUTO, clock_fake(&noon));
    log_info(&l, "net.listening", LOG_C("url", "http://x \"y\"\n"),
             LOG_I("port", -7));
    line = json_parse(&a, str_trim(drain(p[0], text, sizeof(text))), 0, NULL);
    CHECK(line);
    CHECK(json_int_or(json_get(line, STR("at_ms")), 0) == noon.wall_ms);
    CHECK(json_int_or(json_get(line, STR("port")), 0) == -7);
    CHECK(str_eq(json_str_or(json_get(line, STR("url")), STR("")),
                 STR("http://x \"y\"\n")));
    arena_fini(&a);
}

TEST(lines_below_the_level_are_not_written)
{
    char text[8192];
    int p[2];
    struct log l;

    CHECK(pipe(p) == 0);
    log_init(&l, p[1], LOG_WARN, LOG_JSON, clock_fake(&noon));
    log_info(&l, "quiet");
    CHECK(drain(p[0], text, sizeof(text)).n == 0);
    log_set(&l, LOG_DEBUG, LOG_JSON);
    log_debug(&l, "loud");
    CHECK(drain(p[0], text, sizeof(text)).n > 0);
}

TEST(what_comes_from_outside_cannot_break_a_line_of_text)
{
    char text[8192];
    int p[2];
    struct log l;
    struct str s;

    CHECK(pipe(p) == 0);
    log_init(&l, p[1], LOG_INFO, LOG_TEXT, clock_fake(&noon));
    log_info(&l, "x", LOG_C("a", "plain"), LOG_C("b", "\033[31m\nfake line"));
    s = drain(p[0], text, sizeof(text));
    CHECK(str_find(s, '\n', 0) == s.n - 1);
    CHECK(str_find(s, '\033', 0) == s.n);
    text[s.n - 1] = '\0';
    CHECK(strstr(text, " a=plain b=\"\\u001b[31m\\nfake line\""));
}

TEST(a_reader_that_does_not_keep_up_costs_lines_not_time)
{
    static char text[1 << 20];
    int p[2];
    struct log l;
    struct str s;

    CHECK(pipe(p) == 0);
    log_init(&l, p[1], LOG_INFO, LOG_JSON, clock_fake(&noon));
    for (int i = 0; i < 10000; i++)
        log_info(&l, "flood", LOG_I("i", i));
    CHECK(l.n_dropped > 0);
    CHECK(drain(p[0], text, sizeof(text)).n > 0);
    log_info(&l, "after");
    s = drain(p[0], text, sizeof(text) - 1);
    text[s.n] = '\0';
    CHECK(strstr(text, "\"lines_dropped\":") && l.n_dropped == 0);
}

TEST(a_line_too_long_is_dropped_and_counted)
{
    static char word[2000];
    char text[8192];
    int p[2];
    struct log l;

    memset(word, 'w', sizeof(word) - 1);
    CHECK(pipe(p) == 0);
    log_init(&l, p[1], LOG_INFO, LOG_JSON, clock_fake(&noon));
    log_info(&l, "long", LOG_C("a", word)); /* the value is cut, it fits */
    CHECK(drain(p[0], text, sizeof(text)).n > 1000 && l.n_dropped == 0);
    log_info(&l, "longer", LOG_C("a", word), LOG_C("b", word), LOG_C("c", word),
             LOG_C("d", word));
    CHECK(drain(p[0], text, sizeof(text)).n == 0 && l.n_dropped == 1);
}
