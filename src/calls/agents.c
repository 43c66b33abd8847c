/* Agents and conversations: who gets what. */
#include "calls/internal.h"

void call_agents_list(struct call *c)
{
    struct agents all = registry_agents(c->calls->registry);
    struct str cursor = call_arg(c, "cursor"), last = {NULL, 0};
    struct json_out out = json_out(c->body);
    size_t limit, n = 0, i = 0;

    if (!call_limit(c, &limit))
        return;
    if (cursor.p && !agent_name_is_valid(cursor)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("cursor must be a next_cursor of this list"));
        return;
    }
    while (cursor.p && i < all.n &&
           str_cmp_nocase(all.list[i]->name, cursor) <= 0)
        i++;
    speak_list_open(&out);
    for (; i < all.n && n < limit; i++, n++) {
        speak_agent(&out, all.list[i]);
        last = all.list[i]->name;
    }
    speak_list_close(&out, i < all.n ? last : STR(""));
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

/* Conversations. */

static void on_conversation(struct open *o)
{
    const struct row *r = o->query.rows;
    struct json_out out = json_out(&o->calls->body);

    if (o->query.err || !r) {
        open_refuse(o, o->query.err ? o->query.err : ERR_NOT_FOUND, STR(""),
                    STR(""));
        return;
    }
    speak_conversation(
        &out, row_str(r, CONVERSATION_ID), row_str(r, CONVERSATION_AGENT),
        row_int(r, CONVERSATION_CREATED_MS), row_int(r, CONVERSATION_USED_MS));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* Whose it is is part of its name; others' are for admins to see. Names are
 * found whatever their case; that of a user who was removed is taken as it is
 * written. */
void call_conversations_get(struct call *c)
{
    struct str owner = call_arg(c, "owner"), name = caller_name(&c->caller);
    struct access_user found;
    struct open *o;

    if (!owner.p || str_eq_nocase(owner, name)) {
        owner = name;
    } else if (!caller_is_admin(&c->caller)) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    } else if (access_user_find(c->calls->access, owner, &found)) {
        owner = str_of(found.name);
    }
    o = open_new(c);
    if (!o)
        return;
    query_init(&o->query, &conversation_table, 1);
    o->has_query = true;
    query_if(&o->query, CONVERSATION_OWNER, IS, value_text(owner));
    query_if(&o->query, CONVERSATION_ID, IS, value_text(c->param));
    open_read(o, &o->query, on_conversation);
}
