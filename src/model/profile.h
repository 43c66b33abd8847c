#ifndef MODEL_PROFILE_H
#define MODEL_PROFILE_H

/* profile: what an agent is, as the one text whose vector stands for it.
 *
 * One form for all, so that what an evaluation measures is what a server does:
 * the words of the name, then the description. Threads: any; nothing here keeps
 * state. */

#include "base/buf.h"

/* The words of a name: "Alarm_1.GetAlarms_v2" is "Get Alarms v2". What stands
 * before the last dot tells names apart and says little. */
void profile_add_words(struct buf *out, struct str name);

/* "Get Alarms: Lists the alarms that are set". Without a description the words
 * alone; a description that says the words and no more is left out. */
void profile_add(struct buf *out, struct str name, struct str description);

#endif
