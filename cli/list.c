/* All lists are shown the same way; list_kind has the differences. With --json
 * each item is written as soon as it arrives, because lists can be long. */
#include "cli/list.h"

struct run {
    struct listing listing;
    const struct list_kind *kind;
    enum exit_status status;
};

static bool list_add_item(void *ctx, const struct json *item)
{
    struct run *r = ctx;
    struct cli *c = r->listing.c;

    if (!c->json) {
        r->kind->add(&r->listing, item);
        return true;
    }
    cli_json_line(&c->out, item);
    r->status = cli_flush(c, EXIT_DONE);
    return r->status == EXIT_DONE;
}

enum exit_status cli_list(struct cli *c, const struct list_kind *kind)
{
    bool is_offline = kind->offline && args_has(&c->args, "offline");
    struct run r = {.listing = {.c = c, .now_ms = cli_now_ms()},
                    .kind = kind,
                    .status = EXIT_DONE};
    struct grid *g = &r.listing.grid;
    enum exit_status status = EXIT_DONE;
    struct client *cl = NULL;
    int64_t limit;
    bool more = false;

    if (!cli_number(c, "limit", 1, kind->most, kind->preset, &limit, &status))
        return status;
    grid_init(g, kind->heads, kind->n_heads);
    g->cuts_first = kind->cuts_first;
    g->points = kind->points;
    if (is_offline)
        status = kind->offline(c, limit, list_add_item, &r, &more);
    else if ((cl = client_new(c, &status)) &&
             client_list(cl, kind->path, limit, list_add_item, &r, &more))
        status = client_fail(cl);
    client_free(cl);
    if (!status && !c->json) {
        if (!g->n_rows && kind->none)
            buf_add_str(&c->out, str_of(kind->none));
        else
            grid_write(g, &c->out, c->window, c->colour, c->unicode);
        if (more && kind->tells_of_further && c->on_terminal)
            buf_addf(&c->out, "There are more: --limit %lld\n",
                     (long long)limit * 5);
    }
    grid_fini(g);
    return status ? status : r.status;
}
