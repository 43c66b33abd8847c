/* Every list is shown in the same way; what differs is in its kind. As JSON an
 * item leaves as soon as it is there: lists can be long, and what is out need
 * not be kept. */
#include "cli/list.h"

struct run {
    struct listing listing;
    const struct list_kind *kind;
    enum exit_status status;
};

static bool add_item(void *ctx, const struct json *item)
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

static void show(const struct run *r, int64_t limit, bool more)
{
    const struct grid *g = &r->listing.grid;
    struct cli *c = r->listing.c;

    if (c->json)
        return;
    if (!g->n_rows && r->kind->none)
        buf_add_str(&c->out, str_of(r->kind->none));
    else
        grid_write(g, &c->out, c->window, c->colour, c->unicode);
    if (more && r->kind->tells_of_further && c->on_terminal)
        buf_addf(&c->out, "There are more: --limit %lld\n",
                 (long long)limit * 5);
}

static enum exit_status ask_server(struct run *r, int64_t limit, bool *more)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(r->listing.c, &status);

    if (!cl)
        return status;
    if (client_list(cl, r->kind->path, limit, add_item, r, more))
        status = client_fail(cl);
    client_free(cl);
    return status;
}

enum exit_status cli_list(struct cli *c, const struct list_kind *kind)
{
    bool is_offline = kind->offline && args_has(&c->args, "offline");
    struct run r = {.listing = {.c = c, .now_ms = cli_now_ms()},
                    .kind = kind,
                    .status = EXIT_DONE};
    enum exit_status status;
    int64_t limit;
    bool more = false;

    if (!cli_number(c, "limit", 1, kind->most, kind->preset, &limit, &status))
        return status;
    grid_init(&r.listing.grid, kind->heads, kind->n_heads);
    r.listing.grid.cuts_first = kind->cuts_first;
    r.listing.grid.points = kind->points;
    status = is_offline ? kind->offline(c, limit, add_item, &r, &more)
                        : ask_server(&r, limit, &more);
    if (!status)
        show(&r, limit, more);
    grid_fini(&r.listing.grid);
    return status ? status : r.status;
}
