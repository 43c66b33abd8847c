/* feed: what happened, a line for each: the last of it, or what came after an
 * entry. Following goes on for as long as somebody reads: a server that is
 * restarted is found again, and the cursor sees to it that nothing is left out
 * or told twice. */
#include "cli/list.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ENTRY_ARENA_BYTES = 4 * 1024 * 1024,
    SLOWEST_MS = 5000,
    LAST_SHOWN = 20, /* if nobody says how many */
    LAST_FOLLOWED = 10,
    INDENT = 15,    /* of what does not fit the line */
    LAST_MAX = 500, /* the server gives no more at once */
};

const struct arg_option cli_feed_options[] = {
    {"follow", NULL, "wait for what happens next, until Ctrl-C", false},
    {"after", "SEQ", "what came after this entry; 0 for all there is", false},
    {"limit", "N", "the last so many; with --after, the first so many", false},
    CLIENT_OPTIONS,
    {0},
};

struct reading {
    struct cli *c;
    struct client *cl;
    struct arena arena;
    int64_t after;
    int64_t left;  /* entries still wanted */
    bool is_heard; /* something came since the last connection was made */
    enum exit_status status;
};

/* One entry on one line. */

static void add_type(struct cli *c, struct str type)
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

static void add_word(struct cli *c, const char *before, struct str word)
{
    if (word.n)
        buf_addf(&c->out, " %s%.*s", before, STR_ARG(cli_tamed(c, word)));
}

/* The day only when it is not today's. */
static void add_when(struct cli *c, int64_t at_ms)
{
    struct cli_time at = cli_time(at_ms), now = cli_time(cli_now_ms());
    size_t day = strlen("2025-11-15 ");
    bool is_today =
        strlen(at.text) > day && strncmp(at.text, now.text, day) == 0;

    buf_addf(&c->out, "%s ", is_today ? at.text + day : at.text);
}

/* Of the gate: who sent it, and why it was decided so. */
static void add_decision(struct cli *c, const struct json *data)
{
    struct str reason = cli_field(data, STR("reason"));

    add_word(c, "from ", cli_field(data, STR("original_from")));
    if (reason.n)
        buf_addf(&c->out, ": %.*s", STR_ARG(cli_tamed(c, reason)));
}

/* Why no agent got a message, and which came nearest. */
static void add_refusal(struct cli *c, const struct json *data)
{
    struct str band = cli_field(data, STR("band"));
    struct str nearest = cli_field(data, STR("nearest"));

    add_word(c, "", cli_field(data, STR("decision_id")));
    if (str_eq(band, STR("unsure")))
        buf_add_str(&c->out, STR(": unsure"));
    else if (str_eq(band, STR("out_of_scope")))
        buf_add_str(&c->out, STR(": out of scope"));
    else if (str_eq(cli_field(data, STR("code")), STR("agent_not_found")))
        buf_add_str(&c->out, STR(": there is no such agent"));
    else
        buf_add_str(&c->out, STR(": no agent could get it"));
    if (nearest.n)
        buf_addf(&c->out, ", nearest %.*s", STR_ARG(cli_tamed(c, nearest)));
}

static void add_accepted(struct cli *c, const struct json *e)
{
    const struct json *data = json_get(e, STR("data"));

    add_word(c, "from ", cli_field(e, STR("requester")));
    if (json_bool_or(json_get(data, STR("unsure")), false))
        buf_add_str(&c->out, STR(", unsure"));
}

/* Of a configuration: what is another now. */
static void add_changed(struct cli *c, const struct json *data)
{
    const struct json *changed = json_get(data, STR("changed"));

    if (changed && changed->type == JSON_ARR)
        JSON_EACH(name, changed)
    add_word(c, "", json_str_or(name, STR("")));
}

static void add_words(struct cli *c, struct str type, const struct json *e)
{
    const struct json *data = json_get(e, STR("data"));

    add_word(c, "", cli_field(e, STR("task_id")));
    add_word(c, "", cli_field(e, STR("agent")));
    if (str_eq(type, STR("task.accepted")))
        add_accepted(c, e);
    if (str_eq(type, STR("message.refused")))
        add_refusal(c, data);
    if (str_eq(type, STR("learning.voided")))
        add_word(c, "", cli_field(data, STR("of")));
    add_word(c, "", cli_field(data, STR("user")));
    add_word(c, "", cli_field(data, STR("token_id")));
    add_word(c, "", cli_field(data, STR("error_code")));
    add_word(c, "by ", cli_field(data, STR("by")));
    if (str_starts(type, STR("gate.")))
        add_decision(c, data);
    if (str_starts(type, STR("config.")))
        add_changed(c, data);
    if (str_eq(type, STR("agent.state"))) {
        add_word(c, "", cli_field(data, STR("why")));
        add_word(c, "is ", cli_field(data, STR("to")));
    }
}

/* What is written behind `from` again, broken where the window ends; before it
 * stands what takes so many columns. */
static void wrap_from(struct cli *c, size_t from, size_t columns)
{
    struct str words = {c->out.p + from, c->out.n - from};

    words.p = arena_strdup(&c->arena, words);
    c->out.n = from;
    if (!words.p)
        c->out.over = true;
    else if (words.n)
        cli_wrapped(c, (unsigned)columns, INDENT, words);
    else
        buf_add_char(&c->out, '\n');
}

static void add_entry(struct cli *c, const struct json *e)
{
    struct str type = cli_field(e, STR("type"));
    size_t start = c->out.n, columns;

    buf_addf(&c->out, "%5" PRId64 " ", json_int_or(json_get(e, STR("seq")), 0));
    add_when(c, json_int_or(json_get(e, STR("at_ms")), 0));
    columns = c->out.n - start;
    add_type(c, type);
    columns += type.n < 16 ? 16 : type.n;
    start = c->out.n;
    add_words(c, type, e);
    wrap_from(c, start, columns);
    arena_reset(&c->arena);
}

/* False: no more of them. */
static bool show_entry(struct reading *r, const struct json *e)
{
    if (r->c->json)
        cli_json_line(&r->c->out, e);
    else
        add_entry(r->c, e);
    r->status = cli_flush(r->c, EXIT_DONE);
    return r->status == EXIT_DONE && --r->left > 0;
}

/* What has happened. */

/* Show a page and go behind it. *goes_on: more is wanted. */
static enum exit_status read_page(struct reading *r, const char *path,
                                  bool *goes_on)
{
    const struct json *items, *next;

    if (client_call(r->cl, &(struct client_request){.method = "GET",
                                                    .path = str_of(path)}))
        return client_fail(r->cl);
    items = json_get(client_reply(r->cl)->json, STR("items"));
    next = json_get(client_reply(r->cl)->json, STR("next_after"));
    *goes_on = true;
    if (items && items->type == JSON_ARR)
        JSON_EACH(e, items)
    *goes_on = *goes_on && show_entry(r, e);
    r->after = json_int_or(next, r->after);
    return r->status;
}

static enum exit_status read_past(struct reading *r)
{
    enum exit_status status = EXIT_DONE;
    bool goes_on = true;

    while (goes_on && !status) {
        int64_t before = r->after;
        char path[64];

        snprintf(path, sizeof(path), "/api/feed?after=%" PRId64, before);
        status = read_page(r, path, &goes_on);
        /* A page may be empty for this caller and yet not be the last. */
        goes_on = goes_on && r->after > before;
    }
    return status;
}

static enum exit_status read_last(struct reading *r, int64_t n)
{
    char path[64];
    bool goes_on;

    snprintf(path, sizeof(path), "/api/feed?last=%" PRId64, n);
    return read_page(r, path, &goes_on);
}

/* And what happens. */

static bool on_event(void *ctx, const struct sse_event *e)
{
    struct reading *r = ctx;
    struct json *entry;

    r->is_heard = true;
    if (str_eq(e->type, STR("gap"))) { /* and its id is where to go on */
        client_notice(r->cl, "the feed has gone back; following from there");
        return true;
    }
    arena_reset(&r->arena);
    entry = json_parse(&r->arena, e->data, 0, NULL);
    return !entry || entry->type != JSON_OBJ || show_entry(r, entry);
}

/* Whether what went wrong may pass. */
static bool may_pass(const struct client_reply *reply)
{
    return reply->err == OK || reply->err == ERR_UNREACHABLE ||
           reply->status >= 500 || reply->status == 429;
}

static enum exit_status follow(struct reading *r)
{
    bool was_there = false;
    int64_t pause_ms = 0;

    for (;;) {
        const struct client_reply *reply = client_reply(r->cl);
        char path[64] = "/api/feed";

        if (r->after >= 0 && !client_last_id(r->cl).n)
            snprintf(path, sizeof(path), "/api/feed?after=%" PRId64, r->after);
        r->is_heard = false;
        if (client_call(r->cl, &(struct client_request){.method = "GET",
                                                        .path = str_of(path),
                                                        .on_event = on_event,
                                                        .ctx = r,
                                                        .resumes = true}) &&
            (!was_there || !may_pass(reply)) && reply->status != 200)
            return client_fail(r->cl);
        was_there = true;
        if (r->status || r->left <= 0)
            return r->status;
        if (r->is_heard || reply->status == 200)
            pause_ms = 0;
        pause_ms = pause_ms ? pause_ms * 2 : 250;
        if (pause_ms > SLOWEST_MS)
            pause_ms = SLOWEST_MS;
        client_notice(r->cl, "the server has gone; trying again");
        client_pause(r->cl, pause_ms);
    }
}

/* How many, from where. With --after that ends it; without, it is how far back
 * it begins, and with --follow it may begin right here. */
static bool read_options(struct reading *r, int64_t *last,
                         enum exit_status *status)
{
    bool follows = args_has(&r->c->args, "follow");

    *last = 0;
    r->left = INT64_MAX;
    if (!cli_number(r->c, "after", 0, INT64_MAX, -1, &r->after, status))
        return false;
    if (r->after >= 0)
        return cli_number(r->c, "limit", 1, INT64_MAX, INT64_MAX, &r->left,
                          status);
    return cli_number(r->c, "limit", follows ? 0 : 1, LAST_MAX,
                      follows ? LAST_FOLLOWED : LAST_SHOWN, last, status);
}

enum exit_status cli_feed(struct cli *c)
{
    struct reading r = {.c = c};
    enum exit_status status = EXIT_DONE;
    int64_t last;

    if (!read_options(&r, &last, &status) || !(r.cl = client_new(c, &status)))
        return status;
    arena_init(&r.arena, ENTRY_ARENA_BYTES);
    if (last)
        status = read_last(&r, last);
    if (!status && args_has(&c->args, "follow"))
        status = follow(&r);
    else if (!status && !last)
        status = read_past(&r);
    arena_fini(&r.arena);
    client_free(r.cl);
    return status;
}
