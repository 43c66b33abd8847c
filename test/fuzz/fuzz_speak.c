/* Any bytes as the body of a message, of an envelope, of a user, of a token, of
 * a search or of a grant, as a header, an address, an argument or the id of an
 * event: never a crash; what is refused is refused with words; what is taken is
 * within its limits, and can be said again as valid JSON, in an event as one
 * line. */
#include <assert.h>
#include <stdlib.h>

#include "speak/fields.h"
#include "speak/speak.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct caller anonymous;

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
    struct candidate one = {.agent = m->call.executor, .skill = m->call.skill};
    struct decision d = {.layer = LAYER_SEMANTIC,
                         .agent = m->call.executor,
                         .text = m->call.text,
                         .source = m->call.source,
                         .candidates = &one,
                         .n_candidates = 1};
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
    o = json_out(&out);
    json_open(&o, '{');
    speak_decision(&o, &d, SPEAK_WHOLE);
    json_close(&o, '}');
    is_one_document(&out);
    buf_clear(&out);
    e = speak_event_open(&out, STR("1-1"), STR("result"));
    o = json_out(&out);
    json_open(&o, '{');
    speak_answer(&o, &t, STR(""));
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
    struct msg *m = msg_new(&anonymous, 0);
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

/* As it is sent by someone who may have left out who they are. */
static void read_envelope(struct str body)
{
    struct msg *m = msg_new(&anonymous, 0);
    struct str from = STR("a\"b"), payload;
    struct envelope e;
    struct buf meaning;
    bool has_from;

    assert(m);
    buf_init(&meaning, SPEAK_MEANING_MAX);
    if (speak_envelope(m, body, &e) == OK) {
        has_from = e.from.n > 0;
        e.from = has_from ? e.from : from;
        payload = e.payload;
        if (speak_envelope_sent(m, body, &e, has_from, &meaning) == OK) {
            check_call(m);
            assert(json_check(m->call.text, NULL) == OK);
            assert(str_eq(m->call.envelope->payload, payload));
            assert(str_eq(m->call.envelope->from, e.from));
        } else {
            assert(m->why.text[0]);
        }
    } else {
        assert(m->why.text[0]);
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

/* Said again as the answer that finds one agent, for which everything is the
 * query. */
static void say_hits(const struct speak_search_call *s)
{
    struct skill skill = {.id = s->tag,
                          .name = str_head(s->text, SKILL_NAME_MAX),
                          .description = s->text};
    struct agent agent = {.name = str_head(s->text, AGENT_NAME_MAX),
                          .title = s->tag,
                          .description = s->text,
                          .url = STR("echo:"),
                          .visibility = VISIBILITY_PUBLIC,
                          .org = s->org,
                          .skills = &skill,
                          .n_skills = 1};
    struct index_match matches[] = {{.skill = 0, .score = 1},
                                    {.skill = INDEX_AGENT}};
    struct speak_hit hits[2] = {{.agent = &agent,
                                 .state = AGENT_IDLE,
                                 .score = s->min_score,
                                 .matches = matches,
                                 .n_matches = 2}};
    struct speak_hits h = {.list = hits,
                           .n = 2,
                           .total = 2,
                           .mode = s->mode,
                           .note = STR("x"),
                           .max_bytes = (size_t)s->limit * 100,
                           .explains = s->explains,
                           .text = s->text,
                           .fusion = s->fusion};
    struct buf out;
    struct json_out o;

    hits[1] = hits[0];
    buf_init(&out, 16 << 20);
    o = json_out(&out);
    speak_hits(&o, &h);
    is_one_document(&out);
    buf_fini(&out);
}

static void check_search(const struct speak_search_call *s)
{
    assert(s->text.n >= 1 && s->text.n <= SPEAK_QUERY_MAX);
    assert(s->limit >= 1 && s->limit <= SPEAK_HITS_MAX);
    assert(s->mode <= INDEX_TEXT && s->fusion <= INDEX_RRF);
    assert(is_name(s->tag, SKILL_TAG_MAX) &&
           is_name(s->org, PRINCIPAL_NAME_MAX));
    assert(s->max_price >= -1 && s->max_price <= AGENT_PRICE_MAX);
    assert(s->min_score >= 0 && s->min_score <= 1);
    say_hits(s);
}

/* As each of the arguments, the query before or after it. Such have been
 * decoded, so they are UTF-8 without control characters. */
static void read_arguments(struct arena *a, struct str s)
{
    struct speak_search_call call;
    struct str value;

    if (speak_percent(a, s, true, &value) != OK)
        return;
    for (size_t i = 0; i < speak_search_fields.n; i++) {
        struct str values[16] = {{NULL, 0}};
        struct why why = {""};

        /* q and query are the same: one of them. */
        if (value.p && i > 1)
            values[1] = STR("x");
        values[i] = value;
        if (speak_search_get(values, &call, &why) == OK)
            check_search(&call);
        else
            assert(why.text[0]);
    }
}

static void read_agents(struct str body)
{
    struct speak_search_call s;
    struct speak_grant_call g;
    struct why why = {""};
    struct arena a;

    arena_init(&a, 1 << 20);
    if (speak_search_post(&a, body, &s, &why) == OK)
        check_search(&s);
    else
        assert(why.text[0]);
    why.text[0] = '\0';
    if (speak_grant_post(&a, body, &g, &why) == OK)
        assert(g.agent.n && is_name(g.agent, AGENT_NAME_MAX) &&
               !g.user.n != !g.org.n && is_name(g.user, PRINCIPAL_NAME_MAX) &&
               is_name(g.org, PRINCIPAL_NAME_MAX) && g.expires_in_s >= 0 &&
               g.expires_in_s <= SPEAK_EXPIRES_MAX_S);
    else
        assert(why.text[0]);
    read_arguments(&a, body);
    arena_fini(&a);
}

static void read_tags(struct str header)
{
    struct speak_tags tags;
    struct why why = {""};
    char text[SPEAK_ETAG_BYTES];

    if (speak_tags(STR("If-Match"), header, &tags, &why)) {
        assert(why.text[0]);
        return;
    }
    assert(tags.is_given == (header.p != NULL) && tags.n <= SPEAK_TAGS_MAX);
    for (size_t i = 0; i < tags.n; i++) {
        int64_t revision = tags.list[i].revision;
        struct speak_tags again;

        assert(revision >= 0);
        if (!revision)
            continue;
        assert(speak_tags_have(&tags, revision, true));
        assert(speak_tags(STR("x"), speak_etag(revision, text), &again, &why) ==
               OK);
        assert(speak_tags_have(&again, revision, false));
    }
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
    read_envelope(all);
    read_people(all);
    read_agents(all);
    read_tags(all);
    read_small(all);
    return 0;
}
