/* signalbox_planted: the server with the mistake that PLANTED names, if any, so
 * that anyone who promises to notice it can be asked to. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

__attribute__((constructor)) static void arm(void)
{
    const char *mistake = getenv("PLANTED");

    if (mistake)
        fault_arm_at(strdup(mistake), 1); /* the server hides its own */
}
