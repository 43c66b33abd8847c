/* agents register: cards from files, one request each.
 *
 * Every card is tried, whatever the result of the ones before. Only if the
 * server stops answering or the token is wrong, the rest is skipped, because
 * all of it would fail the same way. The line of a card is written as soon as
 * its result is known, so that an interrupted run shows its progress. Problems
 * have their position in the format of compilers: FILE:LINE:COL. */
#include "cli/agents.h"
#include "cli/cards.h"
#include "model/advice.h"
#include "model/card.h"

#include <stdio.h>
#include <unistd.h>

enum outcome { REGISTERED, UPDATED, UNCHANGED, KEPT, GOOD, REFUSED, UNTRIED };

static const struct {
    const char *word;
    enum colour colour;
    bool is_coloured;
} outcomes[] = {
    [REGISTERED] = {"registered", GREEN, true},
    [UPDATED] = {"updated", GREEN, true},
    [UNCHANGED] = {"unchanged", GREEN, false},
    [KEPT] = {"kept", GREEN, false},
    [GOOD] = {"good", GREEN, true},
    [REFUSED] = {"refused", RED, true},
    [UNTRIED] = {"not tried", YELLOW, true},
};

enum { N_OUTCOMES = sizeof(outcomes) / sizeof(outcomes[0]) };

/* The problems of one card: a list from the server, a local list, or one
 * sentence. */
struct fault_found {
    enum err err;
    struct str words;          /* without a list */
    const struct json *remote; /* [{"pointer","message"}] */
    const struct card_problems *local;
    int64_t n_all;
};

struct registering {
    struct cli *c;
    struct client *cl; /* NULL: --dry-run */
    struct cards cards;
    struct cli_bar bar;
    struct buf path, body;
    struct arena scratch;
    struct card_problems problems;
    const struct json *review; /* of the accepted card; NULL: none */
    size_t counts[N_OUTCOMES];
    bool is_if_new, is_patch;
    bool is_over; /* skip the rest */
    enum exit_status worst;
};

/* Showing. */

typedef void problem_fn(struct registering *r, const struct card_in *card,
                        struct str pointer, struct str message, void *ctx);

static size_t each_problem(struct registering *r, const struct card_in *card,
                           const struct fault_found *f, problem_fn *fn,
                           void *ctx)
{
    size_t n = 0;

    if (f->remote && f->remote->type == JSON_ARR)
        for (struct json *p = f->remote->kids.first; p; p = p->next, n++)
            fn(r, card, cli_field(p, STR("pointer")),
               cli_field(p, STR("message")), ctx);
    for (; f->local && n < f->local->n; n++)
        fn(r, card, f->local->list[n].pointer, f->local->list[n].message, ctx);
    if (!n)
        fn(r, card, STR(""), f->words, ctx);
    return n;
}

static void register_add_problem(struct registering *r,
                                 const struct card_in *card, struct str pointer,
                                 struct str message, void *ctx)
{
    struct cli *c = r->c;
    size_t from = c->out.n;
    struct cli_room room;
    unsigned line = 0, col = 0;

    (void)ctx;
    cards_place(card, pointer, &line, &col);
    buf_add_str(&c->out, cli_tame(&room, card->file));
    if (line)
        buf_addf(&c->out, ":%u:%u", line, col);
    buf_add_str(&c->out, STR(": "));
    if (pointer.n)
        buf_addf(&c->out, "%.*s ", STR_ARG(cli_tame(&room, pointer)));
    cli_wrapped(c, (unsigned)(c->out.n - from), 4, cli_tame(&room, message));
}

static void put_problem(struct registering *r, const struct card_in *card,
                        struct str pointer, struct str message, void *ctx)
{
    struct json_out *o = ctx;
    unsigned line, col;

    (void)r;
    cards_place(card, pointer, &line, &col);
    json_open(o, '{');
    json_member_text(o, "pointer", pointer);
    json_member_text(o, "message", message);
    if (line) {
        json_member_int(o, "line", line);
        json_member_int(o, "col", col);
    }
    json_close(o, '}');
}

static void register_show_json(struct registering *r,
                               const struct card_in *card, enum outcome outcome,
                               const struct fault_found *f,
                               const struct json *warnings)
{
    struct buf line;
    struct json_out o;
    struct json *tree;

    buf_init(&line, CLI_OUT_MAX);
    o = json_out(&line);
    json_open(&o, '{');
    json_member_str(&o, "name", card->name);
    json_member_text(&o, "result", str_of(outcomes[outcome].word));
    json_member_text(&o, "file", card->file);
    if (card->line)
        json_member_int(&o, "line", card->line);
    if (f) {
        json_member_text(&o, "code", str_of(err_row(f->err)->code));
        json_key(&o, STR("problems"));
        json_open(&o, '[');
        each_problem(r, card, f, put_problem, &o);
        json_close(&o, ']');
    }
    if (r->review)
        json_member_str(&o, "review", cli_field(r->review, STR("state")));
    if (warnings && warnings->kids.n) {
        json_key(&o, STR("warnings"));
        json_put(&o, warnings);
    }
    json_close(&o, '}');
    /* cli_json_line removes control characters, but only from a tree. */
    tree = line.over ? NULL : json_parse(&r->scratch, buf_str(&line), 0, NULL);
    if (tree)
        cli_json_line(&r->c->out, tree);
    else
        r->c->out.over = true;
    buf_fini(&line);
}

/* f: the problems of a refused card; warnings: of an accepted one. */
static void register_show_card(struct registering *r,
                               const struct card_in *card, enum outcome outcome,
                               const struct fault_found *f,
                               const struct json *warnings)
{
    static const char *const reviews[] = {
        [REVIEW_WAITING] = "waits for an admin's approval",
        [REVIEW_REJECTED] = "an admin has rejected this card",
        [REVIEW_HIDDEN] = "an admin has hidden this agent",
    };
    enum review_state state = review_of(cli_field(r->review, STR("state")));
    struct str reason = cli_field(r->review, STR("reason"));
    struct str word = str_of(outcomes[outcome].word);
    struct cli *c = r->c;
    struct cli_room room;
    size_t n;

    r->counts[outcome]++;
    if (c->json) {
        register_show_json(r, card, outcome, f, warnings);
        return;
    }
    if (outcomes[outcome].is_coloured)
        cli_coloured(c, outcomes[outcome].colour, word);
    else
        buf_add_str(&c->out, word);
    buf_addf(&c->out, "%*s%.*s", (int)(12 - word.n), "",
             STR_ARG(cli_tame(&room, card->name.n ? card->name : card->file)));
    /* The review state of an accepted card. */
    if (state)
        buf_addf(&c->out, "  (%s%s%.*s)", reviews[state], reason.n ? ": " : "",
                 STR_ARG(cli_tamed(c, reason)));
    buf_add_char(&c->out, '\n');
    agents_show_warnings(c, warnings);
    if (!f)
        return;
    n = each_problem(r, card, f, register_add_problem, NULL);
    if (f->n_all > (int64_t)n && n)
        buf_addf(&c->out, "and %lld more\n",
                 (long long)(f->n_all - (int64_t)n));
}

static void register_show_rejected(struct registering *r,
                                   const struct card_in *card,
                                   const struct fault_found *f)
{
    enum exit_status status = err_row(f->err)->exit_status;

    if (status > r->worst)
        r->worst = status;
    register_show_card(r, card, REFUSED, f, NULL);
}

/* Without a server. */

static void check_here(struct registering *r, const struct card_in *card)
{
    struct card_opts opts = {.dialect = CARD_WIRE, .rights = CARD_MAY_ALL};
    struct fault_found f = {.local = &r->problems};
    struct advice advice;
    struct json_out o;
    struct agent agent;

    r->problems.n = r->problems.n_all = 0;
    f.err = card_read(&r->scratch, card->json, &opts, &agent, &r->problems);
    f.n_all = (int64_t)r->problems.n_all;
    f.words = str_of(err_row(f.err)->wording);
    if (f.err) {
        register_show_rejected(r, card, &f);
        return;
    }
    /* The warnings that need only the card: the server's models and addresses
     * are not known here. */
    advice_of_card(&agent, &advice);
    buf_clear(&r->body);
    o = json_out(&r->body);
    advice_write(&o, &advice);
    register_show_card(r, card, GOOD, NULL,
                       json_parse(&r->scratch, buf_str(&r->body), 0, NULL));
}

/* With a server. */

static void on_refused(struct registering *r, const struct card_in *card,
                       enum err e)
{
    const struct client_reply *reply = client_reply(r->cl);
    const struct json *details =
        json_get(json_get(reply->json, STR("error")), STR("details"));
    struct fault_found f = {
        .err = e,
        .words = str_of(reply->why.text),
        .remote = json_get(details, STR("problems")),
        .n_all = json_int_or(json_get(details, STR("total")), 0)};

    /* In this case no request was made. */
    if (r->body.over || r->path.over)
        f = (struct fault_found){
            .err = ERR_LIMIT,
            .words = r->body.over ? STR("the card is larger than 1 MiB")
                                  : STR("the name is too long")};
    if (r->is_if_new && e == ERR_PRECONDITION) {
        register_show_card(r, card, KEPT, NULL, NULL);
        return;
    }
    if (e == ERR_UNREACHABLE || e == ERR_UNAUTHENTICATED) {
        r->is_over = true;
        cli_bar_end(&r->bar);
        r->worst = client_fail(r->cl);
        register_show_card(r, card, UNTRIED, NULL, NULL);
        return;
    }
    register_show_rejected(r, card, &f);
}

static void register_show_answer(struct registering *r,
                                 const struct card_in *card)
{
    /* A card with an invalid name is sent too: the server explains the problem.
     */
    bool has_name = agent_name_is_valid(card->name);
    struct client_request rq = {.method = r->is_patch ? "PATCH"
                                          : has_name  ? "PUT"
                                                      : "POST",
                                .must_be_new = r->is_if_new};
    const struct client_reply *reply;
    struct json_out o = json_out(&r->body);
    enum err e;

    buf_clear(&r->path);
    buf_clear(&r->body);
    buf_add_str(&r->path, STR("/api/agents"));
    if (has_name || r->is_patch) {
        buf_add_char(&r->path, '/');
        client_add_part(&r->path, card->name);
    }
    json_put(&o, card->json);
    rq.path = buf_str(&r->path);
    rq.body = buf_str(&r->body);
    e = r->body.over || r->path.over ? ERR_LIMIT : client_call(r->cl, &rq);
    if (e) {
        on_refused(r, card, e);
        return;
    }
    reply = client_reply(r->cl);
    r->review = json_get(reply->json, STR("review"));
    register_show_card(
        r, card,
        reply->status == 201                                        ? REGISTERED
        : json_bool_or(json_get(reply->json, STR("changed")), true) ? UPDATED
                                                                    : UNCHANGED,
        NULL, json_get(reply->json, STR("warnings")));
}

/* All of them. */

/* Read the operands from index `from` on. */
static bool read_cards(struct registering *r, size_t from)
{
    const struct args *a = &r->c->args;
    enum err e = OK;

    for (size_t i = from; i < a->n_operands; i++)
        if (str_eq(a->operands[i], STR("-")) && r->c->notices && !r->c->json &&
            isatty(STDIN_FILENO))
            fprintf(stderr, "Type the JSON, then Ctrl-D:\n");
    /* Operands come from argv and end in NUL. */
    for (size_t i = from; i < a->n_operands && !e; i++)
        e = cards_add_path(&r->cards, a->operands[i].p);
    if (!e)
        return true;
    r->worst = e == ERR_LIMIT
                   ? cli_error(r->c, e,
                               "more than %d cards or files: register them in "
                               "parts; nothing was sent",
                               CARDS_MAX)
                   : cli_error(r->c, e, "out of memory; nothing was sent");
    return false;
}

static enum exit_status register_all(struct registering *r)
{
    enum exit_status status = EXIT_DONE;
    struct buf *out = &r->c->out;
    size_t n = 0;

    cli_bar_start(&r->bar, r->c, "Registering");
    for (size_t i = 0; i < r->cards.n && !status; i++) {
        const struct card_in *card = r->cards.list[i];
        struct fault_found f = {.err = card->err, .words = card->why};

        arena_reset(&r->scratch);
        r->review = NULL;
        if (card->err)
            register_show_rejected(r, card, &f);
        else if (r->is_over)
            register_show_card(r, card, UNTRIED, NULL, NULL);
        else if (r->cl)
            register_show_answer(r, card);
        else
            check_here(r, card);
        cli_bar_end(&r->bar);
        status = cli_flush(r->c, EXIT_DONE);
        cli_bar_move(&r->bar, (int)((i + 1) * 1000 / r->cards.n));
    }
    cli_bar_end(&r->bar);
    if (r->c->json || !r->c->on_terminal || r->cards.n < 2)
        return status ? status : r->worst;
    for (size_t i = 0; i < N_OUTCOMES; i++)
        if (r->counts[i])
            buf_addf(out, "%s%zu %s", n++ ? ", " : "", r->counts[i],
                     outcomes[i].word);
    buf_add_char(out, '\n');
    return status ? status : r->worst;
}

/* register or patch. */
static enum exit_status cards_send(struct registering *r)
{
    struct cli *c = r->c;
    struct str text = c->args.operands[2];
    bool is_text = r->is_patch && !str_eq(text, STR("-")), is_read;
    enum exit_status status = EXIT_DONE;

    if (!args_has(&c->args, "dry-run") && !(r->cl = client_new(c, &status)))
        return status;
    cards_init(&r->cards);
    arena_init(&r->scratch, 64UL * AGENT_CARD_MAX);
    buf_init(&r->path, 2048);
    buf_init(&r->body, AGENT_CARD_MAX);
    if (is_text) {
        is_read = !cards_add_text(&r->cards, STR("JSON"), text);
        if (!is_read)
            r->worst = cli_error(c, ERR_NOMEM, "out of memory");
    } else {
        is_read = read_cards(r, r->is_patch ? 2 : 1);
    }
    /* A patch has some fields of a card, so it is read like one. */
    if (is_read && r->is_patch && r->cards.n != 1) {
        r->worst = cli_error(c, ERR_USAGE, "give one object, { ... }");
        is_read = false;
    }
    if (is_read && r->is_patch)
        r->cards.list[0]->name = c->args.operands[1];
    status = is_read ? register_all(r) : r->worst;
    buf_fini(&r->path);
    buf_fini(&r->body);
    arena_fini(&r->scratch);
    cards_fini(&r->cards);
    client_free(r->cl);
    return status;
}

enum exit_status agents_register(struct cli *c, struct str operand)
{
    struct registering r = {.c = c, .is_if_new = args_has(&c->args, "if-new")};

    (void)operand;
    return cards_send(&r);
}

enum exit_status agents_patch(struct cli *c, struct str name)
{
    struct registering r = {.c = c, .is_patch = true};

    (void)name;
    return cards_send(&r);
}
