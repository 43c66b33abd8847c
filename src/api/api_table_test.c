/* The table of calls against docs/protocol.md, both ways, and the access to
 * each. test/flow/access_test.py tests the running server with every role. */
#include "api/calls.h"

#include "api/internal.h"
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
    const char *head = "| call | scope | what it does |\n| --- | --- | --- |\n",
               *at;
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

static struct promise *find(struct document *d, const struct call_row *c)
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
    const struct call_row *c;

    read_document(&d);
    CHECK(d.n > 15);
    for (size_t i = 0; (c = call_row(i)); i++) {
        struct promise *p = find(&d, c);

        if (c->who & PUBLIC) {
            CHECK(!p);
            continue;
        }
        if (!p)
            T_FAIL("%.*s %.*s is not in docs/protocol.md", STR_ARG(c->method),
                   STR_ARG(c->path));
        if (p->is_there || p->is_for_any != (c->who == ANY_TOKEN) ||
            p->scope != (c->who & SCOPE_ALL))
            T_FAIL("%.*s %.*s is promised otherwise", STR_ARG(c->method),
                   STR_ARG(c->path));
        p->is_there = true;
    }
    for (size_t i = 0; i < d.n; i++)
        if (!d.promises[i].is_there)
            T_FAIL("%.*s %.*s is promised and not there",
                   STR_ARG(d.promises[i].method), STR_ARG(d.promises[i].path));
}

TEST(the_page_has_the_tables_as_they_are_printed)
{
    static struct document d;
    struct buf out;

    read_document(&d);
    buf_init(&out, sizeof(d.text));
    api_write_reference(&out);
    buf_add_char(&out, '\0');
    CHECK(!out.over && strstr(d.text, buf_str(&out).p));
    buf_fini(&out);
}

TEST(every_call_is_public_or_for_any_token_or_has_one_scope)
{
    const struct call_row *c;
    size_t n = 0;

    for (; (c = call_row(n)); n++) {
        unsigned scope = c->who & SCOPE_ALL;

        CHECK_INT(
            ((c->who & PUBLIC) != 0) + (c->who == ANY_TOKEN) + (scope != 0), 1);
        CHECK((scope & (scope - 1)) == 0);
        CHECK(c->who & PUBLIC || c->who == ANY_TOKEN || c->who == scope);
    }
    CHECK(n > 15 && !call_row(n) && !call_row(n + 1000));
}

TEST(a_call_keeps_all_the_arguments_of_its_row)
{
    const struct call_row *c;

    for (size_t i = 0; (c = call_row(i)); i++) {
        size_t n = 0;

        while (c->args && c->args[n].name)
            n++;
        CHECK(n <= CALL_ARGS_MAX);
    }
}

TEST(nothing_of_the_api_is_public_and_only_what_tells_of_nobody_is)
{
    static const char *const open[] = {"/",        "/assets/:folder/*",
                                       "/healthz", "/readyz",
                                       "/metrics", "/openapi.json"};
    const struct call_row *c;
    size_t n_public = 0;

    for (size_t i = 0; (c = call_row(i)); i++) {
        bool is_open = false, is_public = c->who & PUBLIC;

        for (size_t k = 0; k < sizeof(open) / sizeof(open[0]); k++)
            is_open = is_open || str_eq(c->path, str_of(open[k]));
        CHECK(is_public == is_open);
        CHECK(!is_public || str_eq(c->method, STR("GET")));
        n_public += is_public;
    }
    CHECK_INT(n_public, sizeof(open) / sizeof(open[0]));
}

static struct str name_layer(int i)
{
    return layer_name((enum layer)i);
}

static struct str name_verdict(int i)
{
    return verdict_name((enum verdict)i);
}

static struct str name_task(int i)
{
    return task_status_name((enum task_status)i);
}

static struct str name_state(int i)
{
    return agent_state_name((enum agent_state)i);
}

static struct str name_kind(int i)
{
    return agent_kind_name((enum agent_kind)i);
}

static struct str name_visibility(int i)
{
    return visibility_name((enum visibility)i);
}

static struct str name_review(int i)
{
    return review_name((enum review_state)i);
}

static struct str name_escalation(int i)
{
    return escalation_status_name((enum escalation_status)i);
}

static struct str name_cause(int i)
{
    return escalation_kind_name((enum escalation_kind)i);
}

static const struct field *find_arg(const char *path, const char *name)
{
    const struct call_row *c;

    for (size_t i = 0; (c = call_row(i)); i++)
        for (const struct field *f = c->args; f && f->name; f++)
            if (str_eq(c->path, str_of(path)) && strcmp(f->name, name) == 0)
                return f;
    return NULL;
}

/* Every value of an enum can be asked for. `more` are words of the call. */
TEST(the_words_of_an_argument_are_those_of_its_enum)
{
    static const struct {
        const char *path, *arg;
        struct str (*name)(int i);
        int first, last;
        size_t more;
    } cases[] = {
        {"/api/decisions", "layer", name_layer, 1, N_LAYERS - 1, 0},
        {"/api/decisions", "verdict", name_verdict, VERDICT_OPEN,
         VERDICT_NEUTRAL, 0},
        {"/api/tasks", "status", name_task, 1, N_TASK_STATUS - 1, 0},
        {"/api/trees", "status", name_task, 1, N_TASK_STATUS - 1, 0},
        {"/api/agents", "state", name_state, 1, AGENT_DEAD, 0},
        {"/api/agents/search", "state", name_state, 1, AGENT_DEAD, 0},
        {"/api/agents", "kind", name_kind, 1, AGENT_SELF_HOSTED, 0},
        {"/api/agents", "visibility", name_visibility, 1, VISIBILITY_PUBLIC, 0},
        {"/api/agents", "review", name_review, 1, REVIEW_HIDDEN, 1},
        {"/api/escalations", "status", name_escalation, 1, ESCALATION_RESOLVED,
         0},
        {"/api/escalations", "kind", name_cause, 1, ESCALATION_EXPIRED, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct field *f = find_arg(cases[i].path, cases[i].arg);
        size_t n = cases[i].more;
        struct why why;
        struct str got;

        CHECK(f && f->type == FIELD_WORD);
        for (int k = cases[i].first; k <= cases[i].last; k++, n++)
            if (field_arg(f, cases[i].name(k), &got, &why) != OK)
                T_FAIL("%s: %s", cases[i].path, why.text);
        for (struct str all = str_of(f->of); all.n; n--)
            str_cut(&all, '|');
        CHECK_INT(n, 0);
    }
}

/* Only admins may see or change users, by any call. */
TEST(only_admins_have_a_scope_for_users)
{
    static const enum role roles[] = {ROLE_ADMIN, ROLE_USER, ROLE_AGENT};
    const struct call_row *c;

    for (size_t i = 0; (c = call_row(i)); i++)
        for (size_t r = 0; r < 3; r++) {
            bool may = (c->who & (PUBLIC | ANY_TOKEN)) ||
                       (role_scopes(roles[r]) & c->who);

            if (str_starts(c->path, STR("/api/users")))
                CHECK(may == (roles[r] == ROLE_ADMIN));
            else if (roles[r] == ROLE_ADMIN)
                CHECK(may);
        }
}
