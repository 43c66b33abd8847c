/* A card for people: a table of its fields, then its skills and its routing.
 * All of it is text from outside, and tamed. */
#include "cli/agents.h"
#include "cli/cells.h"
#include "cli/price.h"

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

void agents_show_card(struct cli *c, const struct json *card)
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
    agents_show_review(c, card);
}
