/* Any bytes as what a classifier answers, as what people and cards say in a
 * question to it, and as a decision that was recorded or spoken: never a crash.
 * What counts of an answer names someone who was asked about; a question is
 * one document with nothing in it but what it should have; a record decides
 * itself to someone, or to no one. */
#include <assert.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "choose/layers/choose.h"
#include "model/query.h"
#include "speak/speak.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct agent agents[3] = {
    {.name = {"cook", 4}}, {.name = {"Coder", 5}}, {.name = {"a.b-c", 5}}};
static const struct agent *const list[3] = {&agents[0], &agents[1], &agents[2]};
static char lower[3][8] = {"cook", "coder", "a.b-c"};

/* A message that waits for the classifier. */
static struct msg *asking(const struct choose_view *v, struct candidate *room,
                          struct str text)
{
    struct msg *m = msg_new(&(struct caller){0}, 7);

    assert(m);
    m->call.text = text;
    for (size_t i = 0; i < 3; i++)
        room[i] = (struct candidate){.agent = agents[i].name,
                                     .signals = {.cosine = .5F}};
    m->known.has_conversation = true;
    m->known.has_candidates = true;
    m->known.candidates = room;
    m->known.n_candidates = 3;
    assert(choose_agent(v, m) == OK);
    assert(m->choice.needs == NEEDS_INTENT || m->choice.layer);
    return m;
}

static void check_answer(const struct choose_view *v, struct msg *m,
                         enum model_kind kind, struct str body)
{
    struct intent_answer *said = &m->known.intent;

    if (m->choice.needs != NEEDS_INTENT)
        return;
    assert(choose_intent_read(v, m, kind, body, said) == OK);
    assert(said->is_asked && said->is_good == !said->why.n);
    assert(said->is_good == (agent_find(v->agents, said->agent) != NULL));
    assert(said->confidence >= 0 && said->confidence <= 1);
    assert(said->reasoning.n <= INTENT_REASON_MAX);
    assert(!str_has_any_control(said->reasoning));
    assert(said->why.n <= INTENT_REASON_MAX);
    m->known.has_intent = true;
    assert(choose_agent(v, m) == OK || !said->is_good ||
           said->confidence <= v->settings->intent.threshold);
}

static void check_question(const struct choose_view *v, struct msg *m,
                           enum model_kind kind, struct str text)
{
    struct json *root, *messages, *said;
    struct arena a;
    struct buf out;

    if (m->choice.needs != NEEDS_INTENT)
        return;
    arena_init(&a, 64 << 20);
    buf_init(&out, INTENT_BODY_MAX);
    assert(choose_intent_ask(v, m, kind, STR("m"), &out) == OK);
    root = json_parse(&a, buf_str(&out), 0, NULL);
    messages = json_get(root, STR("messages"));
    assert(messages && messages->kids.n == (kind == MODEL_OPENAI ? 2 : 1));
    said =
        json_parse(&a,
                   json_str_or(json_get(json_at(messages, messages->kids.n - 1),
                                        STR("content")),
                               STR("")),
                   0, NULL);
    assert(said && said->kids.n == 2);
    assert(json_get(said, STR("agents"))->kids.n == 3);
    if (utf8_is_valid(text))
        assert(str_eq(json_get(said, STR("message"))->s,
                      str_head(text, INTENT_TEXT_MAX)));
    buf_fini(&out);
    arena_fini(&a);
}

static void check_again(const struct choose_settings *s, struct arena *a,
                        const struct decision *d)
{
    struct decision out;

    for (int i = 0; i < 2; i++) {
        enum err e = choose_again(i ? s : NULL, NULL, d, a, &out);

        assert(e == OK || e == ERR_NO_ROUTE || e == ERR_NOT_FOUND);
        assert(e || (out.agent.n && out.layer && out.layer < N_LAYERS));
    }
}

static void check_spoken(const struct choose_settings *s, struct str text)
{
    struct decision d;
    struct json *v;
    struct arena a;

    arena_init(&a, 64 << 20);
    v = json_parse(&a, text, 0, NULL);
    if (v && speak_decision_read(&a, v, &d) == OK)
        check_again(s, &a, &d);
    arena_fini(&a);
}

static void check_recorded(const struct choose_settings *s, struct str body)
{
    struct value values[N_DECISION_COLUMNS] = {{0}};
    struct row row = {.values = values};
    struct decision d;
    struct arena a;

    values[DECISION_LAYER] = value_int(body.n ? 1 + body.n % 7 : 6);
    values[DECISION_AGENT] = value_text(STR("cook"));
    values[DECISION_TEXT] = value_text(STR("/coder hi"));
    values[DECISION_BODY] = value_blob(body);
    arena_init(&a, 64 << 20);
    if (decision_from_row(&a, &row, &d) == OK)
        check_again(s, &a, &d);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const uint64_t seed[2] = {1, 2};
    struct str bytes = {(const char *)data, n};
    struct choose_settings settings = choose_defaults();
    struct eyes eyes = {.sees_all = true};
    struct candidate room[3];
    struct map by_name;
    struct agents all = {list, 3, &by_name};
    struct choose_view v = {
        .settings = &settings, .agents = &all, .eyes = &eyes};
    struct msg *m;

    map_init(&by_name, 3, seed);
    for (size_t i = 0; i < 3; i++)
        assert(map_put(&by_name, str_of(lower[i]), &agents[i]) == OK);
    settings.intent.is_on = true;
    settings.default_agent = STR("cook");
    agents[1].description = bytes;
    for (int i = 0; i < MODEL_KINDS; i++) {
        enum model_kind kind = (enum model_kind)i;

        m = asking(&v, room, STR("hi"));
        check_answer(&v, m, kind, bytes);
        msg_free(m);
        if (!n || data[0] == '/')
            continue;
        m = asking(&v, room, bytes);
        check_question(&v, m, kind, bytes);
        msg_free(m);
    }
    check_spoken(&settings, bytes);
    check_recorded(&settings, bytes);
    map_fini(&by_name);
    return 0;
}
