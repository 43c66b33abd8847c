/* Grants: who may see a shared agent besides its org. They are its creator's
 * to give and to see, and admins'.
 *
 * Lists come from memory, agent by agent in the order of their names, and
 * within one by their ids: a cursor is both, so that nothing is told twice or
 * left out when grants come and go between two pages. */
#include "calls/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* The list. */

struct place {
    struct str agent, id; /* behind which the page begins; empty: at first */
};

struct page {
    struct json_out out;
    struct str only; /* of this agent; empty: of all */
    struct place from;
    size_t limit, n;
    bool has_more;
    char cursor[AGENT_NAME_MAX + sizeof(struct id) + 2];
};

static bool read_cursor(struct call *c, struct place *out)
{
    struct str cursor = call_arg(c, "cursor");

    *out = (struct place){{NULL, 0}, {NULL, 0}};
    if (!cursor.p)
        return true;
    out->id = cursor;
    out->agent = str_cut(&out->id, ':');
    if (agent_name_is_valid(out->agent) && out->id.n)
        return true;
    call_refuse(c, ERR_BAD_REQUEST,
                STR("cursor must be a next_cursor of this list"));
    return false;
}

static int by_id(const void *a, const void *b)
{
    const struct agent_grant *const *x = a, *const *y = b;

    return strcmp((*x)->id.text, (*y)->id.text);
}

static enum err write_grants(struct arena *scratch, struct page *p,
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

static enum err write_page(struct call *c, struct page *p)
{
    struct agents all = registry_agents(c->calls->registry);
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
        e = write_grants(&scratch, p, a);
    }
    speak_list_close(&p->out, p->has_more ? str_of(p->cursor) : STR(""));
    arena_fini(&scratch);
    return e;
}

static bool may_look(struct call *c, struct str name)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->calls->registry, name, &eyes);

    if (!a)
        calls_refuse_agent(c->calls, c->id, &c->caller, name);
    else if (!agent_is_owned(a, &eyes))
        call_refuse(c, ERR_NOT_ALLOWED,
                    STR("the grants of an agent are its creator's and admins' "
                        "to see and to give"));
    else
        return true;
    return false;
}

void call_grants_list(struct call *c)
{
    struct str agent = call_arg(c, "agent");
    struct page p = {.out = json_out(c->body), .only = agent};
    enum err e;

    if (!call_limit(c, &p.limit) || !read_cursor(c, &p.from) ||
        (agent.p && !may_look(c, agent)))
        return;
    e = write_page(c, &p);
    if (e) {
        call_refuse(c, e, STR(""));
        return;
    }
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

/* Giving one. */

static const struct agent_grant *grant_of(const struct agent *a,
                                          const struct id *id)
{
    for (size_t i = 0; a && i < a->n_grants; i++)
        if (strcmp(a->grants[i].id.text, id->text) == 0)
            return &a->grants[i];
    return NULL;
}

static void on_granted(struct open *o)
{
    struct calls *c = o->calls;
    const struct registry_change *made = o->registering;
    struct eyes eyes = eyes_of(&o->caller, loop_wall_ms(c->loop));
    const struct agent *a =
        registry_find(c->registry, str_of(made->name), &eyes);
    const struct agent_grant *g = grant_of(a, &made->grant_id);
    struct json_out out = json_out(&c->body);

    if (!g) { /* just now given, and just now taken back by another */
        open_refuse(o, ERR_NOT_FOUND, STR(""), STR(""));
        return;
    }
    speak_grant(&out, a->name, g);
    buf_add_char(&c->body, '\n');
    open_answer(o, o->is_new_grant ? 201 : 200);
}

/* As the user writes their name, whatever the case it was given in. A name
 * that nobody has is most likely a slip, and would open the agent to whoever
 * takes it later. */
static bool find_user(struct call *c, struct str name, struct access_user *out)
{
    char shown[PRINCIPAL_NAME_MAX + 1];
    struct why why;

    if (access_user_find(c->calls->access, name, out))
        return true;
    snprintf(shown, sizeof(shown), "%.*s", STR_ARG(name));
    str_tame(shown, strlen(shown));
    why_err(&why, ERR_BAD_REQUEST,
            "there is no user \"%s\"; an admin makes users, and org grants it "
            "to all members of one",
            shown);
    call_refuse(c, ERR_BAD_REQUEST, str_of(why.text));
    return false;
}

static void grant(struct call *c, const struct speak_grant_call *said,
                  struct str user)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct registry_grant g = {
        .agent = said->agent, .user = user, .org = said->org};
    struct eyes eyes = call_eyes(c);
    struct why why = {""};
    struct open *o = change_begin(c);
    enum err e;

    if (!o)
        return;
    if (said->expires_in_s)
        g.expires_ms = c->now_ms + said->expires_in_s * 1000;
    e = registry_grant(c->calls->registry, o->registering, &g, &by, &why);
    if (e) {
        open_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    /* What was there before is what memory still shows. */
    o->is_new_grant =
        !grant_of(registry_find(c->calls->registry, said->agent, &eyes),
                  &o->registering->grant_id);
    change_submit(o, on_granted);
}

void call_grants_post(struct call *c)
{
    struct speak_grant_call said;
    struct access_user user = {.name = ""};
    struct why why = {""};
    enum err e = speak_grant_post(&c->calls->scratch, c->rq->body, &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    /* Who may not look is told so first: whether a user is there is nothing
     * for them to learn here. */
    if (!may_look(c, said.agent) ||
        (said.user.n && !find_user(c, said.user, &user)))
        return;
    grant(c, &said, str_of(user.name));
}

void call_grants_delete(struct call *c)
{
    struct registry_by by = {.caller = &c->caller, .now_ms = c->now_ms};
    struct why why = {""};
    struct open *o;
    enum err e = speak_nothing(c->rq->body, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    o = change_begin(c);
    if (!o)
        return;
    e = registry_ungrant(c->calls->registry, o->registering, c->param, &by,
                         &why);
    if (e)
        open_refuse(o, e, e == ERR_NOT_FOUND ? STR("") : str_of(why.text),
                    STR(""));
    else
        change_submit(o, change_answer_nothing);
}
