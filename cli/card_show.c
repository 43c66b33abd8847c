/* A card for people: a table of its fields, then its skills and its routing.
 * All of it is text from outside, and tamed. */
#include "cli/agents.h"
#include "cli/price.h"

static void card_show_value(struct buf *out, const struct json *v,
                            unsigned depth)
{
    struct json_out o = json_out(out);
    size_t n = 0;

    if (v->type == JSON_STR) {
        buf_add_str(out, v->s);
    } else if ((v->type != JSON_ARR && v->type != JSON_OBJ) || depth > 2) {
        json_put(&o, v);
    } else {
        JSON_EACH(kid, v)
        {
            if (n++)
                buf_add_str(out, STR(", "));
            if (v->type == JSON_OBJ)
                buf_addf(out, "%.*s ", STR_ARG(kid->key));
            card_show_value(out, kid, depth + 1);
        }
    }
}

void agents_add_value(struct buf *out, const struct json *v)
{
    if (v && v->type != JSON_NULL)
        card_show_value(out, v, 0);
}

static void add_named(struct cli *c, const char *name, const struct json *v)
{
    struct buf line;

    if (!v || v->type == JSON_NULL)
        return;
    buf_init(&line, 64 * 1024);
    card_show_value(&line, v, 0);
    cli_named(c, name, buf_str(&line));
    buf_fini(&line);
}

static void add_title(struct cli *c, const char *title)
{
    buf_add_char(&c->out, '\n');
    cli_coloured(c, BOLD, str_of(title));
    buf_add_char(&c->out, '\n');
}

static const struct json *card_price(const struct json *v)
{
    return json_get(json_get(v, STR("pricing")), STR("amount_micros"));
}

/* Skills. */

static void card_show_examples(struct cli *c, const struct json *examples)
{
    struct cli_room room;
    size_t n = 0;

    if (!examples || examples->type != JSON_ARR)
        return;
    JSON_EACH(e, examples)
    {
        buf_addf(&c->out, "    %-11s ", n++ ? "" : "examples");
        cli_wrapped(c, 16, 16, cli_tame(&room, json_str_or(e, STR(""))));
    }
}

static void add_tags(struct cli *c, const struct json *tags)
{
    struct cli_room room;
    struct buf line;

    if (!tags || tags->type != JSON_ARR || !tags->kids.n)
        return;
    buf_init(&line, 64 * 1024);
    card_show_value(&line, tags, 0);
    buf_add_str(&c->out, STR("    tags        "));
    cli_wrapped(c, 16, 16, cli_tame(&room, buf_str(&line)));
    buf_fini(&line);
}

static void card_show_skill(struct cli *c, const struct json *s)
{
    struct cli_room id_room, name_room;
    struct str id = cli_tame(&id_room, cli_field(s, STR("id")));
    struct str name = cli_tame(&name_room, cli_field(s, STR("name")));
    const struct json *price = card_price(s);

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
    add_tags(c, json_get(s, STR("tags")));
    card_show_examples(c, json_get(s, STR("examples")));
}

static void card_show_skills(struct cli *c, const struct json *card)
{
    const struct json *skills = json_get(card, STR("skills"));

    if (!skills || skills->type != JSON_ARR || !skills->kids.n)
        return;
    add_title(c, "Skills");
    JSON_EACH(s, skills)
    card_show_skill(c, s);
}

/* The rest. */

static void add_routing(struct cli *c, const struct json *card)
{
    const struct json *routing = json_get(card, STR("routing"));
    struct str prompt = cli_field(routing, STR("system_prompt"));
    const struct json *keywords = json_get(routing, STR("keywords"));
    bool is_routable = json_bool_or(json_get(routing, STR("routable")), true);
    bool has_keywords =
        keywords && keywords->type == JSON_ARR && keywords->kids.n;

    if (!prompt.n && !has_keywords && is_routable)
        return;
    add_title(c, "Routing");
    if (!is_routable)
        cli_named(c, "routable", STR("no, only by name"));
    if (has_keywords)
        add_named(c, "keywords", keywords);
    if (prompt.n) {
        buf_add_str(&c->out, STR("  system prompt\n"));
        cli_indented_text(c, 4, prompt);
    }
}

static void add_facts(struct cli *c, const struct json *card)
{
    static const struct {
        const char *name, *key;
    } rows[] = {
        {"title", "title"},
        {"url", "url"},
        {"version", "version"},
        {"visibility", "visibility"},
        {"created by", "creator_id"},
        {"org", "org"},
        {"kind", "kind"},
        {"provider", "provider"},
        {"capabilities", "capabilities"},
        {"authentication", "authentication"},
        {"wake", "wake"},
        {"restart", "restart"},
        {"backup", "backup"},
        {"limits", "limits"},
        {"delegation", "delegation"},
        {"metadata", "metadata"},
    };
    const struct json *price = card_price(card);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        add_named(c, rows[i].name, json_get(card, str_of(rows[i].key)));
    if (price)
        cli_named(c, "price", str_of(price_write(json_int_or(price, 0)).text));
    cli_named_time(c, "registered",
                   json_int_or(json_get(card, STR("created_ms")), 0));
    cli_named_time(c, "changed",
                   json_int_or(json_get(card, STR("updated_ms")), 0));
    add_named(c, "revision", json_get(card, STR("revision")));
}

void agents_show_warnings(struct cli *c, const struct json *warnings)
{
    if (!warnings || warnings->type != JSON_ARR)
        return;
    for (const struct json *w = warnings->kids.first; w; w = w->next) {
        struct str field = cli_tamed(c, cli_field(w, STR("field")));

        cli_coloured(c, YELLOW, STR("warning"));
        buf_addf(&c->out, " %.*s: ", STR_ARG(field));
        cli_wrapped(c, (unsigned)(strlen("warning : ") + field.n), 4,
                    cli_tamed(c, cli_field(w, STR("message"))));
    }
}

void agents_show_card(struct cli *c, const struct json *card)
{
    struct str state = cli_tamed(c, cli_field(card, STR("state")));
    struct str reason = cli_tamed(c, cli_field(card, STR("state_reason")));
    struct str description = cli_field(card, STR("description"));

    cli_coloured(c, BOLD, cli_tamed(c, cli_field(card, STR("name"))));
    if (state.n)
        buf_addf(&c->out, "  %.*s", STR_ARG(state));
    if (reason.n)
        buf_addf(&c->out, ": %.*s", STR_ARG(reason));
    buf_add_char(&c->out, '\n');
    if (description.n) {
        cli_indented_text(c, 2, description);
        buf_add_char(&c->out, '\n');
    }
    add_facts(c, card);
    card_show_skills(c, card);
    add_routing(c, card);
    agents_show_warnings(c, json_get(card, STR("warnings")));
    agents_show_review(c, card);
}
