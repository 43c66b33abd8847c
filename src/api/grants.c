/* Grants: access to a shared agent beyond its org. They are visible to and made
 * by its creator and admins.
 *
 * Lists come from memory, by agent name and within an agent by id. A cursor is
 * both, so that nothing is repeated or left out when grants come and go between
 * two pages. */
#include "api/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* The list. */

struct place {
    struct str agent, id; /* the page starts after it; empty: at the start */
};

struct page {
    struct json_out out;
    struct str only; /* only of this agent; empty: all */
    struct place from;
    size_t limit, n;
    bool has_more;
    char cursor[AGENT_NAME_MAX + sizeof(struct id) + 2];
};

static bool grants_read_cursor(struct call *c, struct place *out)
{
    struct str cursor = call_arg(c, "cursor");

    *out = (struct place){{NULL, 0}, {NULL, 0}};
    if (!cursor.p)
        return true;
    out->id = cursor;
    out->agent = str_cut(&out->id, ':');
    if (agent_name_is_valid(out->agent) && out->id.n)
        return true;
    return call_bad_request(c, "cursor must be a next_cursor of this list");
}

static int by_id(const void *a, const void *b)
{
    const struct agent_grant *const *x = a, *const *y = b;

    return strcmp((*x)->id.text, (*y)->id.text);
}

static enum err grants_write_of_agent(struct arena *scratch, struct page *p,
                                      const struct agent *a)
{
    bool is_at_cursor = str_eq_nocase(a->name, p->from.agent);
    const struct agent_grant **sorted =
        arena_array(scratch, a->n_grants, sizeof(struct agent_grant *));

    if (!sorted)
        return ERR_NOMEM;
    for (size_t i = 0; i < a->n_grants; i++)
        sorted[i] = &a->grants[i];
    qsort(sorted, a->n_grants, sizeof(struct agent_grant *), by_id);
    for (size_t i = 0; i < a->n_grants && !p->has_more; i++) {
        struct str id = str_of(sorted[i]->id.text);

        if (is_at_cursor && str_cmp(id, p->from.id) <= 0)
            continue;
        p->has_more = p->n == p->limit;
        if (p->has_more)
            break;
        speak_grant(&p->out, a->name, sorted[i]);
        snprintf(p->cursor, sizeof(p->cursor), "%.*s:%s", STR_ARG(a->name),
                 id.p);
        p->n++;
    }
    return OK;
}

static enum err grants_write_page(struct call *c, struct page *p)
{
    struct agents all = registry_agents(c->api->registry);
    struct eyes eyes = call_eyes(c);
    struct arena scratch;
    enum err e = OK;

    arena_init(&scratch, 2 * AGENT_GRANTS_MAX * sizeof(void *));
    speak_list_open(&p->out);
    for (size_t i = 0; i < all.n && !e && !p->has_more; i++) {
        const struct agent *a = all.list[i];

        if (!a->n_grants || !agent_is_owned(a, &eyes) ||
            (p->only.n && !str_eq_nocase(a->name, p->only)) ||
            (p->from.agent.n && str_cmp_nocase(a->name, p->from.agent) < 0))
            continue;
        arena_reset(&scratch);
        e = grants_write_of_agent(&scratch, p, a);
    }
    speak_list_close(&p->out, p->has_more ? str_of(p->cursor) : STR(""));
    arena_fini(&scratch);
    return e;
}

static bool call_may_see_grants(struct call *c, struct str name)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->api->registry, name, &eyes);

    if (!a)
        call_refuse_agent(c, name);
    else if (!agent_is_owned(a, &eyes))
        call_refuse(c, ERR_NOT_ALLOWED,
                    STR("only the creator of an agent and admins may see and "
                        "make its grants"));
    else
        return true;
    return false;
}

void call_grants_list(struct call *c)
{
    struct str agent = call_arg(c, "agent");
    struct page p = {
        .out = json_out(c->body), .only = agent, .limit = call_limit(c)};
    enum err e;

    if (!grants_read_cursor(c, &p.from) ||
        (agent.p && !call_may_see_grants(c, agent)))
        return;
    e = grants_write_page(c, &p);
    if (e) {
        call_refuse(c, e, STR(""));
        return;
    }
    call_answer_json(c, 200);
}

/* New grants. */

static const struct agent_grant *agent_find_grant(const struct agent *a,
                                                  const struct id *id)
{
    for (size_t i = 0; a && i < a->n_grants; i++)
        if (strcmp(a->grants[i].id.text, id->text) == 0)
            return &a->grants[i];
    return NULL;
}

static void grant_answer(struct request *o, int status)
{
    struct api *c = o->api;
    const struct registry_change *made = o->own;
    struct eyes eyes = eyes_of(&o->caller, loop_wall_ms(c->loop));
    const struct agent *a =
        registry_find(c->registry, str_of(made->name), &eyes);
    const struct agent_grant *g = agent_find_grant(a, &made->grant_id);
    struct json_out out = request_json(o);

    if (!g) { /* revoked by another request meanwhile */
        request_fail(o, ERR_NOT_FOUND);
        return;
    }
    speak_grant(&out, a->name, g);
    request_answer(o, status);
}

static void on_grant_made(struct request *o)
{
    grant_answer(o, 201);
}

static void on_grant_changed(struct request *o)
{
    grant_answer(o, 200);
}

/* Find the spelling of the user name. An unknown name is most likely a typing
 * error, and would open the agent to a later user of that name. */
static bool grant_find_user(struct call *c, struct str name,
                            struct access_user *out)
{
    char shown[PRINCIPAL_NAME_MAX + 1];
    struct why why;

    if (access_user_find(c->api->access, name, out))
        return true;
    snprintf(shown, sizeof(shown), "%.*s", STR_ARG(name));
    str_tame(shown, strlen(shown));
    why_err(&why, ERR_BAD_REQUEST,
            "there is no user \"%s\"; an admin creates users, and org grants "
            "it to all members of an org",
            shown);
    call_bad_request(c, why.text);
    return false;
}

static void grant_submit(struct call *c, const struct speak_grant_call *said,
                         struct str user)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct registry_grant g = {
        .agent = said->agent, .user = user, .org = said->org};
    struct eyes eyes = call_eyes(c);
    struct why why = {""};
    struct request *o = change_begin(c);
    struct registry_change *made;
    bool is_new;
    enum err e;

    if (!o)
        return;
    made = o->own;
    if (said->expires_in_s)
        g.expires_ms = c->now_ms + said->expires_in_s * 1000;
    e = registry_grant(c->api->registry, made, &g, &by, &why);
    if (e) {
        request_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    /* Memory still has the state before the change. */
    is_new = !agent_find_grant(
        registry_find(c->api->registry, said->agent, &eyes), &made->grant_id);
    change_submit(o, is_new ? on_grant_made : on_grant_changed);
}

void call_grants_post(struct call *c)
{
    struct speak_grant_call said;
    struct access_user user = {.name = ""};
    struct why why = {""};
    enum err e = speak_grant_post(&c->api->scratch, c->rq->body, &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    /* Checked first, so that callers without access do not learn which users
     * exist. */
    if (!call_may_see_grants(c, said.agent) ||
        (said.user.n && !grant_find_user(c, said.user, &user)))
        return;
    grant_submit(c, &said, str_of(user.name));
}

void call_grants_delete(struct call *c)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct why why = {""};
    struct request *o;
    enum err e;

    if (!call_has_no_body(c))
        return;
    o = change_begin(c);
    if (!o)
        return;
    e = registry_ungrant(c->api->registry, o->own, c->param, &by, &why);
    if (e)
        request_refuse(o, e, e == ERR_NOT_FOUND ? STR("") : str_of(why.text),
                       STR(""));
    else
        change_submit(o, request_answer_nothing);
}
