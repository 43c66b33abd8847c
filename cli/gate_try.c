/* gate FILE: the gate's decision about an envelope, and its reasons. Decides
 * here with local rules and a local state, or asks the server. Nothing is sent
 * or stored. */
#include "cli/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/rfc3339.h"
#include "cli/client.h"
#include "cli/grid.h"
#include "cli/slurp.h"
#include "gate/dry_run.h"

enum {
    ENVELOPE_FILE_MAX = 2 * 1024 * 1024,
    DECISION_BYTES = 32 * 1024 * 1024,
};

/* A file, or standard input for "-". False: the error has been printed. */
static bool gate_try_read_file(struct cli *c, struct str path, size_t most,
                               struct buf *out, enum exit_status *status)
{
    char name[4096];
    bool is_stdin = str_eq(path, STR("-"));
    enum err e = ERR_IO;
    int fd = -1;

    buf_init(out, most + SLURP_BYTES);
    if (path.n < sizeof(name)) {
        memcpy(name, path.p, path.n);
        name[path.n] = '\0';
        fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    } else {
        errno = ENAMETOOLONG;
    }
    if (fd >= 0)
        e = slurp(fd, out, most);
    if (e == ERR_LIMIT || out->over)
        *status = cli_error(c, ERR_LIMIT, "%.*s is larger than %zu bytes",
                            STR_ARG(path), most);
    else if (e)
        *status = cli_error(c, ERR_IO, "cannot read %.*s: %s", STR_ARG(path),
                            strerror(errno));
    if (fd > STDIN_FILENO)
        close(fd);
    return !e && !out->over;
}

static bool read_now(struct cli *c, int64_t *out, enum exit_status *status)
{
    struct str now = args_get(&c->args, "now");

    *out = cli_now_ms();
    if (!args_has(&c->args, "now") || rfc3339_read(now, out))
        return true;
    *status = cli_error(c, ERR_USAGE,
                        "--now must be a time like 2025-02-15T09:00:00Z, not "
                        "\"%.*s\"",
                        STR_ARG(now));
    return false;
}

static struct str gate_try_text(const struct json *v, const char *key)
{
    return json_str_or(json_get(v, str_of(key)), STR(""));
}

static enum colour colour_of(struct str decision)
{
    switch (gate_answer_of(decision)) {
    case GATE_ROUTE: return GREEN;
    case GATE_ESCALATE:
    case GATE_PAUSE: return RED;
    case GATE_HOLD_INPUT:
    case GATE_HOLD_CAPACITY:
    case GATE_DROP: break;
    }
    return YELLOW;
}

/* "waits for    agent:Z, look": a list of texts, if there are any. */
static void show_list(struct cli *c, const struct json *list, const char *name)
{
    struct buf b;

    if (!list || list->type != JSON_ARR || !list->kids.n)
        return;
    buf_init(&b, 16 * 1024);
    JSON_EACH(kid, list)
    {
        if (b.n)
            buf_add_str(&b, STR(", "));
        buf_add_str(&b, json_str_or(kid, STR("")));
    }
    cli_named(c, name, buf_str(&b));
    buf_fini(&b);
}

static void show_trace(struct cli *c, const struct json *d)
{
    static const struct grid_head heads[] = {
        {"CHECK", NULL}, {"RULE", NULL}, {"FIRED", NULL}, {"WHY", NULL}};
    const struct json *trace = json_get(d, STR("trace"));
    struct grid g;

    if (!trace || trace->type != JSON_ARR || !trace->kids.n)
        return;
    grid_init(&g, heads, 4);
    JSON_EACH(kid, trace)
    {
        struct str rule = gate_try_text(kid, "rule");
        bool has_fired = json_bool_or(json_get(kid, STR("fired")), false);
        struct str cells[4] = {
            gate_try_text(kid, "section"), rule.n ? rule : STR("-"),
            has_fired ? STR("yes") : STR("no"), gate_try_text(kid, "why")};

        grid_add(&g, cells);
    }
    buf_add_char(&c->out, '\n');
    grid_write(&g, &c->out, c->window, c->colour, c->unicode);
    grid_fini(&g);
}

static void gate_try_show(struct cli *c, const struct json *d)
{
    struct str decision = cli_tamed(c, gate_try_text(d, "routing_decision"));

    if (c->json) {
        cli_json_line(&c->out, d);
        return;
    }
    cli_coloured(c, colour_of(decision), decision);
    buf_add_char(&c->out, '\n');
    cli_named(c, "from", gate_try_text(d, "original_from"));
    cli_named(c, "to", gate_try_text(d, "original_to"));
    cli_named(c, "reason", gate_try_text(d, "reason"));
    cli_named(c, "rule", gate_try_text(d, "rule"));
    cli_named(c, "priority", gate_try_text(d, "priority"));
    cli_named(c, "sla", gate_try_text(d, "sla"));
    cli_named(c, "held until", gate_try_text(d, "held_until"));
    show_list(c, json_get(d, STR("waits_for")), "waits for");
    show_list(c, json_get(d, STR("warnings")), "warning");
    show_trace(c, d);
}

/* Local decisions. */

/* "routing_rules.json:12:7: …", one line each; one error in JSON. */
static enum exit_status bad_rules(struct cli *c, struct str path, enum err e,
                                  const struct gate_problems *p)
{
    struct str rest = {p->text, p->n_bytes};
    enum exit_status status = EXIT_USAGE;
    struct buf words;

    if (!rest.n)
        return cli_error(c, e, "%.*s: %s", STR_ARG(path), err_row(e)->wording);
    buf_init(&words, 64 * 1024);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        buf_addf(&words, "%s%.*s:%.*s", words.n ? "; " : "", STR_ARG(path),
                 STR_ARG(line));
        if (c->json && rest.n)
            continue;
        status = cli_error(c, ERR_BAD_CONFIG, "%.*s", STR_ARG(buf_str(&words)));
        buf_clear(&words);
    }
    buf_fini(&words);
    return status;
}

static enum exit_status decide_here(struct cli *c,
                                    const struct dry_run_papers *in)
{
    enum exit_status status = EXIT_DONE;
    struct why why = {""};
    struct arena arena;
    struct buf out;
    enum err e;

    buf_init(&out, DECISION_BYTES);
    arena_init(&arena, 4 * (size_t)DECISION_BYTES);
    e = dry_run_decide(in, &out, &why);
    if (e) {
        status = cli_error(c, e, "%s", why.text);
    } else {
        const struct json *d = json_parse(&arena, buf_str(&out), 0, NULL);

        if (d)
            gate_try_show(c, d);
        else
            status = cli_error(c, ERR_NOMEM, "out of memory");
    }
    buf_fini(&out);
    arena_fini(&arena);
    return status;
}

static enum exit_status with_rules(struct cli *c, struct dry_run_papers *in)
{
    static struct gate_problems problems;
    struct str path = args_get(&c->args, "rules");
    enum exit_status status = EXIT_DONE;
    struct gate_rules *own = NULL;
    struct buf text;
    enum err e;

    in->rules = gate_rules_none();
    if (!args_has(&c->args, "rules"))
        return decide_here(c, in);
    if (gate_try_read_file(c, path, GATE_RULES_BYTES, &text, &status)) {
        e = gate_rules_read(buf_str(&text), &own, &problems);
        in->rules = own;
        status = e ? bad_rules(c, path, e, &problems) : decide_here(c, in);
    }
    buf_fini(&text);
    gate_rules_free(own);
    return status;
}

static enum exit_status try_here(struct cli *c, struct str envelope)
{
    struct dry_run_papers in = {
        .envelope = envelope, .state = STR("{}"), .with_trace = true};
    enum exit_status status = EXIT_DONE;
    struct buf state;

    if (!read_now(c, &in.now_ms, &status))
        return status;
    if (!args_has(&c->args, "state"))
        return with_rules(c, &in);
    if (gate_try_read_file(c, args_get(&c->args, "state"), GATE_STATE_BYTES,
                           &state, &status)) {
        in.state = buf_str(&state);
        status = with_rules(c, &in);
    }
    buf_fini(&state);
    return status;
}

static enum exit_status gate_ask_server(struct cli *c, struct str envelope)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;
    struct buf body;

    if (args_has(&c->args, "now"))
        return cli_error(c, ERR_USAGE,
                         "--now needs --rules or --state: a server uses its "
                         "own clock");
    if (json_check(envelope, NULL))
        return cli_error(c, ERR_USAGE, "the envelope is not valid JSON");
    cl = client_new(c, &status);
    if (!cl)
        return status;
    buf_init(&body, ENVELOPE_FILE_MAX + 1024);
    buf_add_str(&body, STR("{\"trace\":true,\"envelope\":"));
    buf_add_str(&body, envelope);
    buf_add_char(&body, '}');
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = STR("/api/gate"),
                                                 .body = buf_str(&body),
                                                 .notice = "Deciding"}))
        status = client_fail_to(cl);
    else
        gate_try_show(c, client_reply(cl)->json);
    buf_fini(&body);
    client_free(cl);
    return status;
}

enum exit_status cli_gate_try(struct cli *c, struct str path)
{
    enum exit_status status = EXIT_DONE;
    bool is_here = args_has(&c->args, "rules") || args_has(&c->args, "state");
    struct buf envelope;

    if (gate_try_read_file(c, path, ENVELOPE_FILE_MAX, &envelope, &status))
        status = is_here ? try_here(c, buf_str(&envelope))
                         : gate_ask_server(c, buf_str(&envelope));
    buf_fini(&envelope);
    return status;
}
