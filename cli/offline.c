#include "cli/offline.h"

#include <stdio.h>
#include <unistd.h>

#include "access/access.h"
#include "base/log.h"
#include "server/server.h"
#include "speak/speak.h"
#include "store/store.h"

enum { ADMINS_SHOWN = 8, PAGE_ROWS = 500 };

struct offline {
    struct cli *c;
    struct clock clock;
    struct log log;
    struct id_maker ids;
    struct str data; /* the folder, as it was named */
    struct store_folder folder;
    bool has_folder;
    struct store *store;
    struct access *access;
};

bool cli_is_offline(struct cli *c, enum exit_status *status)
{
    *status = EXIT_DONE;
    if (args_has(&c->args, "offline"))
        return true;
    if (args_has(&c->args, "data") || args_has(&c->args, "config"))
        *status = cli_error(c, ERR_USAGE,
                            "--data and --config need --offline; --url names a "
                            "running server");
    return false;
}

static enum exit_status offline_fail(struct offline *o, enum err e,
                                     const struct why *why)
{
    return cli_error(o->c, e, "%s", why->text);
}

static enum exit_status offline_open_store(struct offline *o)
{
    struct store_opts opts = {.max_waiting = 16, .is_inline = true};
    struct why why = {""};
    enum err e;

    if (!store_folder_is_ours(o->data))
        return cli_error(o->c, ERR_NOT_FOUND,
                         "%.*s is not a server's data folder: use --data "
                         "FOLDER",
                         STR_ARG(o->data));
    e = store_folder_open(&o->folder, o->data, &why);
    if (e == ERR_BUSY)
        return cli_error(
            o->c, e, "%.300s. Stop it first, or leave out --offline", why.text);
    if (e)
        return offline_fail(o, e, &why);
    o->has_folder = true;
    opts.folder = o->folder.path;
    opts.schemas = server_schemas;
    opts.n_schemas = server_n_schemas;
    e = store_folder_check(&o->folder, &why);
    if (!e)
        e = store_open(&o->store, &opts, &why);
    return e ? offline_fail(o, e, &why) : EXIT_DONE;
}

/* The caller must call close_all, even after an error. */
static enum exit_status offline_open(struct offline *o, struct cli *c)
{
    struct access_opts opts = {
        .log = &o->log, .rand = rand_system(), .ids = &o->ids};
    enum exit_status status;
    struct why why = {""};
    enum err e;

    *o = (struct offline){.c = c, .clock = clock_system()};
    log_init(&o->log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, o->clock);
    id_maker_init(&o->ids, rand_system());
    if (!cli_data(c, &o->data, &status))
        return status;
    status = offline_open_store(o);
    if (status)
        return status;
    opts.store = o->store;
    opts.seed[0] = rand_u64(opts.rand);
    opts.seed[1] = rand_u64(opts.rand);
    o->access = access_new(&opts);
    if (!o->access)
        return cli_error(c, ERR_NOMEM, "out of memory");
    e = access_load(o->access, &why);
    return e ? offline_fail(o, e, &why) : EXIT_DONE;
}

static void close_all(struct offline *o)
{
    access_free(o->access);
    if (o->store && store_was_stopped(o->store))
        store_note_stop(o->store);
    store_close(o->store);
    if (o->has_folder)
        store_folder_close(&o->folder);
}

/* Changing. */

static void offline_on_committed(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

/* Submit one change and settle it. */
static enum err offline_commit(struct offline *o, struct access_change *change,
                               struct why *why)
{
    bool is_done = false;

    store_submit(o->store, &change->tx, offline_on_committed, &is_done);
    while (!is_done)
        store_turn(o->store);
    return access_settle(o->access, change, why);
}

/* Report an unknown user, and list the admins. */
static enum exit_status offline_unknown_user(struct offline *o, struct str name)
{
    struct access_user admins[ADMINS_SHOWN];
    size_t n = access_admins(o->access, admins, ADMINS_SHOWN), used = 0;
    char names[ADMINS_SHOWN * 40] = "";

    name = str_head(name, 64);
    if (n == 0)
        return cli_error(o->c, ERR_NOT_FOUND,
                         "there is no user %.*s, and no admin: --role admin "
                         "creates an admin with this name",
                         STR_ARG(name));
    for (size_t i = 0; i < n && i < ADMINS_SHOWN; i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%.32s",
                                 i ? ", " : "", admins[i].name);
    return cli_error(o->c, ERR_NOT_FOUND,
                     "there is no user %.*s; the admin%s %s%s. signalbox users "
                     "list --offline lists all users",
                     STR_ARG(name), n == 1 ? " is" : "s are", names,
                     n > ADMINS_SHOWN ? ", and more" : "");
}

/* Find the user of the token, or create an admin if there is none, who could
 * create users with a server. */
static enum exit_status offline_find_user(struct offline *o,
                                          const struct token_wish *w)
{
    int64_t now_ms = o->clock.wall_ms(o->clock.ctx);
    struct access_change change;
    struct access_user u;
    struct why why = {""};
    enum err e;

    if (access_user_find(o->access, w->user, &u)) {
        if (w->role && u.role != w->role)
            return cli_error(o->c, ERR_EXISTS,
                             "%s exists with role %.*s, which --role does not "
                             "change: leave out --role",
                             u.name, STR_ARG(role_name(u.role)));
        return EXIT_DONE;
    }
    if (!w->role || access_admins(o->access, NULL, 0))
        return offline_unknown_user(o, w->user);
    access_change_init(&change);
    e = access_user_create(o->access, &change, w->user,
                           &(struct access_wish){.role = ROLE_ADMIN},
                           STR("(offline)"), now_ms, &why);
    if (!e)
        e = offline_commit(o, &change, &why);
    access_change_fini(&change);
    return e ? offline_fail(o, e, &why) : EXIT_DONE;
}

static void offline_show_token(struct offline *o, const struct caller *as,
                               struct str label,
                               const struct access_token *token, int64_t now_ms)
{
    struct speak_token t = {.id = str_of(as->token_id.text),
                            .user = caller_name(as),
                            .label = label,
                            .scopes = as->scopes,
                            .created_ms = now_ms,
                            .expires_ms = as->expires_ms,
                            .secret = str_of(token->text)};
    struct buf doc;
    struct json_out j;

    buf_init(&doc, 16 * 1024);
    j = json_out(&doc);
    speak_token(&j, &t);
    cli_show_token(o->c, json_parse(&o->c->arena, buf_str(&doc), 0, NULL));
    explicit_bzero(doc.p, doc.n);
    buf_fini(&doc);
}

static enum exit_status offline_make_token(struct offline *o,
                                           const struct token_wish *w)
{
    int64_t now_ms = o->clock.wall_ms(o->clock.ctx);
    int64_t expires_ms = w->lasts_ms ? now_ms + w->lasts_ms : 0;
    struct access_token token = {{0}};
    struct access_change change;
    struct why why = {""};
    struct caller as;
    enum err e;

    access_change_init(&change);
    e = access_token_create(o->access, &change, w->user, w->scopes, w->label,
                            expires_ms, STR("(offline)"), now_ms, &token, &why);
    if (!e)
        e = offline_commit(o, &change, &why);
    if (!e) {
        char header[sizeof("Bearer ") + ACCESS_TOKEN_CHARS];

        snprintf(header, sizeof(header), "Bearer %s", token.text);
        e = access_judge(o->access, str_of(header), now_ms, &as, &why);
        explicit_bzero(header, sizeof(header));
    }
    if (!e)
        offline_show_token(o, &as, w->label, &token, now_ms);
    explicit_bzero(&token, sizeof(token));
    access_change_fini(&change);
    return e ? offline_fail(o, e, &why) : EXIT_DONE;
}

enum exit_status cli_token_offline(struct cli *c, const struct token_wish *w)
{
    struct offline o;
    enum exit_status status;

    if (!w->user.n)
        return cli_error(c, ERR_USAGE, "--offline needs a user: --user admin");
    status = offline_open(&o, c);
    if (!status)
        status = offline_find_user(&o, w);
    if (!status)
        status = offline_make_token(&o, w);
    close_all(&o);
    return status;
}

/* Pass one row to `each`, in the format of the API. False: stop. */
static bool give_user(struct access *a, const struct row *r,
                      bool (*each)(void *ctx, const struct json *item),
                      void *ctx)
{
    struct str name = row_str(r, USER_SHOWN);
    struct speak_user u = {.name = name,
                           .role = (enum role)row_int(r, USER_ROLE),
                           .org = access_org_of(a, name),
                           .owner = row_str(r, USER_OWNER),
                           .created_ms = row_int(r, USER_CREATED_MS)};
    struct arena arena;
    struct buf doc;
    struct json_out j;
    struct json *item;
    bool goes_on;

    arena_init(&arena, 64 * 1024);
    buf_init(&doc, 16 * 1024);
    j = json_out(&doc);
    speak_user(&j, &u);
    item = json_parse(&arena, buf_str(&doc), 0, NULL);
    goes_on = item && each(ctx, item);
    buf_fini(&doc);
    arena_fini(&arena);
    return goes_on;
}

enum exit_status cli_users_offline(struct cli *c, int64_t limit,
                                   bool (*each)(void *ctx,
                                                const struct json *item),
                                   void *ctx, bool *more)
{
    char after[PRINCIPAL_NAME_MAX + 1] = "";
    struct offline o;
    enum exit_status status = offline_open(&o, c);
    bool goes_on = !status;

    *more = false;
    while (goes_on) {
        struct query q;
        enum err e;

        query_init(&q, &user_table,
                   limit < PAGE_ROWS ? (size_t)limit : PAGE_ROWS);
        query_if(&q, USER_REMOVED_MS, IS, value_null());
        query_if(&q, USER_NAME, IS_MORE, value_text(str_of(after)));
        query_order(&q, USER_NAME, false);
        e = store_look(o.store, &q);
        if (e)
            status = cli_error(c, e, "the users cannot be read: %s",
                               err_row(e)->wording);
        for (const struct row *r = q.rows; r && goes_on && !e; r = r->next) {
            goes_on = give_user(o.access, r, each, ctx);
            snprintf(after, sizeof(after), "%.*s",
                     STR_ARG(row_str(r, USER_NAME)));
            limit--;
        }
        *more = goes_on && q.has_more;
        goes_on = *more && limit > 0 && !e;
        query_fini(&q);
    }
    close_all(&o);
    return status;
}

enum exit_status cli_store_offline(struct cli *c,
                                   enum exit_status (*with)(struct cli *c,
                                                            struct store *s))
{
    struct offline o;
    enum exit_status status = offline_open(&o, c);

    if (!status)
        status = with(c, o.store);
    close_all(&o);
    return status;
}
