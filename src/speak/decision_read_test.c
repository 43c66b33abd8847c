/* A decision written as JSON and read back decides again with the same result,
 * to the last bit. */
#include "speak/speak.h"

#include "base/fault.h"
#include "test/lib/decision_maker.h"

static struct json *spoken(struct arena *a, struct buf *out,
                           const struct decision *d)
{
    struct json_out o;
    struct json *v;

    buf_clear(out);
    o = json_out(out);
    json_open(&o, '{');
    speak_decision(&o, d, SPEAK_WHOLE);
    json_close(&o, '}');
    CHECK(!out->over);
    v = json_parse(a, buf_str(out), 0, NULL);
    CHECK(v);
    return v;
}

TEST(what_was_said_of_a_decision_decides_it_again)
{
    struct decision d, back, again;
    struct arena a;
    struct buf out;
    int n = 0;

    arena_init(&a, 4 << 20);
    buf_init(&out, 1 << 20);
    for (int i = 0; i < 2000; i++) {
        if (make_decision((uint64_t)i, &d))
            continue;
        n++;
        arena_reset(&a);
        CHECK_INT(speak_decision_read(&a, spoken(&a, &out, &d), &back), OK);
        check_same_answer(&d, &back);
        CHECK_INT(choose_again(NULL, NULL, &back, &a, &again), made_with(&d));
        check_same_answer(&d, &again);
        if (!made_by_missing(&d)) {
            stage.settings.default_agent = d.rules.default_agent;
            CHECK_INT(choose_again(&stage.settings, NULL, &back, &a, &again),
                      made_with(&d));
            if (d.layer == LAYER_NONE)
                again.reason = d.reason; /* see again_test.c */
            check_same_answer(&d, &again);
        }
        stage_close();
    }
    CHECK(n > 500);
    buf_fini(&out);
    arena_fini(&a);
}

TEST(everything_but_the_vector_comes_back)
{
    static const struct candidate one = {STR("x"),
                                         STR("s"),
                                         STR("k"),
                                         {.semantic = .1F,
                                          .cosine = -1,
                                          .text = .3F,
                                          .learned = -.7F,
                                          .discount = .01F,
                                          .performance = .5F,
                                          .keyword = 1,
                                          .recency = .2F},
                                         .level = {.1F, .3F},
                                         .is_trusted = true,
                                         .score = 1.0 / 3};
    struct decision d = {
        .at_ms = 7,
        .turn = 2,
        .conversation_id = STR("c"),
        .requester = STR("ann"),
        .org = STR("acme"),
        .text = STR("hi"),
        .is_by_agent = true,
        .executor = STR("e"),
        .source = STR("{\"channel\":\"x\"}"),
        .stuck_to = STR("st"),
        .layer = LAYER_SEMANTIC,
        .agent = STR("x"),
        .skill = STR("s"),
        .reason = STR("because"),
        .score = .1,
        .margin = 1e-9,
        .threshold = .3,
        .is_explored = true,
        .weights = {.1, .2, .3, .4},
        .rules = {.layers_off = 1U << LAYER_PREFIX | 1U << LAYER_DEFAULT,
                  .default_agent = STR("main"),
                  .threshold = .3,
                  .text_blend = .25,
                  .close_margin = .05,
                  .explore = .1,
                  .second_margin = .3,
                  .chance = .7,
                  .has_intent = true,
                  .intent_is_ambiguous = true,
                  .intent_is_over_bindings = true,
                  .intent_threshold = .8},
        .candidates = &one,
        .n_candidates = 1,
        .n_considered = 99,
        .intent = {.is_asked = true,
                   .is_good = true,
                   .agent = STR("x"),
                   .confidence = .5,
                   .reasoning = STR("r"),
                   .why = STR("w"),
                   .took_ms = 3},
        .model = STR("builtin"),
        .model_hash = STR("abc"),
        .tier = TIER_TABLE,
        .tier_note = STR("it slept"),
        .config_version = STR("v"),
        .registry_version = 4,
        .learn_version = 5,
        .type = 6,
        .verdict = VERDICT_NEGATIVE,
        .verdict_ms = 8,
        .overridden_to = STR("y"),
        .overridden_by = STR("bob"),
        .overridden_ms = 9,
        .answer_chars = 10,
        .latency_ms = 11,
        .error_code = STR("timeout"),
        .is_followed = true};
    struct decision back;
    struct arena a;
    struct buf first, second;

    arena_init(&a, 1 << 20);
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    d.id = id_from(STR("dec_1"));
    d.task_id = id_from(STR("task_1"));
    CHECK_INT(speak_decision_read(&a, spoken(&a, &first, &d), &back), OK);
    CHECK(spoken(&a, &second, &back));
    CHECK(str_eq(buf_str(&first), buf_str(&second)));
    buf_fini(&first);
    buf_fini(&second);
    arena_fini(&a);
}

TEST(what_is_no_whole_decision_is_refused)
{
    static const char *const cases[] = {
        "7",
        "[]",
        "{}",
        "{\"layer\":\"semantic\",\"agent\":\"x\"}",
        "{\"layer\":\"semantic\",\"rules\":{}}",
        "{\"layer\":\"magic\",\"agent\":\"x\",\"rules\":{}}",
        "{\"layer\":7,\"agent\":[],\"rules\":{}}",
    };
    struct decision out;
    struct arena a;

    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json *v = json_parse(&a, str_of(cases[i]), 0, NULL);

        CHECK(v);
        CHECK_INT(speak_decision_read(&a, v, &out), ERR_BAD_REQUEST);
    }
    arena_fini(&a);
}

/* A wrong type counts as absent. */
TEST(fields_of_another_type_are_survived)
{
    struct str text = STR(
        "{\"layer\":\"semantic\",\"agent\":\"x\",\"rules\":{\"layers_off\":"
        "[\"prefix\",\"nonsense\",7,null]},\"candidates\":[7,{\"agent\":[]}],"
        "\"intent\":7,\"source\":[],\"weights\":\"a\",\"versions\":null,"
        "\"verdict\":\"great\",\"score\":\"0.5\",\"considered\":-4}");
    struct decision out;
    struct arena a;

    arena_init(&a, 1 << 20);
    CHECK_INT(speak_decision_read(&a, json_parse(&a, text, 0, NULL), &out), OK);
    CHECK_INT(out.rules.layers_off, 1U << LAYER_PREFIX);
    CHECK(out.n_candidates == 2 && !out.intent.is_asked && !out.source.n);
    CHECK(out.verdict == VERDICT_OPEN && out.score == 0);
    arena_fini(&a);
}

TEST(reading_survives_every_fault)
{
    struct str text =
        STR("{\"layer\":\"semantic\",\"agent\":\"x\",\"rules\":{},"
            "\"source\":{\"a\":1},\"candidates\":[{\"agent\":\"x\"}]}");
    bool has_fired = true;

    for (long nth = 1; has_fired; nth++) {
        struct decision out;
        struct arena a, b;
        struct json *v;
        enum err e;

        arena_init(&a, 1 << 20);
        arena_init(&b, 1 << 20);
        v = json_parse(&a, text, 0, NULL);
        fault_arm(nth);
        e = speak_decision_read(&b, v, &out);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK_INT(e, has_fired ? ERR_NOMEM : OK);
        arena_fini(&a);
        arena_fini(&b);
    }
}
