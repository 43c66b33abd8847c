/* Text of several agents at once. Each line belongs to one agent. Lines of
 * agents other than the one that answers begin with the agent's name, so that
 * readers and grep can separate them:
 *
 *     Let me look that up.
 *     docs: Restarts are in chapter 4.
 *     It is safe: nothing is lost.
 *
 * The first text of an agent is shown at once. But two agents that stream word
 * by word would interrupt each other's line with every word. So an agent whose
 * line was interrupted gets the next one only with a complete line or
 * LINE_BYTES. The answer itself never waits. */
#include "cli/sending.h"

#include <stdio.h>

enum { LINE_BYTES = 200, PENDING_MAX = 64 * 1024 };

static void voice_put_text(struct sending *s, struct str text)
{
    if (!text.n)
        return;
    cli_text(s->c, text);
    s->is_within = text.p[text.n - 1] != '\n';
}

void sending_end_line(struct sending *s)
{
    if (s->is_within)
        buf_add_char(&s->c->out, '\n');
    s->is_within = false;
}

/* From here on the line belongs to v; NULL: to the answer. */
static void voice_take_line(struct sending *s, struct voice *v)
{
    if (s->speaker == v)
        return;
    if (s->speaker)
        s->speaker->is_cut = s->is_within;
    sending_end_line(s);
    s->speaker = v;
}

static void put_lines(struct sending *s, struct voice *v, struct str text)
{
    voice_take_line(s, v);
    while (text.n) {
        size_t end = str_find(text, '\n', 0);
        size_t n = end < text.n ? end + 1 : text.n;

        if (!s->is_within)
            buf_addf(&s->c->out, end ? "%s: " : "%s:", v->name);
        voice_put_text(s, str_sub(text, 0, n));
        text = str_sub(text, n, text.n);
    }
}

static void let_out(struct sending *s, struct voice *v)
{
    v->is_cut = false;
    put_lines(s, v, buf_str(&v->pending));
    buf_clear(&v->pending);
}

/* Agents beyond the limit share the last voice, which takes their name. */
static struct voice *voice_of(struct sending *s, struct str agent)
{
    struct cli_room room;
    struct str name = str_head(cli_tame(&room, agent), AGENT_NAME_MAX);
    struct voice *v;

    for (int i = 0; i < s->n_voices; i++)
        if (str_eq(name, str_of(s->voices[i].name)))
            return &s->voices[i];
    if (s->n_voices < SENDING_VOICES) {
        v = &s->voices[s->n_voices++];
        buf_init(&v->pending, PENDING_MAX);
    } else {
        v = &s->voices[SENDING_VOICES - 1];
        let_out(s, v);
        voice_take_line(s, NULL);
    }
    snprintf(v->name, sizeof(v->name), "%.*s", STR_ARG(name));
    return v;
}

void sending_others(struct sending *s, struct str agent, struct str text)
{
    struct voice *v = voice_of(s, agent);

    if (!v->is_cut || !s->is_within || s->speaker == v || !s->speaker) {
        let_out(s, v);
        put_lines(s, v, text);
        /* Show pending text of agents while the line is free. */
        for (int i = 0; i < s->n_voices && !s->is_within; i++)
            if (s->voices[i].pending.n)
                let_out(s, &s->voices[i]);
        return;
    }
    buf_add_str(&v->pending, text);
    if (v->pending.n >= LINE_BYTES ||
        str_find(buf_str(&v->pending), '\n', 0) < v->pending.n)
        let_out(s, v);
}

void sending_own(struct sending *s, struct str text)
{
    if (!text.n)
        return;
    voice_take_line(s, NULL);
    voice_put_text(s, text);
}

void sending_let_all(struct sending *s)
{
    for (int i = 0; i < s->n_voices; i++)
        if (s->voices[i].pending.n)
            let_out(s, &s->voices[i]);
}

void sending_voices_fini(struct sending *s)
{
    for (int i = 0; i < s->n_voices; i++)
        buf_fini(&s->voices[i].pending);
    s->n_voices = 0;
}
