/* Programs that cannot be started: nothing is left of the attempt, and what is
 * said helps the person who fixes it. */
#include "test/lib/child_stage.h"

/* Who only looks says the same, as far as it can be seen; n_seen counts. */
static int n_seen;

static void check_seek(const struct child_opts *o, enum err e,
                       const struct why *why)
{
    struct why sought = {""};
    enum err said = child_seek(o, &sought);

    if (!said)
        return;
    CHECK_INT(said, e);
    CHECK(strcmp(sought.text, why->text) == 0);
    n_seen++;
}

static void refused(struct stage *s, const struct child_opts *o, enum err e,
                    const char *words)
{
    struct kid k = {.s = s};
    struct why why = {""};
    int n_fds = count_fds();

    CHECK_INT(try_start(s, &k, o, &why), e);
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" does not say \"%s\"", why.text, words);
    check_seek(o, e, &why);
    CHECK(k.id == 0);
    CHECK_INT(count_fds(), n_fds);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    turn(s, 2);
}

static void refused_words(struct stage *s, struct str program, enum err e,
                          const char *words)
{
    struct str argv[] = {program};
    struct child_opts o = opts_of(argv, 1);

    refused(s, &o, e, words);
}

static void put_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(fchmod(fd, mode) == 0);
    close(fd);
}

TEST(a_program_that_cannot_be_executed_is_named_with_the_reason)
{
    static const char *const files[] = {"plain", "words", "lost", "empty"};
    char folder[] = "/tmp/signalbox-child-XXXXXX";
    struct stage s;

    CHECK(mkdtemp(folder) && chdir(folder) == 0);
    put_file("plain", "echo hello\n", 0644);
    put_file("words", "echo hello\n", 0755);
    put_file("lost", "#!/nowhere/interpreter\n", 0755);
    put_file("empty", "", 0755);
    stage_init(&s, 4);
    refused_words(&s, STR("/nowhere/x"), ERR_NOT_FOUND, "/nowhere/x: no such");
    refused_words(&s, STR("./plain/x"), ERR_NOT_FOUND, "no such file");
    refused_words(&s, STR("./plain"), ERR_NOT_ALLOWED, "chmod +x");
    refused_words(&s, STR("/tmp"), ERR_NOT_ALLOWED, "permission denied");
    refused_words(&s, STR("./words"), ERR_IO, "not a program");
    refused_words(&s, STR("./empty"), ERR_IO, "not a program");
    refused_words(&s, STR("./lost"), ERR_NOT_FOUND, "interpreter");
    refused_words(&s, STR(""), ERR_BAD_REQUEST, "no program is named");
    CHECK_INT(n_seen, 5); /* not what is wrong inside the files */
    check_alive(&s);
    stage_fini(&s);
    for (size_t i = 0; i < 4; i++)
        CHECK(unlink(files[i]) == 0);
    CHECK(rmdir(folder) == 0);
}

TEST(a_folder_that_is_none_is_named)
{
    struct str argv[] = {STR("/bin/true")};
    struct child_opts o = opts_of(argv, 1);
    struct stage s;

    stage_init(&s, 4);
    o.folder = STR("/nowhere/at/all");
    refused(&s, &o, ERR_NOT_FOUND, "/nowhere/at/all: does not exist");
    o.folder = STR("/etc/passwd");
    refused(&s, &o, ERR_NOT_FOUND, "is no folder");
    stage_fini(&s);
}

TEST(what_cannot_be_said_to_a_program_is_refused)
{
    struct str argv[] = {STR("/bin/true"), STR("a\0b")};
    struct str env[] = {STR("A=1"), STR("NOVALUE")};
    struct child_opts o = opts_of(argv, 2);
    struct stage s;

    stage_init(&s, 4);
    refused(&s, &o, ERR_BAD_REQUEST, "NUL");
    o.n_argv = 0;
    refused(&s, &o, ERR_BAD_REQUEST, "no program");
    o.n_argv = 1;
    o.env = env;
    o.n_env = 2;
    refused(&s, &o, ERR_BAD_REQUEST, "NAME=value");
    env[1] = STR("=x");
    refused(&s, &o, ERR_BAD_REQUEST, "NAME=value");
    env[1] = STR("A=\0");
    refused(&s, &o, ERR_BAD_REQUEST, "NAME=value");
    o.n_env = 0;
    o.folder = STR("/tmp\0");
    refused(&s, &o, ERR_BAD_REQUEST, "NUL");
    stage_fini(&s);
}

TEST(too_much_for_the_kernel_is_said_so)
{
    static char big[200 * 1024], huge[ARGS_BYTES];
    struct str argv[64] = {STR("/bin/true")};
    struct child_opts o = opts_of(argv, 2);
    struct stage s;

    memset(big, 'x', sizeof(big));
    memset(huge, 'x', sizeof(huge));
    stage_init(&s, 4);
    argv[1] = (struct str){big, sizeof(big)}; /* over 128 KB in one */
    refused(&s, &o, ERR_BAD_REQUEST, "too large");
    for (int i = 1; i < 64; i++)
        argv[i] = (struct str){big, 100 * 1024}; /* over all together */
    o.n_argv = 64;
    refused(&s, &o, ERR_BAD_REQUEST, "too large");
    argv[1] = (struct str){huge, sizeof(huge)};
    o.n_argv = 2;
    refused(&s, &o, ERR_BAD_REQUEST, "too large");
    o.n_argv = 1;
    o.env = argv + 1;
    o.n_env = 1;
    huge[1] = '=';
    refused(&s, &o, ERR_BAD_REQUEST, "too large");
    stage_fini(&s);
}

TEST(without_descriptors_it_says_which_limit)
{
    struct str argv[] = {STR("/bin/true")};
    struct child_opts o = opts_of(argv, 1);
    struct rlimit before, few;
    struct stage s;
    struct why why;
    struct kid k = {.s = &s};
    int n = 0, n_fds;

    stage_init(&s, 4);
    n_fds = count_fds();
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    /* More of them until there are enough: each step has failed by then. */
    for (;; n++) {
        enum err e;

        few = (struct rlimit){(rlim_t)(n_fds + n), before.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        e = try_start(&s, &k, &o, &why);
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
        turn(&s, 2);
        if (e == OK)
            break;
        CHECK_INT(e, ERR_IO);
        CHECK(strstr(why.text, "ulimit -n"));
        CHECK_INT(count_fds(), n_fds);
    }
    CHECK(n >= 6);
    await_end(&k);
    stage_fini(&s);
}
