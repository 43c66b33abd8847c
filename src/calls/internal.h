#ifndef CALLS_INTERNAL_H
#define CALLS_INTERNAL_H

#include "calls/calls.h"

/* health.c: is it there, is it ready, how is it doing. */
void call_front(struct call *c);
void call_healthz(struct call *c);
void call_readyz(struct call *c);
void call_metrics(struct call *c);

#endif
