#ifndef TEST_LIB_CONFIG_STAGE_H
#define TEST_LIB_CONFIG_STAGE_H

/* What the tests of config share: loading from one source at a time, and a
 * report that is checked whenever it is looked at. */

#include "server/config/config.h"
#include "test/t.h"

static struct config_report report;

static inline struct config *load_text(const char *text)
{
    return config_load_text("t.jsonc", str_of(text), &(struct config_source){0},
                            &report);
}

static inline struct config *load_env(char *const *env)
{
    return config_load_text("t.jsonc", STR("{}"),
                            &(struct config_source){.environ = env}, &report);
}

static inline struct config *load_sets(size_t n, const struct str *sets)
{
    return config_load_text("t.jsonc", STR("{}"),
                            &(struct config_source){.sets = sets, .n_sets = n},
                            &report);
}

/* Every report keeps its own promises, whatever went wrong. */
static inline void check_report(const struct config *c)
{
    unsigned n_lines = 0;

    CHECK((c == NULL) == (report.n_errors > 0));
    CHECK(report.text_bytes == strlen(report.text));
    CHECK(report.n_problems <= report.n_errors + report.n_warnings);
    for (size_t i = 0; i < report.text_bytes; i++)
        n_lines += report.text[i] == '\n';
    CHECK(n_lines == report.n_problems + (report.n_problems <
                                          report.n_errors + report.n_warnings));
    for (unsigned i = 0; i < report.n_problems; i++) {
        CHECK(report.problems[i].what.n > 0);
        CHECK(report.problems[i].where.n > 0);
        CHECK(report.problems[i].what.p[report.problems[i].what.n] == '\n');
    }
}

static inline bool says(const struct config *c, const char *words)
{
    check_report(c);
    if (strstr(report.text, words))
        return true;
    fprintf(stderr, "wanted: %s\ngot:    %s\n", words, report.text);
    return false;
}

#endif
