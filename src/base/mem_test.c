#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/mem.h"
#include "test/t.h"

#include <sys/resource.h>

TEST(memory_is_zeroed_and_copies_end_in_nul)
{
    char *p = mem_array(3, 5), *none = mem_new(0), *copy = mem_copy("text", 3);

    for (int i = 0; i < 15; i++)
        CHECK(p[i] == 0);
    memset(p, 'x', 15);
    p = mem_resize(p, 100, 10);
    CHECK(p[14] == 'x');
    CHECK(none && strcmp(copy, "tex") == 0);
    free(p);
    free(none);
    free(copy);
}

static void use_new(void)
{
    free(mem_new(1));
}

static void use_copy(void)
{
    free(mem_copy("x", 1));
}

static void use_resize(void)
{
    free(mem_resize(NULL, 3, 100));
}

static void use_overflow(void)
{
    free(mem_resize(NULL, SIZE_MAX / 2, 3));
}

static void use_arena(void)
{
    struct arena a;

    arena_init(&a, 1000);
    CHECK(arena_alloc(&a, 100));
    arena_fini(&a);
}

static void use_buf(void)
{
    struct buf b;

    buf_init(&b, 1000);
    buf_add_char(&b, 'x');
    buf_fini(&b);
}

static void use_map(void)
{
    static char value[] = "x";
    struct map m;

    map_init(&m, 10, (uint64_t[]){1, 2});
    CHECK(map_put(&m, str_of(value), value) == OK);
    map_fini(&m);
}

/* The output of a process that calls `use` without memory; it ends by
 * SIGABRT. */
static void check_stops(void (*use)(void))
{
    char text[256];
    int fds[2], status;
    ssize_t n;
    pid_t pid;

    CHECK(pipe(fds) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(fds[1], STDERR_FILENO);
        fault_arm_at("mem", 1);
        use();
        _exit(0);
    }
    close(fds[1]);
    n = read(fds[0], text, sizeof(text) - 1);
    CHECK(n > 0);
    text[n] = '\0';
    CHECK(strstr(text, "signalbox: no memory for ") &&
          strstr(text, "stopping"));
    close(fds[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(a_server_without_memory_stops_and_says_so)
{
    check_stops(use_new);
    check_stops(use_copy);
    check_stops(use_resize);
    check_stops(use_arena);
    check_stops(use_buf);
    check_stops(use_map);
}

TEST(a_size_that_overflows_is_no_allocation)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        close(STDERR_FILENO);
        use_overflow();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
