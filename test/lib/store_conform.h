#ifndef STORE_CONFORM_H
#define STORE_CONFORM_H

/* What store.h promises, whatever is behind it: a kind of store is one when
 * all of this passes, unchanged. Nothing here knows of SQLite or looks into a
 * file. See store_stage.h for what a test program defines first. */

#include "test/lib/store_conform_life.h"
#include "test/lib/store_conform_read.h"
#include "test/lib/store_conform_write.h"

#endif
