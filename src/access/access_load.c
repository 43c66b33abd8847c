/* The tables, and loading the mirror from them at start, page by page.
 *
 * A row that this version cannot read stops the start: going on without it
 * could lock a user out, or allow a second "first" admin. A token without its
 * user is only skipped: it can open nothing. */
#include "access/internal.h"

enum { PAGE_ROWS = 500 };

static const struct column user_columns[] = {USER_COLUMNS(COLUMN_ROW)};

const struct table user_table = {
    .name = "users",
    .columns = user_columns,
    .n_columns = N_USER_COLUMNS,
    .n_key = 1,
};

static const struct column token_columns[] = {TOKEN_COLUMNS(COLUMN_ROW)};

/* The index by hash only makes hashes unique; the store is never queried by
 * hash. The last index serves the list of tokens that are not revoked, in the
 * order of ids. */
static const struct table_index token_indexes[] = {
    {.name = "token_by_hash", INDEX_ON(TOKEN_HASH), .is_unique = true},
    {.name = "token_by_user", INDEX_ON(TOKEN_USER, TOKEN_ID)},
    {.name = "token_by_expiry", INDEX_ON(TOKEN_EXPIRES_MS)},
    {.name = "token_by_revocation", INDEX_ON(TOKEN_REVOKED_MS, TOKEN_ID)},
};

const struct table token_table = {
    .name = "tokens",
    .columns = token_columns,
    .n_columns = N_TOKEN_COLUMNS,
    .n_key = 1,
    .indexes = token_indexes,
    .n_indexes = sizeof(token_indexes) / sizeof(token_indexes[0]),
};

static const struct table *const tables[] = {&user_table, &token_table};

const struct schema access_schema = {
    .room = "access",
    .tables = tables,
    .n_tables = sizeof(tables) / sizeof(tables[0]),
};

static enum err access_unreadable_user(struct why *why)
{
    return why_err(why, ERR_BAD_CONFIG,
                   "the database has a user that this version cannot read; "
                   "was it used by a newer one?");
}

static bool access_user_row_is_readable(const struct row *r)
{
    struct str shown = row_str(r, USER_SHOWN), org = row_str(r, USER_ORG);
    struct str owner = row_str(r, USER_OWNER);
    int64_t role = row_int(r, USER_ROLE);

    return principal_name_is_valid(shown) &&
           (!org.n || principal_name_is_valid(org)) && role >= ROLE_ADMIN &&
           role <= ROLE_AGENT &&
           (!owner.n ||
            (role == ROLE_AGENT && principal_name_is_valid(owner))) &&
           str_eq_nocase(shown, row_str(r, USER_NAME));
}

static enum err access_load_user(struct access *a, const struct row *r,
                                 struct why *why)
{
    struct user *u;

    if (!access_user_row_is_readable(r))
        return access_unreadable_user(why);
    u = user_add(a, row_str(r, USER_SHOWN), (enum role)row_int(r, USER_ROLE),
                 row_str(r, USER_ORG));
    if (!u)
        return why_err(why, ERR_NOMEM, "no memory for the users");
    u->created_ms = row_int(r, USER_CREATED_MS);
    name_copy(u->owner, row_str(r, USER_OWNER)); /* link_owners finds them */
    user_arrive(a, u);
    return OK;
}

static enum err access_load_former(struct access *a, const struct row *r,
                                   struct why *why)
{
    if (!access_user_row_is_readable(r))
        return access_unreadable_user(why);
    if (former_keep(a, row_str(r, USER_NAME), row_str(r, USER_ORG)) != OK)
        return why_err(why, ERR_NOMEM, "no memory for the users");
    return OK;
}

/* Called once all users are loaded. */
static void access_link_owners(struct access *a)
{
    for (struct list_node *n = list_first(&a->all_users); n;
         n = list_next(&a->all_users, n)) {
        struct user *u = LIST_OF(n, struct user, node);
        char owner[PRINCIPAL_NAME_MAX + 1];

        memcpy(owner, u->owner, sizeof(owner));
        user_set_owner(a, u, str_of(owner));
    }
}

static enum err access_load_token(struct access *a, const struct row *r,
                                  struct why *why)
{
    struct str text = row_str(r, TOKEN_ID), hash = row_str(r, TOKEN_HASH);
    struct user *u = user_get(a, row_str(r, TOKEN_USER));
    struct id id;
    struct token *t;

    if (!id_is_valid(text, "tok") || hash.n != TOKEN_HASH_BYTES)
        return why_err(why, ERR_BAD_CONFIG,
                       "the database has a token that this version cannot "
                       "read; was it used by a newer one?");
    if (!u) {
        log_warn(a->opts.log, "access.token_without_user",
                 LOG_S("token_id", text));
        return OK;
    }
    memcpy(id.text, text.p, text.n);
    id.text[text.n] = '\0';
    t = token_add(a, u, &id, hash.p, row_int(r, TOKEN_EXPIRES_MS));
    if (!t)
        return why_err(why, ERR_NOMEM, "no memory for the tokens");
    t->scopes = (unsigned)row_int(r, TOKEN_SCOPES) & SCOPE_ALL;
    token_arrive(a, t);
    return OK;
}

/* Load the next rows behind *after, in the order of the key, whose column
 * `gone` is (IS) or is not (IS_NOT) NULL. *after becomes the last key. */
static enum err access_load_page(
    struct access *a, const struct table *table, uint8_t gone,
    enum compare is_null,
    enum err (*load)(struct access *a, const struct row *r, struct why *why),
    char after[PRINCIPAL_NAME_MAX + 1], bool *has_more, struct why *why)
{
    const uint8_t key = 0;
    struct query q;
    enum err e;

    query_init(&q, table, PAGE_ROWS);
    query_if(&q, gone, is_null, value_null());
    query_if(&q, key, IS_MORE, value_text(str_of(after)));
    query_order(&q, key, false);
    e = store_look(a->opts.store, &q);
    if (e)
        why_err(why, e, "users and tokens cannot be read: %s",
                err_row(e)->wording);
    for (const struct row *r = q.rows; r && !e; r = r->next) {
        struct str last = row_str(r, key);

        e = load(a, r, why);
        if (!e && !r->next) {
            memcpy(after, last.p, last.n);
            after[last.n] = '\0';
        }
    }
    *has_more = q.has_more;
    query_fini(&q);
    return e;
}

static enum err access_load_rows(struct access *a, const struct table *table,
                                 uint8_t gone, enum compare is_null,
                                 enum err (*load)(struct access *a,
                                                  const struct row *r,
                                                  struct why *why),
                                 struct why *why)
{
    char after[PRINCIPAL_NAME_MAX + 1] = "";
    bool has_more = true;
    enum err e = OK;

    while (has_more && !e)
        e = access_load_page(a, table, gone, is_null, load, after, &has_more,
                             why);
    return e;
}

enum err access_load(struct access *a, struct why *why)
{
    enum err e = access_load_rows(a, &user_table, USER_REMOVED_MS, IS,
                                  access_load_user, why);

    if (!e)
        e = access_load_rows(a, &user_table, USER_REMOVED_MS, IS_NOT,
                             access_load_former, why);
    if (e)
        return e;
    access_link_owners(a);
    return access_load_rows(a, &token_table, TOKEN_REVOKED_MS, IS,
                            access_load_token, why);
}
