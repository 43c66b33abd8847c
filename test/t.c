/* The tests of a program, and which of them runs in this process. Apart from
 * the runner, since fuzzers and benchmarks stand on the stages of tests too,
 * and have a main of their own. */
#include "test/t.h"

struct t_case *t_first;
static struct t_case **t_last = &t_first;
const char *t_name = "?";

void t_add(struct t_case *c)
{
    *t_last = c;
    t_last = &c->next;
}
