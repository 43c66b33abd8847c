#ifndef SIGNALBOX_GATE_H
#define SIGNALBOX_GATE_H

/* libsignalbox-gate: may a message go now? The gate of Signalbox as a function
 * of the rules, what is known, the message and the time, without a server.
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
 * Documents are JSON, as docs/gate.md describes them. Nothing is read from or
 * written to anywhere, nothing is kept between calls. Threads: any number may
 * use one gate at the same time. */

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

/* "0.1.0"; constant. */
SIGNALBOX_GATE_API const char *signalbox_gate_version(void);

/* Rules from the text of a routing_rules.json, which need not outlive the call;
 * rules NULL: those that hold where there is no file. NULL: they are none, or
 * there is no memory; *error (if error is not NULL) is then a text to be freed:
 * what is wrong, a line for each, "12:7: …". */
SIGNALBOX_GATE_API struct signalbox_gate *
signalbox_gate_new(const char *rules, size_t rules_bytes, char **error);

/* NULL is fine. */
SIGNALBOX_GATE_API void signalbox_gate_free(struct signalbox_gate *gate);

enum {
    /* Also tell every rule that was asked, and why it fired or not. */
    SIGNALBOX_GATE_TRACE = 1 << 0,
};

/* The decision on an envelope, as JSON, to be freed. state NULL: nothing is
 * known. now_ms: Unix time in milliseconds. NULL with *error as above. */
SIGNALBOX_GATE_API char *
signalbox_gate_decide(const struct signalbox_gate *gate, const char *state,
                      size_t state_bytes, const char *envelope,
                      size_t envelope_bytes, int64_t now_ms, unsigned flags,
                      char **error);

/* Free what the functions above gave. NULL is fine. */
SIGNALBOX_GATE_API void signalbox_gate_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
