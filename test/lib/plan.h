#ifndef PLAN_H
#define PLAN_H

/* How SQLite would go about a question: what EXPLAIN QUERY PLAN says of the
 * very statement that the store prepares for it. */

#include "store/internal.h"
#include "test/t.h"

enum { PLAN_BYTES = 2048 };

static void plan_explain(sqlite3 *sql, const char *text, char out[PLAN_BYTES])
{
    char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", text);
    sqlite3_stmt *s = NULL;

    CHECK(explain);
    if (sqlite3_prepare_v2(sql, explain, -1, &s, NULL) != SQLITE_OK)
        T_FAIL("%s: %s", text, sqlite3_errmsg(sql));
    out[0] = '\0';
    while (sqlite3_step(s) == SQLITE_ROW)
        snprintf(out + strlen(out), PLAN_BYTES - strlen(out), "%s; ",
                 (const char *)sqlite3_column_text(s, 3));
    sqlite3_finalize(s);
    sqlite3_free(explain);
}

/* The plan for q on the database at `path`. */
static void plan_of(const char *path, const struct query *q,
                    char out[PLAN_BYTES])
{
    atomic_bool is_stopping = false;
    sqlite3_stmt *s = NULL;
    struct reader r;

    CHECK(reader_open(&r, path, &is_stopping, NULL) == OK);
    if (stmts_for_query(&r.stmts, q, &s) != SQLITE_OK)
        T_FAIL("%s", sqlite3_errmsg(r.sql));
    plan_explain(r.sql, sqlite3_sql(s), out);
    reader_close(&r);
}

/* Whether nothing is sorted, and nothing walked whole but the few keys that a
 * merge has found ("SCAN m0"). */
static bool plan_is_quick(const char *plan)
{
    for (const char *p = plan; (p = strstr(p, "SCAN ")); p++)
        if (strncmp(p, "SCAN m", 6) != 0 || p[6] < '0' || p[6] > '9')
            return false;
    return strstr(plan, "SEARCH ") && !strstr(plan, "TEMP B-TREE") &&
           !strstr(plan, "MULTI-INDEX OR");
}

#endif
