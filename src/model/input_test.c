/* Questions and answers, at every limit. */
#include "model/input.h"
#include "test/t.h"

static char many[INPUT_BYTES_MAX + 1];

TEST(a_question_has_a_limit_of_all_its_words)
{
    struct str options[INPUT_OPTIONS_MAX + 1];
    struct input_ask q = {.kind = INPUT_SELECT, .options = options};

    memset(many, 'x', sizeof(many));
    CHECK_INT(input_may_be_asked(&q), ERR_BAD_REQUEST); /* nothing to choose */
    for (size_t i = 0; i <= INPUT_OPTIONS_MAX; i++)
        options[i] = STR("x");
    q.n_options = INPUT_OPTIONS_MAX;
    CHECK_INT(input_may_be_asked(&q), OK);
    q.title = (struct str){many, INPUT_BYTES_MAX - INPUT_OPTIONS_MAX};
    CHECK_INT(input_may_be_asked(&q), OK);
    q.message = STR("y");
    CHECK_INT(input_may_be_asked(&q), ERR_LIMIT);
    q.title = q.message = STR("");
    q.n_options++;
    CHECK_INT(input_may_be_asked(&q), ERR_LIMIT);
    q = (struct input_ask){.kind = INPUT_EDITOR,
                           .prefill = {many, INPUT_BYTES_MAX + 1}};
    CHECK_INT(input_may_be_asked(&q), ERR_LIMIT);
    q.prefill.n--;
    CHECK_INT(input_may_be_asked(&q), OK);
    q.handle = STR("h");
    CHECK_INT(input_may_be_asked(&q), ERR_LIMIT);
}

static enum err answers(enum input_kind kind, struct input_answer a)
{
    static const struct str options[] = {STR("a"), STR("")};
    struct input_ask q = {.kind = kind, .options = options, .n_options = 2};
    struct why why = {""};
    enum err e = input_may_be_answered(&q, &a, &why);

    CHECK(!e == !why.text[0]);
    return e;
}

static struct input_answer value(const char *s)
{
    return (struct input_answer){.has_value = true, .value = str_of(s)};
}

TEST(an_answer_is_of_the_kind_that_is_asked)
{
    struct input_answer yes = {.has_confirmed = true, .confirmed = true};
    struct input_answer none = {.is_cancelled = true};
    struct input_answer both = yes, mixed = value("a");
    enum input_kind k;

    both.has_value = true;
    mixed.is_cancelled = true;
    for (k = INPUT_SELECT; k <= INPUT_EDITOR; k++) {
        CHECK_INT(answers(k, none), OK);
        CHECK_INT(answers(k, yes), k == INPUT_CONFIRM ? OK : ERR_BAD_REQUEST);
        CHECK_INT(answers(k, value("a")),
                  k == INPUT_CONFIRM ? ERR_BAD_REQUEST : OK);
        CHECK_INT(answers(k, both), ERR_BAD_REQUEST);
        CHECK_INT(answers(k, mixed), ERR_BAD_REQUEST);
        CHECK_INT(answers(k, (struct input_answer){0}), ERR_BAD_REQUEST);
    }
    CHECK_INT(answers(INPUT_SELECT, value("")), OK);
    CHECK_INT(answers(INPUT_SELECT, value("A")), ERR_BAD_REQUEST);
    CHECK_INT(answers(INPUT_TEXT, value("a\nb")), ERR_BAD_REQUEST);
    CHECK_INT(answers(INPUT_EDITOR, value("a\nb")), OK);
}

TEST(a_value_has_a_limit)
{
    static char text[INPUT_VALUE_MAX + 2];

    memset(text, 'x', INPUT_VALUE_MAX + 1);
    CHECK_INT(answers(INPUT_EDITOR, value(text)), ERR_LIMIT);
    text[INPUT_VALUE_MAX] = '\0';
    CHECK_INT(answers(INPUT_EDITOR, value(text)), OK);
}

static struct str written(const struct input *in)
{
    static struct buf out;
    struct json_out o;

    buf_fini(&out);
    buf_init(&out, 4096);
    o = json_out(&out);
    input_write(&o, in);
    return buf_str(&out);
}

TEST(it_is_written_as_it_is_asked_and_as_it_ended)
{
    struct str options[] = {STR("a"), STR("b")};
    struct input in = {.id = {"input_1"},
                       .task_id = {"task_1"},
                       .agent = "pi",
                       .ask = {.kind = INPUT_SELECT,
                               .title = STR("Which?"),
                               .options = options,
                               .n_options = 2,
                               .handle = STR("secret")},
                       .at_ms = 5,
                       .until_ms = 7};

    CHECK_STR(written(&in),
              "{\"input_id\":\"input_1\",\"task_id\":\"task_1\",\"agent\":"
              "\"pi\",\"kind\":\"select\",\"title\":\"Which?\",\"options\":["
              "\"a\",\"b\"],\"at_ms\":5,\"until_ms\":7}");
    in.outcome = INPUT_ANSWERED;
    snprintf(in.by, sizeof(in.by), "anna");
    CHECK_STR(written(&in),
              "{\"input_id\":\"input_1\",\"task_id\":\"task_1\",\"agent\":"
              "\"pi\",\"kind\":\"select\",\"outcome\":\"answered\",\"by\":"
              "\"anna\"}");
}
