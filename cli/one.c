/* Commands that make one request and show its answer differ only in the request
 * and in the output. */
#include "cli/one.h"

enum { PATH_MAX_BYTES = 4096 };

enum exit_status cli_one(struct cli *c, const struct one *o)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);
    struct client_request r = {
        .method = o->method, .body = o->body, .timeout_ms = o->timeout_ms};
    struct buf path;

    if (!cl)
        return status;
    buf_init(&path, PATH_MAX_BYTES);
    buf_add_str(&path, str_of(o->folder));
    client_add_part(&path, o->id);
    buf_add_str(&path, str_of(o->action));
    r.path = buf_str(&path);
    if (path.over)
        status = cli_error(c, ERR_USAGE, "the %s is too long", o->called);
    else if (client_call(cl, &r))
        status = client_fail(cl);
    else if (c->json && client_reply(cl)->json)
        cli_json_line(&c->out, client_reply(cl)->json);
    else if (!c->json)
        o->show(c, o, client_reply(cl)->json);
    buf_fini(&path);
    client_free(cl);
    return status;
}
