/* send --envelope FILE: the envelope is sent unchanged, and the output is the
 * gate's decision. */
#include "cli/sending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/slurp.h"

enum { ENVELOPE_MAX = 1024 * 1024 };

const char *sending_envelope_usage(const struct sending *s)
{
    const struct args *a = &s->c->args;
    static const char *const others[] = {"to",     "conversation", "task",
                                         "key",    "wait",         "no-wait",
                                         "stream", "timeout",      "quote"};

    if (a->n_operands)
        return "the envelope is the message: signalbox send --envelope FILE";
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (args_has(a, others[i]))
            return "the envelope has all its fields in the file: only "
                   "--max-cost can be combined with --envelope";
    return NULL;
}

static enum err envelope_insert(struct sending *s, struct str key,
                                struct str value, struct json_error *where)
{
    struct buf whole;
    enum err e;

    buf_init(&whole, ENVELOPE_MAX + 1024);
    e = json_splice(&whole, buf_str(&s->text), key, value, where);
    if (!e) {
        buf_clear(&s->text);
        buf_add_str(&s->text, buf_str(&whole));
    }
    buf_fini(&whole);
    return e;
}

/* An envelope without an id gets one, so that a repeated request after a lost
 * connection never sends it twice. */
static enum err envelope_give_id(struct sending *s, struct json_error *where)
{
    struct str key = STR("message_id"), found;
    struct json_out o;
    struct buf quoted;
    enum err e = json_scan(buf_str(&s->text), &key, 1, &found, where);

    if (e || found.n)
        return e;
    buf_init(&quoted, 512);
    o = json_out(&quoted);
    json_put_str(&o, s->key);
    e = envelope_insert(s, key, buf_str(&quoted), where);
    buf_fini(&quoted);
    return e;
}

/* Add --max-cost. ERR_EXISTS: the envelope already has it. */
static enum err give_max_cost(struct sending *s, struct json_error *where)
{
    struct str key = STR("max_cost_micros"), found;
    char number[24];
    enum err e;

    if (s->max_cost < 0)
        return OK;
    e = json_scan(buf_str(&s->text), &key, 1, &found, where);
    if (e || (found.n && !str_eq(found, STR("null"))))
        return e ? e : ERR_EXISTS;
    snprintf(number, sizeof(number), "%lld", (long long)s->max_cost);
    return envelope_insert(s, key, str_of(number), where);
}

bool sending_envelope_read(struct sending *s, enum exit_status *status)
{
    struct str path = args_get(&s->c->args, "envelope");
    int fd = str_eq(path, STR("-")) ? dup(STDIN_FILENO)
                                    : open(path.p, O_RDONLY | O_CLOEXEC);
    struct json_error where = {.what = NULL};
    enum err e = fd < 0 ? ERR_IO : slurp(fd, &s->text, ENVELOPE_MAX);
    int was = errno;

    if (fd >= 0)
        close(fd);
    if (e == ERR_IO)
        *status = cli_error(s->c, e, "cannot read %.*s: %s",
                            STR_ARG(str_head(path, 200)), strerror(was));
    else if (e)
        *status =
            cli_error(s->c, e, "the envelope is larger than 1 MiB, the limit");
    if (e)
        return false;
    e = envelope_give_id(s, &where);
    if (!e)
        e = give_max_cost(s, &where);
    if (!e)
        return true;
    if (e == ERR_EXISTS) {
        *status = cli_error(s->c, ERR_USAGE,
                            "%.*s has max_cost_micros: leave out --max-cost",
                            STR_ARG(str_head(path, 200)));
        return false;
    }
    *status =
        cli_error(s->c, ERR_USAGE, "%.*s:%u:%u: %s",
                  STR_ARG(str_head(path, 200)), where.line, where.col,
                  where.what ? where.what : "an envelope is a JSON object");
    return false;
}

/* Showing. */

static void envelope_show_line(struct cli *c, const char *what,
                               struct str value)
{
    if (value.n)
        buf_addf(&c->out, "%-11s %.*s\n", what, STR_ARG(cli_tamed(c, value)));
}

enum exit_status sending_passed(struct sending *s, const struct json *answer)
{
    static const char *const shown[][2] = {
        {"decision", "routing_decision"},
        {"target", "target"},
        {"reason", "reason"},
        {"rule", "rule"},
        {"sla", "sla"},
        {"held until", "held_until"},
        {"escalation", "escalation_id"},
        {"task", "task_id"},
    };

    const struct json *warnings = json_get(answer, STR("warnings"));

    client_notice_off(s->cl);
    if (s->c->json) {
        cli_json_line(&s->c->out, answer);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        envelope_show_line(s->c, shown[i][0],
                           cli_field(answer, str_of(shown[i][1])));
    if (warnings && warnings->type == JSON_ARR) {
        JSON_EACH(kid, warnings)
        {
            envelope_show_line(s->c, "warning", json_str_or(kid, STR("")));
        }
    }
    return EXIT_DONE;
}
