/* Any bytes as the body of a message, of a user, of a token, as a header, an
 * address or the id of an event: never a crash; what is refused is refused
 * with words; what is taken is within its limits, and can be said again as
 * valid JSON, in an event as one line. */
#include <assert.h>
#include <stdlib.h>

#include "speak/speak.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct caller nobody;

static void is_one_document(const struct buf *out)
{
    assert(!out->over);
    assert(json_check(buf_str(out), NULL) == OK);
}

/* As a task whose result is the message itself. */
static void say_task(const struct msg *m)
{
    struct task t = {.conversation_id = m->call.conversation_id,
                     .requester = STR("a"),
                     .root_user = STR("b"),
                     .agent = m->call.executor,
                     .skill = m->call.skill,
                     .priority = m->call.priority,
                     .status = TASK_COMPLETED,
                     .text = m->call.text,
                     .metadata = m->call.metadata,
                     .source = m->call.source,
                     .result = {.status = TASK_COMPLETED,
                                .text = m->call.text,
                                .metadata = m->call.metadata}};
    struct speak_decision d = {STR("x"), m->call.executor, m->call.skill};
    struct speak_event e;
    struct json_out o;
    struct buf out;
    struct str line;

    buf_init(&out, 64 << 20);
    o = json_out(&out);
    json_open(&o, '{');
    speak_task(&o, &t);
    json_close(&o, '}');
    is_one_document(&out);
    buf_clear(&out);
    e = speak_event_open(&out, STR("1-1"), STR("result"));
    o = json_out(&out);
    json_open(&o, '{');
    speak_answer(&o, &t, &d);
    json_close(&o, '}');
    speak_event_close(&e);
    assert(!out.over && str_find(buf_str(&out), '\r', 0) == out.n);
    line = str_sub(buf_str(&out), e.data_at, out.n - 2);
    assert(str_find(line, '\n', 0) == line.n);
    assert(json_check(line, NULL) == OK);
    buf_fini(&out);
}

static bool is_name(struct str s, size_t max)
{
    return s.n <= max && !str_has_control(s);
}

static void check_call(const struct msg *m)
{
    assert(m->call.text.n >= 1 && m->call.text.n <= MSG_TEXT_MAX);
    assert(is_name(m->call.executor, AGENT_NAME_MAX));
    assert(is_name(m->call.skill, MSG_SKILL_MAX));
    assert(is_name(m->call.conversation_id, MSG_CONVERSATION_MAX));
    assert(is_name(m->call.idempotency_key, MSG_KEY_MAX));
    assert(m->call.metadata.n <= MSG_METADATA_MAX);
    assert(m->call.source.n <= MSG_METADATA_MAX);
    assert(json_check(m->call.metadata, NULL) == OK);
    assert(json_check(m->call.source, NULL) == OK);
    assert(!m->call.task_id.n || id_is_valid(m->call.task_id, "task"));
    assert(m->call.wait_ms >= 0 && m->call.wait_ms <= SPEAK_WAIT_MAX_MS);
    assert(m->call.timeout_ms >= 0 &&
           m->call.timeout_ms <= SPEAK_TIMEOUT_MAX_MS);
}

static void read_message(struct str body, struct str key)
{
    struct msg *m = msg_new(&nobody, 0);
    struct buf meaning;
    enum err e;

    assert(m);
    buf_init(&meaning, SPEAK_MEANING_MAX);
    e = speak_message(m, body, key, &meaning);
    if (e) {
        assert(m->why.text[0]);
    } else {
        assert(meaning.n > 0);
        check_call(m);
        say_task(m);
    }
    buf_fini(&meaning);
    msg_free(m);
}

static void read_people(struct str body)
{
    struct speak_user_call u = {.role = 0};
    struct speak_token_call t;
    struct why why = {""};
    struct arena a;

    arena_init(&a, 1 << 20);
    if (speak_user_post(&a, body, &u, &why) == OK)
        assert(u.role && is_name(u.name, PRINCIPAL_NAME_MAX) && u.name.n);
    else
        assert(why.text[0]);
    if (speak_user_patch(&a, body, &u, &why) == OK)
        assert(u.role || u.org.p);
    if (speak_token_post(&a, body, &t, &why) == OK)
        assert((t.scopes & ~(unsigned)SCOPE_ALL) == 0 &&
               is_name(t.label, SPEAK_LABEL_MAX));
    arena_fini(&a);
}

static void read_small(struct str s)
{
    struct speak_place p = {0, 0}, q;
    char text[SPEAK_PLACE_BYTES];
    struct why why = {""};
    struct arena a;
    struct str out;

    arena_init(&a, 8 << 20);
    if (speak_place_read(s, &p) == OK) {
        assert(p.epoch >= 0 && p.number >= 0);
        assert(speak_place_read(speak_place_write(&p, text), &q) == OK);
        assert(q.epoch == p.epoch && q.number == p.number);
    }
    if (speak_percent(&a, s, true, &out) == OK)
        assert(out.n <= s.n && !str_has_control(out));
    (void)speak_accepts(s, SPEAK_EVENTS);
    if (speak_nothing(s, &why))
        assert(why.text[0]);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str all = {(const char *)data, n};
    size_t at = str_find(all, '\0', 0);

    read_message(all, STR(""));
    /* What stands before a NUL is the header, what follows it the body. */
    if (at < n)
        read_message(str_sub(all, at + 1, n), str_sub(all, 0, at));
    read_people(all);
    read_small(all);
    return 0;
}
