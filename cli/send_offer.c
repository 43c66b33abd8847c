/* At a terminal, ask which agent should get the message: after a refusal with
 * candidates, and after an answer that the server marks as unsure.
 *
 * The question comes once, because a message that names its agent is neither
 * refused for lack of one nor unsure. In a pipe, with --json and with --to
 * there is no question: a program has the candidates in the answer, and the
 * user of --to has chosen. An unsure answer has used up its idempotency key, so
 * the second message needs another one. A key from the caller is for one
 * message, so then there is no question either. */
#include "cli/sending.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_BYTES = 32, TRIES = 3 };

void sending_offer(struct sending *s, struct str decision_id,
                   const struct json *candidates, struct str except)
{
    bool may_ask = isatty(STDIN_FILENO) && s->c->on_terminal && s->c->notices &&
                   !s->c->json && !s->to.n && !s->task.n && !s->is_envelope &&
                   !args_has(&s->c->args, "no-wait");

    if (!may_ask || !candidates || candidates->type != JSON_ARR)
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

/* A line from the terminal, without its newline, cut to `room`. False: end of
 * input. */
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

bool sending_choose(struct sending *s)
{
    char line[LINE_BYTES];

    if (!s->n_offered)
        return false;
    /* There is no task that Ctrl-C would have to cancel; it ends the command.
     */
    signal(SIGINT, SIG_DFL);
    if (client_was_interrupted(s->cl))
        return false;
    for (int i = 0; i < TRIES; i++) {
        struct str choice;
        int64_t at;

        client_notice_off(s->cl);
        fputs("Send it to: ", stderr);
        for (int k = 0; k < s->n_offered; k++) {
            struct str name = cli_tamed(s->c, str_of(s->offered[k]));

            fprintf(stderr, "%s%d %.*s", k ? "  " : "", k + 1, STR_ARG(name));
        }
        fputs("; Enter: none\n> ", stderr);
        if (!read_line(line, sizeof(line)))
            return false;
        choice = str_trim(str_of(line));
        if (!choice.n)
            return false;
        if (str_to_i64(choice, &at) == OK && at >= 1 && at <= s->n_offered) {
            s->to = str_of(s->offered[at - 1]);
            s->quote = (struct str){NULL, 0}; /* for another agent */
            return true;
        }
        fprintf(stderr,
                "signalbox send: enter a number from 1 to %d, or only press "
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
            "\nTo send similar messages there in future: signalbox decisions "
            "override %s %.*s\n",
            s->decision_id, STR_ARG(name));
}
