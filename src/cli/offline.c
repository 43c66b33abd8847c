/* token create --offline: for who lost the last token of an admin. Works on the
 * data folder itself, which is locked meanwhile, so that no server can be
 * using it: whoever may read and write that folder may do anything anyway.
 * The store runs inline, and the change is the same that a server makes. */
#include "cli/token.h"

#include <stdio.h>
#include <unistd.h>

#include "access/access.h"
#include "base/log.h"
#include "server.h"
#include "store/store.h"

struct offline {
    struct cli *c;
    const struct token_wish *wish;
    struct clock clock;
    struct log log;
    struct id_maker ids;
    struct config *config;
    struct store_folder folder;
    bool has_folder;
    struct store *store;
    struct access *access;
};

static enum exit_status fail(struct offline *o, enum err e,
                             const struct why *why)
{
    return cli_error(o->c, e, "%s", why->text);
}

static enum exit_status load_config(struct offline *o)
{
    struct config_report report;
    struct config_source src;
    enum exit_status status;
    struct str rest, first;

    if (!cli_source(o->c, &src, &status))
        return status;
    o->config = config_load(&src, &report);
    if (o->config)
        return EXIT_DONE;
    rest = str_of(report.text);
    first = str_cut(&rest, '\n');
    return cli_error(o->c, ERR_BAD_CONFIG, "%.*s", STR_ARG(first));
}

static enum exit_status open_store(struct offline *o)
{
    struct store_opts opts = {.max_waiting = 16, .is_inline = true};
    struct why why = {""};
    enum err e;

    if (!store_folder_is_ours(o->config->data))
        return cli_error(o->c, ERR_NOT_FOUND,
                         "no server has ever kept its data in %s: --data "
                         "FOLDER says where it is",
                         o->config->data.p);
    e = store_folder_open(&o->folder, o->config->data, &why);
    if (e == ERR_BUSY)
        return cli_error(o->c, e,
                         "%.300s. Stop it first, or leave --offline out and "
                         "ask it",
                         why.text);
    if (e)
        return fail(o, e, &why);
    o->has_folder = true;
    opts.folder = o->folder.path;
    opts.schemas = server_schemas;
    opts.n_schemas = server_n_schemas;
    e = store_open(&o->store, &opts, &why);
    return e ? fail(o, e, &why) : EXIT_DONE;
}

static enum exit_status open_access(struct offline *o)
{
    struct access_opts opts = {.log = &o->log,
                               .store = o->store,
                               .rand = rand_system(),
                               .ids = &o->ids};
    struct why why = {""};
    enum err e;

    opts.seed[0] = rand_u64(opts.rand);
    opts.seed[1] = rand_u64(opts.rand);
    o->access = access_new(&opts);
    if (!o->access)
        return cli_error(o->c, ERR_NOMEM, "out of memory");
    e = access_load(o->access, &why);
    return e ? fail(o, e, &why) : EXIT_DONE;
}

static void show(struct offline *o, const struct id *id,
                 const struct access_token *token, unsigned scopes,
                 int64_t now_ms, int64_t expires_ms)
{
    struct str text;
    struct buf doc;
    struct json_out j;

    buf_init(&doc, 16 * 1024);
    j = json_out(&doc);
    json_open(&j, '{');
    json_key(&j, STR("id"));
    json_put_str(&j, str_of(id->text));
    json_key(&j, STR("user"));
    json_put_str(&j, o->wish->user);
    json_key(&j, STR("label"));
    json_put_str(&j, o->wish->label);
    json_key(&j, STR("scopes"));
    json_open(&j, '[');
    for (unsigned s = 1; s < SCOPE_ALL; s <<= 1)
        if (scopes & s)
            json_put_str(&j, scope_name((enum scope)s));
    json_close(&j, ']');
    json_key(&j, STR("created_ms"));
    json_put_int(&j, now_ms);
    json_key(&j, STR("expires_ms"));
    if (expires_ms)
        json_put_int(&j, expires_ms);
    else
        json_put_null(&j);
    json_key(&j, STR("token"));
    json_put_str(&j, str_of(token->text));
    json_close(&j, '}');
    text = buf_str(&doc);
    cli_show_token(o->c, json_parse(&o->c->arena, text, 0, NULL));
    explicit_bzero(doc.p, doc.n);
    buf_fini(&doc);
}

static void on_done(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

/* One change, submitted and settled. */
static enum exit_status make(struct offline *o)
{
    const struct token_wish *w = o->wish;
    int64_t now_ms = o->clock.wall_ms(o->clock.ctx);
    int64_t expires_ms = w->lasts_ms ? now_ms + w->lasts_ms : 0;
    struct access_token token = {{0}};
    struct access_change change;
    struct why why = {""};
    bool is_done = false;
    struct caller as;
    enum err e;

    access_change_init(&change);
    e = access_token_create(o->access, &change, w->user, w->scopes, w->label,
                            expires_ms, STR("(offline)"), now_ms, &token, &why);
    if (!e) {
        store_submit(o->store, &change.tx, on_done, &is_done);
        while (!is_done)
            store_turn(o->store);
        e = access_settle(o->access, &change, &why);
    }
    if (!e) {
        char header[sizeof("Bearer ") + ACCESS_TOKEN_CHARS];

        snprintf(header, sizeof(header), "Bearer %s", token.text);
        e = access_judge(o->access, str_of(header), now_ms, &as, &why);
        explicit_bzero(header, sizeof(header));
    }
    if (!e)
        show(o, &as.token_id, &token, as.scopes, now_ms, expires_ms);
    explicit_bzero(&token, sizeof(token));
    access_change_fini(&change);
    return e ? fail(o, e, &why) : EXIT_DONE;
}

enum exit_status cli_token_offline(struct cli *c, const struct token_wish *w)
{
    struct offline o = {.c = c, .wish = w, .clock = clock_system()};
    enum exit_status status;

    if (!w->user.n)
        return cli_error(c, ERR_USAGE,
                         "with --offline say for whom: --user admin");
    log_init(&o.log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, o.clock);
    id_maker_init(&o.ids, rand_system());
    status = load_config(&o);
    if (!status)
        status = open_store(&o);
    if (!status)
        status = open_access(&o);
    if (!status)
        status = make(&o);
    access_free(o.access);
    store_close(o.store);
    if (o.has_folder)
        store_folder_close(&o.folder);
    config_free(o.config);
    return status;
}
