/* The settings of a rules file besides its rules: agents, channels,
 * escalations, key figures and limits. */
#include "gate/rules/rules_reader.h"

#include <stdlib.h>

#include "base/url.h"

enum {
    AGENTS_MAX = 10 * 1000,
    CHANNELS_MAX = 32,
    CHANNEL_NAME_MAX = 80,
    PATH_BYTES_MAX = 4000,
};

static void read_restart(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"attempts", FIELD_INT,
         .offset = offsetof(struct gate_revival, attempts), .max = 100},
        {"pause", FIELD_DURATION,
         .offset = offsetof(struct gate_revival, pause_ms)},
    };

    READ_OBJECT(rd, v, &((struct agent_line *)into)->revival, "restart",
                fields);
}

static void read_takeover(struct reader *rd, const struct json *v, void *into)
{
    static const struct str names[] = {STR("offer"), STR("auto")};
    size_t i;

    if (read_choice_value(rd, v, names, 2, &i))
        ((struct agent_line *)into)->revival.is_auto = i == 1;
}

static void read_owner(struct reader *rd, const struct json *v, void *into)
{
    struct str *owner = &((struct agent_line *)into)->revival.owner;

    if (v->type != JSON_STR || !principal_name_is_valid(v->s))
        problem_add(rd, v->at,
                    "owner must be the name of a user, not %s; that user may "
                    "register the agent, beside admins",
                    quote_value(v).text);
    else
        (void)keep_str(rd, v->s, owner);
}

/* A backup may be any declared agent, so it is read after all declarations. */
static void read_backup_agent(struct reader *rd, const struct json *v,
                              struct agent_line *line)
{
    const struct json *backup = json_get(v, STR("backup"));
    const struct json *takeover = json_get(v, STR("takeover"));

    if (backup)
        read_agent_value(rd, backup, &line->revival.backup);
    if (line->revival.backup.n &&
        str_eq_nocase(line->revival.backup, line->name))
        problem_add(rd, backup->at,
                    "%s cannot stand in for itself; name "
                    "another agent as its backup",
                    quote_text(line->name).text);
    if (takeover && !backup)
        problem_add(rd, member_offset(rd, takeover),
                    "\"takeover\" has no effect without \"backup\": name the "
                    "agent that takes over");
}

static const struct field agent_fields[] = {
    {"restart", .read = read_restart},
    {"backup", .read = NULL},
    {"takeover", .read = read_takeover},
    {"owner", .read = read_owner},
};

static void declare_agent(struct reader *rd, const struct json *v,
                          struct agent_line *line)
{
    char *folded = arena_strdup(rd->arena, v->key);

    if (!folded || !keep_str(rd, v->key, &line->name)) {
        rd->is_out_of_memory = true;
        return;
    }
    line->folded = str_lowered(v->key, folded, v->key.n);
    line->revival = gate_revival_of(gate_rules_none(), line->name);
    if (!agent_name_is_valid(v->key)) {
        problem_add(rd, member_offset(rd, v),
                    "%s is not a valid agent name: letters, digits, \".\", "
                    "\"_\" and \"-\", beginning with a letter or digit, 128 at "
                    "most",
                    quote_text(v->key).text);
    } else if (map_get(&rd->agents, line->folded)) {
        problem_add(rd, member_offset(rd, v),
                    "%s is declared twice; case does not matter in names",
                    quote_text(v->key).text);
    } else if (map_put(&rd->agents, line->folded, line) != OK) {
        rd->is_out_of_memory = true;
    }
}

static int compare_revivals(const void *a, const void *b)
{
    return str_cmp_nocase(((const struct gate_revival *)a)->agent,
                          ((const struct gate_revival *)b)->agent);
}

static void keep_revivals(struct reader *rd, const struct agent_line *lines,
                          size_t n)
{
    struct gate_revival *revivals = reader_array(rd, n, sizeof(*revivals));
    struct str *names = reader_array(rd, n, sizeof(*names));

    if (!revivals || !names)
        return;
    for (size_t i = 0; i < n; i++)
        revivals[i] = lines[i].revival;
    qsort(revivals, n, sizeof(*revivals), compare_revivals);
    for (size_t i = 0; i < n; i++)
        names[i] = revivals[i].agent;
    rd->rules->revivals = revivals;
    rd->rules->n_revivals = n;
    rd->rules->about.agents = (struct strs){names, n};
}

void read_agents_section(struct reader *rd, const struct json *v)
{
    struct agent_line *lines;
    size_t n = 0;

    if (!is_object(rd, v, "agents"))
        return;
    if (v->kids.n > AGENTS_MAX) {
        problem_add(rd, v->at, "%zu agents are more than the limit of %d",
                    v->kids.n, AGENTS_MAX);
        return;
    }
    lines = reader_array(rd, v->kids.n, sizeof(*lines));
    if (!lines)
        return;
    JSON_EACH(kid, v)
    declare_agent(rd, kid, &lines[n++]);
    n = 0;
    JSON_EACH(kid, v)
    {
        struct agent_line *line = &lines[n++];

        rd->what = "an agent";
        if (!is_object(rd, kid, "an agent"))
            continue;
        READ_FIELDS(rd, kid, line, agent_fields);
        read_backup_agent(rd, kid, line);
    }
    keep_revivals(rd, lines, n);
}

/* Lines appended to the server's database would destroy it. */
static void read_file_path(struct reader *rd, const struct json *v, void *into)
{
    struct str *path = &((struct gate_channel *)into)->file, rest, name = {0};

    read_text_value(rd, v, PATH_BYTES_MAX, path);
    for (rest = *path; rest.n;)
        name = str_cut(&rest, '/');
    if (str_starts(name, STR("signalbox.db")))
        problem_add(rd, v->at,
                    "%s is a file of the server's own store; take another name",
                    quote_text(*path).text);
}

static struct str strip_dot_slash(struct str path)
{
    while (str_starts(path, STR("./")))
        path = str_sub(path, 2, path.n);
    return path;
}

/* Two channels that write to one file would tear each other's lines and rotate
 * the file twice. */
static void check_shared_file(struct reader *rd, const struct json *v,
                              const struct gate_channel *list, size_t n)
{
    for (size_t i = 0; i < n && list[n].file.n; i++)
        if (str_eq(strip_dot_slash(list[i].file),
                   strip_dot_slash(list[n].file)))
            problem_add(rd, member_offset(rd, v),
                        "%s would write to the file of %s; use another file",
                        quote_text(list[n].name).text,
                        quote_text(list[i].name).text);
}

static void read_channel_file(struct reader *rd, const struct json *v,
                              void *into)
{
    static const struct field fields[] = {
        {"path", .read = read_file_path,
         .needed = "where the lines go, like \"feed.jsonl\""},
        {"rotate_bytes", FIELD_INT,
         .offset = offsetof(struct gate_channel, rotate_bytes), .min = 4096,
         .max = INT64_C(1) << 40},
        {"keep", FIELD_INT, .offset = offsetof(struct gate_channel, keep),
         .max = 1000},
    };

    if (v->type == JSON_STR)
        read_file_path(rd, v, into);
    else
        READ_OBJECT(rd, v, into, "file", fields);
}

static void read_webhook_url(struct reader *rd, const struct json *v,
                             void *into)
{
    struct gate_channel *c = into;
    struct why why;
    struct url url;

    if (v->type != JSON_STR || !url_is_http(v->s))
        problem_add(rd, v->at,
                    "url must begin with https:// or http://, not %s",
                    v->type == JSON_STR ? "as it does" : quote_value(v).text);
    else if (url_read(v->s, &url, &why) != OK)
        problem_add(rd, v->at, "url: %s", why.text);
    else
        (void)keep_str(rd, v->s, &c->webhook);
}

static void read_form(struct reader *rd, const struct json *v, void *into)
{
    static const struct str names[] = {
        [CHANNEL_JSON] = STR("json"),
        [CHANNEL_SLACK] = STR("slack"),
        [CHANNEL_DISCORD] = STR("discord"),
    };
    size_t i;

    if (read_choice_value(rd, v, names, 3, &i))
        ((struct gate_channel *)into)->form = (enum channel_form)i;
}

static void read_webhook(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"url", .read = read_webhook_url, .needed = "where posts go"},
        {"form", .read = read_form},
    };

    READ_OBJECT(rd, v, into, "webhook", fields);
}

static void read_takes(struct reader *rd, const struct json *v, void *into)
{
    static const struct str names[] = {STR("decisions"), STR("alerts")};
    struct gate_channel *c = into;
    uint8_t bits = 0;

    read_bits_value(rd, v, names, 2, &bits);
    c->takes_feed = bits & 1;
    c->takes_alerts = bits & 2;
}

static void read_channel(struct reader *rd, const struct json *v,
                         struct gate_channel *c)
{
    static const struct field fields[] = {
        {"takes", .read = read_takes},
        {"file", .read = read_channel_file},
        {"webhook", .read = read_webhook},
    };

    *c = (struct gate_channel){
        .takes_feed = str_eq(v->key, STR("#agent-feed")),
        .takes_alerts = str_eq(v->key, STR("#alerts")),
        .rotate_bytes = 16 * 1024 * 1024,
        .keep = 10,
    };
    if (v->key.n < 2 || v->key.n > CHANNEL_NAME_MAX || v->key.p[0] != '#' ||
        str_has_any_control(v->key))
        problem_add(rd, member_offset(rd, v),
                    "%s is not a valid channel name: it begins with \"#\", "
                    "like \"#alerts\"",
                    quote_text(v->key).text);
    (void)keep_str(rd, v->key, &c->name);
    rd->what = "a channel";
    if (!is_object(rd, v, "a channel"))
        return;
    READ_FIELDS(rd, v, c, fields);
    if (!c->takes_feed && !c->takes_alerts && !json_get(v, STR("takes")))
        problem_add(rd, v->at,
                    "%s takes nothing; write \"takes\": [\"decisions\"] or "
                    "[\"alerts\"]",
                    quote_text(v->key).text);
}

void read_channels(struct reader *rd, const struct json *v)
{
    struct gate_channel *list;
    size_t n = 0;

    if (!is_object(rd, v, "channels"))
        return;
    if (v->kids.n > CHANNELS_MAX) {
        problem_add(rd, v->at, "%zu channels are more than the limit of %d",
                    v->kids.n, CHANNELS_MAX);
        return;
    }
    list = reader_array(rd, v->kids.n, sizeof(*list));
    if (!list)
        return;
    JSON_EACH(kid, v)
    {
        read_channel(rd, kid, &list[n]);
        check_shared_file(rd, kid, list, n);
        if (list[n].takes_feed && !rd->rules->feed_channel.n)
            rd->rules->feed_channel = list[n].name;
        n++;
    }
    rd->rules->about.channels = list;
    rd->rules->about.n_channels = n;
}

/* holds, timestamps, people, targets: a field for each member of struct
 * gate_about. */

static void read_people_expiry(struct reader *rd, const struct json *v,
                               void *into)
{
    static const struct str names[] = {
        [PEOPLE_REJECT] = STR("reject"),
        [PEOPLE_APPROVE] = STR("approve"),
        [PEOPLE_REDIRECT] = STR("redirect"),
    };
    size_t i;

    if (read_choice_value(rd, v, names, 3, &i))
        ((struct gate_about *)into)->people.on_expiry = (enum people_expiry)i;
}

enum { HOLDS_MAX = 1000 * 1000, TARGET_MAX = 1000 * 1000 * 1000 };

#define IN_ABOUT(member) .offset = offsetof(struct gate_about, member)

static const struct field hold_fields[] = {
    {"most", FIELD_INT, IN_ABOUT(limits.most), 1, HOLDS_MAX},
    {"most_per_agent", FIELD_INT, IN_ABOUT(limits.most_per_agent), 1,
     HOLDS_MAX},
    {"expire_after", FIELD_DURATION, IN_ABOUT(limits.expire_ms)},
    {"on_expiry", FIELD_EXPIRY, IN_ABOUT(limits.on_expiry)},
};

static const struct field timestamp_fields[] = {
    {"future", FIELD_DURATION, IN_ABOUT(limits.future_ms)},
    {"age", FIELD_DURATION, IN_ABOUT(limits.age_ms)},
    {"stale", FIELD_DURATION, IN_ABOUT(limits.stale_ms)},
};

static const struct field people_fields[] = {
    {"remind", FIELD_DURATION_OR_NEVER, IN_ABOUT(people.remind_ms)},
    {"reminders", FIELD_INT, IN_ABOUT(people.reminders), 0, 1000},
    {"expire_after", FIELD_DURATION_OR_NEVER, IN_ABOUT(people.expire_ms)},
    {"on_expiry", .read = read_people_expiry},
};

static const struct field target_fields[] = {
    {"routed_per_hour", FIELD_INT, IN_ABOUT(targets.routed_per_hour), 0,
     TARGET_MAX},
    {"hold_time", FIELD_DURATION, IN_ABOUT(targets.hold_ms)},
    {"escalations_per_day", FIELD_INT, IN_ABOUT(targets.escalations_per_day), 0,
     TARGET_MAX},
    {"lost", FIELD_INT, IN_ABOUT(targets.lost), 0, TARGET_MAX},
};

void read_about(struct reader *rd, const struct json *root)
{
    static const struct {
        const char *name;
        const struct field *fields;
        size_t n;
    } parts[] = {
        {"holds", hold_fields, 4},
        {"timestamps", timestamp_fields, 3},
        {"people", people_fields, 4},
        {"targets", target_fields, 4},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const struct json *v = json_get(root, str_of(parts[i].name));

        if (v)
            read_object(rd, v, &rd->rules->about, parts[i].name,
                        parts[i].fields, parts[i].n);
    }
}
