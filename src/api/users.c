/* Users and tokens. access/ decides what a change means and who may make it;
 * this file reads the request, submits the change and answers.
 *
 * Lists come from the store by their key: nothing is sorted, and no page blocks
 * the loop. */
#include "api/internal.h"

#include <openssl/crypto.h>
#include <stdio.h>

#define LAST_ADMIN_TOKEN STR("last_admin_token")

static const struct str admin_details = STR("{\"scope\":\"admin\"}");

void call_me(struct call *c)
{
    struct json_out out = json_out(c->body);

    speak_me(&out, &c->caller);
    call_answer_json(c, 200);
}

/* Changes. */

/* The state of a change of users or tokens. */
struct access_call {
    struct access_change change;
    struct access_token secret;
    char label[ACCESS_LABEL_MAX + 1];
};

static struct access_change *access_change_of(const struct request *o)
{
    struct access_call *a = o->own;

    return &a->change;
}

static void access_call_fini(void *own)
{
    struct access_call *a = own;

    access_change_fini(&a->change);
    OPENSSL_cleanse(&a->secret, sizeof(a->secret));
}

/* NULL: an error was answered. */
static struct request *access_change_begin(struct call *c)
{
    static const struct request_state state = {
        .bytes = sizeof(struct access_call), .fini = access_call_fini};
    struct request *o = request_of_call(c, &state);

    if (o)
        access_change_init(access_change_of(o));
    return o;
}

static void on_access_written(struct tx *tx, void *ctx)
{
    struct request *o = ctx;
    struct why why = {""};
    enum err e = access_settle(o->api->access, access_change_of(o), &why);

    (void)tx;
    if (!request_back(o))
        return;
    if (e)
        request_refuse(o, e, str_of(why.text), STR(""));
    else
        o->then(o);
}

/* e and why are from access. */
static void access_change_submit(struct request *o, enum err e,
                                 const struct why *why,
                                 void (*then)(struct request *o))
{
    if (e) {
        request_refuse(o, e, str_of(why->text), STR(""));
        return;
    }
    o->then = then;
    request_out(o);
    store_submit(o->api->store, &access_change_of(o)->tx, on_access_written, o);
}

/* Users. */

static void user_answer(struct request *o, int status)
{
    struct json_out out = request_json(o);
    struct access_user u;

    /* Removed by another request meanwhile. */
    if (!access_user_find(o->api->access, str_of(access_change_of(o)->user),
                          &u)) {
        request_fail(o, ERR_NOT_FOUND);
        return;
    }
    speak_user(&out, &(struct speak_user){.name = str_of(u.name),
                                          .role = u.role,
                                          .org = str_of(u.org),
                                          .owner = str_of(u.owner),
                                          .created_ms = u.created_ms});
    request_answer(o, status);
}

static void on_user_made(struct request *o)
{
    user_answer(o, 201);
}

static void on_user_changed(struct request *o)
{
    user_answer(o, 200);
}

typedef enum err read_user(struct arena *a, struct str body,
                           struct speak_user_call *out, struct why *why);
typedef enum err change_user(struct access *a, struct access_change *c,
                             struct str name, const struct access_wish *wish,
                             struct str by, int64_t now_ms, struct why *why);

/* The name is in the path, or in the body for a new user. */
static void user_take_call(struct call *c, read_user *read, change_user *change,
                           void (*then)(struct request *o))
{
    struct speak_user_call u = {.role = 0};
    struct access_wish wish;
    struct why why = {""};
    enum err e = read(&c->api->scratch, c->rq->body, &u, &why);
    struct request *o;

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    o = access_change_begin(c);
    if (!o)
        return;
    wish = (struct access_wish){u.role, u.org, u.owner};
    e = change(c->api->access, access_change_of(o),
               c->param.n ? c->param : u.name, &wish, caller_name(&c->caller),
               c->now_ms, &why);
    access_change_submit(o, e, &why, then);
}

void call_users_post(struct call *c)
{
    user_take_call(c, speak_user_post, access_user_create, on_user_made);
}

void call_users_patch(struct call *c)
{
    user_take_call(c, speak_user_patch, access_user_change, on_user_changed);
}

static struct request *access_removal_begin(struct call *c)
{
    return call_has_no_body(c) ? access_change_begin(c) : NULL;
}

void call_users_delete(struct call *c)
{
    struct request *o = access_removal_begin(c);
    struct why why = {""};
    enum err e;

    if (!o)
        return;
    e = access_user_remove(c->api->access, access_change_of(o), c->param,
                           caller_name(&c->caller), c->now_ms, &why);
    access_change_submit(o, e, &why, request_answer_nothing);
}

/* Lists. */

static void users_answer_list(struct request *o, uint8_t key,
                              void (*write)(struct access *a,
                                            struct json_out *out,
                                            const struct row *r))
{
    struct json_out out = request_json(o);
    struct str cursor = {NULL, 0};

    if (!request_query_ok(o))
        return;
    speak_list_open(&out);
    QUERY_EACH(r, &o->query)
    {
        write(o->api->access, &out, r);
        cursor = row_str(r, key);
    }
    speak_list_close(&out, o->query.has_more ? cursor : STR(""));
    request_answer(o, 200);
}

static struct request *users_request_list(struct call *c, const struct table *t,
                                          uint8_t key)
{
    struct str cursor = call_arg(c, "cursor");
    struct request *o = request_of_call(c, NULL);

    if (!o)
        return NULL;
    request_query(o, t, call_limit(c));
    if (cursor.p)
        query_if(&o->query, key, IS_MORE, value_text(cursor));
    query_order(&o->query, key, false);
    return o;
}

/* The row has no org if it is the one of the owner. */
static void user_write_row(struct access *a, struct json_out *out,
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

static void on_users(struct request *o)
{
    users_answer_list(o, USER_NAME, user_write_row);
}

void call_users_list(struct call *c)
{
    struct request *o = users_request_list(c, &user_table, USER_NAME);

    if (!o)
        return;
    query_if(&o->query, USER_REMOVED_MS, IS, value_null());
    request_read_list(o, &o->query, on_users);
}

/* Tokens. */

static void token_write_row(struct access *a, struct json_out *out,
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

static void on_tokens(struct request *o)
{
    users_answer_list(o, TOKEN_ID, token_write_row);
}

/* The caller's own tokens; for admins all tokens, or those of ?user=. */
void call_tokens_list(struct call *c)
{
    struct str user = call_arg(c, "user");
    bool is_admin = caller_is_admin(&c->caller);
    struct access_user found;
    struct request *o;

    if (!is_admin && user.p && !str_eq_nocase(user, caller_name(&c->caller))) {
        api_refuse(c->api, c->id, ERR_NOT_ALLOWED,
                   STR("only admins may see tokens of others"), admin_details);
        return;
    }
    if (!is_admin)
        user = caller_name(&c->caller);
    else if (user.p && access_user_find(c->api->access, user, &found))
        user = str_of(found.name);
    o = users_request_list(c, &token_table, TOKEN_ID);
    if (!o)
        return;
    query_if(&o->query, TOKEN_REVOKED_MS, IS, value_null());
    if (user.p)
        query_if(&o->query, TOKEN_USER, IS, value_text(user));
    request_read_list(o, &o->query, on_tokens);
}

static void on_token_made(struct request *o)
{
    struct json_out out = request_json(o);
    const struct access_call *a = o->own;
    const struct access_change *made = &a->change;
    struct speak_token t = {.id = str_of(made->token_id.text),
                            .user = str_of(made->user),
                            .label = str_of(a->label),
                            .scopes = made->scopes,
                            .created_ms = made->at_ms,
                            .expires_ms = made->expires_ms,
                            .secret = str_of(a->secret.text)};

    speak_token(&out, &t);
    request_answer(o, 201);
}

static void token_request_create(struct call *c,
                                 const struct speak_token_call *t,
                                 struct str user, unsigned scopes,
                                 int64_t expires_ms)
{
    struct why why = {""};
    struct request *o = access_change_begin(c);
    struct access_call *a;
    enum err e;

    if (!o)
        return;
    a = o->own;
    snprintf(a->label, sizeof(a->label), "%.*s", STR_ARG(t->label));
    e = access_token_create(c->api->access, &a->change, user, scopes, t->label,
                            expires_ms, caller_name(&c->caller), c->now_ms,
                            &a->secret, &why);
    access_change_submit(o, e, &why, on_token_made);
}

void call_tokens_post(struct call *c)
{
    struct speak_token_call t;
    struct why why = {""};
    struct str user;
    int64_t expires_ms = 0;
    enum err e = speak_token_post(&c->api->scratch, c->rq->body, &t, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    user = t.user.n ? t.user : caller_name(&c->caller);
    if (t.expires_in_s)
        expires_ms = c->now_ms + t.expires_in_s * 1000;
    e = access_grant(&c->caller, user, &t.scopes, &expires_ms, &why);
    /* For oneself a scope beyond the role does not help. */
    if (e)
        api_refuse(c->api, c->id, e, str_of(why.text),
                   e == ERR_NOT_ALLOWED &&
                           !str_eq_nocase(user, caller_name(&c->caller))
                       ? admin_details
                       : STR(""));
    else
        token_request_create(c, &t, user, t.scopes, expires_ms);
}

/* Without the last admin token users and tokens could not be created any more,
 * nor the configuration changed. False: an error was answered. */
static bool token_removal_is_confirmed(struct call *c)
{
    if (call_arg(c, "confirm").p ||
        !access_revokes_last_admin(c->api->access, c->param, &c->caller,
                                   c->now_ms))
        return true;
    api_refuse(c->api, c->id, ERR_PRECONDITION,
               STR("this is the last admin token; without it only signalbox "
                   "token create --offline can create another: create a "
                   "second one first, or confirm with "
                   "?confirm=last_admin_token"),
               STR("{\"confirm\":\"last_admin_token\"}"));
    return false;
}

void call_tokens_delete(struct call *c)
{
    struct request *o =
        token_removal_is_confirmed(c) ? access_removal_begin(c) : NULL;
    struct why why = {""};
    enum err e;

    if (!o)
        return;
    e = access_token_revoke(c->api->access, access_change_of(o), c->param,
                            &c->caller, c->now_ms, &why);
    access_change_submit(o, e, &why, request_answer_nothing);
}
