/* What a file of rules says beside rules: agents, channels, how people are
 * asked, what figures should be, and limits. */
#include "gate/reader.h"

#include <stdlib.h>

#include "base/url.h"

enum {
    AGENTS_MAX = 10 * 1000,
    CHANNELS_MAX = 32,
    CHANNEL_NAME_MAX = 80,
    PATH_BYTES_MAX = 4000,
};

/* agents */

static void read_attempts(struct reader *rd, const struct json *v, void *into)
{
    read_int(rd, v, 0, 100, &((struct gate_revival *)into)->attempts);
}

static void read_pause(struct reader *rd, const struct json *v, void *into)
{
    read_duration(rd, v, ZERO_IS_WRONG,
                  &((struct gate_revival *)into)->pause_ms);
}

static void read_restart(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"attempts", read_attempts, NULL},
        {"pause", read_pause, NULL},
    };

    if (!is_object(rd, v, "restart"))
        return;
    rd->what = "restart";
    READ_FIELDS(rd, v, &((struct agent_line *)into)->revival, fields);
    rd->what = "an agent";
}

static void read_takeover(struct reader *rd, const struct json *v, void *into)
{
    static const struct str names[] = {STR("offer"), STR("auto")};
    size_t i;

    if (read_choice(rd, v, names, 2, &i))
        ((struct agent_line *)into)->revival.is_auto = i == 1;
}

static void read_owner(struct reader *rd, const struct json *v, void *into)
{
    struct str *owner = &((struct agent_line *)into)->revival.owner;

    if (v->type != JSON_STR || !principal_name_is_valid(v->s))
        problem_add(rd, v->at,
                    "owner must be the name of a user, not %s; that user may "
                    "register the agent, beside admins",
                    show_value(v).text);
    else
        (void)keep_str(rd, v->s, owner);
}

/* Once all are declared. */
static void read_backup(struct reader *rd, const struct json *v,
                        struct agent_line *line)
{
    const struct json *backup = json_get(v, STR("backup"));
    const struct json *takeover = json_get(v, STR("takeover"));

    if (backup)
        read_agent(rd, backup, &line->revival.backup);
    if (line->revival.backup.n &&
        str_eq_nocase(line->revival.backup, line->name))
        problem_add(rd, backup->at,
                    "%s cannot stand in for itself; name "
                    "another agent as its backup",
                    show(line->name).text);
    if (takeover && !backup)
        problem_add(rd, key_at(rd, takeover),
                    "\"takeover\" means nothing without \"backup\": name who "
                    "takes over");
}

static const struct field agent_fields[] = {
    {"restart", read_restart, NULL},
    {"backup", NULL, NULL},
    {"takeover", read_takeover, NULL},
    {"owner", read_owner, NULL},
};

static void declare(struct reader *rd, const struct json *v,
                    struct agent_line *line)
{
    char *folded = arena_strdup(rd->arena, v->key);

    if (!folded || !keep_str(rd, v->key, &line->name)) {
        rd->is_out_of_memory = true;
        return;
    }
    line->folded = str_lowered(v->key, folded, v->key.n);
    line->at = v->at;
    line->revival = gate_revival_of(gate_rules_none(), line->name);
    if (!agent_name_is_valid(v->key)) {
        problem_add(rd, key_at(rd, v),
                    "%s is no name of an agent: letters, digits, \".\", \"_\" "
                    "and \"-\", beginning with a letter or digit, 128 at most",
                    show(v->key).text);
    } else if (map_get(&rd->agents, line->folded)) {
        problem_add(rd, key_at(rd, v),
                    "%s is declared twice; names count whatever their case",
                    show(v->key).text);
    } else if (map_put(&rd->agents, line->folded, line) != OK) {
        rd->is_out_of_memory = true;
    }
}

static int by_name(const void *a, const void *b)
{
    return str_cmp_nocase(((const struct gate_revival *)a)->agent,
                          ((const struct gate_revival *)b)->agent);
}

static void keep_agents(struct reader *rd, const struct agent_line *lines,
                        size_t n)
{
    struct gate_revival *revivals = reader_array(rd, n, sizeof(*revivals));
    struct str *names = reader_array(rd, n, sizeof(*names));

    if (!revivals || !names)
        return;
    for (size_t i = 0; i < n; i++)
        revivals[i] = lines[i].revival;
    qsort(revivals, n, sizeof(*revivals), by_name);
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
        problem_add(rd, v->at, "there are %zu agents, and %d may be", v->kids.n,
                    AGENTS_MAX);
        return;
    }
    lines = reader_array(rd, v->kids.n, sizeof(*lines));
    if (!lines)
        return;
    JSON_EACH(kid, v)
    declare(rd, kid, &lines[n++]);
    n = 0;
    JSON_EACH(kid, v)
    {
        struct agent_line *line = &lines[n++];

        rd->what = "an agent";
        if (!is_object(rd, kid, "an agent"))
            continue;
        READ_FIELDS(rd, kid, line, agent_fields);
        read_backup(rd, kid, line);
    }
    keep_agents(rd, lines, n);
}

/* channels */

/* Lines in the middle of the store would be its end. */
static void read_file_path(struct reader *rd, const struct json *v, void *into)
{
    struct str *path = &((struct gate_channel *)into)->file, rest, name = {0};

    read_text(rd, v, PATH_BYTES_MAX, path);
    for (rest = *path; rest.n;)
        name = str_cut(&rest, '/');
    if (str_starts(name, STR("signalbox.db")))
        problem_add(rd, v->at,
                    "%s is a file of the server's own store; take another name",
                    show(*path).text);
}

static struct str plain_path(struct str path)
{
    while (str_starts(path, STR("./")))
        path = str_sub(path, 2, path.n);
    return path;
}

/* Two that write to one file would tear each other's lines and turn it over
 * twice. */
static void look_for_shared(struct reader *rd, const struct json *v,
                            const struct gate_channel *list, size_t n)
{
    for (size_t i = 0; i < n && list[n].file.n; i++)
        if (str_eq(plain_path(list[i].file), plain_path(list[n].file)))
            problem_add(rd, key_at(rd, v),
                        "%s would write to the file of %s; each has its own",
                        show(list[n].name).text, show(list[i].name).text);
}

static void read_rotate(struct reader *rd, const struct json *v, void *into)
{
    read_int(rd, v, 4096, INT64_C(1) << 40,
             &((struct gate_channel *)into)->rotate_bytes);
}

static void read_keep(struct reader *rd, const struct json *v, void *into)
{
    read_int(rd, v, 0, 1000, &((struct gate_channel *)into)->keep);
}

static void read_file(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"path", read_file_path, "where the lines go, like \"feed.jsonl\""},
        {"rotate_bytes", read_rotate, NULL},
        {"keep", read_keep, NULL},
    };

    if (v->type == JSON_STR) {
        read_file_path(rd, v, into);
        return;
    }
    if (!is_object(rd, v, "file"))
        return;
    rd->what = "file";
    READ_FIELDS(rd, v, into, fields);
    rd->what = "a channel";
}

static void read_url(struct reader *rd, const struct json *v, void *into)
{
    struct gate_channel *c = into;
    struct why why;
    struct url url;

    if (v->type != JSON_STR || !url_is_http(v->s))
        problem_add(rd, v->at,
                    "url must begin with https:// or http://, not %s",
                    v->type == JSON_STR ? "as it does" : show_value(v).text);
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

    if (read_choice(rd, v, names, 3, &i))
        ((struct gate_channel *)into)->form = (enum channel_form)i;
}

static void read_webhook(struct reader *rd, const struct json *v, void *into)
{
    static const struct field fields[] = {
        {"url", read_url, "where posts go"},
        {"form", read_form, NULL},
    };

    if (!is_object(rd, v, "webhook"))
        return;
    rd->what = "webhook";
    READ_FIELDS(rd, v, into, fields);
    rd->what = "a channel";
}

static void read_takes(struct reader *rd, const struct json *v, void *into)
{
    static const struct str names[] = {STR("decisions"), STR("alerts")};
    struct gate_channel *c = into;
    uint8_t bits = 0;

    read_bits(rd, v, names, 2, &bits);
    c->takes_feed = bits & 1;
    c->takes_alerts = bits & 2;
}

static void read_channel(struct reader *rd, const struct json *v,
                         struct gate_channel *c)
{
    static const struct field fields[] = {
        {"takes", read_takes, NULL},
        {"file", read_file, NULL},
        {"webhook", read_webhook, NULL},
    };

    *c = (struct gate_channel){
        .takes_feed = str_eq(v->key, STR("#agent-feed")),
        .takes_alerts = str_eq(v->key, STR("#alerts")),
        .rotate_bytes = 16 * 1024 * 1024,
        .keep = 10,
    };
    if (v->key.n < 2 || v->key.n > CHANNEL_NAME_MAX || v->key.p[0] != '#' ||
        str_has_any_control(v->key))
        problem_add(rd, key_at(rd, v),
                    "%s is no name of a channel: it begins with \"#\", like "
                    "\"#alerts\"",
                    show(v->key).text);
    (void)keep_str(rd, v->key, &c->name);
    rd->what = "a channel";
    if (!is_object(rd, v, "a channel"))
        return;
    READ_FIELDS(rd, v, c, fields);
    if (!c->takes_feed && !c->takes_alerts && !json_get(v, STR("takes")))
        problem_add(rd, v->at,
                    "%s takes nothing; say \"takes\": [\"decisions\"] or "
                    "[\"alerts\"]",
                    show(v->key).text);
}

void read_channels(struct reader *rd, const struct json *v)
{
    struct gate_channel *list;
    size_t n = 0;

    if (!is_object(rd, v, "channels"))
        return;
    if (v->kids.n > CHANNELS_MAX) {
        problem_add(rd, v->at, "there are %zu channels, and %d may be",
                    v->kids.n, CHANNELS_MAX);
        return;
    }
    list = reader_array(rd, v->kids.n, sizeof(*list));
    if (!list)
        return;
    JSON_EACH(kid, v)
    {
        read_channel(rd, kid, &list[n]);
        look_for_shared(rd, kid, list, n);
        if (list[n].takes_feed && !rd->rules->feed_channel.n)
            rd->rules->feed_channel = list[n].name;
        n++;
    }
    rd->rules->about.channels = list;
    rd->rules->about.n_channels = n;
}

/* holds, timestamps, people, targets: a field each for what struct gate_about
 * has. */

#define DURATION_FIELD(fn, part, member, zero)                                 \
    static void fn(struct reader *rd, const struct json *v, void *into)        \
    {                                                                          \
        read_duration(rd, v, zero, &((struct gate_about *)into)->part.member); \
    }
#define INT_FIELD(fn, part, member, min, max)                                 \
    static void fn(struct reader *rd, const struct json *v, void *into)       \
    {                                                                         \
        read_int(rd, v, min, max, &((struct gate_about *)into)->part.member); \
    }

INT_FIELD(read_most, limits, most, 1, 1000 * 1000)
INT_FIELD(read_most_each, limits, most_per_agent, 1, 1000 * 1000)
DURATION_FIELD(read_expire, limits, expire_ms, ZERO_IS_WRONG)
DURATION_FIELD(read_future, limits, future_ms, ZERO_IS_WRONG)
DURATION_FIELD(read_age, limits, age_ms, ZERO_IS_WRONG)
DURATION_FIELD(read_stale, limits, stale_ms, ZERO_IS_WRONG)
DURATION_FIELD(read_remind, people, remind_ms, ZERO_IS_NEVER)
INT_FIELD(read_reminders, people, reminders, 0, 1000)
DURATION_FIELD(read_unanswered, people, expire_ms, ZERO_IS_NEVER)
INT_FIELD(read_per_hour, targets, routed_per_hour, 0, 1000 * 1000 * 1000)
DURATION_FIELD(read_hold_time, targets, hold_ms, ZERO_IS_WRONG)
INT_FIELD(read_per_day, targets, escalations_per_day, 0, 1000 * 1000 * 1000)
INT_FIELD(read_lost, targets, lost, 0, 1000 * 1000 * 1000)

static void read_hold_expiry(struct reader *rd, const struct json *v,
                             void *into)
{
    read_expiry(rd, v, &((struct gate_about *)into)->limits.on_expiry);
}

static void read_people_expiry(struct reader *rd, const struct json *v,
                               void *into)
{
    static const struct str names[] = {
        [PEOPLE_REJECT] = STR("reject"),
        [PEOPLE_APPROVE] = STR("approve"),
        [PEOPLE_REDIRECT] = STR("redirect"),
    };
    size_t i;

    if (read_choice(rd, v, names, 3, &i))
        ((struct gate_about *)into)->people.on_expiry = (enum people_expiry)i;
}

static const struct field hold_fields[] = {
    {"most", read_most, NULL},
    {"most_per_agent", read_most_each, NULL},
    {"expire_after", read_expire, NULL},
    {"on_expiry", read_hold_expiry, NULL},
};

static const struct field timestamp_fields[] = {
    {"future", read_future, NULL},
    {"age", read_age, NULL},
    {"stale", read_stale, NULL},
};

static const struct field people_fields[] = {
    {"remind", read_remind, NULL},
    {"reminders", read_reminders, NULL},
    {"expire_after", read_unanswered, NULL},
    {"on_expiry", read_people_expiry, NULL},
};

static const struct field target_fields[] = {
    {"routed_per_hour", read_per_hour, NULL},
    {"hold_time", read_hold_time, NULL},
    {"escalations_per_day", read_per_day, NULL},
    {"lost", read_lost, NULL},
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

        rd->what = parts[i].name;
        if (v && is_object(rd, v, parts[i].name))
            read_fields(rd, v, &rd->rules->about, parts[i].fields, parts[i].n);
    }
}
