/* Of the server we know what it answered: that a task is there, and how it
 * stands. Each message has a key of its own, and asks for one turn; so tasks,
 * keys, conversations and the feed must tell the same story, whatever part of
 * it is there.
 *
 * The store's own code opens the folder first, as a server would; then SQL
 * compares, which is shorter than reading every row back. */
#include "test/crash/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "access/access.h"
#include "base/id.h"
#include "base/json.h"
#include "base/map.h"
#include "server/server.h"
#include "store/store.h"
#include "task/task.h"
#include "watch/watch.h"

enum { MAX_CLAIMS = 1000000, SAID_ARENA_BYTES = 4 * 1024 * 1024 };

struct claim {
    struct id id;
    enum task_status status; /* an end, or zero: only that it is there */
};

struct claims {
    struct map by_id;
};

static void die(const char *what)
{
    fprintf(stderr, "crash_images: %s\n", what);
    exit(2);
}

static void *claims_new(void)
{
    struct claims *c = calloc(1, sizeof(*c));

    if (!c)
        die("memory");
    map_init(&c->by_id, MAX_CLAIMS, (uint64_t[2]){1, 2});
    return c;
}

static void claims_free(void *claims)
{
    struct claims *c = claims;
    const struct map_slot *s;
    size_t at = 0;

    while ((s = map_next(&c->by_id, &at)))
        free(s->value);
    map_fini(&c->by_id);
    free(c);
}

static void claim(struct claims *c, struct str id, enum task_status status)
{
    struct claim *k = map_get(&c->by_id, id);

    if (!k) {
        k = calloc(1, sizeof(*k));
        if (!k || id.n >= sizeof(k->id.text))
            die("a claim");
        memcpy(k->id.text, id.p, id.n);
        if (map_put(&c->by_id, str_of(k->id.text), k) != OK)
            die("too many claims");
    }
    if (task_is_over(status))
        k->status = status;
}

/* The body of one answer, as the server sent it. */
static bool hear_body(struct claims *c, struct str body)
{
    struct arena scratch;
    struct json *root;
    struct str id, status;
    bool is_ack = false;

    arena_init(&scratch, SAID_ARENA_BYTES);
    root = json_parse(&scratch, body, 0, NULL);
    if (root) {
        id = json_str_or(json_get(root, STR("task_id")), STR(""));
        if (!id.n)
            id = json_str_or(json_get(root, STR("id")), STR(""));
        status = json_str_or(json_get(root, STR("status")), STR(""));
        is_ack = id_is_valid(id, "task");
        if (is_ack)
            claim(c, id, task_status_of(status));
    }
    arena_fini(&scratch);
    return is_ack;
}

static bool hear(void *claims, struct str said)
{
    const char *end;

    /* Its own log lines name tasks too; they promise nothing. */
    if (said.n < 9 || memcmp(said.p, "HTTP/1.1 ", 9) != 0)
        return false;
    end = memmem(said.p, said.n, "\r\n\r\n", 4);
    if (!end)
        die("an answer in parts: the recorder cannot put it together");
    end += 4;
    return hear_body(claims,
                     (struct str){end, said.n - (size_t)(end - said.p)});
}

/* One number from a statement; -1 with words in why. */
static int64_t ask(sqlite3 *db, const char *sql, struct why *why)
{
    sqlite3_stmt *st = NULL;
    int64_t n = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    else
        found(FOUND_DAMAGED, why, "%s", sqlite3_errmsg(db));
    sqlite3_finalize(st);
    return n;
}

/* Whatever is there is whole: each of these counts what is not. */
static enum finding check_whole(sqlite3 *db, struct why *why)
{
    static const char *const wrong[] = {
        /* told of in the feed as often as it happened */
        "WITH told AS (SELECT task_id, sum(type = 'task.accepted') AS begun, "
        "sum(type IN ('task.completed', 'task.failed', 'task.cancelled', "
        "'task.expired')) AS ended FROM feed WHERE task_id IS NOT NULL "
        "GROUP BY task_id) SELECT count(*) FROM task LEFT JOIN told "
        "ON task_id = id WHERE begun IS NOT turn OR "
        "ended IS NOT turn - 1 + (status BETWEEN 9 AND 12)",
        "SELECT count(*) FROM feed WHERE task_id IS NOT NULL AND "
        "task_id NOT IN (SELECT id FROM task)",
        "SELECT count(*) FROM task WHERE "
        "(finished_ms IS NULL) = (status BETWEEN 9 AND 12)",
        "SELECT abs((SELECT count(*) FROM idempotency_key) - "
        "(SELECT count(*) FROM task))",
        "SELECT count(*) FROM task WHERE conversation_id NOT IN "
        "(SELECT id FROM conversation)",
        "SELECT count(*) - count(DISTINCT text) FROM task",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int64_t n = ask(db, wrong[i], why);
        if (n < 0)
            return FOUND_DAMAGED;
        if (n > 0)
            return found(FOUND_HALF, why, "%lld wrong: %s", (long long)n,
                         wrong[i]);
    }
    return FOUND_NOTHING;
}

static enum finding check_claims(sqlite3 *db, const struct claims *c,
                                 struct why *why)
{
    enum finding f = FOUND_NOTHING;
    sqlite3_stmt *st = NULL;
    size_t n = 0;

    if (sqlite3_prepare_v2(db, "SELECT id, status FROM task", -1, &st, NULL))
        return found(FOUND_DAMAGED, why, "%s", sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW) {
        struct str id = str_of((const char *)sqlite3_column_text(st, 0));
        const struct claim *k = map_get(&c->by_id, id);
        if (!k)
            continue;
        n++;
        if (k->status && (int)k->status != sqlite3_column_int(st, 1))
            f = found(FOUND_LOST, why, "%s was said to be %.*s and is not",
                      k->id.text, STR_ARG(task_status_name(k->status)));
    }
    if (n != c->by_id.n)
        f = found(FOUND_LOST, why, "%zu tasks acknowledged, %zu of them there",
                  c->by_id.n, n);
    sqlite3_finalize(st);
    return f;
}

static enum finding look(const void *claims, const char *folder,
                         struct why *why)
{
    struct store_opts opts = {.folder = folder,
                              .schemas = server_schemas,
                              .n_schemas = server_n_schemas,
                              .max_waiting = 10,
                              .is_inline = true};
    enum finding f = FOUND_DAMAGED;
    char path[4096];
    sqlite3 *db = NULL;
    struct store *s;

    if (store_open(&s, &opts, why) != OK)
        return FOUND_CLOSED;
    store_close(s);
    snprintf(path, sizeof(path), "%s/signalbox.db", folder);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
        f = check_claims(db, claims, why);
    else
        found(f, why, "%s", sqlite3_errmsg(db));
    if (f == FOUND_NOTHING)
        f = check_whole(db, why);
    sqlite3_close(db);
    return f;
}

const struct check check_server = {"server", claims_new, claims_free, hear,
                                   look};
