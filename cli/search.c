/* search: find agents by their skills. The server ranks them. The request
 * always asks for the explanation, because the bars need it. */
#include "cli/hits.h"
#include "cli/list.h"
#include "cli/price.h"
#include "cli/slurp.h"
#include "registry/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/utf8.h"

const struct arg_option cli_search_options[] = {
    {"limit", "N", "show at most N agents, up to 100 (default 10)", false},
    {"mode", "MODE", "hybrid (default), semantic or text", false},
    {"fusion", "HOW", "weighted (default) or rrf", false},
    {"order", "ORDER", "spread (default, except for admins) or plain", false},
    {"explain", NULL, "show the figures of every matching skill", false},
    {"tag", "TAG", "only skills with this tag", false},
    {"org", "ORG", "only agents of this org", false},
    {"state", "STATE", "only agents in this state: idle, busy, ...", false},
    {"max-price", "PRICE", "only skills up to this price: 0.05", false},
    {"min-score", "SCORE", "only this score or higher: 0.4", false},
    CLIENT_OPTIONS,
    {0},
};

static bool read_query(struct cli *c, struct buf *query,
                       enum exit_status *status)
{
    enum err e = slurp_words(&c->args, query, SEARCH_TEXT_MAX);
    bool is_blank = true;

    for (size_t i = 0; i < query->n; i++)
        is_blank = is_blank && strchr(" \t\r\n", query->p[i]) && query->p[i];
    if (e == ERR_IO)
        *status = cli_error(c, e, "cannot read the query: %s", strerror(errno));
    else if (e || query->n > SEARCH_TEXT_MAX)
        *status = cli_error(c, ERR_LIMIT,
                            "the query is longer than %d KiB, the limit; a few "
                            "words find more than a long text",
                            SEARCH_TEXT_MAX / 1024);
    else if (is_blank)
        *status = cli_error(c, ERR_USAGE,
                            "a query is missing: signalbox search \"find out "
                            "why it crashes\"");
    else if (!utf8_is_valid(buf_str(query)))
        *status = cli_error(c, ERR_USAGE, "the query is not valid UTF-8");
    else
        return true;
    return false;
}

/* False: the error has been printed. */
static bool search_put_body(struct cli *c, struct buf *body, struct str query,
                            enum exit_status *status)
{
    struct str price = args_get(&c->args, "max-price");
    struct json_out o = json_out(body);
    double min_score;
    int64_t limit, max_price = -1;

    if (!cli_number(c, "limit", 1, SEARCH_LIMIT_MAX, SEARCH_LIMIT, &limit,
                    status))
        return false;
    json_open(&o, '{');
    json_member_some(&o, "query", query);
    json_member_int(&o, "limit", limit);
    json_member_bool(&o, "explain", true);
    if (!cli_put_options(c, &o, "mode fusion order state tag org", status) ||
        !cli_real(c, "min-score", 0, 1, 0, &min_score, status))
        return false;
    if (price.n && price_read(price, &max_price)) {
        *status = cli_error(c, ERR_USAGE,
                            "--max-price is \"%.*s\"; it must be an amount "
                            "from 0 to 1000000, like 0.05",
                            STR_ARG(str_head(price, 64)));
        return false;
    }
    if (max_price >= 0)
        json_member_int(&o, "max_price_micros", max_price);
    if (min_score > 0)
        json_member_real(&o, "min_score", min_score);
    json_close(&o, '}');
    return true;
}

static double search_figure(const struct json *v, struct str key)
{
    return json_real_or(json_get(v, key), 0);
}

static void add_hit(struct cli *c, struct hits *h, const struct json *agent)
{
    const struct json *skills = cli_items(agent, "skills");
    struct hit hit = {.agent = cli_field(agent, STR("name")),
                      .skill = cli_field(agent, STR("best_skill_id")),
                      .description = cli_field(agent, STR("description")),
                      .score = search_figure(agent, STR("score")),
                      .semantic = search_figure(agent, STR("semantic")),
                      .text = search_figure(agent, STR("text"))};

    hits_add(h, &hit);
    if (!args_has(&c->args, "explain"))
        return;
    /* Its name and description may match better than its skills. */
    if (!skills->kids.n ||
        hit.score > search_figure(skills->kids.first, STR("score"))) {
        hit.agent = hit.skill = hit.description = STR("");
        hits_add_part(h, &hit);
    }
    JSON_EACH(s, skills)
    hits_add_part(h,
                  &(struct hit){.skill = cli_field(s, STR("id")),
                                .description = cli_field(s, STR("description")),
                                .score = search_figure(s, STR("score")),
                                .semantic = search_figure(s, STR("semantic")),
                                .text = search_figure(s, STR("text"))});
}

static void add_formula(struct cli *c, const struct json *answer)
{
    const struct json *formula = json_get(answer, STR("formula"));
    struct str mode = cli_field(answer, STR("mode"));

    buf_add_char(&c->out, '\n');
    if (str_eq(mode, STR("semantic")) || str_eq(mode, STR("text")))
        buf_addf(&c->out, "score = %.*s\n", STR_ARG(mode));
    else if (str_eq(cli_field(formula, STR("fusion")), STR("rrf")))
        buf_add_str(&c->out,
                    STR("score = by the ranks in both rankings (rrf)\n"));
    else
        buf_addf(&c->out, "score = %g x semantic + %g x text\n",
                 search_figure(formula, STR("semantic")),
                 search_figure(formula, STR("text")));
}

static void say_none(struct cli *c)
{
    static const char *const filters[] = {"tag", "org", "state", "max-price",
                                          "min-score"};
    const char *given[sizeof(filters) / sizeof(filters[0])];
    struct buf words;
    size_t n = 0;

    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        if (args_has(&c->args, filters[i]))
            given[n++] = filters[i];
    buf_init(&words, 1024);
    buf_add_str(&words, n ? STR("No agent matches. Try without ")
                          : STR("No agent matches. Try other words. signalbox "
                                "agents lists all agents that you may see, and "
                                "signalbox agents register FILE adds one."));
    for (size_t i = 0; i < n; i++)
        buf_addf(&words, "%s--%s%s",
                 !i          ? ""
                 : i + 1 < n ? ", "
                             : " and ",
                 given[i], i + 1 < n ? "" : ".");
    cli_wrapped(c, 0, 0, buf_str(&words));
    buf_fini(&words);
}

/* On stderr, so that a pipe gets only the results. */
static void say_note(struct cli *c, const struct json *answer)
{
    struct str note = cli_tamed(c, cli_field(answer, STR("note")));
    struct buf line;
    struct json_out o;

    if (!note.n)
        return;
    buf_init(&line, 8192);
    o = json_out(&line);
    if (c->json) {
        json_open(&o, '{');
        json_member_text(&o, "note", note);
        json_close(&o, '}');
        buf_add_char(&line, '\n');
    } else {
        buf_addf(&line, "signalbox search: note: %.*s\n", STR_ARG(note));
    }
    fprintf(stderr, "%.*s", STR_ARG(buf_str(&line)));
    buf_fini(&line);
}

static void search_show(struct cli *c, struct str query,
                        const struct json *answer)
{
    const struct json *agents = json_get(answer, STR("agents"));
    struct hits hits;

    say_note(c, answer);
    if (!agents || agents->type != JSON_ARR || (!agents->kids.n && !c->json)) {
        say_none(c);
        return;
    }
    if (c->json) {
        JSON_EACH(a, agents)
        cli_json_line(&c->out, a);
        return;
    }
    hits_init(&hits, query);
    JSON_EACH(a, agents)
    add_hit(c, &hits, a);
    hits_write(&hits, &c->out, c->width, c->colour, c->unicode);
    if (args_has(&c->args, "explain"))
        add_formula(c, answer);
    hits_fini(&hits);
}

enum exit_status cli_search(struct cli *c)
{
    enum exit_status status = EXIT_DONE;
    struct client_request rq = {.method = "POST",
                                .path = STR("/api/agents/search"),
                                .notice = "Searching"};
    struct client *cl = NULL;
    struct buf query, body;

    buf_init(&query, SEARCH_TEXT_MAX + SLURP_BYTES);
    buf_init(&body, 8 * SEARCH_TEXT_MAX);
    if (read_query(c, &query, &status) &&
        search_put_body(c, &body, buf_str(&query), &status) &&
        (cl = client_new(c, &status))) {
        rq.body = buf_str(&body);
        if (client_call(cl, &rq))
            status = client_fail(cl);
        else
            search_show(c, buf_str(&query), client_reply(cl)->json);
    }
    client_free(cl);
    buf_fini(&query);
    buf_fini(&body);
    return status;
}
