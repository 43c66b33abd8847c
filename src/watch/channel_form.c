/* An entry of the feed in words, and in the forms that Slack and Discord take
 * at their webhooks.
 *
 * Names, reasons and texts are anybody's. Nothing of them may call people (no
 * mention), look like something we say (no markup), or make the whole be
 * refused (no limit is passed): so each is put through `say`, which knows the
 * form's own letters, counts what comes out of it, and stops in time. Lengths
 * are counted in bytes, of which there are never fewer than characters, however
 * the platform counts those.
 *
 *   Slack    blocks 50; header 150; section 3000; text 40 000, of which it
 *            advises 4000. &, < and > are written as entities. What comes from
 *            outside is in plain_text, where nothing else has a meaning.
 *   Discord  content 2000; 10 embeds; title 256; description 4096; all embeds
 *            together 6000. allowed_mentions.parse is empty, markup is escaped
 *            by a backslash, and behind each @ stands a space without width.
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

/* How it is called, and who hears of it. */
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
    {STR("gate.released"), "Let go", FOR_FEED, 0x2e7d32},
    {STR("gate.expired"), "Held too long", FOR_FEED | FOR_ALERTS, 0xc62828},
    {STR("escalation.approved"), "Approved", FOR_ALERTS, 0x2e7d32},
    {STR("escalation.rejected"), "Rejected", FOR_ALERTS, 0x757575},
    {STR("escalation.redirected"), "Redirected", FOR_ALERTS, 0x2e7d32},
    {STR("escalation.expired"), "Nobody decided in time", FOR_ALERTS, 0xc62828},
    {STR("escalation.resolved"), "No longer needed", FOR_ALERTS, 0x2e7d32},
    {STR("escalation.reminded"), "Still waits for a person",
     FOR_ALERTS | WITH_CONTEXT, 0xc62828},
    {STR("task.late"), "Late", FOR_ALERTS | WITH_CONTEXT, 0xc62828},
    {STR("agent.out"), "Paused until its agent is well",
     FOR_ALERTS | WITH_CONTEXT, 0xc62828},
    {STR("budget.warning"), "A budget is nearly used up", FOR_ALERTS, 0xf9a825},
    {STR("agent.restarting"), "Restarting", FOR_ALERTS, 0xf9a825},
    {STR("agent.restarted"), "Back again", FOR_ALERTS, 0x2e7d32},
    {STR("agent.restart_failed"), "Could not be restarted", FOR_ALERTS,
     0xc62828},
};

static const struct kind *kind_of(struct str type)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (str_eq(kinds[i].type, type))
            return &kinds[i];
    return NULL;
}

bool channel_takes(struct str type, bool takes_feed, bool takes_alerts)
{
    const struct kind *k = kind_of(type);
    unsigned flags = k ? k->flags : 0;

    return (takes_feed && (flags & FOR_FEED)) ||
           (takes_alerts && (flags & FOR_ALERTS));
}

bool channel_wants_context(struct str type)
{
    const struct kind *k = kind_of(type);

    return k && (k->flags & WITH_CONTEXT);
}

/* Lines. */

static void put_entry(struct json_out *o, const struct feed_entry *e)
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

/* Data is JSON as somebody wrote it: a line end in it stands between tokens,
 * where a space does as well. */
static void end_line(struct buf *out, size_t from)
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
    put_entry(&o, e);
    if (context.n)
        json_member_str(&o, "context", str_head(context, CHANNEL_CONTEXT_MAX));
    json_close(&o, '}');
    end_line(out, from);
}

static void put_missed(struct json_out *o, int64_t seq, int64_t at_ms,
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

    put_missed(&o, seq, at_ms, missed);
    buf_add_char(out, '\n');
}

/* Words. */

/* What a text from outside becomes: so many bytes at most. */
struct words {
    struct buf *out;
    enum post_form form;
    bool is_code; /* between three backticks, several lines */
    size_t left;
};

/* The letters of the form, for one character of ours. */
static struct str letter(const struct words *w, struct str c, char *room)
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

static size_t one_character(struct str s)
{
    size_t n = 1;

    while (n < s.n && n < 4 && (s.p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* As much of s as there is room for, with an ellipsis for the rest. */
static void say(struct words *w, struct str s)
{
    const size_t spare = sizeof(ELLIPSIS) - 1;

    while (s.n && w->left) {
        char room[2];
        size_t steers = str_steers(s), n = steers ? steers : one_character(s);
        struct str c = {s.p, n};

        if (steers)
            c = w->is_code && (s.p[0] == '\n' || s.p[0] == '\t')
                    ? (struct str){s.p, 1}
                    : STR(" ");
        c = letter(w, c, room);
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

/* Our own words: as they are, or not at all. */
static void say_ours(struct words *w, const char *text)
{
    size_t n = strlen(text);

    if (n > w->left)
        return;
    buf_add(w->out, text, n);
    w->left -= n;
}

/* A name of somebody else's in the middle of it. */
static void say_short(struct words *w, struct str s, size_t most)
{
    struct words part = *w;
    size_t room = w->left < most ? w->left : most;

    part.left = room;
    say(&part, s);
    w->left -= room - part.left;
}

static struct str field(const struct json *data, const char *name)
{
    return json_str_or(json_get(data, str_of(name)), (struct str){NULL, 0});
}

/* "Held: Jay -> Z". */
static void say_title(struct words *w, const struct feed_entry *e,
                      const struct json *data)
{
    const struct kind *k = kind_of(e->type);
    struct str from = field(data, "original_from"),
               to = field(data, "original_to");

    say_ours(w, k ? k->title : "News");
    from = from.n ? from : field(data, "from");
    to = to.n ? to : field(data, "to");
    to = to.n ? to : e->agent;
    if (!from.n && !to.n)
        return;
    say_ours(w, ": ");
    say_short(w, from, NAME_SHOWN_MAX);
    if (from.n && to.n)
        say_ours(w, ARROW);
    say_short(w, to, NAME_SHOWN_MAX);
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

static struct str escalation_of(const struct json *data)
{
    struct str id = field(data, "escalation_id");

    return id_is_valid(id, "esc") ? id : (struct str){NULL, 0};
}

/* Why, and what else is known, a line each. */
static void say_about(struct words *w, const struct feed_entry *e,
                      const struct json *data)
{
    struct str reason = field(data, "reason");

    if (reason.n) {
        say(w, reason);
        say_ours(w, "\n");
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
        struct str v = field(data, shown[i].name);

        if (!v.n)
            continue;
        say_ours(w, shown[i].label);
        say_ours(w, ": ");
        say_short(w, v, 4 * NAME_SHOWN_MAX);
        say_ours(w, "\n");
    }
    if (e->task_id.n) {
        say_ours(w, "Task: ");
        say_short(w, e->task_id, NAME_SHOWN_MAX);
        say_ours(w, "\n");
    }
}

/* What to do about it: our own command and an id that was checked. */
static void say_hint(struct words *w, const struct json *data)
{
    struct str id = escalation_of(data);

    if (!id.n)
        return;
    say_ours(w, "signalbox escalations show ");
    if (id.n <= w->left) {
        buf_add_str(w->out, id);
        w->left -= id.n;
    }
}

/* A text of the body, made by `make` in at most so many bytes. */
struct text {
    const struct post *post;
    struct arena arena;
    struct buf scratch;
};

static struct words begin(struct text *t, size_t most)
{
    buf_clear(&t->scratch);
    return (struct words){&t->scratch, t->post->form, false, most};
}

static void put_missed_words(struct text *t)
{
    buf_addf(&t->scratch,
             "%lld entries of the feed were not posted: retention removed "
             "them first",
             (long long)t->post->missed);
}

static const struct json *read_data(struct text *t, const struct feed_entry *e)
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
    struct words w = begin(t, SLACK_SECTION_MAX);

    say_ours(&w, "```");
    w.is_code = true;
    w.left -= 3;
    say(&w, code);
    buf_add_str(&t->scratch, STR("```"));
    slack_block(o, "section", "mrkdwn", buf_str(&t->scratch));
}

static void slack_entry(struct json_out *o, struct text *t,
                        const struct feed_entry *e, struct str context)
{
    const struct json *data = read_data(t, e);
    struct words w = begin(t, SLACK_HEADER_MAX);

    say_title(&w, e, data);
    slack_block(o, "header", "plain_text", buf_str(&t->scratch));
    w = begin(t, SLACK_SECTION_MAX);
    say_about(&w, e, data);
    slack_block(o, "section", "plain_text", buf_str(&t->scratch));
    if (context.n)
        slack_code(o, t, context);
    if (!escalation_of(data).n)
        return;
    w = begin(t, SLACK_SECTION_MAX);
    say_ours(&w, "`");
    say_hint(&w, data);
    say_ours(&w, "`");
    slack_block(o, "section", "mrkdwn", buf_str(&t->scratch));
}

/* For notifications, and where blocks cannot be shown. */
static void slack_text(struct json_out *o, struct text *t)
{
    const struct post *p = t->post;
    struct words w = begin(t, SLACK_TEXT_MAX);

    for (size_t i = 0; i < p->n; i++) {
        if (i)
            say_ours(&w, "\n");
        say_title(&w, &p->entries[i]->e, read_data(t, &p->entries[i]->e));
    }
    if (!p->n)
        put_missed_words(t);
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
        put_missed_words(t);
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
    struct words w = begin(t, most - for_context);

    if (for_context > DISCORD_CONTEXT_MAX)
        for_context = DISCORD_CONTEXT_MAX;
    say_hint(&w, data);
    if (t->scratch.n)
        say_ours(&w, "\n");
    say_about(&w, e, data);
    if (for_context < 16)
        return;
    buf_add_str(&t->scratch, STR("```\n"));
    w.is_code = true;
    w.left = for_context - 8;
    say(&w, context);
    buf_add_str(&t->scratch, STR("\n```"));
}

static void discord_embed(struct json_out *o, struct text *t,
                          const struct feed_entry *e, struct str context,
                          size_t most)
{
    const struct json *data = read_data(t, e);
    size_t title = most / 3 < DISCORD_TITLE_MAX ? most / 3 : DISCORD_TITLE_MAX,
           about = most - title;
    const struct kind *k = kind_of(e->type);
    struct words w = begin(t, title);

    json_open(o, '{');
    say_title(&w, e, data);
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
        put_missed_words(t);
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

/* Our own. */

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
        put_entry(o, &p->entries[i]->e);
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
