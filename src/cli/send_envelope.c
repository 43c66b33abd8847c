/* send --envelope FILE: an envelope goes as it stands in the file; what comes
 * back is what was decided of it. */
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
    static const char *const others[] = {
        "to",      "conversation", "task",    "key",      "wait",
        "no-wait", "stream",       "timeout", "max-cost", "quote"};

    if (a->n_operands)
        return "the envelope is the message: signalbox send --envelope FILE";
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (args_has(a, others[i]))
            return "what an envelope is, and for whom, stands in it: "
                   "--envelope goes with none of the other options";
    return NULL;
}

static enum err read_file(struct sending *s, struct str path)
{
    int fd = str_eq(path, STR("-")) ? dup(STDIN_FILENO)
                                    : open(path.p, O_RDONLY | O_CLOEXEC);
    enum err e;
    int was;

    if (fd < 0)
        return ERR_IO;
    e = slurp(fd, &s->text, ENVELOPE_MAX);
    was = errno;
    close(fd);
    errno = was;
    return e;
}

/* Its own id stays; one without gets ours, so that asking again after a broken
 * connection never sends it twice. */
static enum err give_id(struct sending *s, struct json_error *where)
{
    struct str text = buf_str(&s->text), key = STR("message_id"), found;
    struct json_out o;
    struct buf quoted, whole;
    enum err e = json_scan(text, &key, 1, &found, where);

    if (e || found.n)
        return e;
    buf_init(&quoted, 512);
    buf_init(&whole, ENVELOPE_MAX + 1024);
    o = json_out(&quoted);
    json_put_str(&o, s->key);
    e = json_splice(&whole, text, key, buf_str(&quoted), where);
    if (!e) {
        buf_clear(&s->text);
        buf_add_str(&s->text, buf_str(&whole));
    }
    buf_fini(&quoted);
    buf_fini(&whole);
    return e;
}

bool sending_envelope_read(struct sending *s, enum exit_status *status)
{
    struct str path = args_get(&s->c->args, "envelope");
    struct json_error where = {.what = NULL};
    enum err e = read_file(s, path);

    if (e == ERR_IO)
        *status = cli_error(s->c, e, "cannot read %.*s: %s",
                            STR_ARG(str_head(path, 200)), strerror(errno));
    else if (e)
        *status = cli_error(s->c, e,
                            "an envelope may be 1 MiB, and this is "
                            "more");
    if (e)
        return false;
    e = give_id(s, &where);
    if (!e)
        return true;
    *status =
        cli_error(s->c, ERR_USAGE, "%.*s:%u:%u: %s",
                  STR_ARG(str_head(path, 200)), where.line, where.col,
                  where.what ? where.what : "an envelope is a JSON object");
    return false;
}

/* Showing. */

static void show(struct cli *c, const char *what, struct str value)
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
        show(s->c, shown[i][0], cli_field(answer, str_of(shown[i][1])));
    if (warnings && warnings->type == JSON_ARR) {
        JSON_EACH(kid, warnings)
        {
            show(s->c, "warning", json_str_or(kid, STR("")));
        }
    }
    return EXIT_DONE;
}
