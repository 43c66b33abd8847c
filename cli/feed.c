/* feed: print the last entries, or those after a given one. --follow continues
 * while the output has a reader: it reconnects after a restart of the server,
 * and the cursor makes sure that no entry is missed or repeated. */
#include "cli/list.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ENTRY_ARENA_BYTES = 4 * 1024 * 1024,
    SLOWEST_MS = 5000,
    LAST_SHOWN = 20, /* the default */
    LAST_FOLLOWED = 10,
    INDENT = 15,    /* of continued lines */
    LAST_MAX = 500, /* the server's limit */
};

const struct arg_option cli_feed_options[] = {
    {"follow", NULL, "print new entries until Ctrl-C", false},
    {"after", "SEQ", "only entries after this one; 0: all", false},
    {"limit", "N", "the last N entries; with --after, the first N", false},
    CLIENT_OPTIONS,
    {0},
};

struct reading {
    struct cli *c;
    struct client *cl;
    struct arena arena;
    int64_t after;
    int64_t left;  /* entries still wanted */
    bool is_heard; /* an event arrived on this connection */
    enum exit_status status;
};

/* One entry on one line. */

static void feed_add_type(struct cli *c, struct str type)
{
    static const struct {
        struct str end;
        enum colour colour;
    } colours[] = {{{".completed", 10}, GREEN},  {{".failed", 7}, RED},
                   {{".expired", 8}, RED},       {{".cancelled", 10}, YELLOW},
                   {{".escalated", 10}, YELLOW}, {{".paused", 7}, YELLOW},
                   {{".refused", 8}, RED}};
    struct str shown = cli_tamed(c, type);

    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
        if (type.n > colours[i].end.n &&
            str_eq(str_sub(type, type.n - colours[i].end.n, type.n),
                   colours[i].end)) {
            cli_coloured(c, colours[i].colour, shown);
            shown.p = NULL;
            break;
        }
    if (shown.p)
        buf_add_str(&c->out, shown);
    buf_addf(&c->out, "%*s", shown.n < 16 ? (int)(16 - shown.n) : 0, "");
}

/* The reason why no agent got a message, and the nearest agent. */
static void add_refusal(struct cli *c, const struct json *data)
{
    struct str band = cli_field(data, STR("band"));
    struct str code = cli_field(data, STR("code"));

    cli_say(c, STR(""), data,
            str_eq(band, STR("unsure")) ? "[ {decision_id}]: unsure"
            : str_eq(band, STR("out_of_scope"))
                ? "[ {decision_id}]: out of scope"
            : str_eq(code, STR("agent_not_found"))
                ? "[ {decision_id}]: no such agent"
                : "[ {decision_id}]: no agent available");
    cli_say(c, STR(""), data, "[, nearest {nearest}]");
}

static void feed_add_summary(struct cli *c, struct str type,
                             const struct json *e)
{
    const struct json *data = json_get(e, STR("data"));

    cli_say(c, STR(""), e, "[ {task_id}][ {agent}]");
    if (str_eq(type, STR("task.accepted"))) {
        cli_say(c, STR(""), e, "[ from {requester}]");
        if (json_bool_or(json_get(data, STR("unsure")), false))
            buf_add_str(&c->out, STR(", unsure"));
    }
    if (str_eq(type, STR("message.refused")))
        add_refusal(c, data);
    if (str_eq(type, STR("learning.voided")))
        cli_say(c, STR(""), data, "[ {of}]");
    cli_say(c, STR(""), data,
            "[ {user}][ {token_id}][ {error_code}][ by {by}]");
    if (str_starts(type, STR("gate.")))
        cli_say(c, STR(""), data, "[ from {original_from}][: {reason}]");
    if (str_starts(type, STR("config.")))
        JSON_EACH(name, cli_items(data, "changed"))
    cli_say(c, json_str_or(name, STR("")), data, "[ {}]");
    if (str_eq(type, STR("agent.state")))
        cli_say(c, STR(""), data, "[ {why}][ is {to}]");
}

static void add_entry(struct cli *c, const struct json *e)
{
    struct cli_time at = cli_time(cli_field_int(e, STR("at_ms")));
    struct cli_time now = cli_time(cli_now_ms());
    struct str type = cli_field(e, STR("type")), words;
    size_t day = strlen("2025-11-15 "), start = c->out.n, columns;
    /* The time, with its date unless it is today. */
    bool is_today =
        strlen(at.text) > day && strncmp(at.text, now.text, day) == 0;

    buf_addf(&c->out, "%5" PRId64 " %s ", cli_field_int(e, STR("seq")),
             is_today ? at.text + day : at.text);
    columns = c->out.n - start;
    feed_add_type(c, type);
    columns += type.n < 16 ? 16 : type.n;
    start = c->out.n;
    feed_add_summary(c, type, e);
    /* Wrap the summary. */
    words = (struct str){c->out.p + start, c->out.n - start};
    words.p = arena_strdup(&c->arena, words);
    c->out.n = start;
    if (words.n)
        cli_wrapped(c, (unsigned)columns, INDENT, words);
    else
        buf_add_char(&c->out, '\n');
    arena_reset(&c->arena);
}

/* False: stop. */
static bool show_entry(struct reading *r, const struct json *e)
{
    if (r->c->json)
        cli_json_line(&r->c->out, e);
    else
        add_entry(r->c, e);
    r->status = cli_flush(r->c, EXIT_DONE);
    return r->status == EXIT_DONE && --r->left > 0;
}

/* Show a page and move the cursor. *goes_on: read the next page. */
static enum exit_status feed_print_page(struct reading *r, const char *path,
                                        bool *goes_on)
{
    const struct json *next;

    if (client_call(r->cl, &(struct client_request){.method = "GET",
                                                    .path = str_of(path)}))
        return client_fail(r->cl);
    next = json_get(client_reply(r->cl)->json, STR("next_after"));
    *goes_on = true;
    JSON_EACH(e, cli_items(client_reply(r->cl)->json, "items"))
    *goes_on = *goes_on && show_entry(r, e);
    r->after = json_int_or(next, r->after);
    return r->status;
}

/* Following. */

static bool feed_on_event(void *ctx, const struct sse_event *e)
{
    struct reading *r = ctx;
    struct json *entry;

    r->is_heard = true;
    if (str_eq(e->type, STR("gap"))) { /* continues at the event's id */
        client_notice(r->cl, "the feed was reset; following from there");
        return true;
    }
    arena_reset(&r->arena);
    entry = json_parse(&r->arena, e->data, 0, NULL);
    return !entry || entry->type != JSON_OBJ || show_entry(r, entry);
}

static enum exit_status feed_follow(struct reading *r)
{
    bool was_there = false;
    int64_t pause_ms = 0;

    for (;;) {
        const struct client_reply *reply = client_reply(r->cl);
        char path[64] = "/api/feed";

        if (r->after >= 0 && !client_last_id(r->cl).n)
            snprintf(path, sizeof(path), "/api/feed?after=%" PRId64, r->after);
        r->is_heard = false;
        if (client_call(r->cl,
                        &(struct client_request){.method = "GET",
                                                 .path = str_of(path),
                                                 .on_event = feed_on_event,
                                                 .ctx = r,
                                                 .resumes = true}) &&
            reply->status != 200 &&
            /* A new connection may help only after these. */
            !(was_there && (reply->err == ERR_UNREACHABLE ||
                            reply->status >= 500 || reply->status == 429)))
            return client_fail(r->cl);
        was_there = true;
        if (r->status || r->left <= 0)
            return r->status;
        if (r->is_heard || reply->status == 200)
            pause_ms = 0;
        pause_ms = pause_ms ? pause_ms * 2 : 250;
        if (pause_ms > SLOWEST_MS)
            pause_ms = SLOWEST_MS;
        client_notice(r->cl, "the connection is lost; reconnecting");
        client_pause(r->cl, pause_ms);
    }
}

enum exit_status cli_feed(struct cli *c)
{
    struct reading r = {.c = c};
    enum exit_status status = EXIT_DONE;
    bool follows = args_has(&c->args, "follow"), goes_on = true;
    int64_t last = 0, before = -1;
    char path[64];

    /* With --after, --limit is the number of entries; without, it is the number
     * of past entries to start with, and may be zero with --follow. */
    r.left = INT64_MAX;
    if (!cli_number(c, "after", 0, INT64_MAX, -1, &r.after, &status) ||
        !(r.after >= 0 ? cli_number(c, "limit", 1, INT64_MAX, INT64_MAX,
                                    &r.left, &status)
                       : cli_number(c, "limit", follows ? 0 : 1, LAST_MAX,
                                    follows ? LAST_FOLLOWED : LAST_SHOWN, &last,
                                    &status)) ||
        !(r.cl = client_new(c, &status)))
        return status;
    arena_init(&r.arena, ENTRY_ARENA_BYTES);
    snprintf(path, sizeof(path), "/api/feed?last=%" PRId64, last);
    if (last)
        status = feed_print_page(&r, path, &goes_on);
    if (!status && follows)
        status = feed_follow(&r);
    /* A page may be empty for this caller without being the last. */
    while (!status && !follows && !last && goes_on && r.after > before) {
        before = r.after;
        snprintf(path, sizeof(path), "/api/feed?after=%" PRId64, before);
        status = feed_print_page(&r, path, &goes_on);
    }
    arena_fini(&r.arena);
    client_free(r.cl);
    return status;
}
