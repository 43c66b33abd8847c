/* Agents, one at a time, and their cards. Cards come in here, as JSON; what is
 * in them is read in model/card.h, and what becomes of them is decided in
 * registry/.
 *
 * Conditions (If-Match, If-None-Match) are held against what the caller sees,
 * so that they tell nobody of what is not theirs; the registry is told them
 * too, for whatever happens until the disk has it. */
#include "calls/internal.h"
#include "calls/share.h"

#include <stdio.h>

enum { TREE_BYTES = 48 * 1024 * 1024 }; /* of a card at its largest, parsed */

void write_agent(struct calls *c, struct json_out *out, const struct agent *a,
                 const struct eyes *eyes, const struct advice *advice,
                 const bool *changed)
{
    const struct deliver *d = walk_deliver(c->walk);
    bool is_owned = agent_is_owned(a, eyes);
    struct why reason;
    struct speak_agent said = {.agent = a,
                               .view = is_owned ? CARD_ALL : CARD_OTHERS,
                               .state = registry_state(c->registry, a),
                               .advice = advice,
                               .is_embedded =
                                   registry_is_embedded(c->registry, a),
                               .is_paused = deliver_is_paused(d, a->name),
                               .says_changed = changed != NULL,
                               .has_changed = changed && *changed};

    deliver_state_reason(d, a, is_owned, &reason);
    said.state_reason = str_of(reason.text);
    speak_agent(out, &said);
}

/* With its warnings, which compare it with all others: not for lists. */
static void write_one(struct calls *c, struct json_out *out,
                      const struct agent *a, const struct eyes *eyes,
                      const bool *changed)
{
    struct advice advice;
    bool is_owned = agent_is_owned(a, eyes);

    if (is_owned)
        share_advice(c->registry, walk_deliver(c->walk), a, eyes, &advice);
    write_agent(c, out, a, eyes, is_owned ? &advice : NULL, changed);
}

/* Conditions. */

struct conditions {
    struct speak_tags match, none_match;
};

static bool read_conditions(struct call *c, struct conditions *out)
{
    static const struct str match = STR("If-Match");
    static const struct str none_match = STR("If-None-Match");
    struct why why = {""};
    enum err e =
        speak_tags(match, http_header(c->rq, match), &out->match, &why);

    if (!e)
        e = speak_tags(none_match, http_header(c->rq, none_match),
                       &out->none_match, &why);
    if (e)
        call_refuse(c, e, str_of(why.text));
    return e == OK;
}

/* Whether If-Match holds for a (NULL: there is none), in words. */
static enum err judge_match(const struct conditions *k, const struct agent *a,
                            struct why *why)
{
    if (k->match.is_given && !a)
        return why_err(why, ERR_PRECONDITION,
                       "If-Match wants an agent that is there, and there is "
                       "none of that name");
    if (k->match.is_given && !speak_tags_have(&k->match, a->revision, false))
        return why_err(why, ERR_PRECONDITION,
                       speak_tags_have(&k->match, a->revision, true)
                           ? "If-Match takes no weak ETags: write \"%lld\", "
                             "without the W/"
                           : "the agent has changed since: its ETag is "
                             "\"%lld\" by now; read it again and decide anew",
                       (long long)a->revision);
    return OK;
}

/* Whether both hold, for a change. */
static enum err judge(const struct conditions *k, const struct agent *a,
                      struct why *why)
{
    enum err e = judge_match(k, a, why);

    if (!e && k->none_match.is_given && a &&
        speak_tags_have(&k->none_match, a->revision, true))
        return why_err(why, ERR_PRECONDITION,
                       k->none_match.is_any
                           ? "If-None-Match: * wants a new agent, and there is "
                             "one of that name already"
                           : "the agent still has the ETag that If-None-Match "
                             "names");
    return e;
}

/* One agent. */

static struct http_header etag_header(int64_t revision,
                                      char text[SPEAK_ETAG_BYTES])
{
    return (struct http_header){STR("ETag"), speak_etag(revision, text)};
}

void call_agents_get(struct call *c)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->calls->registry, c->param, &eyes);
    struct json_out out = json_out(c->body);
    struct conditions k;
    struct http_header etag;
    char text[SPEAK_ETAG_BYTES];
    struct why why = {""};

    if (!read_conditions(c, &k))
        return;
    if (!a) {
        calls_refuse_agent(c->calls, c->id, &c->caller, c->param);
        return;
    }
    if (judge_match(&k, a, &why)) { /* first: RFC 9110, 13.2.2 */
        call_refuse(c, ERR_PRECONDITION, str_of(why.text));
        return;
    }
    etag = etag_header(a->revision, text);
    if (k.none_match.is_given &&
        speak_tags_have(&k.none_match, a->revision, true)) {
        calls_answer_with(c->calls, c->id, 304, STR(""), &etag, 1);
        return;
    }
    write_one(c->calls, &out, a, &eyes, NULL);
    buf_add_char(c->body, '\n');
    calls_answer_with(c->calls, c->id, 200, SPEAK_JSON, &etag, 1);
}

/* Cards in. */

/* The body as a tree in `a`; NULL: refused. */
static struct json *read_body(struct call *c, struct arena *a)
{
    struct json_error bad = {.what = "", .line = 0};
    struct json *tree = NULL;
    struct why why;

    if (c->rq->body.n > AGENT_CARD_MAX) {
        char details[64];

        snprintf(details, sizeof(details), "{\"limit_bytes\":%d}",
                 AGENT_CARD_MAX);
        calls_refuse(c->calls, c->id, ERR_LIMIT,
                     STR("a card may have up to 1048576 bytes (1 MiB)"),
                     str_of(details));
        return NULL;
    }
    if (c->rq->body.n)
        tree = json_parse(a, c->rq->body, 0, &bad);
    if (tree && tree->type == JSON_OBJ)
        return tree;
    if (!c->rq->body.n)
        why_err(&why, ERR_SYNTAX,
                "the body is empty; a card is wanted, as a "
                "JSON object");
    else if (tree)
        why_err(&why, ERR_BAD_REQUEST, "the body must be a JSON object");
    else
        why_err(&why, ERR_SYNTAX,
                "the body is not valid JSON: %s, at line %u, column %u",
                bad.what, bad.line, bad.col);
    call_refuse(c, tree ? ERR_BAD_REQUEST : ERR_SYNTAX, str_of(why.text));
    return NULL;
}

void share_problems(struct buf *out, const struct card_problems *p)
{
    struct json_out o = json_out(out);

    speak_problems(&o, p);
}

static void refuse_problems(struct open *o, enum err e,
                            const struct card_problems *p)
{
    struct why why = {""};
    struct buf details;

    buf_init(&details, 256 * 1024);
    share_problems(&details, p);
    card_problems_say(p, &why);
    open_refuse(o, e, str_of(why.text),
                details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}

/* `name` as it was asked for. */
static void refuse_change(struct open *o, enum err e, struct str name,
                          const struct registry_by *by,
                          const struct card_problems *p, const struct why *why)
{
    if (p && p->n)
        refuse_problems(o, e, p);
    else if (e == ERR_NOT_FOUND && !by->if_revision) {
        calls_refuse_agent(o->calls, o->id, &o->caller, name);
        open_end(o);
    } else if (e == ERR_NOT_FOUND || (e == ERR_EXISTS && by->must_be_new)) {
        open_refuse(o, ERR_PRECONDITION, str_of(why->text), STR(""));
    } else {
        open_refuse(o, e, str_of(why->text), STR(""));
    }
}

static void on_registered(struct open *o)
{
    struct calls *c = o->calls;
    const struct registry_change *made = o->registering;
    struct eyes eyes = eyes_of(&o->caller, loop_wall_ms(c->loop));
    const struct agent *a =
        registry_find(c->registry, str_of(made->name), &eyes);
    struct json_out out = json_out(&c->body);
    bool has_changed = !made->is_same;
    char etag[SPEAK_ETAG_BYTES], place[AGENT_NAME_MAX + 16];
    struct http_header headers[2];

    if (!a) { /* just now changed, and just now removed by another */
        calls_refuse_agent(c, o->id, &o->caller, str_of(made->name));
        open_end(o);
        return;
    }
    write_one(c, &out, a, &eyes, &has_changed);
    buf_add_char(&c->body, '\n');
    snprintf(place, sizeof(place), "/api/agents/%.*s", STR_ARG(a->name));
    headers[0] = etag_header(a->revision, etag);
    headers[1] = (struct http_header){STR("Location"), str_of(place)};
    calls_answer_with(c, o->id, made->is_new ? 201 : 200, SPEAK_JSON, headers,
                      made->is_new ? 2 : 1);
    open_end(o);
}

/* Whose it is: the user as they write their name, whatever the case it was
 * given in, since by that name it is found. One whom nobody knows is a slip,
 * or was removed and stays what they were. Who may say it at all, the card's
 * reader judges, and whether it is a name. False: refused. */
static bool settle_creator(struct call *c, struct arena *tree,
                           const struct json *card, const struct agent *before)
{
    static const struct str problem = STR(
        "{\"problems\":[{\"pointer\":\"/creator_id\",\"message\":\"must be a "
        "user, and there is none of that name\"}],\"total\":1}");
    struct json *said = json_get(card, STR("creator_id"));
    struct str name = json_str_or(said, STR(""));
    struct access_user user;
    struct why why;

    if (!caller_is_admin(&c->caller) || !principal_name_is_valid(name))
        return true;
    if (access_user_find(c->calls->access, name, &user)) {
        char *shown = arena_strdup(tree, str_of(user.name));

        said->s = shown ? str_of(shown) : said->s;
        if (!shown)
            call_refuse(c, ERR_NOMEM, STR(""));
        return shown != NULL;
    }
    if (before && str_eq_nocase(before->creator, name)) {
        said->s = before->creator;
        return true;
    }
    why_err(&why, ERR_BAD_REQUEST,
            "/creator_id must be a user, and there is no user \"%.*s\"",
            STR_ARG(name));
    calls_refuse(c->calls, c->id, ERR_BAD_REQUEST, str_of(why.text), problem);
    return false;
}

typedef enum err take_card(struct registry *r, struct registry_change *c,
                           struct str name, const struct json *card,
                           const struct registry_by *by,
                           struct card_problems *problems, struct why *why);

/* `name`: whose the conditions are about; `path`: what the path says of it,
 * empty where that says nothing. */
static void register_card(struct call *c, const struct conditions *k,
                          struct arena *tree, const struct json *card,
                          struct str name, struct str path, take_card *take)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->calls->registry, name, &eyes);
    struct registry_by by = {.caller = &c->caller,
                             .now_ms = c->now_ms,
                             .must_be_new = k->none_match.is_any};
    struct card_problems problems = {.n = 0};
    struct why why = {""};
    struct open *o;
    enum err e = judge(k, a, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!settle_creator(c, tree, card, a))
        return;
    if (k->match.is_given)
        by.if_revision = a->revision;
    o = change_begin(c);
    if (!o)
        return;
    e = take(c->calls->registry, o->registering, path, card, &by, &problems,
             &why);
    if (e)
        refuse_change(o, e, name, &by, &problems, &why);
    else
        change_submit(o, on_registered);
}

static void take_body(struct call *c, take_card *take)
{
    struct conditions k;
    struct arena tree;
    struct json *card;
    struct str name;

    if (!read_conditions(c, &k))
        return;
    arena_init(&tree, TREE_BYTES);
    card = read_body(c, &tree);
    if (card) {
        name = c->param.n ? c->param
                          : json_str_or(json_get(card, STR("name")), STR(""));
        register_card(c, &k, &tree, card, name, c->param, take);
    }
    arena_fini(&tree);
}

void call_agents_post(struct call *c)
{
    take_body(c, registry_put);
}

void call_agents_put(struct call *c)
{
    take_body(c, registry_put);
}

/* What is not there is told before what is wrong with its patch, or a patch
 * that is wrong would tell whether it is there. */
static bool is_there(struct call *c)
{
    struct eyes eyes = call_eyes(c);

    if (registry_find(c->calls->registry, c->param, &eyes))
        return true;
    calls_refuse_agent(c->calls, c->id, &c->caller, c->param);
    return false;
}

/* Lists of steps (RFC 6902) look much like what we take, and mean something
 * else. */
static bool is_merge_patch(struct call *c)
{
    struct str type = http_header(c->rq, STR("Content-Type"));

    if (!str_eq_nocase(str_trim(str_cut(&type, ';')),
                       STR("application/json-patch+json")))
        return true;
    call_refuse(c, ERR_BAD_REQUEST,
                STR("a merge patch is wanted (RFC 7396, "
                    "application/merge-patch+json): an object with the fields "
                    "that change, null for those that go"));
    return false;
}

void call_agents_patch(struct call *c)
{
    if (is_there(c) && is_merge_patch(c))
        take_body(c, registry_patch);
}

void call_agents_delete(struct call *c)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->calls->registry, c->param, &eyes);
    struct conditions k;
    struct why why = {""};
    struct open *o;
    enum err e = speak_nothing(c->rq->body, &why);

    if (!e && (!read_conditions(c, &k) || !is_there(c)))
        return;
    if (!e)
        e = judge(&k, a, &why);
    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (k.match.is_given)
        by.if_revision = a->revision;
    o = change_begin(c);
    if (!o)
        return;
    e = registry_remove(c->calls->registry, o->registering, c->param, &by,
                        &why);
    if (e)
        refuse_change(o, e, c->param, &by, NULL, &why);
    else
        change_submit(o, change_answer_nothing);
}
