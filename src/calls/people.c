/* Users and tokens. What a change means, and who may have what, is decided in
 * access/; here it is asked for, written down, and told.
 *
 * Lists come from the store, by the key: nothing of it need be sorted, and no
 * page holds up the loop. */
#include "calls/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

#define LAST_ADMIN_TOKEN STR("last_admin_token")

static const struct str admin_details = STR("{\"scope\":\"admin\"}");

void call_me(struct call *c)
{
    struct json_out out = json_out(c->body);

    speak_me(&out, &c->caller);
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

/* A change on its way to the disk. */

/* NULL: refused. */
static struct open *begin_change(struct call *c)
{
    struct open *o = open_new(c);

    if (!o)
        return NULL;
    o->change = FAULT("calls.change") ? NULL : malloc(sizeof(*o->change));
    if (!o->change) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return NULL;
    }
    access_change_init(o->change);
    return o;
}

static void on_written(struct tx *tx, void *ctx)
{
    struct open *o = ctx;
    struct why why = {""};
    enum err e = access_settle(o->calls->access, o->change, &why);

    (void)tx;
    if (!open_back(o))
        return;
    if (e)
        open_refuse(o, e, str_of(why.text), STR(""));
    else
        o->then(o);
}

/* e and why are what access said to it. */
static void submit(struct open *o, enum err e, const struct why *why,
                   void (*then)(struct open *o))
{
    if (e) {
        open_refuse(o, e, str_of(why->text), STR(""));
        return;
    }
    o->then = then;
    open_out(o);
    store_submit(o->calls->store, &o->change->tx, on_written, o);
}

static void answer_nothing(struct open *o)
{
    calls_answer(o->calls, o->id, 204, STR(""));
    open_end(o);
}

/* Users. */

static void answer_user(struct open *o, int status)
{
    struct json_out out = json_out(&o->calls->body);
    struct access_user u;

    /* Just now changed, and just now removed by another. */
    if (!access_user_find(o->calls->access, str_of(o->change->user), &u)) {
        open_refuse(o, ERR_NOT_FOUND, STR(""), STR(""));
        return;
    }
    speak_user(&out, &(struct speak_user){.name = str_of(u.name),
                                          .role = u.role,
                                          .org = str_of(u.org),
                                          .owner = str_of(u.owner),
                                          .created_ms = u.created_ms});
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, status);
}

static void on_user_made(struct open *o)
{
    answer_user(o, 201);
}

static void on_user_changed(struct open *o)
{
    answer_user(o, 200);
}

typedef enum err read_user(struct arena *a, struct str body,
                           struct speak_user_call *out, struct why *why);
typedef enum err change_user(struct access *a, struct access_change *c,
                             struct str name, const struct access_wish *wish,
                             struct str by, int64_t now_ms, struct why *why);

/* The name is in the path, or in the body of one who is to be made. */
static void take_user(struct call *c, read_user *read, change_user *change,
                      void (*then)(struct open *o))
{
    struct speak_user_call u = {.role = 0};
    struct access_wish wish;
    struct why why = {""};
    enum err e = read(&c->calls->scratch, c->rq->body, &u, &why);
    struct open *o;

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    o = begin_change(c);
    if (!o)
        return;
    wish = (struct access_wish){u.role, u.org, u.owner};
    e = change(c->calls->access, o->change, c->param.n ? c->param : u.name,
               &wish, caller_name(&c->caller), c->now_ms, &why);
    submit(o, e, &why, then);
}

void call_users_post(struct call *c)
{
    take_user(c, speak_user_post, access_user_create, on_user_made);
}

void call_users_patch(struct call *c)
{
    take_user(c, speak_user_patch, access_user_change, on_user_changed);
}

/* A change that takes no words. NULL: it was refused. */
static struct open *begin_removal(struct call *c)
{
    struct why why = {""};
    enum err e = speak_nothing(c->rq->body, &why);

    if (!e)
        return begin_change(c);
    call_refuse(c, e, str_of(why.text));
    return NULL;
}

void call_users_delete(struct call *c)
{
    struct open *o = begin_removal(c);
    struct why why = {""};
    enum err e;

    if (!o)
        return;
    e = access_user_remove(c->calls->access, o->change, c->param,
                           caller_name(&c->caller), c->now_ms, &why);
    submit(o, e, &why, answer_nothing);
}

/* Lists. */

static void answer_list(struct open *o, uint8_t key,
                        void (*write)(struct access *a, struct json_out *out,
                                      const struct row *r))
{
    struct json_out out = json_out(&o->calls->body);
    struct str cursor = {NULL, 0};

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    speak_list_open(&out);
    QUERY_EACH(r, &o->query)
    {
        write(o->calls->access, &out, r);
        cursor = row_str(r, key);
    }
    speak_list_close(&out, o->query.has_more ? cursor : STR(""));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static struct open *begin_list(struct call *c, const struct table *t,
                               uint8_t key)
{
    struct str cursor = call_arg(c, "cursor");
    struct open *o;
    size_t limit;

    if (!call_limit(c, &limit) || !(o = open_new(c)))
        return NULL;
    query_init(&o->query, t, limit);
    o->has_query = true;
    if (cursor.p)
        query_if(&o->query, key, IS_MORE, value_text(cursor));
    query_order(&o->query, key, false);
    return o;
}

/* The row has no org where it is the owner's. */
static void write_user(struct access *a, struct json_out *out,
                       const struct row *r)
{
    struct str name = row_str(r, USER_SHOWN);
    struct speak_user u = {.name = name,
                           .role = (enum role)row_int(r, USER_ROLE),
                           .org = access_org_of(a, name),
                           .owner = row_str(r, USER_OWNER),
                           .created_ms = row_int(r, USER_CREATED_MS)};

    speak_user(out, &u);
}

static void on_users(struct open *o)
{
    answer_list(o, USER_NAME, write_user);
}

void call_users_list(struct call *c)
{
    struct open *o = begin_list(c, &user_table, USER_NAME);

    if (!o)
        return;
    query_if(&o->query, USER_REMOVED_MS, IS, value_null());
    open_list(o, &o->query, on_users);
}

/* Tokens. */

static void write_token(struct access *a, struct json_out *out,
                        const struct row *r)
{
    struct speak_token t = {.id = row_str(r, TOKEN_ID),
                            .user = row_str(r, TOKEN_USER),
                            .label = row_str(r, TOKEN_LABEL),
                            .scopes = (unsigned)row_int(r, TOKEN_SCOPES),
                            .created_ms = row_int(r, TOKEN_CREATED_MS),
                            .expires_ms = row_int(r, TOKEN_EXPIRES_MS)};

    (void)a;
    speak_token(out, &t);
}

static void on_tokens(struct open *o)
{
    answer_list(o, TOKEN_ID, write_token);
}

/* One's own; for admins everybody's, or those of ?user=. */
void call_tokens_list(struct call *c)
{
    struct str user = call_arg(c, "user");
    bool is_admin = caller_is_admin(&c->caller);
    struct access_user found;
    struct open *o;

    if (!is_admin && user.p && !str_eq_nocase(user, caller_name(&c->caller))) {
        calls_refuse(c->calls, c->id, ERR_NOT_ALLOWED,
                     STR("the tokens of others are for admins"), admin_details);
        return;
    }
    if (!is_admin)
        user = caller_name(&c->caller);
    else if (user.p && access_user_find(c->calls->access, user, &found))
        user = str_of(found.name);
    o = begin_list(c, &token_table, TOKEN_ID);
    if (!o)
        return;
    query_if(&o->query, TOKEN_REVOKED_MS, IS, value_null());
    if (user.p)
        query_if(&o->query, TOKEN_USER, IS, value_text(user));
    open_list(o, &o->query, on_tokens);
}

static void on_token_made(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct access_change *made = o->change;
    struct speak_token t = {.id = str_of(made->token_id.text),
                            .user = str_of(made->user),
                            .label = str_of(o->label),
                            .scopes = made->scopes,
                            .created_ms = made->at_ms,
                            .expires_ms = made->expires_ms,
                            .secret = str_of(o->secret.text)};

    speak_token(&out, &t);
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 201);
}

static void make_token(struct call *c, const struct speak_token_call *t,
                       struct str user, unsigned scopes, int64_t expires_ms)
{
    struct why why = {""};
    struct open *o = begin_change(c);
    enum err e;

    if (!o)
        return;
    snprintf(o->label, sizeof(o->label), "%.*s", STR_ARG(t->label));
    e = access_token_create(c->calls->access, o->change, user, scopes, t->label,
                            expires_ms, caller_name(&c->caller), c->now_ms,
                            &o->secret, &why);
    submit(o, e, &why, on_token_made);
}

void call_tokens_post(struct call *c)
{
    struct speak_token_call t;
    struct why why = {""};
    struct str user;
    int64_t expires_ms = 0;
    enum err e = speak_token_post(&c->calls->scratch, c->rq->body, &t, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    user = t.user.n ? t.user : caller_name(&c->caller);
    if (t.expires_in_s)
        expires_ms = c->now_ms + t.expires_in_s * 1000;
    e = access_grant(&c->caller, user, &t.scopes, &expires_ms, &why);
    /* For oneself no scope helps but those of the role. */
    if (e)
        calls_refuse(c->calls, c->id, e, str_of(why.text),
                     e == ERR_NOT_ALLOWED &&
                             !str_eq_nocase(user, caller_name(&c->caller))
                         ? admin_details
                         : STR(""));
    else
        make_token(c, &t, user, t.scopes, expires_ms);
}

/* Nobody could make users or tokens any more, or change the configuration.
 * False: it was refused. */
static bool is_confirmed(struct call *c)
{
    struct str confirm = call_arg(c, "confirm");

    if (confirm.p && !str_eq(confirm, LAST_ADMIN_TOKEN)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("confirm can only be last_admin_token"));
        return false;
    }
    if (confirm.p || !access_revokes_last_admin(c->calls->access, c->param,
                                                &c->caller, c->now_ms))
        return true;
    calls_refuse(c->calls, c->id, ERR_PRECONDITION,
                 STR("this is the last token that can act as an admin, and "
                     "without it only signalbox token create --offline makes "
                     "another: make a second one first, or confirm it with "
                     "?confirm=last_admin_token"),
                 STR("{\"confirm\":\"last_admin_token\"}"));
    return false;
}

void call_tokens_delete(struct call *c)
{
    struct open *o = is_confirmed(c) ? begin_removal(c) : NULL;
    struct why why = {""};
    enum err e;

    if (!o)
        return;
    e = access_token_revoke(c->calls->access, o->change, c->param, &c->caller,
                            c->now_ms, &why);
    submit(o, e, &why, answer_nothing);
}
