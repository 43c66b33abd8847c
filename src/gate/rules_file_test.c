/* A rules file that changes under a running server, with a fake clock: a good
 * one is used, a bad one is reported and changes nothing. */
#include "gate/rules_file.h"

#include <fcntl.h>

#include "base/fault.h"
#include "test/lib/folder.h"
#include "test/t.h"

struct scene {
    char folder[64], path[96], other[96], log_path[96];
    struct clock_fake clock;
    struct loop loop;
    struct log log;
    struct rules_file book;
    int n_changes;
};

static struct scene sc;

static void on_change(void *ctx)
{
    struct scene *s = ctx;

    s->n_changes++;
}

static void put(const char *path, const char *text)
{
    char fresh[128];
    FILE *out;

    snprintf(fresh, sizeof(fresh), "%s.new", path);
    out = fopen(fresh, "w");
    CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0);
    CHECK(rename(fresh, path) == 0);
}

#define ONE "{\"sla\": [{\"rule\": \"one\", \"within\": 1}]}"
#define TWO                                          \
    "{\"sla\": [{\"rule\": \"one\", \"within\": 1}," \
    " {\"rule\": \"two\", \"within\": 1}]}"
#define BAD "{\"sla\": [{\"rule\": \"one\"},\n{\"rule\": \"two\"}]}"

static void scene_init(void)
{
    snprintf(sc.folder, sizeof(sc.folder), "%s/rulebook-XXXXXX", t_above());
    CHECK(mkdtemp(sc.folder));
    snprintf(sc.path, sizeof(sc.path), "%s/rules.json", sc.folder);
    snprintf(sc.other, sizeof(sc.other), "%s/other.json", sc.folder);
    snprintf(sc.log_path, sizeof(sc.log_path), "%s/log", sc.folder);
    CHECK(loop_init(&sc.loop, clock_fake(&sc.clock)) == OK);
    log_init(&sc.log,
             open(sc.log_path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600),
             LOG_INFO, LOG_JSON, clock_fake(&sc.clock));
    sc.book = (struct rules_file){
        .loop = &sc.loop, .log = &sc.log, .on_change = on_change, .ctx = &sc};
    put(sc.path, ONE);
}

static void scene_fini(void)
{
    rules_file_close(&sc.book);
    loop_fini(&sc.loop);
    close(sc.log.fd);
    folder_remove(sc.folder);
}

static const struct config *named(struct str rules)
{
    static struct config c;

    c = (struct config){.rules = rules};
    return &c;
}

static void start(void)
{
    struct why why;

    scene_init();
    CHECK(rules_file_open(&sc.book, named(str_of(sc.path)), &why) == OK);
    CHECK_INT(sc.n_changes, 1);
}

/* Advance the clock, one poll at a time. */
static void look(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        sc.clock.mono_ms += RULES_FILE_LOOK_MS;
        sc.clock.wall_ms += RULES_FILE_LOOK_MS;
        loop_turn(&sc.loop);
    }
}

static size_t count(void)
{
    return gate_rules_count(rules_file_rules(&sc.book));
}

static int said(const char *words)
{
    static char text[1 << 16];
    FILE *in = fopen(sc.log_path, "r");
    int n = 0;

    CHECK(in);
    text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
    fclose(in);
    for (const char *p = text; (p = strstr(p, words)); p++)
        n++;
    return n;
}

TEST(without_a_file_there_are_the_rules_of_none)
{
    struct why why;

    scene_init();
    CHECK(rules_file_open(&sc.book, named(STR("")), &why) == OK);
    CHECK(rules_file_rules(&sc.book) == gate_rules_none());
    CHECK_INT(sc.n_changes, 0);
    scene_fini();
}

TEST(a_file_that_has_changed_is_taken_up_by_itself)
{
    start();
    CHECK_INT(count(), 1);
    look(3);
    CHECK_INT(sc.n_changes, 1); /* it has not */
    put(sc.path, TWO);
    look(1);
    CHECK_INT(count(), 1); /* it may be half written */
    look(1);
    CHECK_INT(count(), 2);
    CHECK_INT(sc.n_changes, 2);
    look(3);
    CHECK_INT(sc.n_changes, 2);
    scene_fini();
}

TEST(a_bad_file_is_told_once_and_changes_nothing)
{
    start();
    put(sc.path, BAD);
    look(6);
    CHECK(count() == 1 && sc.n_changes == 1);
    CHECK_INT(sc.book.problems.n, 2);
    CHECK(strstr(sc.book.problems.text, "/rules.json:2:1: rule \"two\": "));
    CHECK_INT(said("rules.problem"), 2);
    CHECK_INT(said("rules.not_loaded"), 1);
    put(sc.path, TWO);
    look(2);
    CHECK(count() == 2 && sc.book.problems.n == 0);
    scene_fini();
}

TEST(a_file_that_is_gone_is_told_once_and_changes_nothing)
{
    start();
    CHECK(rename(sc.path, sc.other) == 0);
    look(1);
    CHECK_INT(sc.book.problems.n, 0); /* it may be about to be replaced */
    look(4);
    CHECK(count() == 1 && sc.n_changes == 1 && sc.book.problems.n == 1);
    CHECK(strstr(sc.book.problems.text, "/rules.json: it is gone; the "
                                        "previous rules stay"));
    CHECK_INT(said("rules.problem"), 1);
    CHECK(rename(sc.other, sc.path) == 0);
    look(2);
    CHECK(sc.n_changes == 2 && sc.book.problems.n == 0); /* the same */
    CHECK(unlink(sc.path) == 0);
    look(3);
    CHECK_INT(said("rules.problem"), 2);
    put(sc.path, TWO);
    look(2);
    CHECK(count() == 2 && sc.book.problems.n == 0);
    scene_fini();
}

TEST(a_start_with_a_bad_file_is_none)
{
    struct why why;

    scene_init();
    put(sc.path, BAD);
    CHECK(rules_file_open(&sc.book, named(str_of(sc.path)), &why) ==
          ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "/rules.json:1:10: rule \"one\": an SLA needs "));
    CHECK(strstr(why.text, "(and 1 more; signalbox check lists them)"));
    CHECK_INT(said("rules.problem"), 2);
    CHECK(rules_file_open(&sc.book, named(str_of(sc.other)), &why) == ERR_IO);
    CHECK(strstr(why.text, "/other.json: it cannot be read: No such file"));
    CHECK(rules_file_open(&sc.book, named(str_of(sc.folder)), &why) == ERR_IO);
    CHECK(strstr(why.text, "it cannot be read: Is a directory"));
    scene_fini();
}

TEST(a_file_of_more_than_may_be_is_not_read_whole)
{
    struct why why;

    scene_init();
    CHECK(truncate(sc.path, (off_t)1 << 40) == 0);
    CHECK(rules_file_open(&sc.book, named(str_of(sc.path)), &why) == ERR_LIMIT);
    scene_fini();
}

TEST(another_configuration_may_name_another_file_or_none)
{
    struct why why;

    start();
    put(sc.other, BAD);
    CHECK(rules_file_prepare(&sc.book, named(str_of(sc.other)), &why) ==
          ERR_BAD_CONFIG);
    CHECK(count() == 1 && sc.n_changes == 1);
    put(sc.other, TWO);
    CHECK(rules_file_prepare(&sc.book, named(str_of(sc.other)), &why) == OK);
    CHECK_INT(count(), 1);
    rules_file_forget(&sc.book);
    CHECK(count() == 1 && sc.n_changes == 1);
    CHECK(rules_file_prepare(&sc.book, named(str_of(sc.other)), &why) == OK);
    rules_file_commit(&sc.book);
    CHECK(count() == 2 && sc.n_changes == 2);
    put(sc.path, TWO); /* it is no longer polled */
    look(3);
    CHECK_INT(sc.n_changes, 2);
    CHECK(rules_file_prepare(&sc.book, named(STR("")), &why) == OK);
    rules_file_commit(&sc.book);
    CHECK(rules_file_rules(&sc.book) == gate_rules_none());
    CHECK_INT(sc.n_changes, 3);
    scene_fini();
}

/* A reload is not rejected for a rules file in use that has become bad. */
TEST(the_same_file_become_bad_turns_no_configuration_down)
{
    struct why why;

    start();
    put(sc.path, BAD);
    CHECK(rules_file_prepare(&sc.book, named(str_of(sc.path)), &why) == OK);
    rules_file_commit(&sc.book);
    CHECK(count() == 1 && sc.n_changes == 1 && sc.book.problems.n == 2);
    look(4);
    CHECK_INT(said("rules.not_loaded"), 1);
    put(sc.path, TWO);
    look(2);
    CHECK_INT(count(), 2);
    scene_fini();
}

TEST(a_file_survives_every_fault)
{
    static struct gate_problems problems;
    struct gate_rules *r;
    long nth = 0;

    scene_init();
    do {
        enum err e;

        fault_arm(++nth);
        e = rules_file_read(sc.path, &r, &problems);
        CHECK(e ? !r && problems.n : r && !problems.n);
        CHECK(e || !fault_fired());
        gate_rules_free(r);
    } while (fault_fired());
    scene_fini();
}

/* routing_rules.json beside the configuration and in the data folder. */
static struct {
    char config[128], beside[128], data[128], within[160];
    struct config c;
} usual;

static const struct config *looked_for(void)
{
    snprintf(usual.config, sizeof(usual.config), "%s/signalbox.jsonc",
             sc.folder);
    snprintf(usual.beside, sizeof(usual.beside), "%s/routing_rules.json",
             sc.folder);
    snprintf(usual.data, sizeof(usual.data), "%s/data", sc.folder);
    snprintf(usual.within, sizeof(usual.within), "%s/routing_rules.json",
             usual.data);
    usual.c = (struct config){.rules = STR(CONFIG_RULES_AUTO),
                              .has_file = true,
                              .path = str_of(usual.config),
                              .data = str_of(usual.data)};
    return &usual.c;
}

TEST(what_nobody_names_is_looked_for)
{
    const struct config *c;
    struct why why;

    scene_init();
    c = looked_for();
    CHECK(rules_file_open(&sc.book, c, &why) == OK);
    CHECK(rules_file_rules(&sc.book) == gate_rules_none());
    CHECK_INT(said("rules.found"), 0);
    CHECK(mkdir(usual.data, 0700) == 0);
    put(usual.within, ONE);
    CHECK(rules_file_prepare(&sc.book, c, &why) == OK);
    rules_file_commit(&sc.book);
    CHECK_INT(count(), 1);
    CHECK_INT(said("it lies in the data folder"), 1);
    put(usual.beside, TWO); /* goes before it */
    CHECK(rules_file_prepare(&sc.book, c, &why) == OK);
    rules_file_commit(&sc.book);
    CHECK_INT(count(), 2);
    CHECK_INT(said("it lies beside the configuration"), 1);
    put(usual.beside, ONE); /* and is watched like one that was named */
    look(3);
    CHECK_INT(count(), 1);
    scene_fini();
}

TEST(one_that_was_found_and_is_gone_keeps_its_rules)
{
    const struct config *c;
    struct why why;

    scene_init();
    c = looked_for();
    put(usual.beside, TWO);
    CHECK(rules_file_open(&sc.book, c, &why) == OK);
    CHECK(unlink(usual.beside) == 0);
    CHECK(rules_file_prepare(&sc.book, c, &why) == OK);
    rules_file_commit(&sc.book);
    CHECK_INT(count(), 2);
    CHECK_INT(said("rules.not_loaded"), 1);
    CHECK(rules_file_prepare(&sc.book, named(STR("")), &why) == OK);
    rules_file_commit(&sc.book); /* there are to be none */
    CHECK(rules_file_rules(&sc.book) == gate_rules_none());
    scene_fini();
}

/* What a start with the same data folder makes of it. */
static enum err start_again(const struct config *c, struct why *why)
{
    rules_file_close(&sc.book);
    sc.book = (struct rules_file){.loop = &sc.loop,
                                  .log = &sc.log,
                                  .data = usual.data,
                                  .on_change = on_change,
                                  .ctx = &sc};
    return rules_file_open(&sc.book, c, why);
}

TEST(one_that_was_found_and_is_gone_keeps_the_server_from_starting)
{
    const struct config *c;
    struct why why;

    scene_init();
    c = looked_for();
    CHECK(mkdir(usual.data, 0700) == 0);
    CHECK(start_again(c, &why) == OK);
    CHECK_INT(said("rules.none"), 1);
    put(usual.within, TWO);
    CHECK(start_again(c, &why) == OK);
    CHECK_INT(said("rules.none"), 1);
    CHECK_INT(count(), 2);
    CHECK(unlink(usual.within) == 0);
    look(3);
    CHECK_INT(said("a start would fail until it is back"), 1);
    CHECK(start_again(c, &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, usual.within));
    CHECK(strstr(why.text, "put it back"));
    CHECK(start_again(c, &why) == ERR_NOT_FOUND);
    put(usual.beside, ONE); /* there is one again */
    CHECK(start_again(c, &why) == OK);
    CHECK(unlink(usual.beside) == 0);
    CHECK(start_again(c, &why) == ERR_NOT_FOUND);
    CHECK(strstr(why.text, usual.beside));
    CHECK(start_again(named(STR("")), &why) == OK); /* there are to be none */
    CHECK_INT(said("rules.none"), 2);
    CHECK(start_again(c, &why) == OK);
    CHECK_INT(said("rules.none"), 3);
    put(usual.beside, ONE);
    CHECK(start_again(c, &why) == OK);
    CHECK(unlink(usual.beside) == 0);
    CHECK(start_again(named(str_of(sc.path)), &why) == OK); /* or another */
    CHECK(start_again(c, &why) == OK);
    scene_fini();
}

TEST(what_cannot_be_remembered_does_not_count)
{
    struct why why;
    enum err e;
    long nth = 0;

    scene_init();
    looked_for();
    CHECK(mkdir(usual.data, 0700) == 0);
    put(usual.beside, ONE);
    do {
        CHECK(start_again(named(STR("")), &why) == OK);
        fault_arm(++nth);
        e = start_again(&usual.c, &why);
        CHECK(e || !fault_fired());
        CHECK_INT(count(), e ? 0 : 1);
    } while (fault_fired());
    scene_fini();
}

TEST(a_link_that_leads_nowhere_is_there)
{
    const struct config *c;
    struct why why;

    scene_init();
    c = looked_for();
    CHECK(mkdir(usual.data, 0700) == 0);
    CHECK(symlink("/nonexistent/rules", usual.beside) == 0);
    CHECK(rules_file_open(&sc.book, c, &why) == ERR_IO);
    CHECK(strstr(why.text, "a link that leads nowhere"));
    CHECK(unlink(usual.beside) == 0);
    put(usual.within, TWO);
    put(usual.beside, ONE);
    CHECK(rules_file_open(&sc.book, c, &why) == OK);
    CHECK_INT(count(), 1);
    CHECK(unlink(usual.beside) == 0);
    CHECK(symlink("/nonexistent/rules", usual.beside) == 0);
    CHECK(rules_file_prepare(&sc.book, c, &why) == OK);
    rules_file_commit(&sc.book); /* the other place does not step in */
    CHECK_INT(count(), 1);
    CHECK_INT(said("rules.not_loaded"), 1);
    scene_fini();
}

TEST(beside_no_configuration_nothing_is_looked_for)
{
    struct why why;

    scene_init();
    looked_for();
    usual.c.has_file = false;
    put(usual.beside, TWO);
    CHECK(rules_file_open(&sc.book, &usual.c, &why) == OK);
    CHECK(rules_file_rules(&sc.book) == gate_rules_none());
    CHECK_INT(said("rules.found"), 0);
    scene_fini();
}

TEST(a_bad_one_that_is_found_keeps_the_server_from_starting)
{
    struct why why;

    scene_init();
    looked_for();
    put(usual.beside, BAD);
    CHECK(rules_file_open(&sc.book, &usual.c, &why) == ERR_BAD_CONFIG);
    CHECK(unlink(usual.beside) == 0);
    CHECK(mkdir(usual.beside, 0700) == 0); /* there, and no file */
    CHECK(rules_file_open(&sc.book, &usual.c, &why) == ERR_IO);
    scene_fini();
}
