/* The gate behind C strings. src/gate does the work; this file handles
 * ownership. */
#include "signalbox_gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gate/dry_run.h"

enum { DECISION_BYTES = 32 * 1024 * 1024 };

/* A library does not stop the program that links it: base/mem.h. */
void *mem_failed(size_t bytes)
{
    (void)bytes;
    return NULL;
}

struct signalbox_gate {
    const struct gate_rules *rules;
    struct gate_rules *own; /* NULL: no rules were given */
};

const char *signalbox_gate_version(void)
{
    return SIGNALBOX_VERSION;
}

/* A copy that ends in NUL; NULL: out of memory. */
static char *copy_of(struct str s)
{
    return mem_copy(s.p, s.n);
}

static void say(char **error, struct str words)
{
    if (error)
        *error = copy_of(words);
}

static enum err read_rules(struct str text, struct gate_rules **own,
                           char **error)
{
    struct gate_problems *problems = mem_new(sizeof(*problems));
    enum err e = problems ? gate_rules_read(text, own, problems) : ERR_NOMEM;

    if (e && problems && problems->n_bytes)
        say(error, (struct str){problems->text, problems->n_bytes});
    else if (e)
        say(error, str_of(err_row(e)->wording));
    free(problems);
    return e;
}

struct signalbox_gate *signalbox_gate_new(const char *rules, size_t rules_bytes,
                                          char **error)
{
    struct signalbox_gate *g = mem_new(sizeof(*g));

    if (error)
        *error = NULL;
    if (!g) {
        say(error, str_of(err_row(ERR_NOMEM)->wording));
        return NULL;
    }
    if (rules && read_rules((struct str){rules, rules_bytes}, &g->own, error)) {
        free(g);
        return NULL;
    }
    g->rules = g->own ? g->own : gate_rules_none();
    return g;
}

void signalbox_gate_free(struct signalbox_gate *gate)
{
    if (gate)
        gate_rules_free(gate->own);
    free(gate);
}

char *signalbox_gate_decide(const struct signalbox_gate *gate,
                            const char *state, size_t state_bytes,
                            const char *envelope, size_t envelope_bytes,
                            int64_t now_ms, unsigned flags, char **error)
{
    struct dry_run_papers in = {
        .rules = gate->rules,
        .state = state ? (struct str){state, state_bytes} : STR("{}"),
        .envelope = {envelope, envelope ? envelope_bytes : 0},
        .now_ms = now_ms,
        .with_trace = flags & SIGNALBOX_GATE_TRACE,
    };
    char *decision = NULL;
    struct why why = {""};
    struct buf out;
    enum err e;

    if (error)
        *error = NULL;
    buf_init(&out, DECISION_BYTES);
    e = dry_run_decide(&in, &out, &why);
    if (!e)
        decision = copy_of(buf_str(&out));
    if (!decision)
        say(error, why.text[0] ? str_of(why.text)
                               : str_of(err_row(e ? e : ERR_NOMEM)->wording));
    buf_fini(&out);
    return decision;
}

void signalbox_gate_text_free(char *text)
{
    free(text);
}
