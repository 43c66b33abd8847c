/* All removals have the same request and the same output. */
#include "cli/remove.h"

void cli_show_removed(struct cli *c, const struct removal *r, struct str name)
{
    struct json_out o = json_out(&c->out);

    if (!c->json) {
        buf_addf(&c->out, "%.*s is %s%s\n", STR_ARG(cli_tamed(c, name)), r->did,
                 r->besides ? r->besides : "");
        return;
    }
    json_open(&o, '{');
    json_member_text(&o, r->key, name);
    json_member_bool(&o, r->did, true);
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

enum exit_status cli_remove(struct cli *c, const struct removal *r,
                            struct str name)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);
    struct buf path;

    if (!cl)
        return status;
    buf_init(&path, 4096);
    buf_add_str(&path, str_of(r->folder));
    client_add_part(&path, name);
    if (path.over)
        status = cli_error(c, ERR_USAGE, "the %s is too long", r->key);
    else if (client_call(cl, &(struct client_request){.method = "DELETE",
                                                      .path = buf_str(&path)}))
        status = client_fail(cl);
    else
        cli_show_removed(c, r, name);
    buf_fini(&path);
    client_free(cl);
    return status;
}
