/* Single agents and their cards. model/card.h reads a card, and registry/
 * decides about it.
 *
 * Conditions (If-Match, If-None-Match) are checked against what the caller
 * sees, so that they reveal nothing about agents of others. The registry checks
 * them too, for changes until the commit. */
#include "api/internal.h"

#include <stdio.h>

enum { TREE_BYTES = 48 * 1024 * 1024 }; /* the largest card, parsed */

void write_agent(struct api *c, struct json_out *out, const struct agent *a,
                 const struct eyes *eyes, const struct advice *advice,
                 const bool *changed)
{
    const struct deliver *d = walk_deliver(c->walk);
    bool is_owned = agent_is_owned(a, eyes);
    struct why reason;
    struct speak_agent said = {
        .agent = a,
        .view = is_owned ? CARD_ALL : CARD_OTHERS,
        .state = registry_state(c->registry, a),
        .advice = advice,
        .is_embedded = registry_is_embedded(c->registry, a),
        .is_paused = deliver_is_paused(d, a->name),
        .n_reports = eyes->sees_all ? registry_n_reports(c->registry, a) : 0,
        .says_changed = changed != NULL,
        .has_changed = changed && *changed};

    deliver_state_reason(d, a, is_owned, &reason);
    said.state_reason = str_of(reason.text);
    speak_agent(out, &said);
}

void agent_advice(const struct api *c, const struct agent *a,
                  const struct eyes *eyes, struct advice *out)
{
    struct advice_against against;
    const struct agent *close;

    deliver_against(walk_deliver(c->walk), &against);
    close = registry_closest(c->registry, a, eyes, &against.likeness);
    if (close)
        against.close = close->name;
    advice_of(a, &against, out);
}

/* With warnings, which compare it with all other agents: not for lists. */
static void agent_write_with_advice(struct api *c, struct json_out *out,
                                    const struct agent *a,
                                    const struct eyes *eyes,
                                    const bool *changed)
{
    struct advice advice;
    bool is_owned = agent_is_owned(a, eyes);

    if (is_owned)
        agent_advice(c, a, eyes, &advice);
    write_agent(c, out, a, eyes, is_owned ? &advice : NULL, changed);
}

/* Conditions. */

struct conditions {
    struct speak_tags match, none_match;
};

static bool agent_read_conditions(struct call *c, struct conditions *out)
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

/* Check If-Match for a (NULL: there is none), with words. */
static enum err agent_check_match(const struct conditions *k,
                                  const struct agent *a, struct why *why)
{
    if (k->match.is_given && !a)
        return why_err(why, ERR_PRECONDITION,
                       "If-Match needs an existing agent, and there is none of "
                       "that name");
    if (k->match.is_given && !speak_tags_have(&k->match, a->revision, false))
        return why_err(why, ERR_PRECONDITION,
                       speak_tags_have(&k->match, a->revision, true)
                           ? "If-Match needs a strong ETag: send \"%lld\", "
                             "without W/"
                           : "the agent has changed since: its ETag is now "
                             "\"%lld\"; read it again before you change it",
                       (long long)a->revision);
    return OK;
}

/* Check both conditions, for a change. */
static enum err agent_check_conditions(const struct conditions *k,
                                       const struct agent *a, struct why *why)
{
    enum err e = agent_check_match(k, a, why);

    if (!e && k->none_match.is_given && a &&
        speak_tags_have(&k->none_match, a->revision, true))
        return why_err(why, ERR_PRECONDITION,
                       k->none_match.is_any
                           ? "If-None-Match: * needs a new agent, and there is "
                             "already one of that name"
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
    const struct agent *a = registry_find(c->api->registry, c->param, &eyes);
    struct json_out out = json_out(c->body);
    struct conditions k;
    struct http_header etag;
    char text[SPEAK_ETAG_BYTES];
    struct why why = {""};

    if (!agent_read_conditions(c, &k))
        return;
    if (!a) {
        call_refuse_agent(c, c->param);
        return;
    }
    if (agent_check_match(&k, a, &why)) { /* first: RFC 9110, 13.2.2 */
        call_refuse(c, ERR_PRECONDITION, str_of(why.text));
        return;
    }
    etag = etag_header(a->revision, text);
    if (k.none_match.is_given &&
        speak_tags_have(&k.none_match, a->revision, true)) {
        api_answer_with(c->api, c->id, 304, STR(""), &etag, 1);
        return;
    }
    agent_write_with_advice(c->api, &out, a, &eyes, NULL);
    buf_add_char(c->body, '\n');
    api_answer_with(c->api, c->id, 200, SPEAK_JSON, &etag, 1);
}

/* Changing cards. */

/* The body as a tree in a; NULL: an error was answered. */
static struct json *card_read_body(struct call *c, struct arena *a)
{
    struct json_error bad = {.what = "", .line = 0};
    struct json *tree = NULL;
    struct why why = {""};
    enum err e;

    if (c->rq->body.n > AGENT_CARD_MAX) {
        char details[64];

        snprintf(details, sizeof(details), "{\"limit_bytes\":%d}",
                 AGENT_CARD_MAX);
        api_refuse(c->api, c->id, ERR_LIMIT,
                   STR("a card may have up to 1048576 bytes (1 MiB)"),
                   str_of(details));
        return NULL;
    }
    if (c->rq->body.n)
        tree = json_parse(a, c->rq->body, 0, &bad);
    if (tree && tree->type == JSON_OBJ)
        return tree;
    if (!c->rq->body.n)
        e = why_err(&why, ERR_SYNTAX,
                    "the body is empty; it must be a card, a JSON object");
    else if (tree)
        e = why_err(&why, ERR_BAD_REQUEST, "the body must be a JSON object");
    else if (bad.err == ERR_NOMEM)
        e = ERR_NOMEM;
    else
        e = why_err(&why, ERR_SYNTAX,
                    "the body is not valid JSON: %s, at line %u, column %u",
                    bad.what, bad.line, bad.col);
    call_refuse(c, e, str_of(why.text));
    return NULL;
}

/* name as in the request. */
static void agent_refuse_change(struct request *o, enum err e, struct str name,
                                const struct registry_by *by,
                                const struct card_problems *p,
                                const struct why *why)
{
    struct why problems = {""};

    if (p && p->n) {
        card_problems_say(p, &problems);
        request_refuse_card(o, e, str_of(problems.text), p);
    } else if (e == ERR_NOT_FOUND && !by->if_revision) {
        request_refuse_agent(o, name);
    } else if (e == ERR_NOT_FOUND || (e == ERR_EXISTS && by->must_be_new)) {
        request_refuse(o, ERR_PRECONDITION, str_of(why->text), STR(""));
    } else {
        request_refuse(o, e, str_of(why->text), STR(""));
    }
}

static void on_agent_registered(struct request *o)
{
    struct api *c = o->api;
    const struct registry_change *made = o->own;
    struct eyes eyes = eyes_of(&o->caller, loop_wall_ms(c->loop));
    const struct agent *a =
        registry_find(c->registry, str_of(made->name), &eyes);
    struct json_out out = json_out(&c->body);
    bool has_changed = !made->is_same;
    char etag[SPEAK_ETAG_BYTES], place[AGENT_NAME_MAX + 16];
    struct http_header headers[2];

    if (!a) { /* removed by another request meanwhile */
        request_refuse_agent(o, str_of(made->name));
        return;
    }
    agent_write_with_advice(c, &out, a, &eyes, &has_changed);
    buf_add_char(&c->body, '\n');
    snprintf(place, sizeof(place), "/api/agents/%.*s", STR_ARG(a->name));
    headers[0] = etag_header(a->revision, etag);
    headers[1] = (struct http_header){STR("Location"), str_of(place)};
    api_answer_with(c, o->id, made->is_new ? 201 : 200, SPEAK_JSON, headers,
                    made->is_new ? 2 : 1);
    request_end(o);
}

/* Set creator_id to the spelling of the user name, since it is looked up by
 * that. An unknown user is a typing error, or was removed and stays as before.
 * The reader of the card checks who may set it, and whether it is a name.
 * False: an error was answered. */
static bool card_settle_creator(struct call *c, struct arena *tree,
                                const struct json *card,
                                const struct agent *before)
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
    if (access_user_find(c->api->access, name, &user)) {
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
    api_refuse(c->api, c->id, ERR_BAD_REQUEST, str_of(why.text), problem);
    return false;
}

typedef enum err take_card(struct registry *r, struct registry_change *c,
                           struct str name, const struct json *card,
                           const struct registry_by *by,
                           struct card_problems *problems, struct why *why);

/* name: the agent that the conditions are about; path: the name in the path,
 * empty if there is none. */
static void card_register(struct call *c, const struct conditions *k,
                          struct arena *tree, const struct json *card,
                          struct str name, struct str path, take_card *take)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->api->registry, name, &eyes);
    struct registry_by by = {.caller = &c->caller,
                             .now_ms = c->now_ms,
                             .must_be_new = k->none_match.is_any};
    struct card_problems problems = {.n = 0};
    struct why why = {""};
    struct request *o;
    enum err e = agent_check_conditions(k, a, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (!card_settle_creator(c, tree, card, a))
        return;
    if (k->match.is_given)
        by.if_revision = a->revision;
    o = change_begin(c);
    if (!o)
        return;
    e = take(c->api->registry, o->own, path, card, &by, &problems, &why);
    if (e)
        agent_refuse_change(o, e, name, &by, &problems, &why);
    else
        change_submit(o, on_agent_registered);
}

static void card_take_body(struct call *c, take_card *take)
{
    struct conditions k;
    struct arena tree;
    struct json *card;
    struct str name;

    if (!agent_read_conditions(c, &k))
        return;
    arena_init(&tree, TREE_BYTES);
    card = card_read_body(c, &tree);
    if (card) {
        name = c->param.n ? c->param
                          : json_str_or(json_get(card, STR("name")), STR(""));
        card_register(c, &k, &tree, card, name, c->param, take);
    }
    arena_fini(&tree);
}

void call_agents_post(struct call *c)
{
    card_take_body(c, registry_put);
}

void call_agents_put(struct call *c)
{
    card_take_body(c, registry_put);
}

/* An unknown agent is answered before an invalid patch, or an invalid patch
 * would reveal whether the agent exists. */
static bool call_agent_exists(struct call *c)
{
    struct eyes eyes = call_eyes(c);

    if (registry_find(c->api->registry, c->param, &eyes))
        return true;
    call_refuse_agent(c, c->param);
    return false;
}

/* JSON Patch (RFC 6902) looks similar, and means something else. */
static bool is_merge_patch(struct call *c)
{
    struct str type = http_header(c->rq, STR("Content-Type"));

    if (!str_eq_nocase(str_trim(str_cut(&type, ';')),
                       STR("application/json-patch+json")))
        return true;
    return call_bad_request(
        c, "the body must be a merge patch (RFC 7396, "
           "application/merge-patch+json): an object with the changed "
           "fields, null for those to remove");
}

void call_agents_patch(struct call *c)
{
    if (call_agent_exists(c) && is_merge_patch(c))
        card_take_body(c, registry_patch);
}

void call_agents_delete(struct call *c)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->api->registry, c->param, &eyes);
    struct conditions k;
    struct why why = {""};
    struct request *o;
    enum err e;

    if (!call_has_no_body(c) || !agent_read_conditions(c, &k) ||
        !call_agent_exists(c))
        return;
    e = agent_check_conditions(&k, a, &why);
    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    if (k.match.is_given)
        by.if_revision = a->revision;
    o = change_begin(c);
    if (!o)
        return;
    e = registry_remove(c->api->registry, o->own, c->param, &by, &why);
    if (e)
        agent_refuse_change(o, e, c->param, &by, NULL, &why);
    else
        change_submit(o, request_answer_nothing);
}
