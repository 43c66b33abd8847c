/* Several who speak at once, for one who reads. What is said stands on lines
 * that each belong to one of them; those of other agents than the one that
 * answers begin with their name, so that they can be told apart, and taken
 * out, by eye and by grep:
 *
 *     Let me look that up.
 *     docs: Restarts are in chapter 4.
 *     It is safe: nothing is lost.
 *
 * Whoever begins to speak is shown at once. But two who go on word by word
 * would take each other's line away with every word: so one who was cut short
 * gets the line back with a whole line, or LINE_BYTES, and not before. The
 * answer itself waits for nobody. */
#include "cli/sending.h"

#include <stdio.h>

enum { LINE_BYTES = 200, PENDING_MAX = 64 * 1024 };

static void put_text(struct sending *s, struct str text)
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

/* The line is v's from here on; NULL: the answer's. */
static void take_line(struct sending *s, struct voice *v)
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
    take_line(s, v);
    while (text.n) {
        size_t end = str_find(text, '\n', 0);
        size_t n = end < text.n ? end + 1 : text.n;

        if (!s->is_within)
            buf_addf(&s->c->out, end ? "%s: " : "%s:", v->name);
        put_text(s, str_sub(text, 0, n));
        text = str_sub(text, n, text.n);
    }
}

static void let_out(struct sending *s, struct voice *v)
{
    v->is_cut = false;
    put_lines(s, v, buf_str(&v->pending));
    buf_clear(&v->pending);
}

/* Who has something and nobody's line to wait for. */
static void let_others(struct sending *s)
{
    for (int i = 0; i < s->n_voices && !s->is_within; i++)
        if (s->voices[i].pending.n)
            let_out(s, &s->voices[i]);
}

/* More than there is room for share the last one's: the name is theirs. */
static struct voice *voice_of(struct sending *s, struct str agent)
{
    struct cli_room room;
    struct str who = str_head(cli_tame(&room, agent), AGENT_NAME_MAX);
    struct voice *v;

    for (int i = 0; i < s->n_voices; i++)
        if (str_eq(who, str_of(s->voices[i].name)))
            return &s->voices[i];
    if (s->n_voices < SENDING_VOICES) {
        v = &s->voices[s->n_voices++];
        buf_init(&v->pending, PENDING_MAX);
    } else {
        v = &s->voices[SENDING_VOICES - 1];
        let_out(s, v);
        take_line(s, NULL);
    }
    snprintf(v->name, sizeof(v->name), "%.*s", STR_ARG(who));
    return v;
}

void sending_others(struct sending *s, struct str agent, struct str text)
{
    struct voice *v = voice_of(s, agent);

    if (!v->is_cut || !s->is_within || s->speaker == v || !s->speaker) {
        let_out(s, v);
        put_lines(s, v, text);
        let_others(s);
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
    take_line(s, NULL);
    put_text(s, text);
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
