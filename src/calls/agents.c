/* Agents: who there is, as far as the caller may see, and their cards. Cards
 * come in here, as JSON; what is in them is read in model/card.h, and what
 * becomes of them is decided in registry/.
 *
 * Conditions (If-Match, If-None-Match) are held against what the caller sees,
 * so that they tell nobody of what is not theirs; the registry is told them
 * too, for whatever happens until the disk has it. */
#include "calls/internal.h"

#include <stdio.h>

enum { TREE_BYTES = 48 * 1024 * 1024 }; /* of a card at its largest, parsed */

/* Out. */

static void write_agent(struct calls *c, struct json_out *out,
                        const struct agent *a, const struct eyes *eyes,
                        const bool *changed)
{
    struct speak_agent said = {
        .agent = a,
        .view = agent_is_owned(a, eyes) ? CARD_ALL : CARD_OTHERS,
        .state = registry_state(c->registry, a),
        .is_embedded = registry_is_embedded(c->registry, a),
        .says_changed = changed != NULL,
        .has_changed = changed && *changed};

    speak_agent(out, &said);
}

/* The list. */

struct filter {
    struct str tag, org, creator; /* a NULL pointer: any */
    enum agent_kind kind;         /* zero: any */
    enum visibility visibility;
    enum agent_state state;
};

/* Refuses an argument that is given and none of the words it may be. */
static bool is_word(struct call *c, const char *arg, bool is_known,
                    const char *words)
{
    struct why why;

    if (is_known || !call_arg(c, arg).p)
        return true;
    why_err(&why, ERR_BAD_REQUEST, "%s must be %s", arg, words);
    call_refuse(c, ERR_BAD_REQUEST, str_of(why.text));
    return false;
}

static bool read_filter(struct call *c, struct filter *f)
{
    *f = (struct filter){.tag = call_arg(c, "tag"),
                         .org = call_arg(c, "org"),
                         .creator = call_arg(c, "creator"),
                         .kind = agent_kind_of(call_arg(c, "kind")),
                         .visibility = visibility_of(call_arg(c, "visibility")),
                         .state = agent_state_of(call_arg(c, "state"))};
    return is_word(c, "kind", f->kind,
                   "\"platform\", \"managed\" or \"self-hosted\"") &&
           is_word(c, "visibility", f->visibility,
                   "\"public\", \"shared\" or \"private\"") &&
           is_word(c, "state", f->state,
                   "\"ACTIVE\", \"IDLE\", \"BUSY\", \"SLOW\", \"ERROR\" or "
                   "\"DEAD\"");
}

static bool has_tag(const struct agent *a, struct str tag)
{
    for (size_t i = 0; i < a->n_skills; i++)
        for (size_t k = 0; k < a->skills[i].tags.n; k++)
            if (str_eq_nocase(a->skills[i].tags.list[k], tag))
                return true;
    return false;
}

static bool passes(const struct calls *c, const struct filter *f,
                   const struct agent *a)
{
    return (!f->kind || a->kind == f->kind) &&
           (!f->visibility || a->visibility == f->visibility) &&
           (!f->org.p || str_eq(a->org, f->org)) &&
           (!f->creator.p || str_eq_nocase(a->creator, f->creator)) &&
           (!f->tag.p || has_tag(a, f->tag)) &&
           (!f->state || registry_state(c->registry, a) == f->state);
}

/* The place of the first whose name is behind the cursor. */
static size_t behind(const struct agents *all, struct str cursor)
{
    size_t from = 0, to = all->n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;

        if (str_cmp_nocase(all->list[mid]->name, cursor) <= 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* There is a next page only if there is another that they may see: what they
 * may not see leaves no trace. */
static void write_list(struct call *c, const struct filter *f, size_t limit,
                       struct str cursor)
{
    struct agents all = registry_agents(c->calls->registry);
    struct eyes eyes = call_eyes(c);
    struct json_out out = json_out(c->body);
    struct str last = {NULL, 0};
    bool has_more = false;
    size_t n = 0;

    speak_list_open(&out);
    for (size_t i = cursor.p ? behind(&all, cursor) : 0; i < all.n && !has_more;
         i++) {
        const struct agent *a = all.list[i];

        if (!agent_is_visible(a, &eyes) || !passes(c->calls, f, a))
            continue;
        has_more = n == limit || c->body->n > PAGE_BYTES;
        if (has_more)
            break;
        write_agent(c->calls, &out, a, &eyes, NULL);
        last = a->name;
        n++;
    }
    speak_list_close(&out, has_more ? last : STR(""));
    buf_add_char(c->body, '\n');
}

void call_agents_list(struct call *c)
{
    struct str cursor = call_arg(c, "cursor");
    struct filter f;
    size_t limit;

    if (!call_limit(c, &limit) || !read_filter(c, &f))
        return;
    if (cursor.p && !agent_name_is_valid(cursor)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("cursor must be a next_cursor of this list"));
        return;
    }
    write_list(c, &f, limit, cursor);
    call_answer(c, 200, SPEAK_JSON);
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

/* Which of them does not hold for a (NULL: there is none), in words. */
static enum err judge(const struct conditions *k, const struct agent *a,
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
    if (k->none_match.is_given && a &&
        speak_tags_have(&k->none_match, a->revision, true))
        return why_err(why, ERR_PRECONDITION,
                       k->none_match.is_any
                           ? "If-None-Match: * wants a new agent, and there is "
                             "one of that name already"
                           : "the agent still has the ETag that If-None-Match "
                             "names");
    return OK;
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
    etag = etag_header(a->revision, text);
    if (k.none_match.is_given &&
        speak_tags_have(&k.none_match, a->revision, true)) {
        calls_answer_with(c->calls, c->id, 304, STR(""), &etag, 1);
        return;
    }
    if (judge(&k, a, &why)) {
        call_refuse(c, ERR_PRECONDITION, str_of(why.text));
        return;
    }
    write_agent(c->calls, &out, a, &eyes, NULL);
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

static void refuse_problems(struct open *o, enum err e,
                            const struct card_problems *p)
{
    struct why why = {""};
    struct buf details;
    struct json_out out;

    buf_init(&details, 256 * 1024);
    out = json_out(&details);
    speak_problems(&out, p);
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
    write_agent(c, &out, a, &eyes, &has_changed);
    buf_add_char(&c->body, '\n');
    snprintf(place, sizeof(place), "/api/agents/%.*s", STR_ARG(a->name));
    headers[0] = etag_header(a->revision, etag);
    headers[1] = (struct http_header){STR("Location"), str_of(place)};
    calls_answer_with(c, o->id, made->is_new ? 201 : 200, SPEAK_JSON, headers,
                      made->is_new ? 2 : 1);
    open_end(o);
}

typedef enum err take_card(struct registry *r, struct registry_change *c,
                           struct str name, const struct json *card,
                           const struct registry_by *by,
                           struct card_problems *problems, struct why *why);

/* `name`: whose the conditions are about; `path`: what the path says of it,
 * empty where that says nothing. */
static void register_card(struct call *c, const struct conditions *k,
                          const struct json *card, struct str name,
                          struct str path, take_card *take)
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
        register_card(c, &k, card, name, c->param, take);
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
