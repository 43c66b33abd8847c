#ifndef GATE_DRY_RUN_H
#define GATE_DRY_RUN_H

/* dry_run: a decision of the gate without effect, as JSON, for the command
 * line, the library and POST /api/gate. The members are those of speak_pass,
 * with `logged` false and without a channel; plus `trace` on request: every
 * rule that was evaluated, {section, rule, fired, why}. Threads: any. */

#include "gate/rules/rules.h"

/* The trace while deciding. */
struct dry_run {
    struct buf lines;
    struct gate_trace trace;
    bool is_wanted;
};
void dry_run_init(struct dry_run *t, bool with_trace);
void dry_run_fini(struct dry_run *t);
/* For gate_decide; NULL without a trace. */
const struct gate_trace *dry_run_trace(struct dry_run *t);

/* Write the whole object after the decision. `text` is the envelope's text: an
 * envelope without a message_id gets an id derived from it, so that equal texts
 * get equal ids. False: out of memory. */
MUST_USE bool dry_run_write(struct dry_run *t, const struct envelope *e,
                            struct str text, const struct gate_result *p,
                            int64_t now_ms, struct buf *out);

/* The whole dry run, from documents, without a server. */
struct dry_run_papers {
    const struct gate_rules *rules;
    struct str state, envelope;
    int64_t now_ms;
    bool with_trace;
};
MUST_USE enum err dry_run_decide(const struct dry_run_papers *in,
                                 struct buf *out, struct why *why);

#endif
