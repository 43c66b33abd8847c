#ifndef MODEL_PROFILE_H
#define MODEL_PROFILE_H

/* profile: the text whose vector represents an agent.
 *
 * One form for all, so that an evaluation measures the server's behavior: the
 * words of the name, then the description. Threads: any; no state. */

#include "base/buf.h"

/* The words of a name: "Alarm_1.GetAlarms_v2" is "Get Alarms v2". The part
 * before the last dot distinguishes names and says little. */
void profile_add_words(struct buf *out, struct str name);

/* "Get Alarms: Lists the alarms that are set". Only the words if the
 * description is empty or repeats them. */
void profile_add(struct buf *out, struct str name, struct str description);

#endif
