/* signalbox_shuffled: the models inside with one fault, that every word has the
 * row of another. The floors of the quality test are held against it. */
#include "base/fault.h"

__attribute__((constructor)) static void arm(void)
{
    fault_arm_at("embed.shuffled", 1);
}
