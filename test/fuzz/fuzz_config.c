/* Any bytes as a configuration file, and as values of variables and flags:
 * never a crash; what is refused is refused with words; what is taken can be
 * written out and read back the same. */
#include <assert.h>
#include <stdlib.h>

#include "server/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_report(const struct config *c, const struct config_report *r)
{
    unsigned n_all = r->n_errors + r->n_warnings, n_lines = 0;

    assert((c == NULL) == (r->n_errors > 0));
    assert(r->text_bytes < sizeof(r->text));
    assert(strlen(r->text) == r->text_bytes);
    for (size_t i = 0; i < r->text_bytes; i++)
        n_lines += r->text[i] == '\n';
    assert(n_lines == r->n_problems + (r->n_problems < n_all));
    for (unsigned i = 0; i < r->n_problems; i++) {
        assert(r->problems[i].where.n && r->problems[i].what.n);
        assert(r->problems[i].what.p[r->problems[i].what.n] == '\n');
    }
}

/* What others rely on, whatever was written. */
static void check_lists(const struct config *c)
{
    const struct config_strs lists[] = {c->http.allowed_hosts,
                                        c->http.allowed_origins};

    assert(c->agents.n <= 1000 && agent_name_is_valid(c->node));
    for (size_t i = 0; i < c->agents.n; i++) {
        const struct agent *a = &c->agents.list[i];
        struct agent_url url;

        assert(agent_name_is_valid(a->name) && a->title.n <= AGENT_TITLE_MAX);
        assert(agent_url_read(a->url, &url, NULL) == OK);
        for (size_t k = 0; k < i; k++)
            assert(!str_eq_nocase(a->name, c->agents.list[k].name));
    }
    for (size_t i = 0; i < 2; i++) {
        assert(lists[i].n <= 100);
        for (size_t k = 0; k < lists[i].n; k++)
            assert(lists[i].list[k].n >= 1 && lists[i].list[k].n <= 255 &&
                   !str_has_control(lists[i].list[k]));
    }
}

static void write_and_read_back(const struct config *c)
{
    struct config_source none = {0};
    struct config_report report;
    struct buf first, second;
    struct config *again;

    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    config_write_json(c, &first);
    assert(!first.over);
    again = config_load_text("again", buf_str(&first), &none, &report);
    assert(again);
    config_write_json(again, &second);
    assert(str_eq(buf_str(&first), buf_str(&second)));
    buf_clear(&second);
    config_restart_needed(c, again, &second);
    /* Only a folder's name that is not UTF-8 cannot be written as it is. */
    assert(second.n == 0 || memmem(first.p, first.n, "\xef\xbf\xbd", 3));
    config_free(again);
    buf_fini(&first);
    buf_fini(&second);
}

static void load(struct str text, const struct config_source *src)
{
    struct config_report report;
    struct config *c = config_load_text("fuzz.jsonc", text, src, &report);

    check_report(c, &report);
    if (c) {
        check_lists(c);
        write_and_read_back(c);
    }
    config_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = {(const char *)data, n};
    struct config_source none = {0};
    char *entry = malloc(sizeof("SIGNALBOX_") + n);
    char *env[] = {entry, (char[]){"HOME=/h"}, NULL};
    struct config_source both = {.environ = env, .sets = &text, .n_sets = 1};

    load(text, &none);
    assert(entry);
    memcpy(entry, "SIGNALBOX_", 10);
    if (n)
        memcpy(entry + 10, data, n);
    entry[10 + n] = '\0';
    load(STR("{}"), &both);
    free(entry);
    return 0;
}
