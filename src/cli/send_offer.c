/* Which agent is meant, asked at a terminal: after a refusal that names
 * candidates, and after an answer that the server marks as unsure.
 *
 * Asked once. A message that names its agent is neither refused for want of one
 * nor unsure. In a pipe, with --json and with --to there is no question: a
 * program has the candidates in the answer, and the caller of --to has chosen.
 * An unsure answer has used its idempotency key up, so that the second message
 * needs another; a key that the caller gave is for one message, and then there
 * is no question either. */
#include "cli/sending.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_BYTES = 32, TRIES = 3 };

static bool may_ask(const struct sending *s)
{
    return isatty(STDIN_FILENO) && s->c->on_terminal && s->c->notices &&
           !s->c->json && !s->to.n && !s->task.n && !s->is_envelope &&
           !args_has(&s->c->args, "no-wait");
}

void sending_offer(struct sending *s, struct str decision_id,
                   const struct json *candidates, struct str except)
{
    if (!may_ask(s) || !candidates || candidates->type != JSON_ARR)
        return;
    if (id_is_valid(decision_id, "dec"))
        snprintf(s->decision_id, sizeof(s->decision_id), "%.*s",
                 STR_ARG(decision_id));
    JSON_EACH(kid, candidates)
    {
        struct str name = cli_field(kid, STR("agent"));

        if (s->n_offered == SENDING_OFFERED)
            return;
        if (!name.n || name.n > AGENT_NAME_MAX || str_eq(name, except))
            continue;
        snprintf(s->offered[s->n_offered++], sizeof(s->offered[0]), "%.*s",
                 STR_ARG(name));
    }
}

/* A line of the terminal, without its end; what is longer is cut. False: there
 * is none. */
static bool read_line(char *line, size_t room)
{
    size_t n = 0;
    char byte;

    for (;;) {
        if (read(STDIN_FILENO, &byte, 1) != 1)
            return false;
        if (byte == '\n')
            break;
        if (n + 1 < room)
            line[n++] = byte;
    }
    line[n] = '\0';
    return true;
}

static void ask(struct sending *s)
{
    client_notice_off(s->cl);
    fputs("Send it to: ", stderr);
    for (int i = 0; i < s->n_offered; i++) {
        struct str name = cli_tamed(s->c, str_of(s->offered[i]));

        fprintf(stderr, "%s%d %.*s", i ? "  " : "", i + 1, STR_ARG(name));
    }
    fputs("; Enter: none\n> ", stderr);
}

bool sending_choose(struct sending *s)
{
    char line[LINE_BYTES];

    if (!s->n_offered)
        return false;
    /* Nothing is under way that Ctrl-C would have to cancel; it ends us. */
    signal(SIGINT, SIG_DFL);
    if (client_was_interrupted(s->cl))
        return false;
    for (int i = 0; i < TRIES; i++) {
        struct str said;
        int64_t at;

        ask(s);
        if (!read_line(line, sizeof(line)))
            return false;
        said = str_trim(str_of(line));
        if (!said.n)
            return false;
        if (str_to_i64(said, &at) == OK && at >= 1 && at <= s->n_offered) {
            s->to = str_of(s->offered[at - 1]);
            s->quote = (struct str){NULL, 0}; /* it was another agent's */
            return true;
        }
        fprintf(stderr,
                "signalbox send: say a number from 1 to %d, or only "
                "Enter\n",
                s->n_offered);
    }
    return false;
}

void sending_say_how_to_teach(struct sending *s)
{
    struct str name = cli_tamed(s->c, s->to);

    if (!s->decision_id[0] || cli_flush(s->c, EXIT_DONE))
        return;
    fprintf(stderr,
            "\nTo have it go there from now on: signalbox decisions override "
            "%s %.*s\n",
            s->decision_id, STR_ARG(name));
}
