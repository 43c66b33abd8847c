/* agents: list them, show one, pause, restart or remove one, and review its
 * card. register.c registers them. */
#include "cli/agents.h"
#include "cli/list.h"
#include "cli/price.h"

enum { ACT_MS = 90 * 1000 }; /* a restart command has a minute */

const struct arg_option cli_agents_options[] = {
    {"tag", "TAG", "only agents with this tag on a skill", false},
    {"org", "ORG", "only agents of this org", false},
    {"creator", "NAME", "only agents that this user created", false},
    {"kind", "KIND", "only this kind: platform, managed, self-hosted", false},
    {"visibility", "WHO", "only this visibility: public, shared, private",
     false},
    {"state", "STATE", "only this state: active, idle, busy, slow, error, dead",
     false},
    {"review", "STATE",
     "only this review state: waiting, rejected, hidden, reported", false},
    {"revision", "N", "the revision that you have read", false},
    {"reason", "TEXT", "the reason", false},
    {"limit", "N", "list at most N agents (default 1000)", false},
    {"dry-run", NULL, "check the cards on this machine, without a server",
     false},
    {"if-new", NULL, "do not change agents that exist already", false},
    CLIENT_OPTIONS,
    {0},
};

/* The list. */

static const char *state_colour(struct str state)
{
    switch ((int)agent_state_of(state)) {
    case AGENT_ACTIVE: return "\033[32m";
    case AGENT_BUSY:
    case AGENT_SLOW: return "\033[33m";
    case AGENT_ERROR:
    case AGENT_DEAD: return "\033[31m";
    default: return "";
    }
}

static const char none[] =
    "There are no agents yet. To add one, write its card into a file and\n"
    "register it:\n"
    "  { \"name\": \"echo\", \"description\": \"Says what it is told\", "
    "\"url\": \"echo:\" }\n"
    "  signalbox agents register echo.json\n";

static const struct grid_column columns[] = {
    {"NAME", "name", NULL, KEPT, NULL},
    {"SKILLS", "skills", as_length, KEPT, NULL},
    {"VISIBILITY", "visibility", NULL, KEPT, NULL},
    {"STATE", "state", NULL, KEPT, state_colour},
    {"DESCRIPTION", "[({state_reason}) ]{description}", NULL, KEPT, NULL},
    {0},
};

static const struct listing agents = {
    .path = "/api/agents",
    .columns = columns,
    .filters = "tag org creator kind visibility state review",
    .preset = 1000,
    .none = none,
    .none_matches = "No agent matches.\n",
    .cuts_first = true,
};

static void show_review(struct cli *c, const struct json *card)
{
    static const struct field fields[] = {
        {"state", "review.state", NULL},
        {"by", "review.by", NULL},
        {"reason", "review.reason", NULL},
        {"since", "review.at_ms", as_ago},
        {0},
    };
    const struct json *review = json_get(card, STR("review"));

    if (cli_field_int(card, STR("reports")))
        cli_say(c, STR(""), card,
                "\nReported by users: {reports}. signalbox agents reports "
                "{name}\n");
    if (!cli_field(review, STR("state")).n)
        return;
    cli_title(c, "Review");
    cli_fields(c, card, fields);
    JSON_EACH(field, cli_items(review, "changed"))
    {
        struct buf was, will;

        buf_init(&was, AGENT_CARD_MAX);
        buf_init(&will, AGENT_CARD_MAX);
        cli_flat(&was, json_get(card, field->s));
        cli_flat(&will, json_get(json_get(review, STR("card")), field->s));
        buf_addf(&c->out, "  %.*s\n    is      ",
                 STR_ARG(cli_tamed(c, field->s)));
        cli_wrapped(c, 12, 12, cli_tamed(c, was.n ? buf_str(&was) : STR("-")));
        buf_add_str(&c->out, STR("    wanted  "));
        cli_wrapped(c, 12, 12,
                    cli_tamed(c, will.n ? buf_str(&will) : STR("-")));
        buf_fini(&was);
        buf_fini(&will);
    }
    cli_say(c, STR(""), card,
            "To approve it, an admin runs: signalbox agents approve {name} "
            "--revision {revision}\n");
}

/* Skills. */

static void card_show_skill(struct cli *c, const struct json *s)
{
    struct cli_room id_room, name_room;
    struct str id = cli_tame(&id_room, cli_field(s, STR("id")));
    struct str name = cli_tame(&name_room, cli_field(s, STR("name")));
    const struct json *price = cli_member(s, "pricing.amount_micros");
    const struct json *tags = cli_items(s, "tags");
    struct cli_room room;
    struct buf line;
    size_t n = 0;

    buf_add_str(&c->out, STR("  "));
    cli_coloured(c, GREEN, id);
    if (name.n && !str_eq(name, id))
        buf_addf(&c->out, "  %.*s", STR_ARG(name));
    if (price)
        buf_addf(&c->out, "  (price %s%s)",
                 price_write(json_int_or(price, 0)).text,
                 json_int_or(price, 0) > 0 ? " per call" : "");
    buf_add_char(&c->out, '\n');
    cli_indented_text(c, 4, cli_field(s, STR("description")));
    if (tags->kids.n) {
        buf_init(&line, 64 * 1024);
        cli_flat(&line, tags);
        buf_add_str(&c->out, STR("    tags        "));
        cli_wrapped(c, 16, 16, cli_tame(&room, buf_str(&line)));
        buf_fini(&line);
    }
    JSON_EACH(e, cli_items(s, "examples"))
    {
        buf_addf(&c->out, "    %-11s ", n++ ? "" : "examples");
        cli_wrapped(c, 16, 16, cli_tame(&room, json_str_or(e, STR(""))));
    }
}

static void add_routing(struct cli *c, const struct json *card)
{
    static const struct field keywords[] = {
        {"keywords", "routing.keywords", NULL},
        {0},
    };
    const struct json *routing = json_get(card, STR("routing"));
    struct str prompt = cli_field(routing, STR("system_prompt"));
    bool is_routable = json_bool_or(json_get(routing, STR("routable")), true);

    if (!prompt.n && !cli_items(routing, "keywords")->kids.n && is_routable)
        return;
    cli_title(c, "Routing");
    if (!is_routable)
        cli_named(c, "routable", STR("no, only by name"));
    cli_fields(c, card, keywords);
    if (prompt.n) {
        buf_add_str(&c->out, STR("  system prompt\n"));
        cli_indented_text(c, 4, prompt);
    }
}

static void as_card_price(const struct cell *cell, struct buf *out)
{
    if (cell->v)
        buf_add_str(out, str_of(price_write(json_int_or(cell->v, 0)).text));
}

static const struct field facts[] = {
    {"title", "title", NULL},
    {"url", "url", NULL},
    {"version", "version", NULL},
    {"visibility", "visibility", NULL},
    {"created by", "creator_id", NULL},
    {"org", "org", NULL},
    {"kind", "kind", NULL},
    {"provider", "provider", NULL},
    {"capabilities", "capabilities", NULL},
    {"authentication", "authentication", NULL},
    {"wake", "wake", NULL},
    {"restart", "restart", NULL},
    {"backup", "backup", NULL},
    {"limits", "limits", NULL},
    {"delegation", "delegation", NULL},
    {"metadata", "metadata", NULL},
    {"price", "pricing.amount_micros", as_card_price},
    {"registered", "created_ms", as_ago},
    {"changed", "updated_ms", as_ago},
    {"revision", "revision", NULL},
    {0},
};

void agents_show_warnings(struct cli *c, const struct json *warnings)
{
    for (size_t i = 0; json_at(warnings, i); i++) {
        const struct json *w = json_at(warnings, i);
        struct str field = cli_tamed(c, cli_field(w, STR("field")));

        cli_coloured(c, YELLOW, STR("warning"));
        buf_addf(&c->out, " %.*s: ", STR_ARG(field));
        cli_wrapped(c, (unsigned)(strlen("warning : ") + field.n), 4,
                    cli_tamed(c, cli_field(w, STR("message"))));
    }
}

static void show_card(struct cli *c, const struct json *card)
{
    struct str description = cli_field(card, STR("description"));
    const struct json *skills = cli_items(card, "skills");

    cli_coloured(c, BOLD, cli_tamed(c, cli_field(card, STR("name"))));
    cli_say(c, STR(""), card, "[  {state}][: {state_reason}]\n");
    if (description.n) {
        cli_indented_text(c, 2, description);
        buf_add_char(&c->out, '\n');
    }
    cli_fields(c, card, facts);
    if (skills->kids.n)
        cli_title(c, "Skills");
    JSON_EACH(s, skills)
    card_show_skill(c, s);
    add_routing(c, card);
    agents_show_warnings(c, json_get(card, STR("warnings")));
    show_review(c, card);
}

/* Reviews of cards by admins, and reports by users. */

static bool put_revision(struct cli *c, struct json_out *o,
                         enum exit_status *status)
{
    bool is_needed = str_eq(c->args.operands[0], STR("approve"));
    struct str given = args_get(&c->args, "revision");
    int64_t revision = 0;

    if ((given.n || is_needed) &&
        (!given.n || str_to_i64(given, &revision) || revision < 1)) {
        *status =
            cli_error(c, ERR_USAGE,
                      "give the revision that you have read, --revision N; "
                      "signalbox agents show %.*s prints it and the changes",
                      STR_ARG(str_head(c->args.operands[1], AGENT_NAME_MAX)));
        return false;
    }
    if (revision)
        json_member_int(o, "revision", revision);
    return true;
}

static void show_review_state(struct cli *c, const struct json *a)
{
    cli_say(c, c->args.operands[1], a,
            cli_member(a, "review.state") ? "{} is {review.state}\n"
                                          : "{} is approved\n");
}

static bool put_report(struct cli *c, struct json_out *o,
                       enum exit_status *status)
{
    (void)o;
    if (!args_has(&c->args, "reason"))
        *status =
            cli_error(c, ERR_USAGE, "describe the problem with --reason TEXT");
    return args_has(&c->args, "reason");
}

static void show_reports(struct cli *c, const struct json *answer)
{
    const struct json *items = cli_items(answer, "items");

    if (!items->kids.n)
        cli_say(c, c->args.operands[1], answer, "{} has no reports\n");
    JSON_EACH(item, items)
    {
        cli_coloured(c, BOLD, cli_tamed(c, cli_field(item, STR("user"))));
        buf_add_char(&c->out, '\n');
        cli_indented_text(c, 2, cli_field(item, STR("reason")));
        cli_named_time(c, "reported", cli_field_int(item, STR("at_ms")));
    }
}

/* A request about one agent. */
#define AGENT_ONE(verb, act, ...)                                 \
    &(const struct one)                                           \
    {                                                             \
        .method = verb, .path = "/api/agents/", .called = "name", \
        .action = act, __VA_ARGS__                                \
    }
#define SIGNAL(act, words)                       \
    AGENT_ONE("POST", act, .timeout_ms = ACT_MS, \
              .say = "{} " words "; state: {state}\n")
#define REVIEW(act)                                                  \
    AGENT_ONE("POST", act, .put = put_revision, .options = "reason", \
              .show = show_review_state)

const struct sub cli_agents_subs[] = {
    {"list", NULL, NULL, .list = &agents},
    {"show", "NAME", "", .one = AGENT_ONE("GET", "", .show = show_card)},
    {"register", "FILE...", "dry-run if-new", .run = agents_register},
    {"patch", "NAME JSON", "", .run = agents_patch},
    {"remove", "NAME", "",
     .one =
         AGENT_ONE("DELETE", "", .say = "{} is removed\n", .gone = "removed")},
    {"restart", "NAME", "", .one = SIGNAL("/restart", "was restarted")},
    {"wake", "NAME", "", .one = SIGNAL("/wake", "was woken")},
    {"pause", "NAME", "",
     .one = SIGNAL("/pause", "gets no new work until it is resumed")},
    {"resume", "NAME", "", .one = SIGNAL("/resume", "gets work again")},
    {"approve", "NAME", "revision", .one = REVIEW("/approve")},
    {"reject", "NAME", "reason revision", .one = REVIEW("/reject")},
    {"hide", "NAME", "reason revision", .one = REVIEW("/hide")},
    {"report", "NAME", "reason",
     .one = AGENT_ONE("POST", "/report", .put = put_report, .options = "reason",
                      .say = "{} is reported to the admins\n")},
    {"reports", "NAME", "",
     .one = AGENT_ONE("GET", "/reports", .show = show_reports)},
    {"dismiss", "NAME", "",
     .one = AGENT_ONE("DELETE", "/reports",
                      .say = "the reports about {} are removed\n")},
    {0},
};
