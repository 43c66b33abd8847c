/* The table of calls against docs/protocol.md, both ways, and the access to
 * each. test/flow/access_test.py tests the running server with every role. */
#include "api/api.h"
#include "test/t.h"

enum { PROMISES_MAX = 100 };

/* One call in the document; "NAME" and "ID" match any part. */
struct promise {
    struct str method, path;
    bool is_for_any;
    unsigned scope;
    bool is_there;
};

struct document {
    char text[256 * 1024];
    struct promise promises[PROMISES_MAX];
    size_t n;
};

/* The next `word` of *rest; false when there is none. */
static bool next_word(struct str *rest, struct str *word)
{
    size_t from = str_find(*rest, '`', 0), to = str_find(*rest, '`', from + 1);

    if (to >= rest->n)
        return false;
    *word = str_sub(*rest, from + 1, to);
    *rest = str_sub(*rest, to + 1, rest->n);
    return true;
}

/* "`GET`, `POST /api/x`" is two calls of one path. */
static void read_line(struct document *d, struct str line)
{
    size_t first = d->n;
    struct str cell, scope, word;

    str_cut(&line, '|');
    cell = str_cut(&line, '|');
    scope = str_trim(str_cut(&line, '|'));
    while (next_word(&cell, &word)) {
        struct promise *p = &d->promises[d->n++];

        CHECK(d->n < PROMISES_MAX);
        *p = (struct promise){.method = str_cut(&word, ' ')};
        p->is_for_any = str_starts(scope, STR("any token"));
        if (!p->is_for_any) {
            struct str rest = scope, name;

            CHECK(next_word(&rest, &name));
            p->scope = scope_of(name);
            CHECK(p->scope);
        }
        for (; word.n && first < d->n; first++)
            d->promises[first].path = word;
    }
    CHECK(first == d->n); /* each has got its path */
}

static void read_document(struct document *d)
{
    FILE *f = fopen(SOURCE_ROOT "/docs/protocol.md", "r");
    const char *head = "| call | scope |\n| --- | --- |\n", *at;
    struct str rest;
    size_t n;

    CHECK(f);
    n = fread(d->text, 1, sizeof(d->text) - 1, f);
    fclose(f);
    CHECK(n < sizeof(d->text) - 1);
    at = strstr(d->text, head);
    CHECK(at);
    rest = str_of(at + strlen(head));
    while (str_starts(rest, STR("|")))
        read_line(d, str_cut(&rest, '\n'));
}

/* "/api/tasks/:id" is "/api/tasks/ID". */
static bool is_same_path(struct str ours, struct str theirs)
{
    while (ours.n && theirs.n) {
        struct str a = str_cut(&ours, '/'), b = str_cut(&theirs, '/');
        bool is_any = b.n && b.p[0] >= 'A' && b.p[0] <= 'Z';

        if (a.n && a.p[0] == ':' ? !is_any : !str_eq(a, b))
            return false;
    }
    return ours.n == theirs.n;
}

static struct promise *find(struct document *d, const struct call_info *c)
{
    for (size_t i = 0; i < d->n; i++)
        if (str_eq(d->promises[i].method, c->method) &&
            is_same_path(c->path, d->promises[i].path))
            return &d->promises[i];
    return NULL;
}

TEST(the_table_of_calls_is_the_one_that_is_promised)
{
    static struct document d;
    struct call_info c;

    read_document(&d);
    CHECK(d.n > 15);
    for (size_t i = 0; api_row(i, &c); i++) {
        struct promise *p = find(&d, &c);

        if (c.is_public) {
            CHECK(!p);
            continue;
        }
        if (!p)
            T_FAIL("%.*s %.*s is not in docs/protocol.md", STR_ARG(c.method),
                   STR_ARG(c.path));
        if (p->is_there || p->is_for_any != c.is_for_any || p->scope != c.scope)
            T_FAIL("%.*s %.*s is promised otherwise", STR_ARG(c.method),
                   STR_ARG(c.path));
        p->is_there = true;
    }
    for (size_t i = 0; i < d.n; i++)
        if (!d.promises[i].is_there)
            T_FAIL("%.*s %.*s is promised and not there",
                   STR_ARG(d.promises[i].method), STR_ARG(d.promises[i].path));
}

TEST(every_call_is_public_or_for_any_token_or_has_one_scope)
{
    struct call_info c;
    size_t n = 0;

    for (; api_row(n, &c); n++) {
        CHECK_INT(c.is_public + c.is_for_any + (c.scope != 0), 1);
        CHECK((c.scope & (c.scope - 1)) == 0 && c.scope <= SCOPE_ALL);
    }
    CHECK(n > 15 && !api_row(n, &c) && !api_row(n + 1000, &c));
}

TEST(nothing_of_the_api_is_public_and_only_what_tells_of_nobody_is)
{
    static const char *const open[] = {"/", "/assets/:folder/*", "/healthz",
                                       "/readyz", "/metrics"};
    struct call_info c;
    size_t n_public = 0;

    for (size_t i = 0; api_row(i, &c); i++) {
        bool is_open = false;

        for (size_t k = 0; k < sizeof(open) / sizeof(open[0]); k++)
            is_open = is_open || str_eq(c.path, str_of(open[k]));
        CHECK(c.is_public == is_open);
        CHECK(!c.is_public || str_eq(c.method, STR("GET")));
        n_public += c.is_public;
    }
    CHECK_INT(n_public, sizeof(open) / sizeof(open[0]));
}

/* Only admins may see or change users, by any call. */
TEST(only_admins_have_a_scope_for_users)
{
    static const enum role roles[] = {ROLE_ADMIN, ROLE_USER, ROLE_AGENT};
    struct call_info c;

    for (size_t i = 0; api_row(i, &c); i++)
        for (size_t r = 0; r < 3; r++) {
            bool may = c.is_public || c.is_for_any ||
                       (role_scopes(roles[r]) & c.scope);

            if (str_starts(c.path, STR("/api/users")))
                CHECK(may == (roles[r] == ROLE_ADMIN));
            else if (roles[r] == ROLE_ADMIN)
                CHECK(may);
        }
}
