#include "server/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "test/lib/config_stage.h"

static void go_to_an_empty_folder(void)
{
    static char name[] = "/tmp/signalbox-config-XXXXXX";

    CHECK(mkdtemp(name) && chdir(name) == 0);
}

static void leave_folder(const char *const *files)
{
    char here[256];

    for (; *files; files++)
        CHECK(remove(*files) == 0);
    CHECK(getcwd(here, sizeof(here)) && chdir("/") == 0 && rmdir(here) == 0);
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "w");

    CHECK(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

static struct config *load_path(const char *path)
{
    return config_load(&(struct config_source){.path = path}, &report);
}

TEST(no_file_is_a_working_configuration)
{
    struct config *c;

    go_to_an_empty_folder();
    c = load_path(NULL);
    CHECK(c && !c->has_file);
    CHECK(str_eq(c->path, STR("signalbox.jsonc"))); /* where it would be */
    config_free(c);
    leave_folder((const char *const[]){NULL});
}

TEST(the_file_is_looked_for_in_three_places)
{
    char *env[] = {(char[]){"SIGNALBOX_CONFIG=env.jsonc"}, NULL};
    char *empty[] = {(char[]){"SIGNALBOX_CONFIG="}, NULL};
    struct config_source src = {.path = "arg.jsonc", .environ = env};
    struct config *c;

    go_to_an_empty_folder();
    write_file("signalbox.jsonc", "{\"stopGraceMs\": 1}", 18);
    write_file("env.jsonc", "{\"stopGraceMs\": 2}", 18);
    write_file("arg.jsonc", "{\"stopGraceMs\": 3}", 18);
    c = config_load(&src, &report);
    CHECK(c && c->stop_grace_ms == 3 && str_eq(c->path, STR("arg.jsonc")));
    config_free(c);
    src.path = NULL;
    c = config_load(&src, &report);
    CHECK(c && c->stop_grace_ms == 2 && str_eq(c->path, STR("env.jsonc")));
    config_free(c);
    src.environ = empty;
    c = config_load(&src, &report);
    CHECK(c && c->stop_grace_ms == 1);
    CHECK(str_eq(c->path, STR("signalbox.jsonc")));
    config_free(c);
    leave_folder((const char *const[]){"signalbox.jsonc", "env.jsonc",
                                       "arg.jsonc", NULL});
}

TEST(files_that_cannot_be_read_say_why)
{
    char *env[] = {(char[]){"SIGNALBOX_CONFIG=gone.jsonc"}, NULL};

    go_to_an_empty_folder();
    CHECK(says(load_path("gone.jsonc"), "gone.jsonc: there is no such file"));
    CHECK(says(config_load(&(struct config_source){.environ = env}, &report),
               "gone.jsonc: there is no such file"));
    CHECK(says(load_path(""), "\"\": there is no such file"));
    CHECK(says(load_path("."), ".: is a folder; give the path of a file"));
    CHECK(says(load_path("/dev/null"), "is not a plain file"));
    CHECK(mkfifo("pipe", 0600) == 0);
    CHECK(says(load_path("pipe"), "pipe: is not a plain file"));
    CHECK(symlink("loop", "loop") == 0);
    CHECK(says(load_path("loop"), "loop: cannot open it: Too many levels"));
    write_file("zero", "{\0}", 3);
    CHECK(says(load_path("zero"), "zero: contains zero bytes"));
    write_file("empty", "", 0);
    CHECK(says(load_path("empty"), "empty: is empty"));
    write_file("locked", "{}", 2);
    CHECK(chmod("locked", 0) == 0);
    if (geteuid() != 0)
        CHECK(says(load_path("locked"), "cannot open it: Permission denied"));
    leave_folder(
        (const char *const[]){"pipe", "loop", "zero", "empty", "locked", NULL});
}

TEST(an_unreadable_default_file_is_not_skipped)
{
    struct config *c;

    go_to_an_empty_folder();
    CHECK(mkdir("signalbox.jsonc", 0700) == 0);
    c = load_path(NULL);
    CHECK(!c && says(c, "signalbox.jsonc: is a folder"));
    leave_folder((const char *const[]){"signalbox.jsonc", NULL});
}

TEST(a_file_has_a_limit)
{
    enum { LIMIT = 1024 * 1024 };
    char *text = malloc(2 * LIMIT);
    struct config *c;

    CHECK(text);
    memset(text, ' ', 2 * LIMIT);
    memcpy(text, "{}", 2);
    go_to_an_empty_folder();
    write_file("f", text, LIMIT);
    c = load_path("f");
    CHECK(c);
    config_free(c);
    write_file("f", text, LIMIT + 1);
    CHECK(says(load_path("f"), "f: is larger than 1 MiB"));
    write_file("f", text, 2 * LIMIT);
    CHECK(says(load_path("f"), "f: is larger than 1 MiB"));
    leave_folder((const char *const[]){"f", NULL});
    free(text);
}

TEST(a_file_that_is_all_nodes_is_refused_and_not_fatal)
{
    enum { N = 500 * 1000 };
    struct config *c;
    struct buf text;

    buf_init(&text, 2 * N + 64);
    buf_add_str(&text, STR("{\"data\": [0"));
    for (int i = 0; i < N; i++)
        buf_add_str(&text, STR(",0"));
    buf_add_str(&text, STR("]}"));
    c = config_load_text("t.jsonc", buf_str(&text), &(struct config_source){0},
                         &report);
    CHECK(!c && says(c, "t.jsonc:"));
    buf_fini(&text);
}

/* Reload. */

/* A load either reports an error or gives exactly the right configuration. */
TEST(loading_survives_every_fault)
{
    static const char *const steps[] = {"config.open", "config.read"};
    char *env[] = {(char[]){"SIGNALBOX_STOP_GRACE_MS=3"},
                   (char[]){"SIGNALBOX_DATA=\"~/e\""},
                   (char[]){"SIGNALBOX_PORT=tcp://1.2.3.4:5"},
                   (char[]){"HOME=/home/anna"}, NULL};
    struct str set = STR("data=\"f\"");
    struct config_source src = {
        .path = "./f.jsonc", .environ = env, .sets = &set, .n_sets = 1};
    const char *text = "{\"data\": \"d\", \"log\": {\"level\": \"warn\"}}";
    long nth = 0;

    go_to_an_empty_folder();
    write_file("f.jsonc", text, strlen(text));
    do {
        struct config *c;

        fault_arm(++nth);
        c = config_load(&src, &report);
        check_report(c);
        CHECK(c || fault_fired());
        CHECK(!c || (str_eq(c->data, STR("f")) && c->log.level == LOG_WARN));
        config_free(c);
    } while (fault_fired());
    CHECK(nth > 3);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        fault_arm_at(steps[i], 1);
        CHECK(!config_load(&src, &report) && fault_fired());
        check_report(NULL);
    }
    leave_folder((const char *const[]){"f.jsonc", NULL});
}
