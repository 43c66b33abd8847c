#ifndef TRIAL_H
#define TRIAL_H

/* trial: a decision of the gate that nothing comes of, as JSON: what the
 * command line, the library and POST /api/gate give. The members are those of
 * speak_pass, `logged` false and posted nowhere; and `trace`, if it is wanted:
 * every rule that was asked, {section, rule, fired, why}. Threads: any. */

#include "gate/gate.h"

/* What is told while it is decided. */
struct trial {
    struct buf lines;
    struct gate_trace trace;
    bool is_wanted;
};
void trial_init(struct trial *t, bool with_trace);
void trial_fini(struct trial *t);
/* For gate_decide; NULL where no trace is wanted. */
const struct gate_trace *trial_trace(struct trial *t);

/* The whole object, once it is decided. `text` is the envelope's own: what has
 * no message_id is called by it, so that the same is called the same. False: no
 * memory. */
MUST_USE bool trial_write(struct trial *t, const struct envelope *e,
                          struct str text, const struct pass *p, int64_t now_ms,
                          struct buf *out);

/* All of it from documents, without a server. */
struct trial_papers {
    const struct gate_rules *rules;
    struct str state, envelope;
    int64_t now_ms;
    bool with_trace;
};
MUST_USE enum err trial_decide(const struct trial_papers *in, struct buf *out,
                               struct why *why);

#endif
