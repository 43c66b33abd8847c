#include "cli/args.h"

#include "test/t.h"

static const struct arg_option own[] = {
    {"config", "FILE", "the file", false},
    {"set", "NAME=VALUE", "one setting", true},
    {"print", NULL, "show", false},
    {"at", "[HOST]", "where; may be nowhere", false},
    {0},
};
static const struct arg_option shared[] = {
    {"json", NULL, "for programs", false},
    {"help", NULL, "this", false},
    {0},
};

static struct args args;
static struct why why;

/* Words separated by one space; an empty one is an empty argument. */
static enum err parse_n(const char *line, size_t max_operands)
{
    static char copy[4096];
    char *argv[512];
    size_t n = 0;
    struct str rest;

    CHECK(strlen(line) < sizeof(copy));
    memcpy(copy, line, strlen(line) + 1);
    rest = str_of(copy);
    why.text[0] = '\0';
    while (rest.n) {
        struct str word = str_cut(&rest, ' ');

        CHECK(n < 512);
        argv[n++] = copy + (word.p - copy);
        argv[n - 1][word.n] = '\0';
    }
    return args_parse(&args, own, shared, max_operands, n, argv, &why);
}

static enum err parse(const char *line)
{
    return parse_n(line, 1);
}

static bool refuses(const char *line, const char *words)
{
    enum err e = parse(line);

    if (e != ERR_USAGE || !strstr(why.text, words)) {
        fprintf(stderr, "%s\n  gave %d: %s\n", line, e, why.text);
        return false;
    }
    return args.n_options == 0 && args.n_operands == 0;
}

TEST(nothing_is_fine)
{
    CHECK(parse("") == OK);
    CHECK(args.n_options == 0 && args.n_operands == 0);
    CHECK(!args_has(&args, "json"));
    CHECK(args_get(&args, "config").p == NULL);
}

TEST(a_value_follows_or_is_attached)
{
    CHECK(parse("--config a.jsonc") == OK);
    CHECK(str_eq(args_get(&args, "config"), STR("a.jsonc")));
    CHECK(parse("--config=b.jsonc") == OK);
    CHECK(str_eq(args_get(&args, "config"), STR("b.jsonc")));
    CHECK(parse("--set a=b=c") == OK);
    CHECK(str_eq(args_get(&args, "set"), STR("a=b=c")));
    CHECK(parse("--set=a=b") == OK);
    CHECK(str_eq(args_get(&args, "set"), STR("a=b")));
}

TEST(an_attached_value_may_begin_with_dashes)
{
    CHECK(parse("--config=--x") == OK);
    CHECK(str_eq(args_get(&args, "config"), STR("--x")));
    CHECK(parse("--config -x") == OK);
    CHECK(str_eq(args_get(&args, "config"), STR("-x")));
}

TEST(options_and_operands_mix)
{
    CHECK(parse("--print file --json") == OK);
    CHECK(args_has(&args, "print") && args_has(&args, "json"));
    CHECK(args.n_operands == 1);
    CHECK(str_eq(args.operands[0], STR("file")));
}

TEST(two_dashes_end_the_options)
{
    CHECK(parse("--json -- --print") == OK);
    CHECK(args.n_operands == 1);
    CHECK(str_eq(args.operands[0], STR("--print")));
    CHECK(!args_has(&args, "print"));
}

TEST(a_single_dash_is_an_operand)
{
    CHECK(parse("-") == OK);
    CHECK(args.n_operands == 1 && str_eq(args.operands[0], STR("-")));
}

TEST(a_number_below_zero_is_an_operand)
{
    CHECK(parse_n("-5 --json -0.5", 2) == OK);
    CHECK(args.n_operands == 2 && args_has(&args, "json"));
    CHECK(str_eq(args.operands[0], STR("-5")));
    CHECK(str_eq(args.operands[1], STR("-0.5")));
    CHECK(parse("-x5") == ERR_USAGE);
}

TEST(h_is_short_for_help)
{
    CHECK(parse("-h") == OK);
    CHECK(args_has(&args, "help"));
}

TEST(a_value_in_brackets_may_be_empty)
{
    CHECK(parse("--at=") == OK && args_has(&args, "at"));
    CHECK(parse("--at  --json") == OK && args.n_options == 2);
    CHECK(args_has(&args, "at") && args_get(&args, "at").n == 0);
    CHECK(parse("--at x") == OK && str_eq(args_get(&args, "at"), STR("x")));
    CHECK(refuses("--at", "--at needs a value: --at [HOST]"));
    CHECK(refuses("--at --json", "--at needs a value"));
}

TEST(what_may_repeat_keeps_its_order)
{
    CHECK(parse("--set a=1 --json --set b=2") == OK);
    CHECK(args.n_options == 3);
    CHECK(str_eq(args.options[0].value, STR("a=1")));
    CHECK(str_eq(args.options[2].value, STR("b=2")));
    CHECK(str_eq(args_get(&args, "set"), STR("b=2")));
}

TEST(mistakes_are_named)
{
    CHECK(refuses("--confg x", "did you mean --config?"));
    CHECK(refuses("--JSON", "did you mean --json?"));
    CHECK(refuses("--colour", "unknown option --colour; --help"));
    CHECK(refuses("--pront=1", "did you mean --print?"));
    CHECK(refuses("-j", "unknown option -j"));
    CHECK(refuses("--config", "--config needs a value: --config FILE"));
    CHECK(refuses("--config=", "--config needs a value"));
    CHECK(refuses("--config ", "--config needs a value"));
    CHECK(refuses("--config --json", "--config needs a value"));
    CHECK(refuses("--json=yes", "--json takes no value"));
    CHECK(refuses("--json --json", "--json is given twice"));
    CHECK(refuses("--config a --config b", "--config is given twice"));
    CHECK(refuses("one two", "unexpected argument \"two\""));
    CHECK(refuses("one -- two", "unexpected argument \"two\""));
    CHECK(refuses("--=x", "unknown option --"));
}

TEST(there_is_a_limit_to_everything)
{
    static char text[ARGS_VALUE_MAX + 2], one[] = "--set=a=1";
    static char word[] = "a";
    char *argv[ARGS_OPTIONS_MAX + 1], *long_value[] = {text};
    char *after[] = {(char[]){"--config"}, text};
    char *words[ARGS_OPERANDS_MAX + 1];

    for (size_t i = 0; i <= ARGS_OPTIONS_MAX; i++)
        argv[i] = one;
    CHECK(args_parse(&args, own, shared, 0, ARGS_OPTIONS_MAX, argv, &why) ==
          OK);
    CHECK(args.n_options == ARGS_OPTIONS_MAX);
    CHECK(args_parse(&args, own, shared, 0, ARGS_OPTIONS_MAX + 1, argv, &why) ==
          ERR_USAGE);
    CHECK(strstr(why.text, "more than 64 options"));

    memset(text, 'x', ARGS_VALUE_MAX);
    CHECK(args_parse(&args, own, shared, 1, 1, long_value, &why) == OK);
    CHECK(args_parse(&args, own, shared, 1, 2, after, &why) == OK);
    text[ARGS_VALUE_MAX] = 'x';
    CHECK(args_parse(&args, own, shared, 1, 1, long_value, &why) == ERR_USAGE);
    CHECK(args_parse(&args, own, shared, 1, 2, after, &why) == ERR_USAGE);

    for (int i = 0; i <= ARGS_OPERANDS_MAX; i++)
        words[i] = word;
    CHECK(args_parse(&args, own, shared, SIZE_MAX, ARGS_OPERANDS_MAX, words,
                     &why) == OK);
    CHECK(args.n_operands == ARGS_OPERANDS_MAX);
    CHECK(args_parse(&args, own, shared, SIZE_MAX, ARGS_OPERANDS_MAX + 1, words,
                     &why) == ERR_USAGE);
}

TEST(tables_may_be_missing)
{
    char *argv[] = {(char[]){"--json"}};

    CHECK(args_parse(&args, NULL, shared, 0, 1, argv, &why) == OK);
    CHECK(args_parse(&args, own, NULL, 0, 1, argv, NULL) == ERR_USAGE);
    CHECK(args_parse(&args, NULL, NULL, 0, 0, NULL, NULL) == OK);
}
