#ifndef SIGNALBOX_GATE_H
#define SIGNALBOX_GATE_H

/* libsignalbox-gate: may a message go now? The gate of Signalbox without a
 * server, as a function of the rules, the state of agents and history, the
 * message and the time.
 *
 *     char *error = NULL;
 *     struct signalbox_gate *g = signalbox_gate_new(rules, strlen(rules),
 *                                                   &error);
 *     char *decision = signalbox_gate_decide(g, state, strlen(state),
 *                                            envelope, strlen(envelope),
 *                                            now_ms, 0, &error);
 *     puts(decision ? decision : error);
 *     signalbox_gate_text_free(decision);
 *     signalbox_gate_text_free(error);
 *     signalbox_gate_free(g);
 *
 * Documents are JSON, as in docs/gate.md. The library does no input or output
 * and keeps nothing between calls. Without memory a call fails; the library
 * never aborts. Threads: any number may use one gate at the same time. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SIGNALBOX_GATE_API __attribute__((visibility("default")))
#else
#define SIGNALBOX_GATE_API
#endif

struct signalbox_gate;

/* "0.1.0"; a constant. */
SIGNALBOX_GATE_API const char *signalbox_gate_version(void);

/* Read rules from the text of a routing_rules.json, which need not outlive the
 * call. rules NULL: the rules that apply without a file. Returns NULL if they
 * are invalid or memory runs out; *error (unless error is NULL) is then a text
 * for the caller to free: the problems, one per line, "12:7: …". */
SIGNALBOX_GATE_API struct signalbox_gate *
signalbox_gate_new(const char *rules, size_t rules_bytes, char **error);

/* NULL is fine. */
SIGNALBOX_GATE_API void signalbox_gate_free(struct signalbox_gate *gate);

enum {
    /* Also report every rule that was evaluated, and why it fired or not. */
    SIGNALBOX_GATE_TRACE = 1 << 0,
};

/* Decide on an envelope. Returns the decision as JSON, for the caller to free.
 * state NULL: no agents and no history. now_ms: Unix time in milliseconds. NULL
 * with *error as above. */
SIGNALBOX_GATE_API char *
signalbox_gate_decide(const struct signalbox_gate *gate, const char *state,
                      size_t state_bytes, const char *envelope,
                      size_t envelope_bytes, int64_t now_ms, unsigned flags,
                      char **error);

/* Free a text that a function above returned. NULL is fine. */
SIGNALBOX_GATE_API void signalbox_gate_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
