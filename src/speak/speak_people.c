/* Users and tokens. */
#include "speak/internal.h"

#include <stddef.h>
#include <stdio.h>

struct user_body {
    struct str name, role, org, owner;
};

#define AT(member) offsetof(struct user_body, member)

/* The first row is for POST only. */
static const struct field user_fields[] = {
    {"name", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(name),
     .missing = "{\"name\":\"anna\"}"},
    {"role", FIELD_WORD, 1, 16, .at = AT(role), .of = "admin|user|agent"},
    {"org", FIELD_NAME, 0, PRINCIPAL_NAME_MAX, .at = AT(org),
     .null_is_empty = true},
    {"owner", FIELD_NAME, 0, PRINCIPAL_NAME_MAX, .at = AT(owner),
     .null_is_empty = true},
};

#undef AT

enum { N_USER_FIELDS = sizeof(user_fields) / sizeof(*user_fields) };

const struct fields speak_user_fields = {"", user_fields, N_USER_FIELDS},
                    speak_user_patch_fields = {"", user_fields + 1,
                                               N_USER_FIELDS - 1};

static enum err user_body_read(struct arena *a, struct str body,
                               const struct fields *f,
                               struct speak_user_call *out, struct why *why)
{
    struct user_body in = {.name = {NULL, 0}};
    enum err e = fields_read(a, body, f, &in, why);

    if (e)
        return e;
    *out = (struct speak_user_call){.name = in.name,
                                    .role = role_of(in.role),
                                    .org = in.org,
                                    .owner = in.owner};
    return OK;
}

enum err speak_user_post(struct arena *a, struct str body,
                         struct speak_user_call *out, struct why *why)
{
    enum err e = user_body_read(a, body, &speak_user_fields, out, why);

    if (!e && !out->role)
        out->role = ROLE_USER;
    return e;
}

enum err speak_user_patch(struct arena *a, struct str body,
                          struct speak_user_call *out, struct why *why)
{
    enum err e = user_body_read(a, body, &speak_user_patch_fields, out, why);

    if (!e && !out->role && !out->org.p && !out->owner.p)
        e = why_err(why, ERR_BAD_REQUEST,
                    "nothing to change: give role, org or owner");
    return e;
}

struct token_body {
    struct str user, label, scopes;
    int64_t expires_in_s;
};

#define AT(member) offsetof(struct token_body, member)

static const struct field token_fields[] = {
    {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(user)},
    {"label", FIELD_NAME, 0, SPEAK_LABEL_MAX, .at = AT(label)},
    {"scopes", FIELD_ARR, 0, 1024, .at = AT(scopes), .of = "[Scope]"},
    {"expires_in_s", FIELD_INT, 1, SPEAK_EXPIRES_MAX_S, .at = AT(expires_in_s)},
};

static enum err token_body_scopes(struct arena *a, struct str raw,
                                  unsigned *out, struct why *why)
{
    struct json *list = json_parse(a, raw, 0, NULL);
    unsigned all = 0;

    if (!list)
        return why_err(why, ERR_NOMEM, "out of memory");
    JSON_EACH(one, list)
    {
        unsigned s = scope_of(json_str_or(one, STR("")));

        if (!s)
            all = 0;
        if (!s)
            break;
        all |= s;
    }
    if (!all)
        return why_err(
            why, ERR_BAD_REQUEST,
            "scopes must be an array of one or more of \"send\", "
            "\"read\", \"agents\", \"escalations\", \"ledger\", "
            "\"admin\", \"creator\"; leave it out for those of the role");
    *out = all;
    return OK;
}

const struct fields speak_token_fields = {
    "", token_fields, sizeof(token_fields) / sizeof(*token_fields)};

enum err speak_token_post(struct arena *a, struct str body,
                          struct speak_token_call *out, struct why *why)
{
    struct token_body in = {{NULL, 0}, {NULL, 0}, {NULL, 0}, 0};
    enum err e = OK;

    *out = (struct speak_token_call){.scopes = 0};
    /* Every field is optional, and so is the body. */
    if (body.n)
        e = fields_read(a, body, &speak_token_fields, &in, why);
    if (!e && in.scopes.p)
        e = token_body_scopes(a, in.scopes, &out->scopes, why);
    out->user = in.user;
    out->label = in.label;
    out->expires_in_s = in.expires_in_s;
    return e;
}

static void put_scopes(struct json_out *o, unsigned scopes)
{
    json_key(o, STR("scopes"));
    json_open(o, '[');
    for (unsigned i = 0; i < N_SCOPES; i++)
        if (scopes & (1U << i))
            json_put_str(o, scope_name((enum scope)(1U << i)));
    json_close(o, ']');
}

void speak_me(struct json_out *o, const struct caller *c)
{
    json_open(o, '{');
    json_member_text(o, "user", caller_name(c));
    json_member_text(o, "role", role_name(c->role));
    json_member_str(o, "org", str_of(c->org));
    json_member_str(o, "owner", str_of(c->owner));
    put_scopes(o, c->scopes);
    json_member_text(o, "token_id", str_of(c->token_id.text));
    json_member_ms(o, "expires_ms", c->expires_ms);
    json_close(o, '}');
}

void speak_user(struct json_out *o, const struct speak_user *u)
{
    json_open(o, '{');
    json_member_text(o, "name", u->name);
    json_member_text(o, "role", role_name(u->role));
    json_member_str(o, "org", u->org);
    json_member_str(o, "owner", u->owner);
    json_member_int(o, "created_ms", u->created_ms);
    json_close(o, '}');
}

void speak_token(struct json_out *o, const struct speak_token *t)
{
    json_open(o, '{');
    json_member_text(o, "id", t->id);
    json_member_text(o, "user", t->user);
    json_member_text(o, "label", t->label);
    put_scopes(o, t->scopes);
    json_member_int(o, "created_ms", t->created_ms);
    json_member_ms(o, "expires_ms", t->expires_ms);
    json_member_some(o, "token", t->secret);
    json_close(o, '}');
}
