/* The tables of lists and requests are read when a command runs: a misspelt
 * option would crash it, and a misspelt path would leave its column empty.
 * Tables that no row of a subcommand names are not seen here; flow tests run
 * their commands. */
#include "cli/list.h"

#include <ctype.h>
#include <stdio.h>

#include "test/t.h"

static const struct command *command;
static const char *sub_name;
static unsigned faults;

static void fault(const char *what, struct str text)
{
    printf("%s %s: %s: %.*s\n", command->name, sub_name, what, STR_ARG(text));
    faults++;
}

static bool has_option(const struct arg_option *o, struct str name)
{
    for (; o && o->name; o++)
        if (str_eq(str_of(o->name), name))
            return true;
    return false;
}

/* "layer text=q status:open": each names an option of the command. */
static void check_options(const char *words)
{
    struct str rest = str_of(words);

    while (rest.n) {
        struct str word = str_cut(&rest, ' '), name = str_cut(&word, ':');

        name = str_cut(&name, '=');
        if (!has_option(command->options, name))
            fault("there is no option", name);
    }
}

/* "result.text" */
static void check_path(struct str path)
{
    struct str rest = path;

    if (path.n >= 64 || str_starts(path, STR(".")) ||
        (path.n && path.p[path.n - 1] == '.'))
        fault("bad path", path);
    while (rest.n) {
        struct str name = str_cut(&rest, '.');

        if (!name.n)
            fault("bad path", path);
        for (size_t i = 0; i < name.n; i++)
            if (!isalnum((unsigned char)name.p[i]) && name.p[i] != '_')
                fault("bad path", path);
    }
}

/* "{} is {state}[ until {expires_ms}]": gaps with paths, and parts that hold no
 * other part. */
static void check_sentence(const char *words)
{
    bool is_part = false;
    const char *end;

    for (const char *p = words; p && *p; p++) {
        if (*p == '}' || (*p == '[' && is_part) || (*p == ']' && !is_part))
            fault("bad brackets", str_of(words));
        if (*p == '[' || *p == ']')
            is_part = *p == '[';
        if (*p != '{')
            continue;
        end = strchr(p, '}');
        if (!end) {
            fault("bad brackets", str_of(words));
            return;
        }
        check_path((struct str){p + 1, (size_t)(end - p - 1)});
        p = end;
    }
    if (is_part)
        fault("bad brackets", str_of(words));
}

/* A member is a path or a sentence; without a function it has a name. */
static void check_member(const char *member, bool has_function)
{
    if (!member || (!*member && !has_function))
        fault("no member", STR(""));
    else if (strchr(member, '{'))
        check_sentence(member);
    else
        check_path(str_of(member));
}

static void check_list(const struct listing *list)
{
    size_t n = 0;

    if (!str_starts(str_of(list->path), STR("/api/")))
        fault("bad path", str_of(list->path));
    check_options(list->filters);
    check_options("limit");
    for (const struct grid_column *g = list->columns; g->title; g++, n++) {
        struct str option = str_of(g->narrow), name = str_cut(&option, '=');

        check_member(g->member, g->as);
        if (str_starts(name, STR("!")))
            name = str_sub(name, 1, name.n);
        if (name.n && !has_option(command->options, name))
            fault("there is no option", name);
    }
    if (!n || n > GRID_COLUMNS_MAX)
        fault("bad number of columns", str_of(list->path));
}

static void check_one(const struct sub *s)
{
    const struct one *one = s->one;
    struct str path = str_of(one->path);

    if (!one->method || !str_starts(path, STR("/api/")) ||
        (path.p[path.n - 1] == '/') != (one->called != NULL))
        fault("bad path", path);
    if (one->gone && (!one->called || !one->say))
        fault("nothing to say", path);
    check_options(one->options);
    check_sentence(one->say);
    for (const struct field *f = one->fields; f && f->label; f++)
        check_member(f->member, f->as);
}

TEST(tables_of_commands_name_options_and_members_that_can_be)
{
    size_t lists = 0, ones = 0;

    for (command = cli_commands; command->name; command++)
        for (const struct sub *s = command->subs; s && s->name; s++) {
            sub_name = s->name;
            check_options(s->options);
            if (s->list)
                check_list(s->list);
            if (s->one)
                check_one(s);
            if (!s->list + !s->one + !s->run != 2)
                fault("not one thing to do", STR(""));
            lists += s->list != NULL;
            ones += s->one != NULL;
        }
    CHECK_INT(faults, 0);
    CHECK(lists >= 9 && ones >= 20);
}
