/* agents register: cards out of files, one request each.
 *
 * Every card is tried, whatever became of those before it; only when nobody
 * answers any more, or the token is not good, would all the others fail alike,
 * and they are left. A line leaves as soon as its card is done, so that whoever
 * ends it early knows how far it came. What is wrong with a card comes with its
 * place in the file, in the form that editors know: FILE:LINE:COL. */
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

/* What is wrong with one card: a list from the server, or of our own, or a
 * sentence. */
struct fault_found {
    enum err err;
    struct str words;          /* when there is no list */
    const struct json *theirs; /* [{"pointer","message"}] */
    const struct card_problems *ours;
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
    size_t counts[N_OUTCOMES];
    bool is_if_new, is_patch;
    bool is_over; /* the rest is not tried */
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

    if (f->theirs && f->theirs->type == JSON_ARR)
        for (struct json *p = f->theirs->kids.first; p; p = p->next, n++)
            fn(r, card, cli_field(p, STR("pointer")),
               cli_field(p, STR("message")), ctx);
    for (; f->ours && n < f->ours->n; n++)
        fn(r, card, f->ours->list[n].pointer, f->ours->list[n].message, ctx);
    if (!n)
        fn(r, card, STR(""), f->words, ctx);
    return n;
}

static void add_place(struct registering *r, const struct card_in *card,
                      struct str pointer)
{
    struct buf *out = &r->c->out;
    struct cli_room room;
    unsigned line = 0, col = 0;

    cards_place(card, pointer, &line, &col);
    buf_add_str(out, cli_tame(&room, card->file));
    if (line)
        buf_addf(out, ":%u:%u", line, col);
    buf_add_str(out, STR(": "));
}

static void add_problem(struct registering *r, const struct card_in *card,
                        struct str pointer, struct str message, void *ctx)
{
    struct cli *c = r->c;
    size_t from = c->out.n;
    struct cli_room room;

    (void)ctx;
    add_place(r, card, pointer);
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

static void show_as_json(struct registering *r, const struct card_in *card,
                         enum outcome outcome, const struct fault_found *f,
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
    if (warnings && warnings->kids.n) {
        json_key(&o, STR("warnings"));
        json_put(&o, warnings);
    }
    json_close(&o, '}');
    /* Through a tree, so that nothing in it steers a terminal. */
    tree = line.over ? NULL : json_parse(&r->scratch, buf_str(&line), 0, NULL);
    if (tree)
        cli_json_line(&r->c->out, tree);
    else
        r->c->out.over = true;
    buf_fini(&line);
}

/* f: what is wrong with it; warnings: what to mend in one that was taken. */
static void show(struct registering *r, const struct card_in *card,
                 enum outcome outcome, const struct fault_found *f,
                 const struct json *warnings)
{
    struct str word = str_of(outcomes[outcome].word);
    struct cli *c = r->c;
    struct cli_room room;
    size_t n;

    r->counts[outcome]++;
    if (c->json) {
        show_as_json(r, card, outcome, f, warnings);
        return;
    }
    if (outcomes[outcome].is_coloured)
        cli_coloured(c, outcomes[outcome].colour, word);
    else
        buf_add_str(&c->out, word);
    buf_addf(&c->out, "%*s%.*s\n", (int)(12 - word.n), "",
             STR_ARG(cli_tame(&room, card->name.n ? card->name : card->file)));
    agents_show_warnings(c, warnings);
    if (!f)
        return;
    n = each_problem(r, card, f, add_problem, NULL);
    if (f->n_all > (int64_t)n && n)
        buf_addf(&c->out, "and %lld more\n",
                 (long long)(f->n_all - (int64_t)n));
}

static void refuse(struct registering *r, const struct card_in *card,
                   const struct fault_found *f)
{
    enum exit_status status = err_row(f->err)->exit_status;

    if (status > r->worst)
        r->worst = status;
    show(r, card, REFUSED, f, NULL);
}

/* Without a server. */

/* The warnings that the card alone gives rise to: which models and addresses
 * the server knows is not known here. NULL: no memory. */
static const struct json *own_warnings(struct registering *r,
                                       const struct agent *a)
{
    struct advice advice;
    struct json_out o;

    advice_of_card(a, &advice);
    buf_clear(&r->body);
    o = json_out(&r->body);
    advice_write(&o, &advice);
    return json_parse(&r->scratch, buf_str(&r->body), 0, NULL);
}

static void check_here(struct registering *r, const struct card_in *card)
{
    struct card_opts opts = {.dialect = CARD_WIRE, .rights = CARD_MAY_ALL};
    struct fault_found f = {.ours = &r->problems};
    struct agent agent;

    r->problems.n = r->problems.n_all = 0;
    f.err = card_read(&r->scratch, card->json, &opts, &agent, &r->problems);
    f.n_all = (int64_t)r->problems.n_all;
    f.words = str_of(err_row(f.err)->wording);
    if (f.err) {
        refuse(r, card, &f);
        return;
    }
    show(r, card, GOOD, NULL, own_warnings(r, &agent));
}

/* With one. */

/* For a name that cannot stand in a path the server has words too. */
static enum err ask(struct registering *r, const struct card_in *card)
{
    bool has_name = agent_name_is_valid(card->name);
    struct json_out o = json_out(&r->body);

    buf_clear(&r->path);
    buf_clear(&r->body);
    if (has_name || r->is_patch)
        agents_path(&r->path, card->name);
    else
        buf_add_str(&r->path, STR("/api/agents"));
    json_put(&o, card->json);
    if (r->body.over || r->path.over)
        return ERR_LIMIT;
    return client_call(r->cl,
                       &(struct client_request){.method = r->is_patch ? "PATCH"
                                                          : has_name  ? "PUT"
                                                                      : "POST",
                                                .path = buf_str(&r->path),
                                                .body = buf_str(&r->body),
                                                .must_be_new = r->is_if_new});
}

static void on_refused(struct registering *r, const struct card_in *card,
                       enum err e)
{
    const struct client_reply *reply = client_reply(r->cl);
    const struct json *details =
        json_get(json_get(reply->json, STR("error")), STR("details"));
    struct fault_found f = {
        .err = e,
        .words = str_of(reply->why.text),
        .theirs = json_get(details, STR("problems")),
        .n_all = json_int_or(json_get(details, STR("total")), 0)};

    /* Then nobody was asked. */
    if (r->body.over || r->path.over)
        f = (struct fault_found){
            .err = ERR_LIMIT,
            .words = r->body.over ? STR("the card is larger than 1 MiB")
                                  : STR("the name is too long")};
    if (r->is_if_new && e == ERR_PRECONDITION) {
        show(r, card, KEPT, NULL, NULL);
        return;
    }
    if (e == ERR_UNREACHABLE || e == ERR_UNAUTHENTICATED) {
        r->is_over = true;
        cli_bar_end(&r->bar);
        r->worst = client_fail(r->cl);
        show(r, card, UNTRIED, NULL, NULL);
        return;
    }
    refuse(r, card, &f);
}

static void register_one(struct registering *r, const struct card_in *card)
{
    const struct client_reply *reply;
    enum err e = ask(r, card);

    if (e) {
        on_refused(r, card, e);
        return;
    }
    reply = client_reply(r->cl);
    show(r, card,
         reply->status == 201 ? REGISTERED
         : json_bool_or(json_get(reply->json, STR("changed")), true)
             ? UPDATED
             : UNCHANGED,
         NULL, json_get(reply->json, STR("warnings")));
}

static void take(struct registering *r, const struct card_in *card)
{
    struct fault_found f = {.err = card->err, .words = card->why};

    arena_reset(&r->scratch);
    if (card->err)
        refuse(r, card, &f);
    else if (r->is_over)
        show(r, card, UNTRIED, NULL, NULL);
    else if (r->cl)
        register_one(r, card);
    else
        check_here(r, card);
}

/* All of them. */

static void invite(struct cli *c, size_t from)
{
    if (!c->notices || c->json || !isatty(STDIN_FILENO))
        return;
    for (size_t i = from; i < c->args.n_operands; i++)
        if (str_eq(c->args.operands[i], STR("-")))
            fprintf(stderr, "The JSON, and Ctrl-D at the end:\n");
}

/* From this operand on. */
static bool read_cards(struct registering *r, size_t from)
{
    const struct args *a = &r->c->args;
    enum err e = OK;

    invite(r->c, from);
    /* Operands come from argv and end in NUL. */
    for (size_t i = from; i < a->n_operands && !e; i++)
        e = cards_add_path(&r->cards, a->operands[i].p);
    if (!e)
        return true;
    r->worst = e == ERR_LIMIT
                   ? cli_error(r->c, e,
                               "there are more than %d cards or files: "
                               "register them in parts; nothing was sent",
                               CARDS_MAX)
                   : cli_error(r->c, e, "out of memory; nothing was sent");
    return false;
}

static void add_summary(struct registering *r)
{
    struct buf *out = &r->c->out;
    size_t n = 0;

    if (r->c->json || !r->c->on_terminal || r->cards.n < 2)
        return;
    for (size_t i = 0; i < N_OUTCOMES; i++)
        if (r->counts[i])
            buf_addf(out, "%s%zu %s", n++ ? ", " : "", r->counts[i],
                     outcomes[i].word);
    buf_add_char(out, '\n');
}

static enum exit_status take_all(struct registering *r)
{
    enum exit_status status = EXIT_DONE;

    cli_bar_start(&r->bar, r->c, "Registering");
    for (size_t i = 0; i < r->cards.n && !status; i++) {
        take(r, r->cards.list[i]);
        cli_bar_end(&r->bar);
        status = cli_flush(r->c, EXIT_DONE);
        cli_bar_move(&r->bar, (int)((i + 1) * 1000 / r->cards.n));
    }
    cli_bar_end(&r->bar);
    add_summary(r);
    return status ? status : r->worst;
}

static void begin(struct registering *r, struct cli *c)
{
    r->c = c;
    cards_init(&r->cards);
    arena_init(&r->scratch, 64UL * AGENT_CARD_MAX);
    buf_init(&r->path, 2048);
    buf_init(&r->body, AGENT_CARD_MAX);
}

static void end(struct registering *r)
{
    buf_fini(&r->path);
    buf_fini(&r->body);
    arena_fini(&r->scratch);
    cards_fini(&r->cards);
    client_free(r->cl);
}

enum exit_status agents_register(struct cli *c, struct str operand)
{
    struct registering r = {.is_if_new = args_has(&c->args, "if-new")};
    enum exit_status status = EXIT_DONE;

    (void)operand;
    if (!args_has(&c->args, "dry-run") && !(r.cl = client_new(c, &status)))
        return status;
    begin(&r, c);
    status = read_cards(&r, 1) ? take_all(&r) : r.worst;
    end(&r);
    return status;
}

/* What it says may be a few fields, and so it is read as a card is. */
static bool read_patch(struct registering *r, struct str name)
{
    struct str text = r->c->args.operands[2];
    enum err e;

    if (str_eq(text, STR("-"))) {
        if (!read_cards(r, 2))
            return false;
    } else {
        e = cards_add_text(&r->cards, STR("JSON"), text);
        if (e) {
            r->worst = cli_error(r->c, e, "out of memory");
            return false;
        }
    }
    if (r->cards.n != 1) {
        r->worst = cli_error(r->c, ERR_USAGE, "one object is wanted, { ... }");
        return false;
    }
    r->cards.list[0]->name = name;
    return true;
}

enum exit_status agents_patch(struct cli *c, struct str name)
{
    struct registering r = {.is_patch = true};
    enum exit_status status = EXIT_DONE;

    if (!(r.cl = client_new(c, &status)))
        return status;
    begin(&r, c);
    status = read_patch(&r, name) ? take_all(&r) : r.worst;
    end(&r);
    return status;
}
