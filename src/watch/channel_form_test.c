/* The words of channels: within the limits of Slack and Discord for any
 * content, and never a mention or markup from outside. */
#include "base/json.h"
#include "base/utf8.h"
#include "test/t.h"
#include "watch/channel.h"

static struct held *entry(const char *type, const char *data)
{
    struct held *h = feed_hold(&(struct feed_entry){.seq = 7,
                                                    .at_ms = 5,
                                                    .type = str_of(type),
                                                    .task_id = STR("task_1"),
                                                    .agent = STR("Z"),
                                                    .data = str_of(data)});

    CHECK(h);
    return h;
}

struct made {
    struct buf body;
    struct arena arena;
    struct json *root;
};

static void make(struct made *m, enum post_form form, const char *type,
                 const char *data, size_t n, const char *context,
                 int64_t missed)
{
    struct post p = {.form = form,
                     .channel = STR("#alerts"),
                     .n = n,
                     .missed = missed,
                     .context = str_of(context)};
    struct json_error err;

    for (size_t i = 0; i < n; i++)
        p.entries[i] = entry(type, data);
    buf_init(&m->body, POST_BODY_MAX);
    arena_init(&m->arena, 4 << 20);
    channel_body(&m->body, &p);
    CHECK(!m->body.over);
    CHECK(utf8_is_valid(buf_str(&m->body)));
    m->root = json_parse(&m->arena, buf_str(&m->body), 0, &err);
    CHECK(m->root);
    for (size_t i = 0; i < n; i++)
        free(p.entries[i]);
}

static void made_fini(struct made *m)
{
    buf_fini(&m->body);
    arena_fini(&m->arena);
}

static bool has(const struct made *m, const char *text)
{
    return memmem(m->body.p, m->body.n, text, strlen(text)) != NULL;
}

static size_t text_bytes(const struct json *v, const char *key)
{
    return json_str_or(json_get(v, str_of(key)), STR("")).n;
}

static void check_slack(const struct made *m)
{
    size_t n = 0;

    CHECK(text_bytes(m->root, "text") > 0);
    CHECK(text_bytes(m->root, "text") <= 4000);
    JSON_EACH(block, json_get(m->root, STR("blocks")))
    {
        struct str type = json_str_or(json_get(block, STR("type")), STR(""));
        const struct json *text = json_get(block, STR("text"));

        n++;
        CHECK(text_bytes(text, "text") > 0);
        CHECK(text_bytes(text, "text") <=
              (str_eq(type, STR("header")) ? 150U : 3000U));
    }
    CHECK(n > 0 && n <= 50);
}

static void check_discord(const struct made *m)
{
    size_t n = 0, all = 0;

    CHECK(text_bytes(m->root, "content") > 0);
    CHECK(text_bytes(m->root, "content") <= 2000);
    CHECK(has(m, "\"allowed_mentions\":{\"parse\":[]}"));
    JSON_EACH(embed, json_get(m->root, STR("embeds")))
    {
        size_t title = text_bytes(embed, "title"),
               about = text_bytes(embed, "description");

        CHECK(title > 0 && title <= 256 && about <= 4096);
        all += title + about;
        n++;
    }
    CHECK(n <= 10 && all <= 6000);
}

#define DECISION                                                             \
    "{\"message_id\":\"m-1\",\"original_from\":\"Jay\",\"original_to\":"     \
    "\"Z\",\"routing_decision\":\"ESCALATE_TO_HUMAN\",\"target\":\"human\"," \
    "\"reason\":\"profile ban\",\"rule\":\"ban\",\"escalation_id\":"         \
    "\"esc_01jabcdefghjkmnpqrstvwxyz0\"}"

TEST(an_alert_has_what_it_is_about_and_what_to_do)
{
    struct made m;

    make(&m, POST_SLACK, "gate.escalated", DECISION, 1, "{\"from\":\"Jay\"}",
         0);
    check_slack(&m);
    CHECK(has(&m, "A person must decide: Jay \xe2\x86\x92 Z"));
    CHECK(has(&m, "profile ban") && has(&m, "Rule: ban"));
    CHECK(has(&m, "```{\\\"from\\\":\\\"Jay\\\"}```"));
    CHECK(has(&m, "`signalbox escalations show "
                  "esc_01jabcdefghjkmnpqrstvwxyz0`"));
    made_fini(&m);
    make(&m, POST_DISCORD, "gate.escalated", DECISION, 1, "{\"from\":1}", 0);
    check_discord(&m);
    CHECK(has(&m, "profile ban") && has(&m, "```\\n{\\\"from\\\":1}\\n```"));
    CHECK(has(&m, "signalbox escalations show esc_01jabcdefghjkmnpqrstvwxyz0"));
    made_fini(&m);
    make(&m, POST_JSON, "gate.escalated", DECISION, 1, "{\"from\":1}", 3);
    CHECK(has(&m, "\"channel\":\"#alerts\",\"missed\":3"));
    CHECK(has(&m, "\"data\":" DECISION ",\"context\":\"{\\\"from\\\":1}\""));
    made_fini(&m);
}

TEST(an_id_that_is_none_is_not_shown_as_one)
{
    struct made m;

    make(&m, POST_SLACK, "gate.escalated",
         "{\"escalation_id\":\"esc_1`; rm -rf\"}", 1, "", 0);
    CHECK(!has(&m, "escalations show"));
    made_fini(&m);
}

TEST(nobody_is_mentioned_and_no_markup_is_made)
{
    static const char evil[] =
        "{\"original_from\":\"<!channel> @everyone <@U1>\",\"original_to\":"
        "\"*b* `c` [x](http://y) ~~s~~\",\"reason\":\"<!everyone> & @here "
        "<@&12> ||s|| \\u202etxt ```\"}";
    struct made m;

    make(&m, POST_SLACK, "gate.escalated", evil, 1, "``` <!here> @everyone", 0);
    check_slack(&m);
    CHECK(!has(&m, "<"));
    CHECK(has(&m, "&lt;!channel&gt;") && has(&m, " &amp; "));
    CHECK(has(&m, "```\xcb\x8b\xcb\x8b\xcb\x8b &lt;!here&gt;"));
    CHECK(!has(&m, "\xe2\x80\xae"));
    made_fini(&m);
    make(&m, POST_DISCORD, "gate.escalated", evil, 1, "``` @everyone <@1>", 0);
    check_discord(&m);
    CHECK(!has(&m, "@everyone") && !has(&m, "@here") && !has(&m, "<@&"));
    CHECK(has(&m, "\\\\*b\\\\*") && has(&m, "\\\\[x\\\\]"));
    CHECK(has(&m, "```\\n\xcb\x8b\xcb\x8b\xcb\x8b @\xe2\x80\x8b"));
    made_fini(&m);
}

/* Every length around the limits, of letters of every kind. */
TEST(nothing_is_longer_than_it_may_be)
{
    static const char *const letters[] = {
        "x", "&", "<", "@", "*", "`", "\xc3\xa4", "\xf0\x9f\x98\x80"};
    static char data[8192], context[6000];

    for (size_t l = 0; l < sizeof(letters) / sizeof(*letters); l++)
        for (size_t n = 1; n < 900; n = n * 3 + 1) {
            size_t at = 0, step = strlen(letters[l]);
            char text[3700];
            struct made m;

            for (size_t i = 0; i < n; i++, at += step)
                memcpy(text + at, letters[l], step + 1);
            snprintf(data, sizeof(data),
                     "{\"original_from\":\"%.900s\",\"reason\":\"%s\","
                     "\"rule\":\"%.900s\"}",
                     n < 200 ? text : "x", text, n < 200 ? text : "x");
            for (at = 0; at + step + 1 < sizeof(context); at += step)
                memcpy(context + at, letters[l], step + 1);
            for (size_t k = 1; k <= CHANNEL_BATCH; k += 9) {
                make(&m, POST_SLACK, "gate.escalated", data, k, context, 1);
                check_slack(&m);
                made_fini(&m);
                make(&m, POST_DISCORD, "gate.escalated", data, k, context, 1);
                check_discord(&m);
                made_fini(&m);
            }
        }
}

TEST(what_was_not_posted_is_said_also_alone)
{
    struct made m;

    for (int form = POST_SLACK; form <= POST_DISCORD; form++) {
        make(&m, (enum post_form)form, "", "", 0, "", 12);
        CHECK(has(&m, "12 entries of the feed were not posted"));
        if (form == POST_SLACK)
            check_slack(&m);
        else
            check_discord(&m);
        made_fini(&m);
    }
}

TEST(who_takes_what)
{
    static const struct {
        const char *type;
        bool feed, alerts;
    } rows[] = {
        {"gate.routed", true, false},
        {"gate.held", true, false},
        {"gate.paused", true, false},
        {"agent.out", false, true},
        {"gate.escalated", true, true},
        {"gate.dropped", true, false},
        {"gate.released", true, false},
        {"gate.expired", true, true},
        {"escalation.reminded", false, true},
        {"escalation.approved", false, true},
        {"task.late", false, true},
        {"agent.restart_failed", false, true},
        {"budget.warning", false, true},
        {"task.completed", false, false},
        {"", false, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK(channel_takes(str_of(rows[i].type), true, false) == rows[i].feed);
        CHECK(channel_takes(str_of(rows[i].type), false, true) ==
              rows[i].alerts);
    }
}
