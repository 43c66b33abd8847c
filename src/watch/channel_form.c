/* An entry of the feed in words, in the formats of Slack's and Discord's
 * webhooks.
 *
 * Names, reasons and texts come from outside. They must not mention people,
 * look like our own text (markup), or exceed a limit, which would get the
 * whole post rejected. So each goes through words_add, which escapes it for
 * the format, counts the output, and stops in time. Lengths are counted in
 * bytes, which are never fewer than characters, however the platform counts
 * those.
 *
 *   Slack    blocks 50; header 150; section 3000; text 40 000, of which it
 *            advises 4000. &, < and > are written as entities. Text from
 *            outside is plain_text, where nothing else has a meaning.
 *   Discord  content 2000; 10 embeds; title 256; description 4096; all embeds
 *            together 6000. allowed_mentions.parse is empty, markup is escaped
 *            by a backslash, and each @ is followed by a space without width.
 */
#include "watch/channel.h"

#include <stdio.h>

#include "base/json.h"

enum {
    SLACK_HEADER_MAX = 150,
    SLACK_SECTION_MAX = 3000,
    SLACK_TEXT_MAX = 4000,
    DISCORD_TITLE_MAX = 256,
    DISCORD_DESCRIPTION_MAX = 4096,
    DISCORD_ALL_MAX = 6000,
    DISCORD_CONTEXT_MAX = 2400,
    WORDS_MAX = 16 * 1024,
    NAME_SHOWN_MAX = 64, /* bytes of a name in a title */
    DATA_BYTES_MAX = 1 << 20,
};

#define ELLIPSIS "\xe2\x80\xa6"
#define NO_WIDTH "\xe2\x80\x8b"
#define NOT_TICK "\xcb\x8b" /* looks like a backtick */
#define ARROW    " \xe2\x86\x92 "

/* The title of a type, and the channels that take it. */
enum { FOR_FEED = 1, FOR_ALERTS = 2, WITH_CONTEXT = 4 };

static const struct kind {
    struct str type;
    const char *title;
    unsigned flags;
    int64_t colour; /* Discord's */
} kinds[] = {
    {STR("gate.routed"), "Routed", FOR_FEED, 0x2e7d32},
    {STR("gate.held"), "Held", FOR_FEED, 0xf9a825},
    {STR("gate.paused"), "Paused", FOR_FEED, 0xc62828},
    {STR("gate.escalated"), "A person must decide",
     FOR_FEED | FOR_ALERTS | WITH_CONTEXT, 0xc62828},
    {STR("gate.dropped"), "Dropped", FOR_FEED, 0x757575},
    {STR("gate.released"), "Released", FOR_FEED, 0x2e7d32},
    {STR("gate.expired"), "Held too long", FOR_FEED | FOR_ALERTS, 0xc62828},
    {STR("escalation.approved"), "Approved", FOR_ALERTS, 0x2e7d32},
    {STR("escalation.rejected"), "Rejected", FOR_ALERTS, 0x757575},
    {STR("escalation.redirected"), "Redirected", FOR_ALERTS, 0x2e7d32},
    {STR("escalation.expired"), "No decision in time", FOR_ALERTS, 0xc62828},
    {STR("escalation.resolved"), "No longer needed", FOR_ALERTS, 0x2e7d32},
    {STR("escalation.reminded"), "Still waits for a person",
     FOR_ALERTS | WITH_CONTEXT, 0xc62828},
    {STR("task.late"), "Late", FOR_ALERTS | WITH_CONTEXT, 0xc62828},
    {STR("agent.out"), "Paused until its agent recovers",
     FOR_ALERTS | WITH_CONTEXT, 0xc62828},
    {STR("budget.warning"), "A budget is nearly used up", FOR_ALERTS, 0xf9a825},
    {STR("agent.submitted"), "A card waits for review", FOR_ALERTS, 0xf9a825},
    {STR("agent.reported"), "A user reports an agent", FOR_ALERTS, 0xf9a825},
    {STR("agent.restarting"), "Restarting", FOR_ALERTS, 0xf9a825},
    {STR("agent.restarted"), "Back again", FOR_ALERTS, 0x2e7d32},
    {STR("agent.restart_failed"), "Could not be restarted", FOR_ALERTS,
     0xc62828},
};

static const struct kind *entry_kind(struct str type)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (str_eq(kinds[i].type, type))
            return &kinds[i];
    return NULL;
}

bool channel_takes(struct str type, bool takes_feed, bool takes_alerts)
{
    const struct kind *k = entry_kind(type);
    unsigned flags = k ? k->flags : 0;

    return (takes_feed && (flags & FOR_FEED)) ||
           (takes_alerts && (flags & FOR_ALERTS));
}

bool channel_wants_context(struct str type)
{
    const struct kind *k = entry_kind(type);

    return k && (k->flags & WITH_CONTEXT);
}

/* Lines. */

static void line_put_entry(struct json_out *o, const struct feed_entry *e)
{
    json_member_int(o, "seq", e->seq);
    json_member_int(o, "at_ms", e->at_ms);
    json_member_str(o, "type", e->type);
    json_member_str(o, "task_id", e->task_id);
    json_member_str(o, "conversation_id", e->conversation_id);
    json_member_str(o, "agent", e->agent);
    json_member_str(o, "requester", e->requester);
    json_member_str(o, "root_user", e->root_user);
    json_member_raw(o, "data", e->data.n ? e->data : STR("{}"));
}

/* Data is JSON from another writer. A line end in it stands between tokens,
 * where a space is equivalent. */
static void line_end(struct buf *out, size_t from)
{
    for (size_t i = from; i < out->n; i++)
        if (out->p[i] == '\n' || out->p[i] == '\r')
            out->p[i] = ' ';
    buf_add_char(out, '\n');
}

void channel_line(struct buf *out, const struct feed_entry *e,
                  struct str context)
{
    struct json_out o = json_out(out);
    size_t from = out->n;

    json_open(&o, '{');
    line_put_entry(&o, e);
    if (context.n)
        json_member_str(&o, "context", str_head(context, CHANNEL_CONTEXT_MAX));
    json_close(&o, '}');
    line_end(out, from);
}

static void line_put_missed(struct json_out *o, int64_t seq, int64_t at_ms,
                            int64_t missed)
{
    json_open(o, '{');
    json_member_int(o, "seq", seq);
    json_member_int(o, "at_ms", at_ms);
    json_member_str(o, "type", STR("channel.missed"));
    json_key(o, STR("data"));
    json_open(o, '{');
    json_member_int(o, "entries", missed);
    json_close(o, '}');
    json_close(o, '}');
}

void channel_line_missed(struct buf *out, int64_t seq, int64_t at_ms,
                         int64_t missed)
{
    struct json_out o = json_out(out);

    line_put_missed(&o, seq, at_ms, missed);
    buf_add_char(out, '\n');
}

/* Words. */

/* A text under construction, and the bytes it may still have. */
struct words {
    struct buf *out;
    enum post_form form;
    bool is_code; /* between three backticks, several lines */
    size_t left;
};

/* One character, escaped for the format. */
static struct str form_escape(const struct words *w, struct str c, char *room)
{
    char ch = c.p[0];

    if (c.n > 1)
        return c;
    if (ch == '`' && w->is_code)
        return STR(NOT_TICK);
    if (w->form == POST_SLACK)
        return ch == '&'   ? STR("&amp;")
               : ch == '<' ? STR("&lt;")
               : ch == '>' ? STR("&gt;")
                           : c;
    if (ch == '@')
        return STR("@" NO_WIDTH);
    if (w->is_code || !strchr("\\*_~`|<>#[]()-:", ch))
        return c;
    room[0] = '\\';
    room[1] = ch;
    return (struct str){room, 2};
}

static size_t utf8_character(struct str s)
{
    size_t n = 1;

    while (n < s.n && n < 4 && (s.p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* As much of s as there is room for, with an ellipsis for the rest. */
static void words_add(struct words *w, struct str s)
{
    const size_t spare = sizeof(ELLIPSIS) - 1;

    while (s.n && w->left) {
        char room[2];
        size_t steers = str_steers(s), n = steers ? steers : utf8_character(s);
        struct str c = {s.p, n};

        if (steers)
            c = w->is_code && (s.p[0] == '\n' || s.p[0] == '\t')
                    ? (struct str){s.p, 1}
                    : STR(" ");
        c = form_escape(w, c, room);
        if (c.n + spare > w->left) {
            if (w->left >= spare)
                buf_add_str(w->out, STR(ELLIPSIS));
            w->left = 0;
            return;
        }
        buf_add_str(w->out, c);
        w->left -= c.n;
        s = str_sub(s, n, s.n);
    }
}

/* Our own text: unchanged, or not at all. */
static void words_add_own(struct words *w, const char *text)
{
    size_t n = strlen(text);

    if (n > w->left)
        return;
    buf_add(w->out, text, n);
    w->left -= n;
}

/* A name from outside, cut to `most` bytes. */
static void words_add_short(struct words *w, struct str s, size_t most)
{
    struct words part = *w;
    size_t room = w->left < most ? w->left : most;

    part.left = room;
    words_add(&part, s);
    w->left -= room - part.left;
}

static struct str data_field(const struct json *data, const char *name)
{
    return json_str_or(json_get(data, str_of(name)), (struct str){NULL, 0});
}

/* "Held: Jay -> Z". */
static void words_add_title(struct words *w, const struct feed_entry *e,
                            const struct json *data)
{
    const struct kind *k = entry_kind(e->type);
    struct str from = data_field(data, "original_from"),
               to = data_field(data, "original_to");

    words_add_own(w, k ? k->title : "News");
    from = from.n ? from : data_field(data, "from");
    to = to.n ? to : data_field(data, "to");
    to = to.n ? to : e->agent;
    if (!from.n && !to.n)
        return;
    words_add_own(w, ": ");
    words_add_short(w, from, NAME_SHOWN_MAX);
    if (from.n && to.n)
        words_add_own(w, ARROW);
    words_add_short(w, to, NAME_SHOWN_MAX);
}

static const struct {
    const char *name, *label;
} shown[] = {
    {"routing_decision", "Decision"},
    {"rule", "Rule"},
    {"reference", "Reference"},
    {"sla", "SLA"},
    {"held_until", "Held until"},
    {"agent", "Agent"},
    {"state", "State"},
    {"to", "Goes to"},
    {"offer", "Could take over"},
    {"by", "By"},
    {"comment", "Comment"},
    {"message_id", "Message"},
};

static struct str data_escalation(const struct json *data)
{
    struct str id = data_field(data, "escalation_id");

    return id_is_valid(id, "esc") ? id : (struct str){NULL, 0};
}

/* The reason and the other known fields, a line each. */
static void words_add_details(struct words *w, const struct feed_entry *e,
                              const struct json *data)
{
    struct str reason = data_field(data, "reason");

    if (reason.n) {
        words_add(w, reason);
        words_add_own(w, "\n");
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
        struct str v = data_field(data, shown[i].name);

        if (!v.n)
            continue;
        words_add_own(w, shown[i].label);
        words_add_own(w, ": ");
        words_add_short(w, v, 4 * NAME_SHOWN_MAX);
        words_add_own(w, "\n");
    }
    if (e->task_id.n) {
        words_add_own(w, "Task: ");
        words_add_short(w, e->task_id, NAME_SHOWN_MAX);
        words_add_own(w, "\n");
    }
}

/* The command that shows the escalation. Its id was checked. */
static void words_add_command(struct words *w, const struct json *data)
{
    struct str id = data_escalation(data);

    if (!id.n)
        return;
    words_add_own(w, "signalbox escalations show ");
    if (id.n <= w->left) {
        buf_add_str(w->out, id);
        w->left -= id.n;
    }
}

/* Scratch memory for the texts of one body. */
struct text {
    const struct post *post;
    struct arena arena;
    struct buf scratch;
};

static struct words words_start(struct text *t, size_t most)
{
    buf_clear(&t->scratch);
    return (struct words){&t->scratch, t->post->form, false, most};
}

static void text_put_missed(struct text *t)
{
    buf_addf(&t->scratch,
             "%lld entries of the feed were not posted: retention removed "
             "them first",
             (long long)t->post->missed);
}

static const struct json *text_read_data(struct text *t,
                                         const struct feed_entry *e)
{
    struct json_error err;

    return e->data.n ? json_parse(&t->arena, e->data, 0, &err) : NULL;
}

/* Slack. */

static void slack_block(struct json_out *o, const char *type, const char *kind,
                        struct str text)
{
    if (!text.n)
        return;
    json_open(o, '{');
    json_member_str(o, "type", str_of(type));
    json_key(o, STR("text"));
    json_open(o, '{');
    json_member_str(o, "type", str_of(kind));
    json_member_text(o, "text", text);
    if (strcmp(kind, "plain_text") == 0)
        json_member_bool(o, "emoji", false);
    json_close(o, '}');
    json_close(o, '}');
}

static void slack_code(struct json_out *o, struct text *t, struct str code)
{
    struct words w = words_start(t, SLACK_SECTION_MAX);

    words_add_own(&w, "```");
    w.is_code = true;
    w.left -= 3;
    words_add(&w, code);
    buf_add_str(&t->scratch, STR("```"));
    slack_block(o, "section", "mrkdwn", buf_str(&t->scratch));
}

static void slack_entry(struct json_out *o, struct text *t,
                        const struct feed_entry *e, struct str context)
{
    const struct json *data = text_read_data(t, e);
    struct words w = words_start(t, SLACK_HEADER_MAX);

    words_add_title(&w, e, data);
    slack_block(o, "header", "plain_text", buf_str(&t->scratch));
    w = words_start(t, SLACK_SECTION_MAX);
    words_add_details(&w, e, data);
    slack_block(o, "section", "plain_text", buf_str(&t->scratch));
    if (context.n)
        slack_code(o, t, context);
    if (!data_escalation(data).n)
        return;
    w = words_start(t, SLACK_SECTION_MAX);
    words_add_own(&w, "`");
    words_add_command(&w, data);
    words_add_own(&w, "`");
    slack_block(o, "section", "mrkdwn", buf_str(&t->scratch));
}

/* For notifications, and for clients that cannot show blocks. */
static void slack_text(struct json_out *o, struct text *t)
{
    const struct post *p = t->post;
    struct words w = words_start(t, SLACK_TEXT_MAX);

    for (size_t i = 0; i < p->n; i++) {
        if (i)
            words_add_own(&w, "\n");
        words_add_title(&w, &p->entries[i]->e,
                        text_read_data(t, &p->entries[i]->e));
    }
    if (!p->n)
        text_put_missed(t);
    json_member_text(o, "text", buf_str(&t->scratch));
}

static void slack_body(struct json_out *o, struct text *t)
{
    const struct post *p = t->post;

    json_open(o, '{');
    slack_text(o, t);
    json_key(o, STR("blocks"));
    json_open(o, '[');
    if (p->missed) {
        buf_clear(&t->scratch);
        text_put_missed(t);
        slack_block(o, "section", "plain_text", buf_str(&t->scratch));
    }
    for (size_t i = 0; i < p->n; i++)
        slack_entry(o, t, &p->entries[i]->e,
                    i + 1 == p->n ? p->context : (struct str){NULL, 0});
    json_close(o, ']');
    json_close(o, '}');
}

/* Discord. */

static void discord_about(struct text *t, const struct feed_entry *e,
                          const struct json *data, struct str context,
                          size_t most)
{
    size_t for_context = context.n ? most / 2 : 0;
    struct words w = words_start(t, most - for_context);

    if (for_context > DISCORD_CONTEXT_MAX)
        for_context = DISCORD_CONTEXT_MAX;
    words_add_command(&w, data);
    if (t->scratch.n)
        words_add_own(&w, "\n");
    words_add_details(&w, e, data);
    if (for_context < 16)
        return;
    buf_add_str(&t->scratch, STR("```\n"));
    w.is_code = true;
    w.left = for_context - 8;
    words_add(&w, context);
    buf_add_str(&t->scratch, STR("\n```"));
}

static void discord_embed(struct json_out *o, struct text *t,
                          const struct feed_entry *e, struct str context,
                          size_t most)
{
    const struct json *data = text_read_data(t, e);
    size_t title = most / 3 < DISCORD_TITLE_MAX ? most / 3 : DISCORD_TITLE_MAX,
           about = most - title;
    const struct kind *k = entry_kind(e->type);
    struct words w = words_start(t, title);

    json_open(o, '{');
    words_add_title(&w, e, data);
    json_member_text(o, "title", buf_str(&t->scratch));
    discord_about(t, e, data, context,
                  about < DISCORD_DESCRIPTION_MAX ? about
                                                  : DISCORD_DESCRIPTION_MAX);
    if (t->scratch.n)
        json_member_text(o, "description", buf_str(&t->scratch));
    json_member_int(o, "color", k ? k->colour : 0);
    json_close(o, '}');
}

static void discord_body(struct json_out *o, struct text *t)
{
    const struct post *p = t->post;

    json_open(o, '{');
    buf_clear(&t->scratch);
    if (p->missed)
        text_put_missed(t);
    else
        buf_addf(&t->scratch, "Signalbox: %zu %s", p->n,
                 p->n == 1 ? "entry" : "entries");
    json_member_text(o, "content", buf_str(&t->scratch));
    json_key(o, STR("embeds"));
    json_open(o, '[');
    for (size_t i = 0; i < p->n; i++)
        discord_embed(o, t, &p->entries[i]->e,
                      i + 1 == p->n ? p->context : (struct str){NULL, 0},
                      DISCORD_ALL_MAX / p->n);
    json_close(o, ']');
    json_member_raw(o, "allowed_mentions", STR("{\"parse\":[]}"));
    json_close(o, '}');
}

/* JSON. */

static void json_body(struct json_out *o, struct text *t)
{
    const struct post *p = t->post;

    json_open(o, '{');
    json_member_str(o, "channel", p->channel);
    json_member_int(o, "missed", p->missed);
    json_key(o, STR("entries"));
    json_open(o, '[');
    for (size_t i = 0; i < p->n; i++) {
        json_open(o, '{');
        line_put_entry(o, &p->entries[i]->e);
        if (i + 1 == p->n && p->context.n)
            json_member_str(o, "context",
                            str_head(p->context, CHANNEL_CONTEXT_MAX));
        json_close(o, '}');
    }
    json_close(o, ']');
    json_close(o, '}');
}

void channel_body(struct buf *out, const struct post *p)
{
    struct text t = {.post = p};
    struct json_out o = json_out(out);

    arena_init(&t.arena, DATA_BYTES_MAX);
    buf_init(&t.scratch, WORDS_MAX);
    if (p->form == POST_SLACK)
        slack_body(&o, &t);
    else if (p->form == POST_DISCORD)
        discord_body(&o, &t);
    else
        json_body(&o, &t);
    if (t.scratch.over)
        out->over = true;
    buf_fini(&t.scratch);
    arena_fini(&t.arena);
}
